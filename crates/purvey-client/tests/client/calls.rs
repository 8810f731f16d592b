//! Which failures are tried again, how often and how far apart.

use crate::script::{Act, Script, client, ok, status, told};
use futures_util::StreamExt;
use purvey_client::{Client, Error};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::{io::AsyncWriteExt, net::TcpListener};

#[tokio::test]
async fn what_may_pass_is_tried_again_and_nothing_else() {
    let date = "Thu, 01 Jan 2026 00:00:07 GMT";
    // acts of a keyed start; the waits in milliseconds; whether it succeeds
    let rows: Vec<(&str, Vec<Act>, Vec<u64>, bool)> = vec![
        ("200", vec![ok()], vec![], true),
        ("500", vec![status(500), ok()], vec![500], true),
        (
            "502, 503, 504",
            vec![status(502), status(503), status(504), ok()],
            vec![500, 1_000, 2_000],
            true,
        ),
        (
            "five attempts are the most",
            vec![status(500); 5],
            vec![500, 1_000, 2_000, 4_000],
            false,
        ),
        (
            "503 with Retry-After",
            vec![told(503, "3"), ok()],
            vec![3_000],
            true,
        ),
        (
            "429 with seconds",
            vec![told(429, "2"), ok()],
            vec![2_000],
            true,
        ),
        (
            "429 with a date",
            vec![told(429, date), ok()],
            vec![7_000],
            true,
        ),
        ("429 without Retry-After", vec![status(429)], vec![], false),
        (
            "429 with what is no time",
            vec![told(429, "soon")],
            vec![],
            false,
        ),
        (
            "429 past the deadline",
            vec![told(429, "61")],
            vec![],
            false,
        ),
        (
            "lost connections",
            vec![Act::Cut, Act::Cut, ok()],
            vec![500, 1_000],
            true,
        ),
        ("400", vec![status(400)], vec![], false),
        ("401", vec![status(401)], vec![], false),
        ("403", vec![status(403)], vec![], false),
        ("404", vec![status(404)], vec![], false),
        ("408", vec![status(408)], vec![], false),
        ("409", vec![told(409, "1")], vec![], false),
        ("413", vec![status(413)], vec![], false),
        ("415", vec![status(415)], vec![], false),
        ("422", vec![status(422)], vec![], false),
        ("an unknown status", vec![told(477, "1")], vec![], false),
        ("a redirect", vec![status(307)], vec![], false),
    ];
    for (name, acts, waits, succeeds) in rows {
        let attempts = acts.len();
        let (script, origin) = Script::serve(acts).await;
        let (client, time) = client(&origin);
        let started = client
            .start::<Value>("/v1/agents/agt_1/runs", &json!({"input": 1}), None)
            .await;
        assert_eq!(started.is_ok(), succeeds, "{name}: {started:?}");
        assert_eq!(script.requests(), attempts, "{name}");
        assert_eq!(time.waits(), waits, "{name}");
        let seen = script.seen.lock().unwrap();
        let keys: Vec<_> = seen
            .iter()
            .map(|seen| &seen.headers["idempotency-key"])
            .collect();
        assert!(keys.iter().all(|key| *key == keys[0]), "{name}: one key");
        assert_eq!(
            seen[0].headers["authorization"],
            "Bearer pvy_planted-secret"
        );
        if let Ok(started) = started {
            assert_eq!(started.run, json!({"id": "run_1"}));
            assert_eq!(keys[0].to_str().unwrap(), started.key);
        }
    }
}

#[tokio::test]
async fn without_a_key_an_unknown_outcome_is_not_repeated() {
    for (acts, ambiguous) in [
        (vec![Act::Cut], true),
        (vec![status(500)], false),
        (vec![status(503)], false),
    ] {
        let (script, origin) = Script::serve(acts).await;
        let (client, time) = client(&origin);
        let sent = client
            .send::<Value>(http::Method::POST, "/v1/tokens", Some(&json!({})))
            .await;
        match sent.unwrap_err() {
            Error::Connection {
                ambiguous: said, ..
            } => assert_eq!(said, ambiguous),
            Error::Problem(_) => assert!(!ambiguous),
            other => panic!("{other:?}"),
        }
        assert_eq!((script.requests(), time.waits()), (1, vec![]));
    }
    // A 429 and a 503 that say when were refused before anything was done.
    let (script, origin) = Script::serve(vec![told(429, "1"), told(503, "2"), ok()]).await;
    let (client, time) = client(&origin);
    let sent = client
        .send::<Value>(http::Method::POST, "/v1/tokens", Some(&json!({})))
        .await;
    sent.unwrap();
    assert_eq!((script.requests(), time.waits()), (3, vec![1_000, 2_000]));
}

#[tokio::test]
async fn nothing_listens_is_a_connection_error_and_not_ambiguous() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let (client, time) = client(&origin);
    let sent = client
        .send::<Value>(http::Method::POST, "/v1/tokens", Some(&json!({})))
        .await;
    let Error::Connection {
        ambiguous,
        attempts,
        ..
    } = sent.unwrap_err()
    else {
        panic!("no connection error");
    };
    // Nothing was sent, so even what has no key is tried again.
    assert_eq!((ambiguous, attempts, time.waits().len()), (false, 5, 4));
}

#[tokio::test]
async fn a_problem_keeps_all_that_it_says() {
    let body = json!({
        "type": "/v1/problems/request.invalid", "title": "Invalid request", "status": 422, "code": "request.invalid",
        "detail": "The request breaks rules.", "request_id": "r-1",
        "errors": [{"in": "body", "pointer": "/name", "reason": "Must be a string."}],
    });
    let (_, origin) = Script::serve(vec![Act::Answer(422, Vec::new(), body.to_string())]).await;
    let (client, _) = client(&origin);
    let Error::Problem(problem) = client
        .get::<Value>("/v1/runs/x?secret=1")
        .await
        .unwrap_err()
    else {
        panic!("no problem");
    };
    assert_eq!(
        (
            problem.status,
            problem.code.as_str(),
            problem.request_id.as_deref(),
            problem.attempts
        ),
        (422, "request.invalid", Some("r-1"), 1)
    );
    assert_eq!(problem.endpoint, "GET /v1/runs/x");
    assert_eq!(problem.errors[0].pointer.as_deref(), Some("/name"));
}

#[tokio::test]
async fn waiting_goes_on_over_lost_connections_and_ends_with_the_patience() {
    let running = || Act::Answer(200, Vec::new(), r#"{"status":"running"}"#.into());
    let done = Act::Answer(200, Vec::new(), r#"{"status":"succeeded"}"#.into());
    let (script, origin) =
        Script::serve(vec![running(), Act::Cut, status(503), running(), done]).await;
    let (client, _) = client(&origin);
    let run: Value = client
        .wait("/v1/runs/run_1", None, |run: &Value| {
            run["status"] == "succeeded"
        })
        .await
        .unwrap();
    assert_eq!(run["status"], "succeeded");
    let seen = script.seen.lock().unwrap();
    assert!(seen.iter().all(|seen| seen.uri == "/v1/runs/run_1?wait=60"));
}

#[tokio::test]
async fn events_go_on_after_the_last_one_seen() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heads = Arc::clone(&seen);
    tokio::spawn(async move {
        // The first connection breaks in the middle of the second event; the second one ends as it should.
        for part in ["id: 1\ndata: a\n\nid: 2\ndata: lo", "id: 2\ndata: b\n\n"] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                tokio::io::AsyncReadExt::read_exact(&mut stream, &mut byte)
                    .await
                    .unwrap();
                head.push(byte[0]);
            }
            heads
                .lock()
                .unwrap()
                .push(String::from_utf8(head).unwrap().to_lowercase());
            let whole = heads.lock().unwrap().len() == 2;
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{part}\r\n{}",
                part.len(),
                if whole { "0\r\n\r\n" } else { "" }
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let (client, _) = client(&origin);
    let events: Vec<String> = client
        .events("/v1/runs/run_1/events")
        .map(|event| event.unwrap().data)
        .collect()
        .await;
    assert_eq!(events, ["a", "b"]);
    let heads = seen.lock().unwrap();
    assert!(!heads[0].contains("last-event-id"));
    assert!(heads[1].contains("last-event-id: 1\r\n"));
}

#[test]
fn nothing_prints_the_token_and_bad_origins_are_refused() {
    for origin in [
        "",
        "127.0.0.1:1",
        "ftp://a.example",
        "http://a.example/x",
        "http://u@a.example",
    ] {
        let built = Client::builder(origin).build();
        assert!(matches!(built, Err(Error::Usage(_))), "{origin}");
    }
    let secret = purvey_client::Redacted::new("pvy_planted-secret");
    assert_eq!(format!("{secret:?} {secret}"), "[redacted] [redacted]");
    for token in ["pvy_planted\nsecret", "pvy_planted secret", "pvy_planted-é"] {
        let broken = Client::builder("http://a.example").token(token).build();
        assert!(matches!(broken, Err(Error::Usage(_))), "{token}");
        assert!(!format!("{:?}", broken.err()).contains("planted"));
    }
}
