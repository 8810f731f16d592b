//! A provider that answers what the test says, byte for byte, and keeps what it was asked.

use parking_lot::Mutex;
use purvey_work::{
    Clock, Timestamp,
    provider::{ApiKey, Endpoint, Message, Request, Timeouts},
};
use serde_json::Value;
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The key that must never be seen anywhere but in the request.
pub(crate) const KEY: &str = "sk-NeverToBeSeen-0123456789";
/// What a request says that must never be seen in an error.
pub(crate) const PAYLOAD: &str = "the caller's private words";
/// 2026-01-01T12:00:00Z.
pub(crate) const NOON: Timestamp = Timestamp::from_millis(1_767_268_800_000);

/// One answer.
pub(crate) struct Answer {
    bytes: Vec<u8>,
    /// Whether the connection stays open, silent, once the bytes are written.
    hang: bool,
}

impl Answer {
    /// A status with fields and a body.
    pub(crate) fn new(status: &str, fields: &[(&str, &str)], body: &str) -> Self {
        let mut head = format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        Self::raw(format!("{head}\r\n{body}"))
    }

    /// A whole JSON response.
    pub(crate) fn json(body: &Value) -> Self {
        Self::new(
            "200 OK",
            &[("content-type", "application/json")],
            &body.to_string(),
        )
    }

    /// A stream of events, which ends where the text ends.
    pub(crate) fn stream(events: &str) -> Self {
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n";
        Self::raw(format!("{head}{events}"))
    }

    /// A stream of these values, each the data of an event, and `[DONE]`.
    pub(crate) fn chunks(values: &[Value]) -> Self {
        let events: String = values
            .iter()
            .map(|value| format!("data: {value}\n\n"))
            .collect();
        Self::stream(&format!("{events}data: [DONE]\n\n"))
    }

    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: bytes.into(),
            hang: false,
        }
    }

    pub(crate) fn then_hang(mut self) -> Self {
        self.hang = true;
        self
    }
}

/// What was asked.
pub(crate) struct Asked {
    /// The request line and fields, lower case.
    pub(crate) head: String,
    pub(crate) body: Value,
}

pub(crate) struct Server {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Answers one connection after the other with one answer each; refuses to answer more.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        let mut answers: VecDeque<_> = answers.into_iter().collect();
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Some(answer) = answers.pop_front() {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read(&mut stream).await;
                log.lock().push(request);
                // The client may have enough before everything is written.
                let _ = stream.write_all(&answer.bytes).await;
                match answer.hang {
                    true => open.push(stream),
                    false => drop(stream.shutdown().await),
                }
            }
            std::future::pending::<()>().await;
        });
        Self { url, asked }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        self.endpoint_with(Timeouts::default())
    }

    pub(crate) fn impatient(&self) -> Endpoint {
        self.endpoint_with(Timeouts {
            idle: Duration::from_millis(100),
            ..Timeouts::default()
        })
    }

    fn endpoint_with(&self, timeouts: Timeouts) -> Endpoint {
        let base = self.url.parse().unwrap();
        Endpoint::new(base, ApiKey::new(KEY), timeouts, Arc::new(Noon)).unwrap()
    }

    /// The only request.
    pub(crate) fn asked(&self) -> Asked {
        let mut asked = self.asked.lock();
        assert_eq!(asked.len(), 1);
        asked.remove(0)
    }
}

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        NOON
    }
}

async fn read(stream: &mut TcpStream) -> Asked {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4_096];
        let read = stream.read(&mut piece).await.unwrap();
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse().unwrap());
            if body.len() >= length || read == 0 {
                let body = serde_json::from_str(body).unwrap();
                return Asked { head, body };
            }
        }
        assert_ne!(read, 0, "the request ended early");
    }
}

/// A request with instructions and one message.
pub(crate) fn request() -> Request {
    Request {
        model: "small-model".into(),
        instructions: "Be brief.".into(),
        messages: vec![Message::User {
            content: PAYLOAD.into(),
        }],
        tools: Vec::new(),
        max_output_tokens: 256,
        place: None,
    }
}
