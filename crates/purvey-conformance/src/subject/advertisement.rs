//! What a Service advertises: protocols and search capabilities.

use super::complete;
use crate::adapter::Role;
use crate::case::{Fault, Input, Outcome};
use purvey_odp::capability::{
    EffectiveCapabilities, Fetched, Issue, LinkedSource, ScopeCapabilities, SearchCapabilities,
};
use purvey_odp::filter::FilterDefinition;
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use purvey_odp::page::PageEnvelope;
use purvey_odp::report::{Invalid, Place, Report};
use purvey_odp::service::ServiceDocument;
use purvey_odp::sort::SortDefinition;
use serde_json::{Map, Value, json};

fn document(operations: &[&str], member: &str, value: Value) -> Value {
    complete::service_document(operations, Map::from_iter([(member.to_owned(), value)]))
}

const BASELINE: [&str; 2] = ["list-offerings", "get-offering"];

pub(super) fn protocols(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let document = document(&BASELINE, "protocols", input.member("protocols")?);
    Ok(Outcome::valid(ServiceDocument::validate(document).is_ok()))
}

/// What an Agent has left of the protocols, as long as the document around them is still valid.
pub(super) fn known_protocols(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let document = document(&BASELINE, "protocols", input.member("protocols")?);
    let (document, _) =
        ServiceDocument::receive(document).map_err(Fault::of("Service Document"))?;
    let mut document = document.to_value();
    let protocols = document.get_mut("protocols").map(Value::take);
    Ok(Outcome::new().with("expected", protocols.unwrap_or_else(|| json!({}))))
}

fn origin(input: &Input) -> Result<ServiceOrigin, Fault> {
    let text: String = input.read("service_origin")?;
    ServiceOrigin::parse(&text, LocalDevelopment::Refused).map_err(Fault::of("service_origin"))
}

/// The advertisement with whole definitions, in a Service Document, and its links held to the origin.
pub(super) fn capabilities(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let origin = origin(input)?;
    let mut advertisement = input.member("advertisement")?;
    let mut inline = |pointer: &str, complete: &dyn Fn(Value) -> Value| {
        for definition in advertisement
            .pointer_mut(pointer)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            *definition = complete(definition.take());
        }
    };
    inline("/filters/inline", &complete::filter);
    let filter_id = advertisement
        .pointer("/filters/inline/0/id")
        .and_then(Value::as_str);
    let filter_id = filter_id.unwrap_or("filter").to_owned();
    let mut inline_sorts = advertisement
        .pointer_mut("/sorts/inline")
        .and_then(Value::as_array_mut);
    for definition in inline_sorts.iter_mut().flat_map(|sorts| sorts.iter_mut()) {
        *definition = complete::sort(definition.take(), &filter_id);
    }
    let mut operations: Vec<String> = input.read("operations")?;
    for name in BASELINE {
        if !operations.iter().any(|known| known == name) {
            operations.push(name.to_owned());
        }
    }
    let operations: Vec<&str> = operations.iter().map(String::as_str).collect();
    let document = document(&operations, "search_capabilities", advertisement.clone());
    let valid =
        ServiceDocument::validate(document).is_ok() && at_origin(advertisement, &origin).is_ok();
    Ok(Outcome::valid(valid))
}

fn at_origin(advertisement: Value, origin: &ServiceOrigin) -> Result<SearchCapabilities, Invalid> {
    let mut report = Report::new();
    let capabilities = SearchCapabilities::read(&mut report, &Place::ROOT, advertisement);
    if let Some(capabilities) = &capabilities {
        capabilities.check_origin(&mut report, &Place::ROOT, origin);
    }
    report.finish(capabilities)
}

/// Reads the pages as an Agent does that follows the link.
pub(super) fn linked_source(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let origin = origin(input)?;
    let method: String = input.read("method")?;
    let advertisement = json!({"filters": {"linked": {"href": input.member("href")?}}});
    let pages: Vec<Value> = input.read("pages")?;
    let valid =
        method == "GET" && at_origin(advertisement, &origin).is_ok() && collect(pages, &origin);
    Ok(Outcome::valid(valid))
}

/// A source of so many pages, each with one definition of its own.
pub(super) fn page_count(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let count: usize = input.read("page_count")?;
    let origin = ServiceOrigin::parse("https://market.example", LocalDevelopment::Refused)
        .map_err(Fault::of("origin"))?;
    let page = |i: usize| {
        let mut page = json!({"odp_version": "1.0", "items": [{"id": format!("f{i}")}]});
        if i < count {
            page["next"] = format!("/odp/filters/{}", i + 1).into();
        }
        page
    };
    Ok(Outcome::valid(collect(
        (1..=count).map(page).collect(),
        &origin,
    )))
}

fn collect(pages: Vec<Value>, origin: &ServiceOrigin) -> bool {
    let mut source = LinkedSource::<FilterDefinition>::new(&[]);
    for page in pages {
        let page = PageEnvelope::validate(page, origin, |report, place, value| {
            FilterDefinition::read(report, place, complete::filter(value))
        });
        let taken = page.is_ok_and(|page| source.push(page.items, page.next.is_some()).is_ok());
        if !taken {
            return false;
        }
    }
    source.finish().is_ok()
}

/// The capabilities of a search that names the Collection, if it names one; those of other Collections are not looked at.
pub(super) fn merge(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let collection = match input.get("collection_id") {
        Some(_) => Some(scope(&input.member("selected_collection")?)?),
        None => None,
    };
    let effective = EffectiveCapabilities::merge(scope(&input.member("service")?)?, collection);
    let filters: Value = effective
        .filters()
        .iter()
        .map(|filter| filter.id().as_str())
        .collect();
    let sorts: Value = effective
        .sorts()
        .iter()
        .map(|sort| sort.id().as_str())
        .collect();
    let issues: Value = effective.issues().iter().map(Issue::to_string).collect();
    let expected = json!({"filter_ids": filters, "sort_ids": sorts, "issues": issues});
    Ok(Outcome::new().with("expected", expected))
}

fn scope(value: &Value) -> Result<ScopeCapabilities, Fault> {
    let definitions = |name: &str| {
        value
            .get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
            .into_iter()
    };
    let filters: Result<Vec<_>, _> = definitions("filters")
        .map(|value| FilterDefinition::validate(complete::filter(value)))
        .collect();
    let sorts: Result<Vec<_>, _> = definitions("sorts")
        .map(|value| SortDefinition::validate(complete::sort(value, "filter")))
        .collect();
    Ok(ScopeCapabilities {
        filters: Fetched::Definitions(filters.map_err(Fault::of("Filter Definition"))?),
        sorts: Fetched::Definitions(sorts.map_err(Fault::of("Sort Definition"))?),
    })
}
