//! The Agent's baseline (ODP §14): each behaviour by its name, and a visit to a Service that shows it.

use super::complete;
use super::enriched::{OFFERING, offering, site};
use crate::agent::{builder, built, guarded, run};
use crate::case::{Fault, Input, Outcome};
use crate::peer::{self, Peer, Site};
use purvey_agent::cache::Cache;
use purvey_agent::{Code, Error, Service};
use purvey_odp::limits;
use serde_json::{Map, Value, json};

/// Says whether the Agent does it.
type Show = fn() -> Result<bool, Fault>;

/// Everything that every Agent must do.
const BASELINE: [(&str, Show); 10] = [
    ("inspect-service", inspects),
    ("list-offerings", lists),
    ("follow-pagination", follows),
    ("get-offering", gets),
    ("process-representations", tells_representations_apart),
    ("process-localization", speaks_languages),
    ("honor-caching", caches),
    ("handle-errors-and-limits", takes_errors),
    ("enforce-redirect-and-security", stays_where_it_may),
    ("enforce-compatibility", holds_to_the_version),
];

/// Whether an Agent of just these behaviours is one: when they are all of the baseline, each of which is shown.
pub(super) fn baseline(input: &Input) -> Result<Outcome, Fault> {
    let named: Vec<String> = input.read("behaviors")?;
    let known = |name: &&String| BASELINE.iter().any(|(known, _)| known == name);
    if let Some(other) = named.iter().find(|name| !known(name)) {
        return Err(Fault(format!("the behaviour {other} is not known")));
    }
    let mut complete = true;
    for (name, show) in BASELINE {
        if !named.iter().any(|named| named == name) {
            complete = false;
        } else if !show()? {
            return Err(Fault(format!("the Agent does not {name}")));
        }
    }
    Ok(Outcome::valid(complete))
}

const LIST: &str = "/odp/offerings";

fn page(ids: &[&str], next: Option<&str>) -> Value {
    let items: Value = ids
        .iter()
        .map(|id| json!({"id": id, "name": "Example"}))
        .collect();
    let mut page = json!({"odp_version": "1.0", "items": items});
    if let Some(next) = next {
        page["next"] = next.into();
    }
    page
}

fn shop() -> Site {
    site(Map::new())
}

/// Visits a Service as an Agent with a cache that would rather read German.
fn visit<T>(
    peer: &Peer,
    work: impl AsyncFnOnce(&Service) -> Result<T, Error>,
) -> Result<Result<T, Error>, Fault> {
    let transport = built(guarded().cache(Cache::memory(1_048_576)))?;
    let agent = builder(transport)
        .languages(["de"])
        .build()
        .map_err(Fault::of("Agent"))?;
    run(async {
        match agent.service(peer.origin()?.as_str()).await {
            Ok(service) => Ok(work(&service).await),
            Err(error) => Ok(Err(error)),
        }
    })
}

fn succeeded<T>(result: Result<T, Error>) -> Result<T, Fault> {
    result.map_err(Fault::of("Service"))
}

fn failed_as<T>(result: Result<T, Error>, code: &Code) -> bool {
    result.is_err_and(|error| error.code() == code)
}

fn inspects() -> Result<bool, Fault> {
    let peer = shop().start()?;
    let name = visit(&peer, async |service| {
        Ok(service.document().name().as_str().to_owned())
    })?;
    Ok(succeeded(name)? == "Example")
}

async fn listed(service: &Service) -> Result<Vec<String>, Error> {
    let items = service.offerings().collect().await?;
    Ok(items.iter().map(|item| item.id().to_string()).collect())
}

fn lists() -> Result<bool, Fault> {
    let list = peer::Reply::document(&page(&["a", "b"], None));
    let peer = shop().on(LIST, list).start()?;
    Ok(succeeded(visit(&peer, listed)?)? == ["a", "b"])
}

fn follows() -> Result<bool, Fault> {
    let peer = shop()
        .on(LIST, peer::Reply::document(&page(&["a"], Some("/more"))))
        .on("/more", peer::Reply::document(&page(&["b"], None)))
        .start()?;
    Ok(succeeded(visit(&peer, listed)?)? == ["a", "b"])
}

async fn got(service: &Service) -> Result<String, Error> {
    let found = service.get_offering("item").await?;
    Ok(found.offering.name().as_str().to_owned())
}

fn gets() -> Result<bool, Fault> {
    let peer = shop().on(OFFERING, offering(json!({}))).start()?;
    Ok(succeeded(visit(&peer, got)?)? == "Item")
}

/// A list is terse unless it is asked for in full, and each comes as what it is.
fn tells_representations_apart() -> Result<bool, Fault> {
    let peer = Peer::start(|request| {
        let mut document = page(&["a"], None);
        if request.path() == "/.well-known/odp" {
            let operations = ["list-offerings", "get-offering"];
            document = complete::service_document(&operations, Map::new());
        } else if request.target.contains("representation=full") {
            document["items"][0]["images"] = json!([{"src": "/a.png"}]);
        } else {
            document["items"][0]["detail_fields"] = json!(["/images"]);
        }
        peer::Reply::document(&document)
    })?;
    let (terse, full) = succeeded(visit(&peer, async |service| {
        let terse = service.offerings().collect().await?;
        Ok((terse, service.offerings().full().collect().await?))
    })?)?;
    let of_terse = terse.iter().map(|item| item.detail_fields().is_some());
    let of_full = full.iter().map(|item| item.images().len());
    Ok(of_terse.eq([true]) && of_full.eq([1]))
}

fn speaks_languages() -> Result<bool, Fault> {
    let german = offering(json!({"localizations": ["de", "en"]})).with("content-language", "de");
    let peer = shop().on(OFFERING, german).start()?;
    let language = succeeded(visit(&peer, async |service| {
        Ok(service.get_offering("item").await?.content_language)
    })?)?;
    let asked = peer
        .at(OFFERING)
        .iter()
        .all(|request| request.field("accept-language") == Some("de"));
    Ok(asked && language.as_deref() == Some("de"))
}

/// What is fresh is not asked for again, and what must not be stored is.
fn caches() -> Result<bool, Fault> {
    let peer = shop()
        .on(
            OFFERING,
            offering(json!({})).with("cache-control", "max-age=60"),
        )
        .on(
            LIST,
            peer::Reply::document(&page(&[], None)).with("cache-control", "no-store"),
        )
        .start()?;
    succeeded(visit(&peer, async |service| {
        for _ in 0..2 {
            got(service).await?;
            listed(service).await?;
        }
        Ok(())
    })?)?;
    Ok((peer.at(OFFERING).len(), peer.at(LIST).len()) == (1, 2))
}

fn takes_errors() -> Result<bool, Fault> {
    let mut large = page(&["a"], None);
    large["padding"] = "x".repeat(limits::PAGE_BYTES).into();
    let peer = shop().on(LIST, peer::Reply::document(&large)).start()?;
    let missing = visit(&peer, got)?.err();
    let told = missing.is_some_and(|error| {
        error.status() == Some(404) && error.code().as_str() == "NOT_FOUND" && !error.retryable()
    });
    Ok(told && failed_as(visit(&peer, listed)?, &Code::ResponseLimitExceeded))
}

/// It follows a redirect within an origin and none out of it, and goes to no address that is not public.
fn stays_where_it_may() -> Result<bool, Fault> {
    let other = shop()
        .on(LIST, peer::Reply::document(&page(&["other"], None)))
        .start()?;
    let to = |url: &str| peer::Reply::new(307).with("location", url);
    let peer = shop()
        .on(OFFERING, to("/moved"))
        .on("/moved", offering(json!({})))
        .on(LIST, to(other.url(LIST)?.as_str()))
        .start()?;
    let within = succeeded(visit(&peer, got)?)? == "Item";
    let out = failed_as(visit(&peer, listed)?, &Code::RedirectRefused) && other.seen().is_empty();
    let private = run(async {
        let agent = builder(built(guarded())?).build();
        let agent = agent.map_err(Fault::of("Agent"))?;
        Ok(agent.service("https://10.0.0.1").await)
    })?;
    Ok(within && out && failed_as(private, &Code::AddressNotAllowed))
}

/// Another version is refused whole; what 1.0 may add is ignored, or dropped with what it stands in.
fn holds_to_the_version() -> Result<bool, Fault> {
    let newer = offering(json!({"odp_version": "2.0"}));
    let mut open = page(&["a"], None);
    open["future"] = json!({});
    open["items"][0]["future"] = json!(1);
    open["items"][0]["price"] = json!({"type": "future-price"});
    let peer = shop()
        .on(OFFERING, newer)
        .on(LIST, peer::Reply::document(&open))
        .start()?;
    let refused = failed_as(visit(&peer, got)?, &Code::UnsupportedVersion);
    let items = succeeded(visit(&peer, async |service| {
        service.offerings().collect().await
    })?)?;
    Ok(refused && items.len() == 1 && items.iter().all(|item| item.price().is_none()))
}
