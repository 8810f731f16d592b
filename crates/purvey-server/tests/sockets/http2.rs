//! HTTP/2, frame by frame.

use crate::common::config;
use crate::{Running, SHORT, until_free};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

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
