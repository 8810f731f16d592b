//! Retries, by a clock that does not wait.

use super::transport_support::{
    Server, Step, TestClock, code, document, ended, local, page, response,
};
use http::Method;
use purvey_agent::Code;
use purvey_agent::transport::{Class, Clock, Fetch, Guarded, Operation, Transport};
use purvey_odp::problem;
use purvey_retry::Policy;
use std::time::Duration;

fn busy(status: &str, after: Option<&str>) -> Vec<Step> {
    let fields: Vec<_> = after
        .map(|after| ("Retry-After", after))
        .into_iter()
        .collect();
    response(status, &fields, b"")
}

/// A server that is busy so many times, and a transport with a clock.
async fn setup(
    times: usize,
    status: &'static str,
    after: Option<&'static str>,
) -> (Server, Guarded, TestClock) {
    let server = Server::start(move |number, _| match number < times {
        true => busy(status, after),
        false => document(b"{}"),
    })
    .await;
    let clock = TestClock::default();
    let transport = local().clock(clock.clone()).build().unwrap();
    (server, transport, clock)
}

fn milliseconds(waits: &[u64]) -> Vec<Duration> {
    waits.iter().copied().map(Duration::from_millis).collect()
}

#[tokio::test]
async fn what_is_transient_is_tried_again() {
    for (times, status, after, waits) in [
        (1, "503 Busy", None, &[250][..]),
        (3, "503 Busy", None, &[250, 500, 1_000]),
        (1, "503 Busy", Some("soon"), &[250]),
        (3, "503 Busy", Some("10"), &[10_000; 3]),
        (1, "429 Wait", Some("30"), &[30_000]),
        (2, "429 Wait", Some("0"), &[0, 0]),
        (
            1,
            "429 Wait",
            Some("Thu, 09 Oct 2025 08:53:27 GMT"),
            &[7_000],
        ),
    ] {
        let (server, transport, clock) = setup(times, status, after).await;
        let operation = Operation::new(&Policy::reads());
        let fetched = ended(transport.fetch(&operation, page(server.url("/")))).await;
        assert_eq!(fetched.unwrap().body, "{}", "{status} {after:?}");
        assert_eq!(clock.waits(), milliseconds(waits), "{status} {after:?}");
        assert_eq!(operation.budget().retries() as usize, times);
    }
}

#[tokio::test]
async fn the_failure_comes_when_the_budget_does_not_suffice() {
    for (status, after, requests) in [
        ("503 Busy", None, 4),
        ("503 Busy", Some("1"), 4),
        ("503 Busy", Some("11"), 3),
        ("503 Busy", Some("31"), 1),
        ("503 Busy", Some("18446744073709551615"), 1),
        ("429 Wait", None, 1),
        ("429 Wait", Some("31"), 1),
        ("429 Wait", Some("-1"), 1),
        ("429 Wait", Some("1.5"), 1),
    ] {
        let (server, transport, clock) = setup(9, status, after).await;
        let operation = Operation::new(&Policy::reads());
        let error = ended(transport.fetch(&operation, page(server.url("/"))))
            .await
            .unwrap_err();
        assert_eq!(error.status().unwrap(), status[..3].parse::<u16>().unwrap());
        assert!(error.retryable());
        assert_eq!(server.requests(), requests, "{status} {after:?}");
        assert!(clock.waits().iter().sum::<Duration>() <= Duration::from_secs(30));
    }
}

#[tokio::test]
async fn nothing_else_is_tried_again() {
    for status in [
        "400 Bad",
        "401 No",
        "402 Pay",
        "403 No",
        "404 No",
        "406 No",
        "408 Late",
        "410 Gone",
        "413 Large",
        "415 What",
        "422 Bad",
        "500 Oops",
        "502 Oops",
        "504 Late",
    ] {
        let (server, transport, clock) = setup(9, status, Some("1")).await;
        let operation = Operation::new(&Policy::reads());
        let error = ended(transport.fetch(&operation, page(server.url("/"))))
            .await
            .unwrap_err();
        assert!(!error.retryable(), "{status}");
        assert_eq!((server.requests(), clock.waits().len()), (1, 0), "{status}");
    }
    // Nor is a lost connection, by this policy.
    let server = Server::start(|_, _| vec![Step::Close]).await;
    let transport = local().build().unwrap();
    let operation = Operation::new(&Policy::reads());
    let result = ended(transport.fetch(&operation, page(server.url("/")))).await;
    assert_eq!(code(&result), Code::ConnectionLost);
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn an_expired_continuation_is_not_restarted() {
    let body = br#"{"type":"https://offeringprotocol.org/problems/continuation-expired","title":"Gone","status":410,"code":"CONTINUATION_EXPIRED"}"#;
    let fields = [
        ("Content-Type", "application/problem+json"),
        ("Retry-After", "1"),
    ];
    let server = Server::start(move |_, _| response("410 Gone", &fields, body)).await;
    let transport = local().build().unwrap();
    let operation = Operation::new(&Policy::reads());
    let error = ended(transport.fetch(&operation, page(server.url("/?cursor=x"))))
        .await
        .unwrap_err();
    assert_eq!(
        *error.code(),
        Code::Problem(problem::Code::ContinuationExpired)
    );
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn one_budget_for_a_whole_operation() {
    let (server, transport, clock) = setup(9, "503 Busy", Some("10")).await;
    let operation = Operation::new(&Policy::reads());
    let first = ended(transport.fetch(&operation, page(server.url("/a")))).await;
    assert!(first.is_err());
    assert_eq!((server.requests(), clock.waits().len()), (4, 3));
    // Nothing is left for a nested request.
    let second = ended(transport.fetch(&operation, page(server.url("/b")))).await;
    assert!(second.is_err());
    assert_eq!((server.requests(), clock.waits().len()), (5, 3));
}

#[tokio::test]
async fn requests_side_by_side_share_the_budget() {
    let (server, transport, clock) = setup(99, "503 Busy", Some("1")).await;
    let operation = Operation::new(&Policy::reads());
    let fetches = (0..8).map(|n| transport.fetch(&operation, page(server.url(&format!("/{n}")))));
    let results = ended(futures_util::future::join_all(fetches)).await;
    assert!(results.iter().all(Result::is_err));
    assert_eq!((server.requests(), clock.waits().len()), (8 + 3, 3));
}

#[tokio::test]
async fn several_instructions_are_none() {
    let server = Server::start(|_, _| {
        response(
            "429 Wait",
            &[("Retry-After", "1"), ("Retry-After", "2")],
            b"",
        )
    })
    .await;
    let transport = local().clock(TestClock::default()).build().unwrap();
    let operation = Operation::new(&Policy::reads());
    let error = ended(transport.fetch(&operation, page(server.url("/"))))
        .await
        .unwrap_err();
    assert_eq!((error.retry_after(), server.requests()), (None, 1));
}

#[tokio::test]
async fn a_search_is_a_read_and_an_action_is_not() {
    let (server, transport, _) = setup(1, "503 Busy", Some("1")).await;
    let operation = Operation::new(&Policy::reads());
    let search = Fetch::post(server.url("/"), Class::Search, "{\"query\":\"x\"}".into());
    assert!(ended(transport.fetch(&operation, search)).await.is_ok());
    assert_eq!(server.seen()[0].body, server.seen()[1].body);

    for method in [Method::GET, Method::POST] {
        let (server, transport, clock) = setup(1, "503 Busy", Some("1")).await;
        let mut action = Fetch::get(server.url("/"), Class::Invoke);
        action.method = method;
        let error = ended(transport.fetch(&operation, action))
            .await
            .unwrap_err();
        assert_eq!(error.status(), Some(503));
        assert_eq!((server.requests(), clock.waits().len()), (1, 0));
    }
    // Whether an Action whose response was lost has had its effect, nobody knows.
    let server = Server::start(|_, _| vec![Step::Close]).await;
    let mut action = Fetch::get(server.url("/"), Class::Invoke);
    action.method = Method::POST;
    let error = ended(transport.fetch(&operation, action))
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.retryable()),
        (&Code::ConnectionLost, false)
    );
}

#[tokio::test]
async fn a_deadline_ends_everything() {
    let (server, transport, clock) = setup(9, "503 Busy", Some("10")).await;
    let deadline = clock.now() + Duration::from_secs(15);
    let operation = Operation::with_deadline(&Policy::reads(), deadline);
    let error = ended(transport.fetch(&operation, page(server.url("/"))))
        .await
        .unwrap_err();
    assert_eq!(error.status(), Some(503));
    assert_eq!(clock.waits(), milliseconds(&[10_000]));

    let server = Server::start(|_, _| vec![Step::Hang]).await;
    let operation =
        Operation::with_deadline(&Policy::reads(), clock.now() + Duration::from_millis(100));
    let result = ended(transport.fetch(&operation, page(server.url("/")))).await;
    assert_eq!(code(&result), Code::Timeout);
    assert!(result.unwrap_err().url().is_some());

    let operation =
        Operation::with_deadline(&Policy::reads(), clock.now() - Duration::from_secs(1));
    assert_eq!(
        code(&ended(transport.fetch(&operation, page(server.url("/")))).await),
        Code::Timeout
    );
}
