//! What responses mean that are no success, the same for every kind behind HTTP.

use crate::server::{Answer, KEY, PAYLOAD, Server, request};
use purvey_work::provider::{
    Anthropic, ApiKey, CallError, Endpoint, OpenAi, Provider, Retry, Timeouts,
};
use serde_json::json;
use std::{sync::Arc, time::Duration};

async fn refused(status: &str, fields: &[(&str, &str)], body: &str) -> CallError {
    let server = Server::start([Answer::new(status, fields, body)]).await;
    let provider = OpenAi::new(server.endpoint(), None);
    let of_openai = provider.call(&request()).await.unwrap_err();
    let server = Server::start([Answer::new(status, fields, body)]).await;
    let provider = Anthropic::new(server.endpoint());
    let of_anthropic = provider.call(&request()).await.unwrap_err();
    assert_eq!(of_openai, of_anthropic);
    of_openai
}

#[tokio::test]
async fn a_limit_is_told_with_the_wait_that_the_provider_asks_for() {
    let date = "Thu, 01 Jan 2026 12:02:00 GMT";
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for (field, value, wait) in [
        ("retry-after", "20", seconds(20)),
        ("retry-after", date, seconds(120)),
        ("retry-after-ms", "1500", Some(Duration::from_millis(1_500))),
        (
            "x-ratelimit-reset-requests",
            "1m30.5s",
            Some(Duration::from_millis(90_500)),
        ),
        (
            "x-ratelimit-reset-tokens",
            "6ms",
            Some(Duration::from_millis(6)),
        ),
        (
            "anthropic-ratelimit-requests-reset",
            "2026-01-01T12:00:40Z",
            seconds(40),
        ),
        (
            "anthropic-ratelimit-tokens-reset",
            "2026-01-01T12:00:41Z",
            seconds(41),
        ),
        (
            "anthropic-ratelimit-input-tokens-reset",
            "2026-01-01T12:00:42Z",
            seconds(42),
        ),
        (
            "anthropic-ratelimit-output-tokens-reset",
            "2026-01-01T12:00:43Z",
            seconds(43),
        ),
        ("x-other", "20", None),
    ] {
        let error = refused("429 Too Many Requests", &[(field, value)], "").await;
        let expected = CallError::Limited {
            wait,
            detail: "The provider answered 429 Too Many Requests".into(),
        };
        assert_eq!(error, expected, "{field}: {value}");
    }
}

#[tokio::test]
async fn a_provider_that_fails_is_tried_again_and_nothing_is_charged() {
    for status in [
        "500 Internal Server Error",
        "503 Service Unavailable",
        "529 Overloaded",
        "408 Request Timeout",
        "425 Too Early",
    ] {
        let error = refused(status, &[], "").await;
        assert!(
            matches!(
                error,
                CallError::Failed {
                    retry: Retry::Backoff,
                    charged: false,
                    ..
                }
            ),
            "{error:?}"
        );
    }
    let told = refused("503 Service Unavailable", &[("retry-after", "7")], "").await;
    let seven = Retry::After(Duration::from_secs(7));
    assert!(
        matches!(told, CallError::Failed { retry, .. } if retry == seven),
        "{told:?}"
    );
}

#[tokio::test]
async fn other_refusals_are_final_and_tell_identifiers_alone() {
    let body = json!({"error": {"type": "invalid_request_error", "code": "model_not_found",
        "message": format!("Incorrect API key provided: {KEY} for {PAYLOAD}")}});
    let id = [("x-request-id", "req_01AB")];
    for status in [
        "400 Bad Request",
        "401 Unauthorized",
        "403 Forbidden",
        "404 Not Found",
        "409 Conflict",
        "413 Payload Too Large",
        "422 Unprocessable Entity",
    ] {
        let error = refused(status, &id, &body.to_string()).await;
        let expected = CallError::Rejected {
            detail: format!(
                "The provider answered {status} (invalid_request_error, model_not_found; its request id is req_01AB)"
            ),
        };
        assert_eq!(error, expected);
    }
}

#[tokio::test]
async fn what_could_be_the_key_or_the_payload_is_left_out() {
    let part = &KEY[3..16];
    for code in [KEY, part, PAYLOAD, "", &"x".repeat(65)] {
        let body = json!({"error": {"code": code}}).to_string();
        let error = refused("400 Bad Request", &[("x-request-id", part)], &body).await;
        assert_eq!(
            error.to_string(),
            "The provider answered 400 Bad Request",
            "{code}"
        );
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let error = refused("302 Found", &[("location", "http://127.0.0.1:1/")], "").await;
    let expected = "The provider answered 302 Found; redirects are not followed: set base_url to where it leads";
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, CallError::Rejected { .. }));
}

#[tokio::test]
async fn a_refusal_is_a_refusal_however_large_or_slow_it_is() {
    let error = refused("400 Bad Request", &[], &"x".repeat(1_000_000)).await;
    assert!(matches!(error, CallError::Rejected { .. }), "{error:?}");
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-length: 10\r\n\r\n";
    let server = Server::start([Answer::raw(head).then_hang()]).await;
    let error = OpenAi::new(server.impatient(), None)
        .call(&request())
        .await
        .unwrap_err();
    assert!(matches!(error, CallError::Rejected { .. }), "{error:?}");
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_a_failure_that_costs_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let clock = Arc::new(purvey_work::SystemClock);
    let endpoint = Endpoint::new(
        base.parse().unwrap(),
        ApiKey::new(KEY),
        Timeouts::default(),
        clock,
    )
    .unwrap();
    assert!(!format!("{endpoint:?}").contains(KEY));
    let error = OpenAi::new(endpoint, None)
        .call(&request())
        .await
        .unwrap_err();
    let expected = CallError::Failed {
        detail: "Connecting to the provider failed.".into(),
        retry: Retry::Backoff,
        charged: false,
    };
    assert_eq!(error, expected);
}

#[tokio::test]
async fn a_connection_that_is_lost_before_the_response_is_charged() {
    let server = Server::start([Answer::raw("")]).await;
    let error = OpenAi::new(server.endpoint(), None)
        .call(&request())
        .await
        .unwrap_err();
    let expected = CallError::Failed {
        detail: "The connection to the provider was lost before its response.".into(),
        retry: Retry::Backoff,
        charged: true,
    };
    assert_eq!(error, expected);
}
