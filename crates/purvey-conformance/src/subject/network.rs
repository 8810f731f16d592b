//! What an Agent lets into and out of the network.

use super::enriched::{OFFERING, offering, offering_of, site};
use crate::adapter::Role;
use crate::agent::{WaitingClock, built, guarded, run, visit};
use crate::case::{Fault, Input, Outcome};
use crate::peer::{self, Peer, Site};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use purvey_agent::cache::Cache;
use purvey_agent::transport::address::Destination;
use purvey_agent::transport::{
    Class, Fetch, Fetched, Guarded, Operation, Redirects, Resolve, Transport,
};
use purvey_agent::{Code, Error, Input as ActionInput, Service};
use purvey_odp::identity::LocalDevelopment;
use purvey_odp::{limits, media};
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use std::{io, iter};
use url::Url;

/// Whether an Agent that resolves a host to these addresses may go on with a connection to that one.
pub(super) fn destination(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let url: String = input.read("url")?;
    let url = Url::parse(&url).map_err(Fault::of("url"))?;
    let local = if input.read("local_development")? {
        LocalDevelopment::Allowed
    } else {
        LocalDevelopment::Refused
    };
    let resolved: Vec<IpAddr> = input.read("resolved_addresses")?;
    let connected: IpAddr = input.read("connected_address")?;
    let checked = Destination::of(&url, local).and_then(|destination| destination.check(&resolved));
    if let Err(refused) = &checked {
        let found = fetch_error(url, local, resolved)?;
        if found.code() != refused.code() {
            return Err(Fault(format!("checked: {refused}; fetched: {found}")));
        }
    }
    let valid = checked.is_ok_and(|checked| checked.admits(connected));
    Ok(Outcome::valid(valid))
}

/// What the real transport says to a URL whose host has these addresses, one of which is refused: it connects to none.
fn fetch_error(url: Url, local: LocalDevelopment, addresses: Vec<IpAddr>) -> Result<Error, Fault> {
    let transport = Guarded::builder()
        .local_development(local)
        .resolver(Addresses(addresses))
        .clock(WaitingClock::default());
    let transport = built(transport)?;
    let result = run(async {
        let fetch = Fetch::get(url, Class::AttributeSchema);
        Ok(transport.fetch(&operation(), fetch).await)
    })?;
    match result {
        Err(error) => Ok(error),
        Ok(fetched) => Err(Fault(format!("{} answered", fetched.url))),
    }
}

/// Resolves every name to these.
struct Addresses(Vec<IpAddr>);

impl Resolve for Addresses {
    fn resolve(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let addresses = self.0.clone();
        Box::pin(async { Ok(addresses) })
    }
}

fn operation() -> Operation {
    Operation::new(&purvey_retry::Policy::reads())
}

/// Whether an Agent follows a redirect from one URL to the other.
pub(super) fn redirect(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let url = |name| {
        let text: String = input.read(name)?;
        Url::parse(&text).map_err(Fault::of(name))
    };
    let (from, to) = (url("from")?, url("to")?);
    let location = HeaderValue::from_str(to.as_str()).map_err(Fault::of("to"))?;
    let headers = HeaderMap::from_iter([(header::LOCATION, location)]);
    let followed = Redirects::new(&from).follow(&Method::GET, StatusCode::FOUND, &headers);
    match followed {
        Ok(Some(next)) if next == to => Ok(Outcome::valid(true)),
        Err(error) if *error.code() == Code::RedirectRefused => Ok(Outcome::valid(false)),
        other => Err(Fault(format!("what was done is {other:?}"))),
    }
}

/// The value of a field that is none of the transport's own.
const SECRET: &str = "of-the-caller";

/// Which of the fields that the caller gave for its Service go along to what an Offering leads to, at that origin or another.
pub(super) fn forwarded(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let kind: String = input.read("request_kind")?;
    let fields: Vec<String> = input.read("input_fields")?;
    let leads_to = json!({"$schema": "https://json-schema.org/draft/2020-12/schema"});
    let elsewhere = Site::default()
        .on("/target", peer::Reply::json(media::SCHEMA, &leads_to))
        .start()?;
    let same: bool = input.read("same_origin")?;
    let base = match same {
        true => String::new(),
        false => elsewhere.origin()?.as_str().to_owned(),
    };
    let mut schema = leads_to.clone();
    schema["$ref"] = format!("{base}/target").into();
    let openapi = json!({
        "openapi": "3.1.0", "info": {"title": "Example", "version": "1"},
        "servers": [{"url": format!("{base}/")}],
        "paths": {"/target": {"post": {"operationId": "act", "responses": {}}}},
    });
    let refers = match kind.as_str() {
        "supporting-document" => json!({"schema": {"url": "/schema"}, "attributes": {"a": 1}}),
        "action" => json!({"actions": [{
            "id": "act", "rel": "invoke", "authentication": "required",
            "openapi": {"url": "/openapi", "operation_id": "act"},
        }]}),
        _ => return Err(Fault(format!("the request kind {kind} is not known"))),
    };
    let service = site(Map::new())
        .on(OFFERING, offering(refers))
        .on("/schema", peer::Reply::json(media::SCHEMA, &schema))
        .on("/openapi", peer::Reply::json("application/json", &openapi))
        .on("/target", peer::Reply::json(media::SCHEMA, &leads_to))
        .start()?;
    call(&service, &fields)?;
    let carried = |request: &peer::Seen| -> Vec<&String> {
        let carries = |name: &&String| request.field(name) == Some(SECRET);
        fields.iter().filter(carries).collect()
    };
    let own = service.at(OFFERING);
    if own.len() != 1 || own.iter().any(|own| carried(own).len() != fields.len()) {
        return Err(Fault("the Service itself did not get them".to_owned()));
    }
    let target = if same { &service } else { &elsewhere };
    match &target.at("/target")[..] {
        [request] => Ok(Outcome::new().with("expected", json!(carried(request)))),
        requests => Err(Fault(format!("{} requests came", requests.len()))),
    }
}

/// Reads the Offering of a Service with these fields as credentials, and invokes its Action if it has one.
fn call(peer: &Peer, fields: &[String]) -> Result<(), Fault> {
    let origin = peer.origin()?;
    let mut transport = guarded();
    for name in fields {
        let name: HeaderName = name.parse().map_err(Fault::of("input_fields"))?;
        let secret = HeaderValue::from_static(SECRET);
        transport = transport.credential(origin.clone(), name, secret);
    }
    visit(peer, transport, async |service| {
        let found = offering_of(&service).await?;
        if let Some(action) = found.action("act") {
            let invoked = service.invoke(action, ActionInput::new()).await;
            invoked.map_err(Fault::of("Action"))?;
        }
        Ok(())
    })
}

/// Whether what was stored for one request answers another one that differs from it in this.
pub(super) fn cache_reusable(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let page = peer::Reply::document(&json!({"odp_version": "1.0", "items": []}))
        .with("cache-control", "private, max-age=600");
    let peer = Site::default()
        .on("/one", page.clone())
        .on("/other", page)
        .start()?;
    let cache = Cache::memory(1_048_576);
    let same = |what: &str| input.read::<bool>(&format!("same_{what}"));
    let one = ask(
        &peer,
        &cache,
        Fetch::get(peer.url("/one")?, Class::Page),
        true,
        true,
    )?;
    let url = peer.url(if same("url")? { "/one" } else { "/other" })?;
    let again = match same("method")? {
        true => Fetch::get(url, Class::Page),
        false => Fetch::post(url, Class::Search, "{}".into()),
    };
    let again = ask(
        &peer,
        &cache,
        again,
        same("representation_inputs")?,
        same("authentication_context")?,
    )?;
    match (one.from_cache, again.from_cache, peer.seen().len()) {
        (false, reused @ true, 1) | (false, reused @ false, 2) => Ok(Outcome::valid(reused)),
        other => Err(Fault(format!("there is no one answer: {other:?}"))),
    }
}

fn ask(
    peer: &Peer,
    cache: &Cache,
    mut fetch: Fetch,
    usual_language: bool,
    usual_caller: bool,
) -> Result<Fetched, Fault> {
    let language = if usual_language { "en" } else { "de" };
    fetch.accept_language = Some(language.to_owned());
    let caller = if usual_caller {
        "Bearer one"
    } else {
        "Bearer other"
    };
    let transport = guarded().cache(cache.clone()).credential(
        peer.origin()?,
        header::AUTHORIZATION,
        HeaderValue::from_static(caller),
    );
    let transport = built(transport)?;
    run(async {
        let fetched = transport.fetch(&operation(), fetch).await;
        fetched.map_err(Fault::of("fetch"))
    })
}

/// The Service's one list.
const LIST: &str = "/odp/offerings";

fn page(ids: impl IntoIterator<Item = String>, next: Option<&str>) -> Value {
    let items: Value = ids
        .into_iter()
        .map(|id| json!({"id": id, "name": "Example"}))
        .collect();
    let mut page = json!({"odp_version": "1.0", "items": items});
    if let Some(next) = next {
        page["next"] = next.into();
    }
    page
}

/// Lists again what was listed before, when the Service still has it like that, or has not.
pub(super) fn conditional_get(input: &Input) -> Result<Outcome, Fault> {
    let method: String = input.read("method")?;
    let matches: bool = input.read("validator_matches")?;
    let mut site = site(Map::new());
    let tagged = |id: &str| {
        peer::Reply::document(&page([id.to_owned()], None))
            .with("cache-control", "no-cache")
            .with("etag", &format!("\"{id}\""))
    };
    site = site.on(LIST, tagged("before"));
    site = match matches {
        true => site.on(LIST, peer::Reply::new(304).with("etag", "\"before\"")),
        false => site.on(LIST, tagged("after")),
    };
    let peer = site.start()?;
    let transport = guarded().cache(Cache::memory(1_048_576));
    let (first, second) = visit(&peer, transport, async |service| {
        Ok((ids(&service).await?, ids(&service).await?))
    })?;
    let requests = peer.at(LIST);
    let [_, again] = &requests[..] else {
        return Err(Fault(format!("{} requests came", requests.len())));
    };
    let valid = again.method.as_str() == method
        && again.field("if-none-match") == Some("\"before\"")
        && first == ["before"]
        && second == [if matches { "before" } else { "after" }];
    Ok(Outcome::valid(valid).with("status", again.status))
}

async fn ids(service: &Service) -> Result<Vec<String>, Fault> {
    let items = service.offerings().collect().await;
    let items = items.map_err(Fault::of("list"))?;
    Ok(items.iter().map(|item| item.id().to_string()).collect())
}

/// A list whose second page is sound or passes its limit: what stays of it, and whether it goes on.
pub(super) fn page_failure(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let prior: usize = input.read("prior_items")?;
    let sound: bool = input.read("current_page_valid")?;
    let mut second = page(["second".to_owned()], Some("/last"));
    if !sound {
        second["padding"] = "x".repeat(limits::PAGE_BYTES).into();
    }
    let first = page((0..prior).map(|i| format!("item-{i}")), Some("/second"));
    let last = page(iter::empty(), None);
    let peer = site(Map::new())
        .on(LIST, peer::Reply::document(&first))
        .on("/second", peer::Reply::document(&second))
        .on("/last", peer::Reply::document(&last))
        .start()?;
    let items = visit(&peer, guarded(), async |service| {
        let mut pages = service.offerings().all().pages();
        let mut items = Vec::new();
        // Asked to go on after the failure too.
        for _ in 0..4 {
            match pages.next_page().await {
                Ok(Some(page)) => items.extend(page.items),
                Ok(None) => break,
                Err(error) if *error.code() == Code::ResponseLimitExceeded => {}
                Err(error) => return Err(Fault(error.to_string())),
            }
        }
        Ok(items)
    })?;
    let kept = items.iter().filter(|item| item.id().as_str() != "second");
    let expected = json!({
        "preserved_items": kept.count(),
        "continue": !peer.at("/last").is_empty() || peer.at("/second").len() > 1,
    });
    Ok(Outcome::new().with("expected", expected))
}

/// Whether an Agent tries again after its attempt of that number, when the attempts before it took so long.
pub(super) fn retry(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let (status, attempt): (u16, usize) = (input.read("status")?, input.read("attempt")?);
    let (told, elapsed): (u64, u64) = (
        input.read("retry_after_seconds")?,
        input.read("elapsed_seconds")?,
    );
    if attempt == 0 || (attempt == 1 && elapsed > 0) {
        return Err(Fault(
            "time can only have passed between attempts".to_owned(),
        ));
    }
    let failed =
        |status, seconds: u64| peer::Reply::new(status).with("retry-after", &seconds.to_string());
    let mut site = site(Map::new());
    for before in 1..attempt {
        // All of the time after the first one.
        site = site.on(LIST, failed(503, if before == 1 { elapsed } else { 0 }));
    }
    let found = peer::Reply::document(&page(iter::empty(), None));
    let peer = site
        .on(LIST, failed(status, told))
        .on(LIST, found)
        .start()?;
    let result = visit(&peer, guarded(), async |service| {
        Ok(service.offerings().collect().await)
    })?;
    match (result, peer.at(LIST).len()) {
        (Ok(_), requests) if requests == attempt + 1 => Ok(Outcome::new().with("retry", true)),
        (Err(error), requests) if requests == attempt && error.status() == Some(status) => {
            Ok(Outcome::new().with("retry", false))
        }
        (result, requests) => Err(Fault(format!("after {requests} requests: {result:?}"))),
    }
}
