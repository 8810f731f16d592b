//! What only real sockets show: timeouts, caps, rates, stopping.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use common::{TOKEN, config, filled};
use purvey_catalog::catalog::Catalog;
use purvey_server::{Server, ServerConfig};
use std::{
    net::SocketAddr,
    num::NonZeroU32,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
    time::{sleep, timeout},
};

const GET: &str = "GET /odp/offerings/lamp-01 HTTP/1.1\r\nhost: x\r\n\r\n";
const SHORT: Duration = Duration::from_millis(300);

struct Running {
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    _catalog: Catalog,
    _directory: TempDir,
}

impl Running {
    async fn with(config: ServerConfig) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let catalog = filled(directory.path());
        let server = Server::bind(config, catalog.clone()).await.unwrap();
        let addr = server.addr();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        Self {
            addr,
            stop: Some(stop),
            task,
            _catalog: catalog,
            _directory: directory,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.unwrap()
    }

    fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }
}

/// Sends, then reads until the response's declared end (or the connection's).
async fn exchange(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    read_response(stream).await
}

async fn read_response(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let text = String::from_utf8_lossy(&seen).to_lowercase();
        if let Some(end) = text.find("\r\n\r\n") {
            let length = text[..end]
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.trim().parse::<usize>().unwrap());
            if seen.len() >= end + 4 + length {
                return String::from_utf8(seen).unwrap();
            }
        }
        let read = timeout(Duration::from_secs(5), stream.read(&mut buffer))
            .await
            .expect("an answer in time")
            .unwrap();
        if read == 0 {
            return String::from_utf8(seen).unwrap();
        }
        seen.extend_from_slice(&buffer[..read]);
    }
}

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

#[tokio::test]
async fn slow_headers_end_the_connection() {
    let mut slow = config();
    slow.header_timeout = SHORT;
    let server = Running::with(slow).await;
    for sent in [
        "",
        "G",
        "GET /odp",
        "PRI * HT",
        "GET /livez HTTP/1.1\r\nhost: x\r\nx-slow: ",
    ] {
        let mut stream = server.connect().await;
        let start = Instant::now();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let ended = timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
        // A reset ends it as well as a close does.
        assert!(ended.is_ok(), "still open after {sent:?}");
        assert!(
            start.elapsed() >= SHORT - Duration::from_millis(50),
            "{sent:?}"
        );
    }
    // One that is used in time is not ended by the first timer.
    let mut stream = server.connect().await;
    assert!(exchange(&mut stream, GET).await.contains(" 200 "));
}

#[tokio::test]
async fn slow_bodies_are_refused() {
    let mut slow = config();
    slow.body_timeout = SHORT;
    let server = Running::with(slow).await;
    let mut stream = server.connect().await;
    let request = format!(
        "PUT /v1/catalog/offerings/a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/odp+json\r\ncontent-length: 10\r\n\r\n{{"
    );
    let answer = exchange(&mut stream, &request).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("request.timeout"));
}

#[tokio::test]
async fn a_declared_body_too_large_is_refused_before_it_is_sent() {
    let server = Running::with(config()).await;
    let mut stream = server.connect().await;
    let request = format!(
        "PUT /v1/catalog/offerings/a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/odp+json\r\nexpect: 100-continue\r\ncontent-length: 99999999\r\n\r\n"
    );
    let answer = exchange(&mut stream, &request).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn connections_above_the_cap_wait() {
    let mut one = config();
    one.max_connections = 1;
    let server = Running::with(one).await;
    let mut first = server.connect().await;
    assert!(exchange(&mut first, GET).await.contains(" 200 "));
    let mut second = server.connect().await;
    second.write_all(GET.as_bytes()).await.unwrap();
    let mut byte = [0];
    assert!(timeout(SHORT, second.read(&mut byte)).await.is_err());
    drop(first);
    let answer = read_response(&mut second).await;
    assert!(answer.contains(" 200 "), "{answer}");
}

#[tokio::test]
async fn requests_above_the_cap_are_told_when_to_come_back() {
    let mut one = config();
    one.max_in_flight = 1;
    let server = Running::with(one).await;
    // A write whose body does not come holds the only place.
    let mut holder = server.connect().await;
    let request = format!(
        "PUT /v1/catalog/offerings/a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/odp+json\r\ncontent-length: 10\r\n\r\n"
    );
    holder.write_all(request.as_bytes()).await.unwrap();
    sleep(SHORT).await;
    let mut stream = server.connect().await;
    let answer = exchange(&mut stream, GET).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"));
    assert!(answer.contains("SERVICE_UNAVAILABLE"));
    let write = exchange(&mut stream, &GET.replace("/odp/", "/v1/")).await;
    assert!(write.contains("server.unavailable"), "{write}");
    let live = exchange(
        &mut stream,
        &GET.replace("/odp/offerings/lamp-01", "/livez"),
    )
    .await;
    assert!(live.contains(" 200 "), "{live}");
    drop(holder);
    sleep(SHORT).await;
    assert!(exchange(&mut stream, GET).await.contains(" 200 "));
}

#[tokio::test]
async fn a_client_above_its_rate_is_told_when_to_come_back() {
    let mut limited = config();
    limited.rate_per_second = NonZeroU32::new(2);
    let server = Running::with(limited).await;
    let mut stream = server.connect().await;
    for _ in 0..2 {
        assert!(exchange(&mut stream, GET).await.contains(" 200 "));
    }
    let answer = exchange(&mut stream, GET).await;
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"));
    assert!(answer.contains("RATE_LIMITED"));
    let write = exchange(&mut stream, &GET.replace("/odp/", "/v1/")).await;
    assert!(
        write.contains("\"limit_detail\":{\"requests_per_second\":2"),
        "{write}"
    );
    sleep(Duration::from_millis(1_100)).await;
    assert!(exchange(&mut stream, GET).await.contains(" 200 "));
}

#[tokio::test]
async fn stopping_is_unready_first_then_finishes_what_runs() {
    let mut draining = config();
    draining.drain_delay = Duration::from_millis(600);
    let mut server = Running::with(draining).await;
    let mut holder = server.connect().await;
    let body = "{\"id\":\"a\",\"name\":\"x\"}";
    let head = format!(
        "PUT /v1/catalog/offerings/a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/odp+json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    holder.write_all(head.as_bytes()).await.unwrap();
    let ready = GET.replace("/odp/offerings/lamp-01", "/readyz");
    let mut stream = server.connect().await;
    assert!(exchange(&mut stream, &ready).await.contains(" 200 "));
    server.stop();
    sleep(Duration::from_millis(100)).await;
    assert!(exchange(&mut stream, &ready).await.contains(" 503 "));
    sleep(Duration::from_millis(900)).await;
    assert!(
        TcpStream::connect(server.addr).await.is_err(),
        "no longer accepting"
    );
    assert!(!server.task.is_finished(), "a request is still in progress");
    let answer = exchange(&mut holder, body).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    timeout(Duration::from_secs(5), server.task)
        .await
        .expect("it ends")
        .unwrap();
}

#[tokio::test]
async fn the_deadline_ends_what_does_not_finish() {
    let mut hurried = config();
    hurried.shutdown_deadline = SHORT;
    let mut server = Running::with(hurried).await;
    let mut holder = server.connect().await;
    let head = format!(
        "PUT /v1/catalog/offerings/a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/odp+json\r\ncontent-length: 10\r\n\r\n"
    );
    holder.write_all(head.as_bytes()).await.unwrap();
    sleep(Duration::from_millis(100)).await;
    let start = Instant::now();
    server.stop();
    timeout(Duration::from_secs(5), server.task)
        .await
        .expect("it ends")
        .unwrap();
    assert!(start.elapsed() >= SHORT);
}
