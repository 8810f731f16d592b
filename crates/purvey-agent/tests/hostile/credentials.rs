//! Credentials go to their origin, and to nobody else.

use super::transport_support::{Seen, Server, Step, document, fetch, local, page, response};
use http::{HeaderName, HeaderValue};
use purvey_agent::transport::{Class, Fetch, Guarded};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};

const SECRET: &str = "Bearer super-secret";

fn any(_: usize, seen: &Seen) -> Vec<Step> {
    let media = if seen.path() == "/schema" {
        "application/schema+json"
    } else {
        "application/odp+json"
    };
    response(
        "200 OK",
        &[("Content-Type", media), ("Set-Cookie", "id=1")],
        b"{}",
    )
}

fn with_credentials(server: &Server) -> Guarded {
    let origin = ServiceOrigin::from_url(&server.url("/"), LocalDevelopment::Allowed).unwrap();
    [
        "authorization",
        "aep-authorization",
        "cookie",
        "payment-signature",
    ]
    .into_iter()
    .fold(local(), |builder, name| {
        let name = HeaderName::from_static(name);
        builder.credential(origin.clone(), name, HeaderValue::from_static(SECRET))
    })
    .build()
    .unwrap()
}

fn secrets(server: &Server) -> Vec<usize> {
    server
        .seen()
        .iter()
        .map(|seen| seen.head.matches(SECRET).count())
        .collect()
}

#[tokio::test]
async fn only_the_own_origin_gets_them() {
    let (own, other) = (Server::start(any).await, Server::start(any).await);
    let transport = with_credentials(&own);
    for server in [&own, &other] {
        for class in [
            Class::Page,
            Class::ServiceDocument,
            Class::Offering,
            Class::Invoke,
        ] {
            fetch(&transport, Fetch::get(server.url("/"), class))
                .await
                .unwrap();
        }
        fetch(
            &transport,
            Fetch::post(server.url("/"), Class::Search, "{}".into()),
        )
        .await
        .unwrap();
    }
    assert_eq!(secrets(&own), [4; 5]);
    assert_eq!(secrets(&other), [0; 5]);
}

#[tokio::test]
async fn supporting_documents_are_anonymous() {
    let own = Server::start(any).await;
    let transport = with_credentials(&own);
    fetch(&transport, page(own.url("/"))).await.unwrap();
    fetch(
        &transport,
        Fetch::get(own.url("/schema"), Class::AttributeSchema),
    )
    .await
    .unwrap();
    assert_eq!(secrets(&own), [4, 0]);
}

#[tokio::test]
async fn no_cookie_comes_back_and_no_referrer_is_told() {
    let server = Server::start(|_, seen| match seen.path() {
        "/start" => response(
            "302 Found",
            &[("Location", "/end"), ("Set-Cookie", "id=1")],
            b"",
        ),
        _ => document(b"{}"),
    })
    .await;
    let transport = local().build().unwrap();
    for _ in 0..2 {
        fetch(&transport, page(server.url("/start"))).await.unwrap();
    }
    for seen in server.seen() {
        assert_eq!(seen.field("cookie"), None);
        assert_eq!(seen.field("referer"), None);
        assert_eq!(seen.field("authorization"), None);
        assert!(
            seen.field("user-agent")
                .unwrap()
                .starts_with("purvey-agent/")
        );
        assert_eq!(
            seen.field("accept-encoding"),
            Some("br, zstd, gzip, deflate")
        );
    }
}

#[tokio::test]
async fn errors_and_debug_output_hold_no_credentials() {
    let own = Server::start(|_, _| response("401 No", &[("WWW-Authenticate", "AEP")], b"")).await;
    let transport = with_credentials(&own);
    let error = fetch(&transport, page(own.url("/"))).await.unwrap_err();
    assert!(!format!("{error:?} {error}").contains("super-secret"));
}

#[tokio::test]
async fn further_fields_are_an_actions_alone() {
    let server = Server::start(any).await;
    let transport = local().build().unwrap();
    for class in [Class::Page, Class::Invoke] {
        let mut request = Fetch::get(server.url("/"), class);
        request
            .headers
            .insert("x-more", HeaderValue::from_static("1"));
        request
            .headers
            .insert("accept", HeaderValue::from_static("text/plain"));
        fetch(&transport, request).await.unwrap();
    }
    let more: Vec<_> = server
        .seen()
        .iter()
        .map(|seen| {
            (
                seen.field("x-more").is_some(),
                seen.field("accept") == Some("text/plain"),
            )
        })
        .collect();
    assert_eq!(more, [(false, false), (true, true)]);
}
