//! Stopping.

use crate::common::{TOKEN, config};
use crate::{GET, Running, SHORT, exchange};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

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
