//! What only real sockets show: timeouts, caps, rates, stopping.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

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
         content-type: application/odp+json\r\ncontent-length: 10\r\n\
         expect: 100-continue\r\n\r\n"
    );
    holder.write_all(request.as_bytes()).await.unwrap();
    // Said once the body is asked for: the place is taken.
    let goes_on = read_response(&mut holder).await;
    assert!(goes_on.starts_with("HTTP/1.1 100 "), "{goes_on}");
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
    until_free(&server).await;
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
        write.contains("\"limit_detail\":{\"code\":\"rate.limited\",\"requests_per_second\":2"),
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

fn stream_head(length: &str) -> String {
    format!(
        "POST /v1/catalog/records HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/x-ndjson\r\n{length}\r\n\r\n"
    )
}

#[tokio::test]
async fn a_stream_holds_its_place_until_its_answer_has_ended() {
    let mut one = config();
    one.max_in_flight = 1;
    let server = Running::with(one).await;
    let mut holder = server.connect().await;
    let line = "{\"id\":\"a\",\"name\":\"A\"}\n";
    let head = stream_head(&format!("content-length: {}", line.len()));
    holder.write_all(head.as_bytes()).await.unwrap();
    // The head of the answer comes at once; the request goes on.
    let answer = read_response(&mut holder).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let mut stream = server.connect().await;
    let refused = exchange(&mut stream, GET).await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    holder.write_all(line.as_bytes()).await.unwrap();
    let mut rest = String::new();
    while !rest.contains("\"done\":true") || !rest.ends_with("0\r\n\r\n") {
        let mut buffer = [0; 4_096];
        let read = timeout(Duration::from_secs(5), holder.read(&mut buffer));
        let read = read.await.expect("an answer in time").unwrap();
        assert!(read > 0, "{rest}");
        rest.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    assert!(rest.contains("\"accepted\":1"), "{rest}");
    until_free(&server).await;
}

/// Waits until the only place in flight is free again.
async fn until_free(server: &Running) {
    let free = async {
        loop {
            let mut stream = server.connect().await;
            if exchange(&mut stream, GET).await.contains(" 200 ") {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(10), free).await.expect("free");
}

#[tokio::test]
async fn a_reader_that_never_reads_is_let_go() {
    let mut hurried = config();
    hurried.max_in_flight = 1;
    hurried.write_timeout = SHORT;
    let server = Running::with(hurried).await;
    let mut holder = server.connect().await;
    let head = stream_head("transfer-encoding: chunked");
    holder.write_all(head.as_bytes()).await.unwrap();
    // Every bad line makes an answer of its size; nothing is read until no more can be sent.
    let line = format!("[{}]\n", "1,".repeat(100)).repeat(200);
    let chunk = format!("{:x}\r\n{line}\r\n", line.len());
    let sending = async { while holder.write_all(chunk.as_bytes()).await.is_ok() {} };
    timeout(Duration::from_secs(60), sending)
        .await
        .expect("the connection ends");
    until_free(&server).await;
}

/// An HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut out = length[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

#[tokio::test]
async fn a_stream_that_is_given_no_room_is_let_go() {
    let mut hurried = config();
    hurried.max_in_flight = 1;
    hurried.write_timeout = SHORT;
    let server = Running::with(hurried).await;
    let mut stream = server.connect().await;
    let path = b"/odp/offerings?limit=30";
    let mut head = vec![
        0x82,
        0x86,
        0x01,
        1,
        b'x',
        0x04,
        u8::try_from(path.len()).unwrap(),
    ];
    head.extend(path);
    let sent = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        // SETTINGS_INITIAL_WINDOW_SIZE 0: no stream may send any data.
        frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]),
        // The whole request: method, scheme, authority, path.
        frame(1, 0x5, 1, &head),
    ];
    stream.write_all(&sent.concat()).await.unwrap();
    let mut answer = Vec::new();
    let ended = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "still open");
    let headers = answer.windows(5).any(|window| window == [1, 0x4, 0, 0, 0]);
    assert!(headers, "the head of an answer came");
    until_free(&server).await;
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

/// A field of an HTTP/2 header block: a literal that enters no table, without Huffman's code (RFC 7541 §6.2.2).
fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![0];
    for text in [name, value] {
        assert!(text.len() < 127, "one byte of length");
        out.push(text.len() as u8);
        out.extend(text.as_bytes());
    }
    out
}

/// What comes back for a request with this header block under HTTP/2, as it is on the wire, until it holds `until`.
async fn exchange_2(server: &Running, fields: &[Vec<u8>], until: &str) -> String {
    let mut stream = server.connect().await;
    let block = fields.concat();
    let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    sent.extend(frame(4, 0, 0, &[]));
    let mut pieces = block.chunks(16_384).peekable();
    let mut kind = 1;
    while let Some(piece) = pieces.next() {
        let last = if pieces.peek().is_none() { 0x4 } else { 0 };
        let end = u8::from(kind == 1);
        sent.extend(frame(kind, last | end, 1, piece));
        kind = 9;
    }
    stream.write_all(&sent).await.unwrap();
    let mut seen = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&seen);
        if text.contains(until) {
            return text.into_owned();
        }
        let mut buffer = [0; 4_096];
        let read = timeout(Duration::from_secs(5), stream.read(&mut buffer)).await;
        let read = read.expect("an answer in time").unwrap();
        assert!(read > 0, "the connection ended after {text:?}");
        seen.extend_from_slice(&buffer[..read]);
    }
}

#[tokio::test]
async fn http_2_names_one_host_too_and_has_a_bounded_head() {
    let server = Running::with(config()).await;
    let of = |path: &str| {
        vec![
            literal(":method", "GET"),
            literal(":scheme", "http"),
            literal(":path", path),
        ]
    };
    let with = |path: &str, more: &[Vec<u8>]| [of(path), more.to_vec()].concat();
    let authority = literal(":authority", "a");
    let good = with("/livez", &[authority.clone(), literal("host", "A")]);
    exchange_2(&server, &good, "live").await;
    for more in [
        vec![],
        vec![authority.clone(), literal("host", "b")],
        vec![literal("host", "a"), literal("host", "a")],
        vec![literal("host", "a/b")],
    ] {
        let request = with("/odp/offerings", &more);
        let answer = exchange_2(&server, &request, "invalid_params").await;
        assert!(answer.contains("\"code\":\"INVALID_REQUEST\""), "{answer}");
        let mut request = with("/v1/catalog/offerings/a", &more);
        request.push(literal("x-request-id", "mine"));
        let answer = exchange_2(&server, &request, "\"request_id\":\"mine\"").await;
        assert!(
            answer.contains("\"code\":\"request.unaddressed\""),
            "{answer}"
        );
    }
    // 800 fields of 100 bytes, and 32 for each: over 64 KiB, under four times that.
    let many = vec![literal("x", &"y".repeat(99)); 800];
    let request = with(
        "/odp/offerings",
        &[vec![authority.clone()], many.clone()].concat(),
    );
    exchange_2(&server, &request, "\"code\":\"REQUEST_HEADER_TOO_LARGE\"").await;
    let mut request = with("/v1/catalog/offerings/a", &[vec![authority], many].concat());
    request.push(literal("x-request-id", "mine"));
    let answer = exchange_2(&server, &request, "\"request_id\":\"mine\"").await;
    assert!(
        answer.contains("\"code\":\"request.head_too_large\""),
        "{answer}"
    );
}

fn search_head(fields: &str) -> String {
    format!(
        "POST /odp/offerings/search HTTP/1.1\r\nhost: x\r\ncontent-type: application/odp+json\r\n{fields}\r\n\r\n"
    )
}

#[tokio::test]
async fn a_search_that_is_too_large_is_refused_while_it_is_still_sent() {
    let server = Running::with(config()).await;
    // Who asks first is not asked for it.
    let mut stream = server.connect().await;
    let head = search_head("expect: 100-continue\r\ncontent-length: 65537");
    let answer = exchange(&mut stream, &head).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("REQUEST_TOO_LARGE"));
    // Who declares too much is refused before any of it, and who declares nothing at the first byte too many.
    for (fields, sent) in [
        ("content-length: 65537", String::new()),
        (
            "transfer-encoding: chunked",
            format!("10001\r\n{}\r\n", " ".repeat(65_537)),
        ),
    ] {
        let mut stream = server.connect().await;
        let answer = exchange(&mut stream, &(search_head(fields) + &sent)).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{fields}: {answer}");
    }
    // Who sends on and on gets the answer, and then the end.
    let mut stream = server.connect().await;
    let head = search_head("transfer-encoding: chunked");
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(4_096));
    let sending =
        tokio::spawn(async move { while to.write_all(chunk.as_bytes()).await.is_ok() {} });
    let mut answer = Vec::new();
    let mut buffer = [0; 4_096];
    while let Ok(read) = timeout(Duration::from_secs(5), from.read(&mut buffer))
        .await
        .expect("an answer in time")
        && read > 0
    {
        answer.extend_from_slice(&buffer[..read]);
    }
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    timeout(Duration::from_secs(5), sending)
        .await
        .expect("sending ends")
        .unwrap();
}

#[tokio::test]
async fn a_search_shorter_than_it_says_is_waited_for_and_then_refused() {
    let mut hurried = config();
    hurried.body_timeout = SHORT;
    let server = Running::with(hurried).await;
    let mut stream = server.connect().await;
    let request = search_head("content-length: 100") + "{\"odp_version\":";
    let answer = exchange(&mut stream, &request).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("REQUEST_TIMEOUT"), "{answer}");
}
