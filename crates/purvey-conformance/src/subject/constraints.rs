//! Searches of a whole catalog: which of the entries that match come out, in which order.

use super::complete;
use crate::adapter::Role;
use crate::agent::{guarded, visit};
use crate::case::{Fault, Input, Outcome};
use crate::peer::{self, Peer};
use crate::service::Service;
use http::{StatusCode, header};
use purvey_agent::{Error, Item};
use purvey_odp::problem::{self, Problem};
use purvey_odp::service::Operation;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What came of a search.
enum Found {
    Ids(Vec<String>),
    /// The Collection that it names does not exist.
    NoCollection,
}

/// The Offerings that a search finds in a catalog of these Collections, in which these Offerings match the text.
pub(super) fn offerings(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let matches: Vec<Value> = input.read("service_matches")?;
    let ids: Vec<&str> = matches.iter().map(id).collect::<Result<_, _>>()?;
    let request: Map<String, Value> = input.read("request")?;
    let names = Names::new(&ids, request.get("query"));
    let collections: Vec<Value> = input.read("collections")?;
    let service = Service::empty()?;
    write(&service, &collections, &Names::new(&[], None))?;
    for offering in &matches {
        store(&service, "offerings", &names.entry(offering)?)?;
    }
    let found = search(role, service, Operation::SearchOfferings, request)?;
    let expected = match found {
        Found::Ids(ids) => names.said(&ids)?.into(),
        Found::NoCollection => json!("not-found"),
    };
    Ok(Outcome::new().with("expected", expected))
}

/// The Collections that a search finds among these, of which these match the text.
pub(super) fn collections(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let matches: Vec<String> = input.read("service_matches")?;
    let ids: Vec<&str> = matches.iter().map(String::as_str).collect();
    let mut request: Map<String, Value> = input.read("request")?;
    let names = Names::new(&ids, request.get("query"));
    let collections: Vec<Value> = input.read("collections")?;
    if request.get("query").is_none() && collections.len() != ids.len() {
        return Err(Fault("without a text everything matches".to_owned()));
    }
    if let Some(Value::String(parent)) = request.get_mut("parent_id") {
        *parent = names.id(parent);
    }
    let service = Service::empty()?;
    write(&service, &collections, &names)?;
    match search(role, service, Operation::SearchCollections, request)? {
        Found::Ids(ids) => Ok(Outcome::new().with("collection_ids", names.said(&ids)?)),
        Found::NoCollection => Err(Fault("a Collection was not found".to_owned())),
    }
}

fn id(entry: &Value) -> Result<&str, Fault> {
    let id = entry.get("id").and_then(Value::as_str);
    id.ok_or_else(|| Fault(format!("{entry} has no id")))
}

/// How a catalog is made in which just these entries match, and in that order by the Service's own choice.
///
/// Ours orders what matches equally well by identifier. So those that match have the text as their name, no other entry has any
/// of it, and the identifiers of the former begin with their place.
struct Names<'a> {
    matching: Vec<&'a str>,
    text: Option<String>,
}

impl<'a> Names<'a> {
    fn new(matches: &[&'a str], query: Option<&Value>) -> Self {
        let mut seen = BTreeSet::new();
        let mut matching = matches.to_vec();
        matching.retain(|id| seen.insert(*id));
        Self {
            matching,
            text: query.and_then(Value::as_str).map(str::to_owned),
        }
    }

    /// The identifier in the catalog; it stays as it is when the entry does not match.
    fn id(&self, said: &str) -> String {
        match self.matching.iter().position(|id| *id == said) {
            Some(place) => format!("{place:04}-{said}"),
            None => said.to_owned(),
        }
    }

    /// The entry as it is written.
    fn entry(&self, entry: &Value) -> Result<Value, Fault> {
        let said = id(entry)?;
        let mut written = entry.clone();
        written["id"] = self.id(said).into();
        if let (Some(text), true) = (&self.text, self.matching.contains(&said)) {
            written["name"] = text.as_str().into();
        }
        Ok(complete::resource(written))
    }

    /// The identifiers that the case has for these.
    fn said(&self, found: &[String]) -> Result<Vec<Value>, Fault> {
        let said = |found: &String| {
            let id = self.matching.iter().find(|id| self.id(id) == *found);
            id.map(|id| Value::from(*id))
                .ok_or_else(|| Fault(format!("{found} was found, which does not match")))
        };
        found.iter().map(said).collect()
    }
}

/// Writes the Collections, and those that they name as parents and the case leaves out; parents first.
fn write(service: &Service, collections: &[Value], names: &Names<'_>) -> Result<(), Fault> {
    let ids: Vec<&str> = collections.iter().map(id).collect::<Result<_, _>>()?;
    let parents = |collection: &Value| -> Vec<String> {
        let parents = collection.get("parent_ids").and_then(Value::as_array);
        let parents = parents.into_iter().flatten().filter_map(Value::as_str);
        parents.map(str::to_owned).collect()
    };
    let mut missing: Vec<String> = collections.iter().flat_map(parents).collect();
    missing.retain(|id| !ids.contains(&id.as_str()));
    for id in &missing {
        store(service, "collections", &names.entry(&json!({"id": id}))?)?;
    }
    for collection in collections {
        let mut root = names.entry(collection)?;
        if let Value::Object(map) = &mut root {
            map.shift_remove("parent_ids");
        }
        store(service, "collections", &root)?;
    }
    for collection in collections {
        let mut whole = names.entry(collection)?;
        let parents: Vec<String> = parents(collection).iter().map(|id| names.id(id)).collect();
        if !parents.is_empty() {
            whole["parent_ids"] = parents.into();
            store(service, "collections", &whole)?;
        }
    }
    Ok(())
}

fn store(service: &Service, kind: &str, entry: &Value) -> Result<(), Fault> {
    match service.put(kind, entry)? {
        true => Ok(()),
        false => Err(Fault(format!("{entry} was refused"))),
    }
}

/// Sends the request as it is, or has an Agent make one that means the same; both to the running Service.
fn search(
    role: Role,
    service: Service,
    operation: Operation,
    request: Map<String, Value>,
) -> Result<Found, Fault> {
    match role {
        Role::Service => posted(&service, operation, request),
        Role::Agent => by_an_agent(service, operation, &request),
    }
}

fn posted(
    service: &Service,
    operation: Operation,
    request: Map<String, Value>,
) -> Result<Found, Fault> {
    let path = service.path(operation, None)?;
    let response = service.search(&path, &request.into(), Some(purvey_odp::media::ODP))?;
    if response.status == StatusCode::NOT_FOUND {
        let problem = serde_json::from_slice(&response.body).map_err(Fault::of("problem"))?;
        let problem = Problem::validate(problem, 404).map_err(Fault::of("problem"))?;
        return match problem.code() {
            problem::Code::NotFound => Ok(Found::NoCollection),
            code => Err(Fault(format!("the code is {}", code.as_str()))),
        };
    }
    if response.status != StatusCode::OK {
        return Err(Fault(format!("{}: {}", response.status, response.text())));
    }
    let page = response.document()?;
    let items = page.get("items").and_then(Value::as_array);
    let items = items.filter(|_| page.get("next").is_none());
    let items = items.ok_or_else(|| Fault(format!("not the one page: {page}")))?;
    let ids = items.iter().map(|item| id(item).map(str::to_owned));
    Ok(Found::Ids(ids.collect::<Result<_, _>>()?))
}

fn by_an_agent(
    service: Service,
    operation: Operation,
    request: &Map<String, Value>,
) -> Result<Found, Fault> {
    const KNOWN: [&str; 5] = [
        "odp_version",
        "query",
        "collection_id",
        "include_descendants",
        "parent_id",
    ];
    if let Some(other) = request.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(Fault(format!("the member {other} is not known")));
    }
    let peer = Peer::start(move |seen| through(&service, seen))?;
    let text = |member: &str| request.get(member).and_then(Value::as_str);
    let ids = visit(&peer, guarded(), async |service| {
        Ok(match operation {
            Operation::SearchOfferings => {
                let mut search = service.search();
                if let Some(query) = text("query") {
                    search = search.query(query);
                }
                if let Some(collection) = text("collection_id") {
                    search = search.in_collection(collection);
                }
                if request.get("include_descendants") == Some(&Value::Bool(true)) {
                    search = search.descendants();
                }
                ids(search.collect().await)
            }
            _ => {
                let mut search = service.search_collections();
                if let Some(query) = text("query") {
                    search = search.query(query);
                }
                if let Some(parent) = text("parent_id") {
                    search = search.children_of(parent);
                } else if request.contains_key("parent_id") {
                    search = search.roots();
                }
                ids(search.collect().await)
            }
        })
    })?;
    match ids {
        Ok(ids) => Ok(Found::Ids(ids)),
        Err(error) if error.code().as_str() == "NOT_FOUND" && error.status() == Some(404) => {
            Ok(Found::NoCollection)
        }
        Err(error) => Err(Fault(error.to_string())),
    }
}

fn ids<T: Item>(found: Result<Vec<T>, Error>) -> Result<Vec<String>, Error> {
    let found = found?;
    Ok(found.iter().map(|item| item.id().to_string()).collect())
}

/// The running Service behind a socket.
fn through(service: &Service, seen: &peer::Seen) -> peer::Reply {
    let fields: Vec<(&str, &str)> = seen
        .headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    let response = service.send(
        seen.method.clone(),
        &seen.target,
        &fields,
        seen.body.clone(),
    );
    let Ok(response) = response else {
        return peer::Reply::problem(500, "INTERNAL_ERROR");
    };
    let mut reply = peer::Reply::new(response.status.as_u16()).body(response.body.to_vec());
    for (name, value) in &response.headers {
        let framing = [
            header::CONTENT_LENGTH,
            header::CONNECTION,
            header::TRANSFER_ENCODING,
        ];
        if let (false, Ok(value)) = (framing.contains(name), value.to_str()) {
            reply = reply.with(name.as_str(), value);
        }
    }
    reply
}
