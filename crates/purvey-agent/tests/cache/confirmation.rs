//! What is stale is asked about.

use super::{body, seconds, transport, validating};
use crate::transport_support::{ODP, Server, Step, TestClock, code, fetch, head, page, response};
use purvey_agent::Code;
use purvey_agent::cache::Cache;
use purvey_agent::transport::Fetch;

#[tokio::test]
async fn stale_entries_are_confirmed() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = validating(
        &["\"a\"", "\"a\"", "\"b\"", "W/\"c\"", "W/\"c\""],
        &[("Cache-Control", "max-age=10")],
    )
    .await;
    let transport = transport(&clock, &cache);
    let mut told = Vec::new();
    for _ in 0..5 {
        let fetched = fetch(&transport, page(server.url("/"))).await.unwrap();
        told.push((
            String::from_utf8(fetched.body.to_vec()).unwrap(),
            fetched.from_cache,
        ));
        // Confirmed entries are fresh again.
        assert!(
            fetch(&transport, page(server.url("/")))
                .await
                .unwrap()
                .from_cache
        );
        clock.advance(seconds(10));
    }
    let expected = [
        ("\"a\"", false),
        ("\"a\"", true),
        ("\"b\"", false),
        ("W/\"c\"", false),
        ("W/\"c\"", true),
    ];
    assert_eq!(told, expected.map(|(tag, stored)| (tag.to_owned(), stored)));
    let asked: Vec<_> = server
        .seen()
        .iter()
        .map(|seen| seen.field("if-none-match").map(str::to_owned))
        .collect();
    let expected = [
        None,
        Some("\"a\""),
        Some("\"a\""),
        Some("\"b\""),
        Some("W/\"c\""),
    ];
    assert_eq!(asked, expected.map(|tag| tag.map(str::to_owned)));
}

#[tokio::test]
async fn dates_confirm_too() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    const MODIFIED: &str = "Wed, 08 Oct 2025 08:53:20 GMT";
    let server = Server::start(|_, seen| match seen.field("if-modified-since") {
        Some(MODIFIED) => vec![Step::Send(head(
            "304 Not Modified",
            &[("Cache-Control", "max-age=5")],
        ))],
        _ => response(
            "200 OK",
            &[
                ODP,
                ("Last-Modified", MODIFIED),
                ("Cache-Control", "max-age=0"),
            ],
            b"{}",
        ),
    })
    .await;
    let transport = transport(&clock, &cache);
    assert!(
        !fetch(&transport, page(server.url("/")))
            .await
            .unwrap()
            .from_cache
    );
    let confirmed = fetch(&transport, page(server.url("/"))).await.unwrap();
    assert!(confirmed.from_cache);
    // The 304 brought new fields.
    assert_eq!(confirmed.headers["cache-control"], "max-age=5");
    assert_eq!(confirmed.headers["content-type"], "application/odp+json");
    clock.advance(seconds(4));
    fetch(&transport, page(server.url("/"))).await.unwrap();
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn a_confirmation_of_something_else_is_none() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = Server::start(|number, _| match number {
        1 => vec![Step::Send(head(
            "304 Not Modified",
            &[("ETag", "\"other\"")],
        ))],
        _ => response(
            "200 OK",
            &[ODP, ("ETag", "\"a\""), ("Cache-Control", "max-age=0")],
            format!("{{\"n\":{number}}}").as_bytes(),
        ),
    })
    .await;
    let transport = transport(&clock, &cache);
    assert_eq!(body(&transport, page(server.url("/"))).await, "{\"n\":0}");
    assert_eq!(body(&transport, page(server.url("/"))).await, "{\"n\":2}");
    assert_eq!(server.seen()[2].field("if-none-match"), None);
}

#[tokio::test]
async fn a_confirmation_that_forbids_storing_is_heeded() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = Server::start(|number, seen| match seen.field("if-none-match") {
        Some(_) => vec![Step::Send(head(
            "304 Not Modified",
            &[("ETag", "\"a\""), ("Cache-Control", "no-store")],
        ))],
        None => response(
            "200 OK",
            &[ODP, ("ETag", "\"a\""), ("Cache-Control", "max-age=0")],
            format!("{{\"n\":{number}}}").as_bytes(),
        ),
    })
    .await;
    let transport = transport(&clock, &cache);
    assert_eq!(body(&transport, page(server.url("/"))).await, "{\"n\":0}");
    assert_eq!(body(&transport, page(server.url("/"))).await, "{\"n\":0}");
    assert_eq!(body(&transport, page(server.url("/"))).await, "{\"n\":2}");
}

#[tokio::test]
async fn a_stale_entry_never_stands_in_for_a_failure() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = Server::start(|number, _| match number {
        0 => response(
            "200 OK",
            &[
                ODP,
                ("ETag", "\"a\""),
                ("Cache-Control", "max-age=1, stale-if-error=999"),
            ],
            b"{}",
        ),
        1 => response("500 Oops", &[], b""),
        _ => vec![Step::Close],
    })
    .await;
    let transport = transport(&clock, &cache);
    fetch(&transport, page(server.url("/"))).await.unwrap();
    clock.advance(seconds(1));
    assert_eq!(
        code(&fetch(&transport, page(server.url("/"))).await),
        Code::Status
    );
    assert_eq!(
        code(&fetch(&transport, page(server.url("/"))).await),
        Code::ConnectionLost
    );
}

#[tokio::test]
async fn a_caller_may_insist_on_confirmation() {
    let (clock, cache) = (TestClock::default(), Cache::memory(1_000_000));
    let server = validating(&["\"a\""], &[("Cache-Control", "max-age=100")]).await;
    let transport = transport(&clock, &cache);
    let insistent = || Fetch {
        no_cache: true,
        ..page(server.url("/"))
    };
    assert!(
        !fetch(&transport, page(server.url("/")))
            .await
            .unwrap()
            .from_cache
    );
    assert!(fetch(&transport, insistent()).await.unwrap().from_cache);
    assert_eq!(server.requests(), 2);
    let seen = &server.seen()[1];
    assert_eq!(
        (seen.field("cache-control"), seen.field("if-none-match")),
        (Some("no-cache"), Some("\"a\""))
    );
}
