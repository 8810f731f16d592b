//! Whole requests and responses.

use super::complete;
use crate::adapter::Role;
use crate::case::{Fault, Input, Outcome};
use crate::service::Service;
use http::{Method, StatusCode, header};
use purvey_odp::action::HttpMethod;
use purvey_odp::collection::Collection;
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use purvey_odp::media;
use purvey_odp::offering::{Offering, Placement, TerseOffering};
use purvey_odp::page::PageEnvelope;
use purvey_odp::report::{Place, Report};
use purvey_odp::service::{Operation, ServiceDocument};
use purvey_odp::version::{self, ProtocolVersion};
use serde_json::{Map, Value, json};

/// A Service with one Collection and one Offering in it, both with more in full than in terse.
fn stocked() -> Result<Service, Fault> {
    let service = Service::empty()?;
    let images = json!([{"src": "/image.png"}]);
    let collection = json!({"id": "item", "name": "Example", "images": images});
    let offering =
        json!({"id": "item", "name": "Example", "collection_ids": ["item"], "images": images});
    if service.put("collections", &collection)? && service.put("offerings", &offering)? {
        Ok(service)
    } else {
        Err(Fault("the stock was refused".to_owned()))
    }
}

/// Asks for a representation and looks at what comes.
pub(super) fn representation(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let name: String = input.read("operation")?;
    let operation = Operation::from_name(&name)
        .ok_or_else(|| Fault(format!("the operation {name} is not known")))?;
    let wanted: Vec<String> = input.read_or_default("representation")?;
    let service = stocked()?;
    let query: Vec<String> = wanted
        .iter()
        .map(|wanted| format!("representation={wanted}"))
        .collect();
    let path = service.path(operation, operation.takes_id().then_some("item"))?;
    let target = format!("{path}?{}", query.join("&"));
    let response = match operation.method() {
        HttpMethod::Get => service.get(&target)?,
        HttpMethod::Post => service.search(&target, &query_request(), Some(media::ODP))?,
    };
    if response.status != StatusCode::OK {
        return Ok(Outcome::new().with("expected", response.status.as_str()));
    }
    let mut document = response.document()?;
    if let Some(first) = document.pointer_mut("/items/0") {
        document = first.take();
    }
    let found = match (
        document.get("images").is_some(),
        document.get("detail_fields").is_some(),
    ) {
        (true, false) => "full",
        (false, true) => "terse",
        _ => return Err(Fault(format!("neither terse nor full: {document}"))),
    };
    Ok(Outcome::new().with("expected", found))
}

/// One exchange: what is accepted, what a request carries, or what a response carries.
pub(super) fn media(role: Role, input: &Input) -> Result<Outcome, Fault> {
    if let Some(essence) = input
        .get("response_content_type_essence")
        .and_then(Value::as_str)
    {
        return received(essence, input);
    }
    let flag = |name| input.read_or_default::<bool>(name);
    let request_type = input
        .get("request_content_type_essence")
        .and_then(Value::as_str);
    let response = if request_type.is_some() || flag("request_content_type_missing")? {
        searched(role, request_type)?
    } else {
        let accept = match (
            flag("accepts_odp")?,
            flag("accepts_wildcard")?,
            flag("accept_missing")?,
        ) {
            (true, ..) => Some(media::ODP),
            (_, true, _) => Some("*/*"),
            (.., true) => None,
            _ => Some("text/html"),
        };
        read(role, accept)?
    };
    Ok(Outcome::new().with("response", response))
}

/// A request with this `Accept`.
fn read(role: Role, accept: Option<&str>) -> Result<String, Fault> {
    if role == Role::Agent {
        let accepted = media::accepts(accept, media::ODP);
        return Ok(if accepted { "serve-odp" } else { "406" }.to_owned());
    }
    let service = stocked()?;
    let fields: Vec<_> = accept
        .map(|accept| (header::ACCEPT.as_str(), accept))
        .into_iter()
        .collect();
    let path = service.path(Operation::ListOfferings, None)?;
    let response = service.send(Method::GET, &path, &fields, Vec::new())?;
    if response.status == StatusCode::OK {
        response.document()?;
        return Ok("serve-odp".to_owned());
    }
    Ok(response.status.as_str().to_owned())
}

/// A request with a document of this `Content-Type`: a search.
fn searched(role: Role, content_type: Option<&str>) -> Result<String, Fault> {
    if role == Role::Agent {
        let processed = content_type.and_then(media::essence).as_deref() == Some(media::ODP);
        return Ok(if processed { "process" } else { "415" }.to_owned());
    }
    let service = stocked()?;
    let path = service.path(Operation::SearchOfferings, None)?;
    let response = service.search(&path, &query_request(), content_type)?;
    if response.status == StatusCode::OK {
        response.document()?;
        return Ok("process".to_owned());
    }
    Ok(response.status.as_str().to_owned())
}

/// A search that finds what is [`stocked`].
fn query_request() -> Value {
    json!({"odp_version": "1.0", "query": "example"})
}

/// A response with this `Content-Type`, as an Agent takes it: parameters do not count, the body tells its version.
fn received(essence: &str, input: &Input) -> Result<Outcome, Fault> {
    let parameters: Map<String, Value> = input.read_or_default("parameters")?;
    let parameters = parameters
        .iter()
        .map(|(name, value)| format!("; {name}={}", value.as_str().unwrap_or_default()));
    let content_type = format!("{essence}{}", parameters.collect::<String>());
    let known = media::essence(&content_type).as_deref() == Some(media::ODP);
    let outcome = Outcome::new().with("agent", if known { "process" } else { "reject" });
    let Some(declared) = input.get("body_odp_version") else {
        return Ok(outcome);
    };
    let mut report = Report::new();
    let mut body = Map::from_iter([(version::MEMBER.to_owned(), declared.clone())]);
    let effective = ProtocolVersion::take(&mut report, &Place::ROOT, &mut body);
    let effective = report.finish(effective).map_err(Fault::of("body"))?;
    Ok(outcome.with("effective_odp_version", effective.to_string()))
}

/// Asks for what the caller has already, or has an older state of.
pub(super) fn conditional_get(input: &Input) -> Result<Outcome, Fault> {
    let (method, matches): (String, bool) =
        (input.read("method")?, input.read("validator_matches")?);
    let method: Method = method.parse().map_err(Fault::of("method"))?;
    let service = stocked()?;
    let path = service.path(Operation::ListOfferings, None)?;
    let first = service.send(method.clone(), &path, &[], Vec::new())?;
    let tag = first
        .field(header::ETAG)
        .ok_or_else(|| Fault("a page has no ETag".to_owned()))?;
    let held = if matches { tag } else { "\"something-else\"" };
    let again = service.send(
        method,
        &path,
        &[(header::IF_NONE_MATCH.as_str(), held)],
        Vec::new(),
    )?;
    let valid = match again.status {
        StatusCode::NOT_MODIFIED => again.body.is_empty() && again.field(header::ETAG) == Some(tag),
        _ => again.body == first.body,
    };
    Ok(Outcome::valid(valid).with("status", again.status.as_u16()))
}

/// Whether a Service with these operations may be, and ours gives these responses when it has these Offerings.
pub(super) fn baseline(input: &Input) -> Result<Outcome, Fault> {
    let operations: Vec<String> = input.read("operations")?;
    let operations: Vec<&str> = operations.iter().map(String::as_str).collect();
    if ServiceDocument::validate(complete::service_document(&operations, Map::new())).is_err() {
        return Ok(Outcome::valid(false));
    }
    let service = Service::empty()?;
    let advertised = service.service_document()?;
    let advertises = |name: &&str| {
        Operation::from_name(name).is_some_and(|name| advertised.operation(name).is_some())
    };
    let (list, get) = (
        input.member("list_response")?,
        input.member("get_response")?,
    );
    let items: Vec<Value> = list
        .get("items")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for item in &items {
        if !service.put("offerings", item)? {
            return Ok(Outcome::valid(false));
        }
    }
    let listed = service.document(&service.path(Operation::ListOfferings, None)?)? == list;
    let got = service.put("offerings", &get)? && {
        let path = service.path(
            Operation::GetOffering,
            get.get("id").and_then(Value::as_str),
        )?;
        service.document(&path)? == get
    };
    Ok(Outcome::valid(
        operations.iter().all(advertises) && listed && got,
    ))
}

/// The version where the case puts it: readers must take such documents or refuse them, and the Service must send only such.
pub(super) fn version_placement(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let (top_level, present): (bool, bool) =
        (input.read("top_level")?, input.read("odp_version_present")?);
    let read = read_with_version(top_level, present)?;
    if role == Role::Service {
        let sent = sent_with_version(top_level)?;
        if (sent == present) != read {
            return Err(Fault(format!(
                "the Service sends the version here: {sent}; readers take it: {read}"
            )));
        }
    }
    Ok(Outcome::valid(read))
}

/// Whether readers take documents with, or without, a version there; all must agree.
fn read_with_version(top_level: bool, present: bool) -> Result<bool, Fault> {
    let with = |mut document: Value| {
        if let Value::Object(map) = &mut document {
            map.shift_remove(version::MEMBER);
            if present {
                map.insert(version::MEMBER.to_owned(), "1.0".into());
            }
        }
        document
    };
    let resource = with(json!({"id": "item", "name": "Item"}));
    let service = with(complete::service_document(
        &["list-offerings", "get-offering"],
        Map::new(),
    ));
    let page = with(json!({"items": []}));
    let origin = ServiceOrigin::parse("https://market.example", LocalDevelopment::Refused)
        .map_err(Fault::of("origin"))?;
    let taken = if top_level {
        vec![
            Offering::validate(resource.clone(), Placement::TopLevel).is_ok(),
            Collection::validate(resource, Placement::TopLevel).is_ok(),
            ServiceDocument::validate(service).is_ok(),
            PageEnvelope::<()>::validate(page, &origin, |_, _, _| Some(())).is_ok(),
        ]
    } else {
        let page = json!({"odp_version": "1.0", "items": [resource.clone()]});
        vec![
            Offering::validate(resource.clone(), Placement::Embedded).is_ok(),
            TerseOffering::validate(resource, Placement::Embedded).is_ok(),
            PageEnvelope::validate(page, &origin, |report, place, item| {
                TerseOffering::read(report, place, item, Placement::Embedded)
            })
            .is_ok(),
        ]
    };
    agreed(&taken)
}

/// Whether what the Service sends has a version there.
fn sent_with_version(top_level: bool) -> Result<bool, Fault> {
    let service = stocked()?;
    let list = |operation, id| service.document(&service.path(operation, id)?);
    let pages = [
        list(Operation::ListOfferings, None)?,
        list(Operation::ListCollections, None)?,
        list(Operation::ListCollectionOfferings, Some("item"))?,
    ];
    let has = |document: &Value| {
        document
            .get(version::MEMBER)
            .is_some_and(|version| version == "1.0")
    };
    if !top_level {
        let items: Vec<bool> = pages
            .iter()
            .flat_map(|page| page["items"].as_array().into_iter().flatten())
            .map(has)
            .collect();
        return agreed(&items);
    }
    let documents = [
        service.document("/.well-known/odp")?,
        list(Operation::GetOffering, Some("item"))?,
        list(Operation::GetCollection, Some("item"))?,
    ];
    agreed(&documents.iter().chain(&pages).map(has).collect::<Vec<_>>())
}

fn agreed(answers: &[bool]) -> Result<bool, Fault> {
    match answers {
        [first, rest @ ..] if rest.iter().all(|answer| answer == first) => Ok(*first),
        _ => Err(Fault(format!("there is no one answer: {answers:?}"))),
    }
}
