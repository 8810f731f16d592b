//! What is answered on a connection, and what is no request.

use crate::common::config;
use crate::{GET, Running, exchange, read_response};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let server = Running::with(config()).await;
    let mut stream = server.connect().await;
    for _ in 0..3 {
        let answer = exchange(&mut stream, GET).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains("\"lamp-01\""));
    }
    // HEAD ends with its header: what comes next is the next response.
    let head = GET.replace("GET", "HEAD");
    stream.write_all((head + GET).as_bytes()).await.unwrap();
    let mut text = String::new();
    while text.matches("HTTP/1.1 200 ").count() < 2 || !text.contains("\"lamp-01\"") {
        let mut buffer = [0; 4_096];
        let read = timeout(Duration::from_secs(5), stream.read(&mut buffer))
            .await
            .expect("an answer in time")
            .unwrap();
        assert!(read > 0, "{text}");
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    assert_eq!(text.matches("\"lamp-01\"").count(), 1);
}

/// The head's field of this name, of a response as text.
fn field<'a>(response: &'a str, name: &str) -> &'a str {
    let (head, _) = response.split_once("\r\n\r\n").unwrap();
    let start = format!("{name}: ");
    let found = head.lines().find_map(|line| line.strip_prefix(&start));
    found.unwrap_or_else(|| panic!("no {name} in {head}"))
}

#[tokio::test]
async fn what_is_no_request_gets_a_problem_with_an_id() {
    let server = Running::with(config()).await;
    let long = "y".repeat(70_000);
    for (sent, status, code) in [
        ("what is this?\r\n\r\n".to_owned(), 400, "INVALID_REQUEST"),
        (
            format!("GET / HTTP/1.1\r\nhost: x\r\nx: {long}\r\n\r\n"),
            431,
            "REQUEST_HEADER_TOO_LARGE",
        ),
    ] {
        let mut stream = server.connect().await;
        // It may be refused before all of it is read.
        let _ = stream.write_all(sent.as_bytes()).await;
        let answer = read_response(&mut stream).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert_eq!(field(&answer, "content-type"), "application/problem+json");
        assert_eq!(field(&answer, "connection"), "close");
        assert_eq!(field(&answer, "x-request-id").len(), 36);
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(field(&answer, "content-length"), body.len().to_string());
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["status"], status);
        assert_eq!(body["code"], code);
        let mut rest = Vec::new();
        let ended = timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "still open");
    }
    // After a good request on the same connection, too.
    let mut stream = server.connect().await;
    assert!(exchange(&mut stream, GET).await.contains(" 200 "));
    let answer = exchange(&mut stream, "BAD\0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(field(&answer, "x-request-id").len(), 36);
}

#[tokio::test]
async fn a_request_names_one_host_or_is_refused() {
    let server = Running::with(config()).await;
    for fields in [
        "",
        "host: a\r\nhost: a\r\n",
        "host: a\r\nHost: b\r\n",
        "host:\r\n",
        "host: a b\r\n",
        "host: user@a\r\n",
        "host: http://a/\r\n",
        "host: a:port\r\n",
        "host: [::1\r\n",
    ] {
        for (path, code) in [
            ("/odp/offerings/lamp-01", "INVALID_REQUEST"),
            ("/livez", "INVALID_REQUEST"),
            ("/v1/catalog/offerings/a", "request.unaddressed"),
        ] {
            let mut stream = server.connect().await;
            let request = format!("GET {path} HTTP/1.1\r\n{fields}x-request-id: mine\r\n\r\n");
            let answer = exchange(&mut stream, &request).await;
            assert!(answer.starts_with("HTTP/1.1 400 "), "{fields}: {answer}");
            assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{answer}");
            assert!(answer.contains("Host"), "{answer}");
            assert_eq!(field(&answer, "x-request-id"), "mine");
            assert_eq!(field(&answer, "content-type"), "application/problem+json");
        }
    }
    for request in [
        "GET /livez HTTP/1.1\r\nhost: [::1]:80\r\n\r\n",
        "GET /livez HTTP/1.0\r\n\r\n",
    ] {
        let answer = exchange(&mut server.connect().await, request).await;
        assert!(answer.contains(" 200 OK\r\n"), "{answer}");
    }
}
