//! Live challenges, answered by a handler.

use crate::support::{Fake, Reply, document, with, with_offering};
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue};
use purvey_agent::challenge::{Challenge, Demand};
use purvey_agent::transport::Class;
use purvey_agent::{Answer, ChallengeHandler, Error, Input};
use purvey_odp::identity::ServiceOrigin;
use serde_json::json;
use std::sync::Mutex;

const AEP: (&str, &str) = ("www-authenticate", "AEP service_did=\"did:web:market\"");
const MPP: (&str, &str) = ("www-authenticate", "Payment id=\"c1\"");
const X402: (&str, &str) = ("payment-required", "eyJ4IjoxfQ==");

/// Answers what it is willing to, and remembers what it was asked.
struct Handler {
    willing: &'static [Demand],
    asked: Mutex<Vec<(Demand, usize, String)>>,
}

impl Handler {
    fn willing(willing: &'static [Demand]) -> Self {
        Self {
            willing,
            asked: Mutex::default(),
        }
    }

    fn asked(&self) -> Vec<Demand> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|(demand, ..)| *demand).collect()
    }
}

impl ChallengeHandler for Handler {
    fn answer<'a>(
        &'a self,
        demand: Demand,
        challenges: &'a [Challenge],
        origin: &'a ServiceOrigin,
    ) -> BoxFuture<'a, Option<(HeaderName, HeaderValue)>> {
        let origin = origin.as_str().to_owned();
        let mut asked = self.asked.lock().unwrap();
        asked.push((demand, challenges.len(), origin));
        let name = HeaderName::from_static(match demand {
            Demand::Aep => "aep-authorization",
            Demand::Mpp => "authorization",
            _ => "payment-signature",
        });
        let value = HeaderValue::from_static(demand.as_str());
        let answer = self.willing.contains(&demand).then_some((name, value));
        Box::pin(async { answer })
    }
}

fn challenge(status: u16, fields: &[(&'static str, &str)]) -> Reply {
    let reply = Reply::new(status, "");
    fields
        .iter()
        .fold(reply, |reply, (name, value)| reply.with(name, value))
}

/// A fake whose Action answers with these in turn.
fn answering(replies: &[Reply]) -> Fake {
    let protocols = json!({
        "enrollment": [{"name": "aep"}],
        "payments": [{"name": "x402", "authentication": "not-required"}],
    });
    let action = json!({"authentication": "required", "id": "act", "rel": "purchase",
        "http": {"href": "/orders", "method": "POST"}});
    let price = json!({"type": "fixed", "amount": "5", "currency": "EUR"});
    let fake = with_offering(
        &with(document(), "protocols", protocols),
        &json!({"actions": [action], "price": price}),
    );
    for reply in replies {
        fake.reply("POST /orders", reply.clone());
    }
    fake
}

async fn invoke(fake: &Fake, handler: &Handler) -> Result<Answer, Error> {
    let service = fake.service().await;
    let found = service.get_offering("item").await.unwrap();
    assert!(found.issues.is_empty(), "{:?}", found.issues);
    let action = found.action("act").unwrap();
    service
        .invoke_with(action, Input::new().json(json!({"n": 1})), handler)
        .await
}

/// For each request the credentials that it carried, and whether it had the body.
fn sent(fake: &Fake) -> Vec<String> {
    let fetches = fake.fetches().into_iter();
    fetches
        .filter(|fetch| fetch.class == Class::Invoke)
        .map(|fetch| {
            assert_eq!(fetch.body.as_deref(), Some(&br#"{"n":1}"#[..]));
            ["aep-authorization", "authorization", "payment-signature"]
                .iter()
                .filter_map(|name| fetch.headers.get(*name)?.to_str().ok())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
}

const ALL: &[Demand] = &[Demand::Aep, Demand::Mpp, Demand::X402];

#[tokio::test]
async fn authentication_then_payment() {
    let fake = answering(&[
        challenge(401, &[AEP]),
        challenge(402, &[MPP, X402]),
        Reply::new(201, "{}"),
    ]);
    let handler = Handler::willing(ALL);
    let answer = invoke(&fake, &handler).await.unwrap();
    assert_eq!(answer.status.as_u16(), 201);
    assert_eq!(sent(&fake), ["", "aep", "aep mpp"]);
    let asked = handler.asked.lock().unwrap();
    let origin = "https://market.example".to_owned();
    assert_eq!(
        *asked,
        [(Demand::Aep, 1, origin.clone()), (Demand::Mpp, 2, origin)]
    );
}

#[tokio::test]
async fn nothing_is_answered_that_was_not_demanded() {
    // A price and advertised protocols demand nothing.
    let fake = answering(&[Reply::new(201, "{}")]);
    let handler = Handler::willing(ALL);
    invoke(&fake, &handler).await.unwrap();
    assert_eq!(sent(&fake), [""]);
    assert!(handler.asked().is_empty());
}

#[tokio::test]
async fn a_handler_that_does_not_want_to_is_not_overruled() {
    let fake = answering(&[challenge(402, &[MPP, X402])]);
    let handler = Handler::willing(&[]);
    let error = invoke(&fake, &handler).await.unwrap_err();
    assert_eq!(error.status(), Some(402));
    assert_eq!(error.challenges().len(), 2);
    assert_eq!(sent(&fake), [""]);
    assert_eq!(handler.asked(), [Demand::Mpp, Demand::X402]);

    // The first way to pay that it takes.
    let fake = answering(&[challenge(402, &[MPP, X402]), Reply::new(200, "")]);
    let handler = Handler::willing(&[Demand::X402]);
    invoke(&fake, &handler).await.unwrap();
    assert_eq!(sent(&fake), ["", "x402"]);
}

#[tokio::test]
async fn nothing_is_answered_twice_or_out_of_turn() {
    for (replies, status, requests) in [
        // An answer that was not accepted.
        (
            vec![challenge(401, &[AEP]), challenge(401, &[AEP])],
            401,
            vec!["", "aep"],
        ),
        (
            vec![challenge(402, &[X402]), challenge(402, &[X402])],
            402,
            vec!["", "x402"],
        ),
        // Another way to pay, after it was paid.
        (
            vec![challenge(402, &[MPP]), challenge(402, &[X402])],
            402,
            vec!["", "mpp"],
        ),
        // Authentication after payment.
        (
            vec![challenge(402, &[MPP]), challenge(401, &[AEP])],
            401,
            vec!["", "mpp"],
        ),
        // A scheme that nobody knows.
        (
            vec![challenge(401, &[("www-authenticate", "Basic realm=\"x\"")])],
            401,
            vec![""],
        ),
    ] {
        let fake = answering(&[replies, vec![Reply::new(500, "")]].concat());
        let error = invoke(&fake, &Handler::willing(ALL)).await.unwrap_err();
        assert_eq!(error.status(), Some(status));
        assert_eq!(sent(&fake), requests);
    }
}
