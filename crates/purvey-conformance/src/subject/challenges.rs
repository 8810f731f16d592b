//! Live challenges, and what is only done when somebody asks for it.

use super::enriched::{OFFERING, offering, offering_of, site};
use crate::adapter::Role;
use crate::agent::{guarded, visit};
use crate::case::{Fault, Input, Outcome};
use crate::peer::{self, Site};
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue};
use purvey_agent::challenge::{Challenge, Demand};
use purvey_agent::{Answer, ChallengeHandler, Error, Input as ActionInput};
use purvey_odp::action::CoreRelation;
use purvey_odp::identity::ServiceOrigin;
use purvey_odp::media;
use serde_json::{Map, Value, json};
use std::sync::{Mutex, PoisonError};

/// What an Agent finds demanded by a response to a plain read.
pub(super) fn classify(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let response: Map<String, Value> = input.read("response")?;
    let status = response.get("status").and_then(Value::as_u64);
    let status = status.and_then(|status| u16::try_from(status).ok());
    let status = status.ok_or_else(|| Fault("the response has no status".to_owned()))?;
    let mut reply = peer::Reply::new(status);
    let fields = response.get("headers").and_then(Value::as_object);
    for (name, value) in fields.into_iter().flatten() {
        reply = reply.with(name, value.as_str().unwrap_or_default());
    }
    if status == 200 {
        let page = json!({"odp_version": "1.0", "items": []});
        reply = reply
            .with("content-type", media::ODP)
            .body(page.to_string());
    }
    let advertised = Map::from_iter([("protocols".to_owned(), input.member("advertised")?)]);
    let peer = site(advertised).on("/odp/offerings", reply).start()?;
    let listed = visit(&peer, guarded(), async |service| {
        Ok(service.offerings().collect().await)
    })?;
    let demands = match listed {
        Ok(_) => Vec::new(),
        Err(error) if error.status() == Some(status) => error.demands(),
        Err(error) => return Err(Fault(error.to_string())),
    };
    let names: Value = demands.iter().map(|demand| demand.as_str()).collect();
    Ok(Outcome::new().with("expected", names))
}

/// Where the one Action leads.
const TARGET: &str = "/orders";
/// With what the handler answers.
const ANSWER: &str = "answered";

/// A Service whose Offering has a price, and an Action with this relation.
fn shop(relation: &str) -> Site {
    let protocols = json!({
        "enrollment": [{"name": "aep"}],
        "payments": [{"name": "x402", "authentication": "not-required"}],
    });
    let action = json!({
        "id": "act", "rel": relation, "authentication": "optional",
        "http": {"href": TARGET, "method": "POST"},
    });
    let price = json!({"type": "fixed", "amount": "5", "currency": "EUR"});
    site(Map::from_iter([("protocols".to_owned(), protocols)])).on(
        OFFERING,
        offering(json!({"actions": [action], "price": price})),
    )
}

/// Answers what it is willing to, and remembers that.
struct Handler {
    willing: Vec<String>,
    answered: Mutex<Vec<Demand>>,
}

impl Handler {
    fn willing(willing: Vec<String>) -> Self {
        Self {
            willing,
            answered: Mutex::default(),
        }
    }

    fn answered(&self) -> Vec<&'static str> {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.iter().map(|demand| demand.as_str()).collect()
    }
}

impl ChallengeHandler for Handler {
    fn answer<'a>(
        &'a self,
        demand: Demand,
        _: &'a [Challenge],
        _: &'a ServiceOrigin,
    ) -> BoxFuture<'a, Option<(HeaderName, HeaderValue)>> {
        let willing = self.willing.iter().any(|name| name == demand.as_str());
        if willing {
            let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
            answered.push(demand);
        }
        let name = HeaderName::from_static(match demand {
            Demand::Aep => "aep-authorization",
            Demand::Mpp => "authorization",
            _ => "payment-signature",
        });
        let answer = willing.then(|| (name, HeaderValue::from_static(ANSWER)));
        Box::pin(async { answer })
    }
}

/// Invokes the one Action with a handler for challenges.
fn invoke(peer: &peer::Peer, handler: &Handler) -> Result<Result<Answer, Error>, Fault> {
    visit(peer, guarded(), async |service| {
        let found = offering_of(&service).await?;
        let action = found.action("act");
        let action = action.ok_or_else(|| Fault("the Action cannot be used".to_owned()))?;
        Ok(service
            .invoke_with(action, ActionInput::new(), handler)
            .await)
    })
}

/// A challenge of this status, for the protocols that the operation requires.
fn challenge(status: u16, requires: &[String]) -> Result<peer::Reply, Fault> {
    let requires = |name: &str| requires.iter().any(|required| required == name);
    let reply = peer::Reply::new(status);
    Ok(match status {
        200 => reply,
        401 => reply.with("www-authenticate", "AEP service_did=\"did:web:market\""),
        402 if requires("mpp") => reply.with("www-authenticate", "Payment id=\"challenge-1\""),
        402 if requires("x402") => reply.with("payment-required", "requirements"),
        _ => return Err(Fault(format!("nothing that is required answers {status}"))),
    })
}

/// Whether an Agent that answers whatever is required gets through such responses to the end.
pub(super) fn sequence(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let requires: Vec<String> = input.read("requires")?;
    let statuses: Vec<u16> = input.read("responses")?;
    let mut site = shop("purchase");
    for status in &statuses {
        site = site.on(TARGET, challenge(*status, &requires)?);
    }
    let peer = site.start()?;
    let handler = Handler::willing(requires.clone());
    let valid = match invoke(&peer, &handler)? {
        Ok(_) => handler.answered() == requires && peer.at(TARGET).len() == statuses.len(),
        Err(error) if matches!(error.status(), Some(401 | 402)) => false,
        Err(error) => return Err(Fault(error.to_string())),
    };
    Ok(Outcome::valid(valid))
}

/// Whether anything is paid. Price and advertised protocols are there in any case.
pub(super) fn payment(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let (live, approved): (bool, bool) = (
        input.read("live_challenge")?,
        input.read("caller_policy_approved")?,
    );
    let mut site = shop("purchase");
    if live {
        site = site.on(TARGET, challenge(402, &["x402".to_owned()])?);
    }
    let peer = site.on(TARGET, peer::Reply::new(200)).start()?;
    let willing = match approved {
        true => ["aep", "mpp", "x402"].map(str::to_owned).to_vec(),
        false => Vec::new(),
    };
    let result = invoke(&peer, &Handler::willing(willing))?;
    let requests = peer.at(TARGET);
    let paid = requests
        .iter()
        .any(|request| request.field("payment-signature") == Some(ANSWER));
    if result.is_ok() != (paid || !live) {
        return Err(Fault(format!("paid: {paid}, but {result:?}")));
    }
    Ok(Outcome::valid(paid))
}

/// Whether an Action is invoked. It is read, and looked for by its relation, in any case.
pub(super) fn invocable(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let (selected, known): (bool, bool) = (
        input.read("explicitly_selected")?,
        input.read("relation_known")?,
    );
    let relation = if known { "invoke" } else { "future-operation" };
    let peer = shop(relation).on(TARGET, peer::Reply::new(200)).start()?;
    visit(&peer, guarded(), async |service| {
        let found = offering_of(&service).await?;
        let by_relation = found.actions_for(CoreRelation::Invoke).count();
        if by_relation != usize::from(known) {
            return Err(Fault(format!("{by_relation} Actions have the relation")));
        }
        if selected {
            let action = found.action("act");
            let action = action.ok_or_else(|| Fault("the Action cannot be used".to_owned()))?;
            let answer = service.invoke(action, ActionInput::new()).await;
            answer.map_err(Fault::of("Action"))?;
        }
        Ok(())
    })?;
    Ok(Outcome::valid(!peer.at(TARGET).is_empty()))
}
