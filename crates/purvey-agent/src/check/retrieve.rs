//! Single resources: Full and Terse, what they refer to, and those that do not exist.

use super::documents::Refusal;
use super::list::Lists;
use super::pages::id_of;
use super::probe::{Ask, Exhausted, Probe, Reply};
use super::rules;
use crate::{Code, EnrichedOffering, Error, Issue, IssueCode, Scope, Service};
use http::header;
use purvey_odp::collection::{Collection, TerseCollection};
use purvey_odp::decode::Bounds;
use purvey_odp::detail;
use purvey_odp::identity::LocalId;
use purvey_odp::offering::{Offering, Placement, Representation, TerseOffering};
use purvey_odp::report::Invalid;
use purvey_odp::service::{Operation, ServiceDocument};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// An identifier that no Service has.
pub(super) const UNKNOWN: &str = "purvey-check.no-such-thing~0";

pub(super) async fn check(
    probe: &mut Probe<'_>,
    document: &ServiceDocument,
    lists: &Lists,
) -> Result<(), Exhausted> {
    probe.step("single Offerings");
    let offerings = samples(&lists.offerings.ids(), probe.extent.samples);
    let read = resources(probe, document, Operation::GetOffering, &offerings).await?;
    references(probe, document, lists, &read).await?;
    probe.step("single Collections");
    let collections = samples(&lists.collections.ids(), probe.extent.samples);
    resources(probe, document, Operation::GetCollection, &collections).await?;
    probe.step("what Offerings refer to");
    if document.operation(Operation::GetOffering).is_some()
        && let Some(service) = probe.agent().await?
    {
        for (id, request) in read.iter().map(|(id, read)| (id, &read.request)) {
            enrich(probe, &service, id, request).await?;
        }
    }
    Ok(())
}

/// Identifiers spread over the whole, the first and the last among them.
pub(super) fn samples(ids: &[&str], most: usize) -> Vec<LocalId> {
    let last = ids.len().saturating_sub(1);
    let wanted = most.min(ids.len());
    let steps = wanted.saturating_sub(1).max(1);
    (0..wanted)
        .filter_map(|i| ids.get(i * last / steps))
        .filter_map(|id| LocalId::parse(id).ok())
        .collect()
}

/// A Full Representation as it came.
struct Read {
    request: String,
    value: Value,
}

async fn resources(
    probe: &mut Probe<'_>,
    document: &ServiceDocument,
    operation: Operation,
    ids: &[LocalId],
) -> Result<BTreeMap<String, Read>, Exhausted> {
    let mut read = BTreeMap::new();
    let Ok(unknown) = LocalId::parse(UNKNOWN) else {
        return Ok(read);
    };
    // Without one to be had, the one that is not there says whether it is to be had at all.
    let first = ids.first().unwrap_or(&unknown);
    if probe
        .admitted(document, operation, Some(first))
        .await?
        .is_none()
    {
        return Ok(read);
    }
    for (i, id) in ids.iter().enumerate() {
        let Some(url) = probe.operation(document, operation, Some(id)) else {
            continue;
        };
        if let Some(full) = resource(probe, &Ask::get(url), operation, id, i == 0).await? {
            read.insert(id.as_str().to_owned(), full);
        }
    }
    if let Some(url) = probe.operation(document, operation, Some(&unknown)) {
        let refusal = Refusal::new(&rules::GET_NOT_FOUND, &[404]);
        probe.refused(Ask::get(url), refusal).await?;
    }
    Ok(read)
}

async fn resource(
    probe: &mut Probe<'_>,
    ask: &Ask,
    operation: Operation,
    id: &LocalId,
    closely: bool,
) -> Result<Option<Read>, Exhausted> {
    let Some((reply, full)) = one(probe, ask, operation, id, Representation::Full).await? else {
        return Ok(None);
    };
    let named = ask.clone().query("representation=full");
    if let Some((named, value)) = one(probe, &named, operation, id, Representation::Full).await? {
        let same = members(&full).eq(members(&value));
        probe.hold(&rules::REPRESENTATION_DEFAULT, &named, same, || {
            "Without representation, other members come.".to_owned()
        });
    }
    let terse = ask.clone().query("representation=terse");
    if let Some((reply, value)) = one(probe, &terse, operation, id, Representation::Terse).await? {
        compare(probe, &reply, &full, &value);
    }
    if closely {
        let etag = reply.header(header::ETAG).is_some();
        probe.hold(&rules::GET_ETAG, &reply, etag, || {
            "There is no ETag.".to_owned()
        });
        probe.conditional(ask, &reply).await?;
        probe.head(ask, &reply).await?;
        probe.method_refused(ask).await?;
        for query in [
            "representation=brief",
            "representation=terse&representation=full",
        ] {
            let refusal = Refusal::new(&rules::REPRESENTATION_INVALID, &[400]);
            probe.refused(ask.clone().query(query), refusal).await?;
        }
        let html = ask.clone().header(header::ACCEPT, "text/html");
        let refusal = Refusal::new(&rules::HTTP_NOT_ACCEPTABLE, &[406]);
        probe.refused(html, refusal).await?;
    }
    Ok(Some(Read {
        request: reply.request,
        value: full,
    }))
}

/// The members of a document, in no order.
fn members(value: &Value) -> impl Iterator<Item = &String> {
    let names: BTreeSet<_> = value.as_object().into_iter().flat_map(Map::keys).collect();
    names.into_iter()
}

async fn one(
    probe: &mut Probe<'_>,
    ask: &Ask,
    operation: Operation,
    id: &LocalId,
    representation: Representation,
) -> Result<Option<(Reply, Value)>, Exhausted> {
    let Some(reply) = probe.ask(ask.clone()).await? else {
        return Ok(None);
    };
    if !probe.is_answered(&reply, &rules::GET_STATUS) {
        return Ok(None);
    }
    let Some(value) = probe.document(&reply, Bounds::RESOURCE) else {
        return Ok(None);
    };
    let validated = validate(operation, representation, value.clone());
    probe.valid(&reply, Some(representation), validated.as_ref().err());
    let found = id_of(&value).unwrap_or_default();
    probe.hold_at(
        &rules::GET_ID,
        &reply.request,
        "/id",
        found == id.as_str(),
        || format!("The id is {found:?}."),
    );
    Ok(Some((reply, value)))
}

fn validate(
    operation: Operation,
    representation: Representation,
    value: Value,
) -> Result<(), Invalid> {
    let top = Placement::TopLevel;
    match (operation, representation) {
        (Operation::GetCollection, Representation::Full) => {
            Collection::validate(value, top).map(|_| ())
        }
        (Operation::GetCollection, Representation::Terse) => {
            TerseCollection::validate(value, top).map(|_| ())
        }
        (_, Representation::Full) => Offering::validate(value, top).map(|_| ()),
        (_, Representation::Terse) => TerseOffering::validate(value, top).map(|_| ()),
    }
}

fn compare(probe: &mut Probe<'_>, reply: &Reply, full: &Value, terse: &Value) {
    for rule in [&rules::TERSE_FIELDS, &rules::TERSE_DETAIL_FIELDS] {
        probe.outcome.exercise(rule);
    }
    let faults = detail::check(full, terse).err();
    for violation in faults.iter().flat_map(Invalid::violations) {
        let rule = match violation.pointer.starts_with("/detail_fields") {
            true => &rules::TERSE_DETAIL_FIELDS,
            false => &rules::TERSE_FIELDS,
        };
        let pointer = &violation.pointer;
        probe
            .outcome
            .find(rule, &reply.request, pointer, &violation.reason);
    }
    let mut cut = Vec::new();
    truncated(full, terse, &mut String::new(), &mut cut);
    let at = cut.first().cloned().unwrap_or_default();
    probe.hold_at(
        &rules::TERSE_TRUNCATED,
        &reply.request,
        &at,
        cut.is_empty(),
        || "The text is only the beginning of what Full has.".to_owned(),
    );
}

/// The places where a text of `terse` is a mere beginning of what `full` has there, an ellipsis aside.
fn truncated(full: &Value, terse: &Value, at: &mut String, cut: &mut Vec<String>) {
    match (full, terse) {
        (Value::Object(full), Value::Object(terse)) => {
            for (name, part) in terse {
                if let Some(whole) = full.get(name) {
                    let length = at.len();
                    purvey_odp::pointer::push_token(at, name);
                    truncated(whole, part, at, cut);
                    at.truncate(length);
                }
            }
        }
        (Value::String(whole), Value::String(part)) => {
            let kept = part.trim_end_matches(['.', '…', ' ']);
            let is_text = whole.contains(' ') && !kept.is_empty();
            // A text may have changed meanwhile, but hardly into its own beginning.
            if is_text && whole != part && whole.starts_with(kept) && part.len() < whole.len() {
                cut.push(at.clone());
            }
        }
        _ => {}
    }
}

/// The Collections that Offerings name exist.
async fn references(
    probe: &mut Probe<'_>,
    document: &ServiceDocument,
    lists: &Lists,
    read: &BTreeMap<String, Read>,
) -> Result<(), Exhausted> {
    let mut known = lists.collections.set();
    let mut missing = BTreeSet::new();
    for (request, value) in read.values().map(|read| (&read.request, &read.value)) {
        let ids = value.get("collection_ids").and_then(Value::as_array);
        for (i, id) in ids.into_iter().flatten().enumerate() {
            let Some(id) = id.as_str().and_then(|id| LocalId::parse(id).ok()) else {
                continue;
            };
            let text = id.as_str();
            if !known.contains(text) && !missing.contains(text) {
                let url = probe.operation(document, Operation::GetCollection, Some(&id));
                let Some(url) = url else {
                    continue;
                };
                let Some(reply) = probe.ask(Ask::get(url)).await? else {
                    continue;
                };
                match reply.status.as_u16() {
                    404 => missing.insert(text.to_owned()),
                    _ => known.insert(text.to_owned()),
                };
            }
            let kept = !missing.contains(text);
            let at = format!("/collection_ids/{i}");
            probe.hold_at(&rules::OFFERING_COLLECTION, request, &at, kept, || {
                format!("{text} is answered with 404.")
            });
        }
    }
    Ok(())
}

/// Reads an Offering as an Agent does: its schema and its Actions with it.
async fn enrich(
    probe: &mut Probe<'_>,
    service: &Service,
    id: &str,
    request: &str,
) -> Result<(), Exhausted> {
    let read = service.get_offering(id).await;
    probe.is_left()?;
    let why = read.as_ref().err().map(ToString::to_string);
    probe.hold_at(&rules::AGENT_READS, request, "", why.is_none(), || {
        why.unwrap_or_default()
    });
    let Ok(read) = read else {
        return Ok(());
    };
    let EnrichedOffering {
        schema,
        actions,
        issues,
        ..
    } = read;
    if schema.is_some() {
        probe.outcome.exercise(&rules::ATTRIBUTES_SCHEMA);
        probe.outcome.exercise(&rules::ATTRIBUTES_MATCH);
    }
    for _ in &actions {
        probe.outcome.exercise(&rules::ACTION_RESOLVES);
    }
    for issue in issues {
        let elsewhere = is_elsewhere(&issue, service);
        let rule = match (issue.scope, issue.code) {
            (Scope::Attributes | Scope::Action, _) if elsewhere => &rules::SUPPORTING_REACHABLE,
            (Scope::Attributes, IssueCode::Mismatch) => &rules::ATTRIBUTES_MATCH,
            (Scope::Attributes, _) => &rules::ATTRIBUTES_SCHEMA,
            (Scope::Action, _) => &rules::ACTION_RESOLVES,
            // What else an Agent drops was judged with the document.
            _ => continue,
        };
        probe.hold_at(rule, request, &issue.pointer, false, || issue.to_string());
    }
    Ok(())
}

/// Whether an issue is that another origin gave no response: it may be there for others.
fn is_elsewhere(issue: &Issue, service: &Service) -> bool {
    let cause = issue
        .cause
        .as_ref()
        .filter(|cause| cause.status().is_none());
    let url = cause.and_then(Error::url);
    url.is_some_and(|url| !service.origin().is_origin_of(url))
        && cause.is_some_and(|cause| {
            matches!(
                cause.code(),
                Code::NameNotResolved | Code::ConnectFailed | Code::ConnectionLost | Code::Timeout
            )
        })
}
