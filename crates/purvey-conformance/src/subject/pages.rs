//! Pages and continuations.

use crate::adapter::Role;
use crate::case::{Fault, Input, Outcome};
use crate::service::Service;
use http::{Method, StatusCode};
use purvey_odp::identity::{LocalDevelopment, LocalId, ServiceOrigin};
use purvey_odp::page::{self, Limit, Next, PageEnvelope, Sequence};
use purvey_odp::problem::Problem;
use purvey_odp::report::{Place, Report};
use purvey_odp::service::Operation;
use purvey_odp::shape;
use serde_json::{Value, json};

fn example_origin() -> Result<ServiceOrigin, Fault> {
    ServiceOrigin::parse("https://market.example", LocalDevelopment::Refused)
        .map_err(Fault::of("origin"))
}

/// The envelope; of an item only its identifier, since vectors leave the rest out.
pub(super) fn page(_: Role, input: &Input) -> Result<Outcome, Fault> {
    envelope(input.member("page")?)
}

pub(super) fn auth_expands(_: Role, input: &Input) -> Result<Outcome, Fault> {
    envelope(input.member("document")?)
}

fn envelope(value: Value) -> Result<Outcome, Fault> {
    let page = PageEnvelope::validate(value, &example_origin()?, read_id);
    Ok(Outcome::valid(page.is_ok()))
}

fn read_id(report: &mut Report, place: &Place<'_>, item: Value) -> Option<LocalId> {
    let mut map = shape::object(report, place, item)?;
    shape::required(report, place, &mut map, "id", LocalId::read)
}

/// The Service answers a good limit with a page and a bad one with a problem; an Agent asks for nothing else.
pub(super) fn limit(role: Role, input: &Input) -> Result<Outcome, Fault> {
    if role == Role::Agent {
        let limit = input.read("limit").ok().and_then(Limit::new);
        return Ok(Outcome::valid(limit.is_some()));
    }
    let service = offering(&["a", "b"])?;
    let target = format!(
        "{}?limit={}",
        service.path(Operation::ListOfferings, None)?,
        input.member("limit")?
    );
    let response = service.get(&target)?;
    match response.status {
        StatusCode::OK => Ok(Outcome::valid(true)),
        StatusCode::BAD_REQUEST => {
            let problem = serde_json::from_slice(&response.body).map_err(Fault::of("problem"))?;
            let problem = Problem::validate(problem, 400).map_err(Fault::of("problem"))?;
            if problem
                .invalid_params()
                .iter()
                .any(|param| param.name() == "limit")
            {
                Ok(Outcome::valid(false))
            } else {
                Err(Fault("the problem does not name the limit".to_owned()))
            }
        }
        status => Err(Fault(format!("the answer is {status}"))),
    }
}

/// A Service with Offerings of these ids.
fn offering(ids: &[&str]) -> Result<Service, Fault> {
    let service = Service::empty()?;
    for id in ids {
        if !service.put("offerings", &json!({"id": id, "name": "Example"}))? {
            return Err(Fault(format!("the Offering {id} was refused")));
        }
    }
    Ok(service)
}

/// Whether a Service with these Offerings gives these pages, or whether an Agent takes them.
pub(super) fn sequence(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let pages: Vec<Vec<String>> = input.read("pages")?;
    let valid = match role {
        Role::Service => {
            let mut ids: Vec<&str> = pages.iter().flatten().map(String::as_str).collect();
            ids.sort_unstable();
            ids.dedup();
            let limit = pages.first().map_or(1, Vec::len);
            traverse(&offering(&ids)?, limit)? == pages
        }
        Role::Agent => taken(&pages)?,
    };
    Ok(Outcome::valid(valid))
}

/// The identities of every page of `list-offerings`.
fn traverse(service: &Service, limit: usize) -> Result<Vec<Vec<String>>, Fault> {
    let mut target = Some(format!(
        "{}?limit={limit}",
        service.path(Operation::ListOfferings, None)?
    ));
    let mut pages = Vec::new();
    while let Some(current) = target {
        let page = service.document(&current)?;
        let page =
            PageEnvelope::validate(page, &example_origin()?, read_id).map_err(Fault::of("page"))?;
        pages.push(page.items.iter().map(ToString::to_string).collect());
        target = page.next.map(|next| next.as_str().to_owned());
    }
    Ok(pages)
}

fn taken(pages: &[Vec<String>]) -> Result<bool, Fault> {
    let mut sequence = Sequence::default();
    for page in pages {
        let ids: Result<Vec<_>, _> = page.iter().map(|id| LocalId::parse(id)).collect();
        if sequence
            .page(&ids.map_err(Fault::of("identifier"))?)
            .is_err()
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The first page of three Offerings, one a page, and its `next`.
fn begun(service: &Service) -> Result<String, Fault> {
    let target = format!("{}?limit=1", service.path(Operation::ListOfferings, None)?);
    let next = service
        .document(&target)?
        .get("next")
        .and_then(Value::as_str)
        .map(str::to_owned);
    next.ok_or_else(|| Fault("the first page has no next".to_owned()))
}

/// A continuation must stay at the origin; those of the Service do, and work with the method.
pub(super) fn next(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let origin: String = input.read("service_origin")?;
    let origin = ServiceOrigin::parse(&origin, LocalDevelopment::Refused)
        .map_err(Fault::of("service_origin"))?;
    let (next, method): (String, String) = (input.read("next")?, input.read("method")?);
    let method: Method = method.parse().map_err(Fault::of("method"))?;
    let followed = match role {
        Role::Service => {
            let service = offering(&["a", "b", "c"])?;
            let own = begun(&service)?;
            Next::parse(&own, &origin).map_err(Fault::of("the Service's own next"))?;
            service.send(method, &own, &[], Vec::new())?.status == StatusCode::OK
        }
        Role::Agent => method == Method::GET,
    };
    Ok(Outcome::valid(
        followed && Next::parse(&next, &origin).is_ok(),
    ))
}

/// Whether a continuation may live so long only. One of the Service, so long after it was issued, must still work.
pub(super) fn lifetime(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let seconds = input.read("lifetime_seconds")?;
    if role == Role::Service {
        let service = offering(&["a", "b", "c"])?;
        let next = begun(&service)?;
        service.advance(seconds);
        let status = service.get(&next)?.status;
        if status != StatusCode::OK {
            return Err(Fault(format!(
                "a continuation answers {status} after {seconds} s"
            )));
        }
    }
    Ok(Outcome::valid(page::is_lifetime(seconds)))
}

/// What an Agent follows is opaque, so that it works with both. A Service's continuations carry what they need through a restart
/// (stateless), and lead through what it keeps of the catalog as it was (stateful).
pub(super) fn storage_model(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let model: String = input.read("storage_model")?;
    let origin = example_origin()?;
    if !["stateless", "stateful"].contains(&model.as_str()) {
        return Err(Fault(format!("the model {model} is not known")));
    }
    if role == Role::Agent {
        let next = match model.as_str() {
            "stateless" => "/odp/offerings?cursor=eyJhZnRlciI6ImEifQ",
            _ => "/odp/pages/2",
        };
        return Ok(Outcome::valid(Next::parse(next, &origin).is_ok()));
    }
    let service = offering(&["a", "b", "c"])?;
    let next = begun(&service)?;
    let before = service.get(&next)?;
    let service = if model == "stateless" {
        service.restart()?
    } else {
        if !service.put("offerings", &json!({"id": "aa", "name": "Example"}))? {
            return Err(Fault("the Offering aa was refused".to_owned()));
        }
        service
    };
    let after = service.get(&next)?;
    let same = before.status == StatusCode::OK
        && (after.status, &after.body) == (before.status, &before.body);
    Ok(Outcome::valid(same))
}
