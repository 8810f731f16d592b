//! Times, sizes, caps and rates.

use crate::common::{TOKEN, config};
use crate::{GET, Running, SHORT, exchange, read_response, until_free};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

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
