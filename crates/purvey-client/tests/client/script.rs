//! A scripted server on a real socket, and time that passes as it is told to.

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use futures_util::StreamExt;
use purvey_client::{Client, Time};
use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};
use tokio::net::TcpListener;

/// What the server does with the next request.
#[derive(Clone)]
pub(crate) enum Act {
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Answers at once, while the body still comes.
    Early(u16, Vec<(&'static str, String)>, String),
    /// Sends these bytes, and no more if the connection is to break then.
    Send(u16, Vec<(&'static str, String)>, Vec<u8>, bool),
    /// Closes the connection without an answer.
    Cut,
}

#[derive(Clone, Default)]
pub(crate) struct Script {
    acts: Arc<Mutex<VecDeque<Act>>>,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
}

/// A request that came.
pub(crate) struct Seen {
    pub(crate) uri: String,
    pub(crate) headers: HeaderMap,
    /// Empty where it was not read.
    pub(crate) body: Bytes,
}

impl Script {
    pub(crate) async fn serve(acts: Vec<Act>) -> (Self, String) {
        let script = Self {
            acts: Arc::new(Mutex::new(acts.into())),
            seen: Arc::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(script.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (script, origin)
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

async fn answer(State(script): State<Script>, request: Request) -> Response {
    let act = script.acts.lock().unwrap().pop_front();
    let act = act.expect("the script is over: a request too many");
    let (parts, body) = request.into_parts();
    let body = match act {
        Act::Answer(..) => to_bytes(body, usize::MAX).await.unwrap_or_default(),
        Act::Early(..) => {
            // A server that closed the connection on what still comes could take its answer back.
            tokio::spawn(to_bytes(body, usize::MAX));
            Bytes::new()
        }
        _ => Bytes::new(),
    };
    script.seen.lock().unwrap().push(Seen {
        uri: parts.uri.to_string(),
        headers: parts.headers,
        body,
    });
    let broken = || Err::<Bytes, _>(std::io::Error::other("cut"));
    let (status, headers, body) = match act {
        Act::Answer(status, headers, body) | Act::Early(status, headers, body) => {
            (status, headers, Body::from(body))
        }
        Act::Send(status, headers, bytes, cut) => {
            let pieces = [Ok(Bytes::from(bytes))].into_iter();
            let pieces = pieces.chain(cut.then(broken));
            // What breaks at once takes along what was not written yet.
            let pieces = futures_util::stream::iter(pieces).then(async |piece| {
                if piece.is_err() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                piece
            });
            (status, headers, Body::from_stream(pieces))
        }
        // A body that breaks before its first byte: the connection ends without a whole answer.
        Act::Cut => {
            let broken = futures_util::stream::once(async move { broken() });
            (200, Vec::new(), Body::from_stream(broken))
        }
    };
    let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
    for (name, value) in headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}

/// Nothing waits; every wait is noted and moves the clock.
#[derive(Default)]
pub(crate) struct Simulated(Mutex<Vec<Duration>>);

impl Simulated {
    pub(crate) fn waits(&self) -> Vec<u64> {
        let waits = self.0.lock().unwrap();
        waits.iter().map(|wait| wait.as_millis() as u64).collect()
    }
}

impl Time for Simulated {
    fn now(&self) -> SystemTime {
        // 2026-01-01T00:00:00Z
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
        start + self.0.lock().unwrap().iter().sum::<Duration>()
    }

    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.lock().unwrap().push(wait);
        Box::pin(async {})
    }

    fn chance(&self) -> f64 {
        1.0
    }
}

pub(crate) fn client(origin: &str) -> (Client, Arc<Simulated>) {
    let time = Arc::new(Simulated::default());
    let client = Client::builder(origin)
        .token("pvy_planted-secret")
        .time(time.clone())
        .build()
        .unwrap();
    (client, time)
}

pub(crate) fn status(status: u16) -> Act {
    Act::Answer(status, Vec::new(), String::new())
}

pub(crate) fn told(status: u16, retry_after: &str) -> Act {
    let headers = vec![("retry-after", retry_after.to_owned())];
    Act::Answer(status, headers, String::new())
}

pub(crate) fn ok() -> Act {
    Act::Answer(200, Vec::new(), r#"{"id":"run_1"}"#.into())
}
