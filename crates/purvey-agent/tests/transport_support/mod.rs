//! A server on raw sockets that does what it is told, and a clock that does not wait.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly, and not every test needs all of them"
)]

use futures_util::future::BoxFuture;
use purvey_agent::transport::{
    Class, Clock, Fetch, Fetched, Guarded, GuardedBuilder, Limits, Operation, Transport,
};
use purvey_agent::{Code, Error};
use purvey_odp::identity::LocalDevelopment;
use purvey_retry::Policy;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// What the server does next on a connection.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends bytes one by one, with a pause between.
    Drip(Vec<u8>),
    /// Sends bytes again and again until nobody takes them.
    Flood(Vec<u8>),
    /// As a flood, but with a pause between.
    Trickle(Vec<u8>),
    /// Neither sends nor closes.
    Hang,
    /// Closes in order.
    Close,
    /// Closes with a reset.
    Reset,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).expect("a request line")
    }
}

/// What a server does about the request with that number.
pub(crate) type Script = dyn Fn(usize, &Seen) -> Vec<Step> + Send + Sync;

/// A running server; it ends with the runtime.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    sent: Arc<AtomicU64>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// A server whose `script` says what to do about the request with that number, from 0.
    pub(crate) async fn start(
        script: impl Fn(usize, &Seen) -> Vec<Step> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            sent: Arc::default(),
            connections: Arc::default(),
        };
        let script: Arc<Script> = Arc::new(script);
        let (seen, sent) = (Arc::clone(&server.seen), Arc::clone(&server.sent));
        let connections = Arc::clone(&server.connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                tokio::spawn(serve(stream, script, seen, Arc::clone(&sent)));
            }
        });
        server
    }

    pub(crate) fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://{}{path}", self.address)).unwrap()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Bytes that clients have taken, what lies in the system's buffers included.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}

async fn serve(
    mut stream: TcpStream,
    script: Arc<Script>,
    seen: Arc<Mutex<Vec<Seen>>>,
    sent: Arc<AtomicU64>,
) {
    while let Some(request) = read(&mut stream).await {
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(request.clone());
            seen.len() - 1
        };
        for step in script(number, &request) {
            if !perform(&mut stream, step, &sent).await {
                return;
            }
        }
    }
}

/// Whether the connection goes on.
async fn perform(stream: &mut TcpStream, step: Step, sent: &AtomicU64) -> bool {
    const PAUSE: Duration = Duration::from_millis(20);
    let mut send = async |bytes: &[u8]| {
        let done = stream.write_all(bytes).await.is_ok();
        sent.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        done
    };
    match step {
        Step::Send(bytes) => return send(&bytes).await,
        Step::Drip(bytes) => {
            for byte in bytes {
                if !send(&[byte]).await {
                    return false;
                }
                tokio::time::sleep(PAUSE).await;
            }
            return true;
        }
        Step::Flood(bytes) => {
            let many = bytes.repeat(65_536 / bytes.len() + 1);
            while send(&many).await {}
        }
        Step::Trickle(bytes) => {
            while send(&bytes).await {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Step::Hang => {
            let mut rest = [0; 64];
            while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
        }
        Step::Close => drop(stream.shutdown().await),
        Step::Reset => {
            // What was sent may still be on its way.
            tokio::time::sleep(PAUSE).await;
            stream.set_zero_linger().unwrap();
        }
    }
    false
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut request = Seen {
        head: String::from_utf8(bytes[..end].to_vec()).unwrap(),
        body: bytes[end + 4..].to_vec(),
    };
    let length = request
        .field("content-length")
        .map_or(0, |length| length.parse().unwrap());
    while request.body.len() < length {
        if stream.read_buf(&mut request.body).await.ok()? == 0 {
            return None;
        }
    }
    Some(request)
}

/// A header with these fields.
pub(crate) fn head(status: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let fields: String = fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!("HTTP/1.1 {status}\r\n{fields}\r\n").into_bytes()
}

/// A whole response; `Content-Length` is added.
pub(crate) fn response(status: &str, fields: &[(&str, &str)], body: &[u8]) -> Vec<Step> {
    let length = body.len().to_string();
    let mut all = fields.to_vec();
    all.push(("Content-Length", &length));
    vec![Step::Send([head(status, &all), body.to_vec()].concat())]
}

/// The media type of ODP documents, as a field.
pub(crate) const ODP: (&str, &str) = ("Content-Type", "application/odp+json");

/// A whole document.
pub(crate) fn document(body: &[u8]) -> Vec<Step> {
    response("200 OK", &[ODP], body)
}

/// Limits under which nothing takes long.
pub(crate) fn short() -> Limits {
    Limits {
        connect: Duration::from_secs(2),
        header: Duration::from_secs(3),
        idle: Duration::from_secs(2),
        total: Duration::from_secs(5),
        invoke_bytes: 1_000,
        ..Limits::default()
    }
}

/// A transport for local development with short limits.
pub(crate) fn local() -> GuardedBuilder {
    Guarded::builder()
        .local_development(LocalDevelopment::Allowed)
        .limits(short())
}

/// One fetch as an operation of its own. It must end, whatever the other side does.
pub(crate) async fn fetch(transport: &impl Transport, fetch: Fetch) -> Result<Fetched, Error> {
    let operation = Operation::new(&Policy::reads());
    ended(transport.fetch(&operation, fetch)).await
}

/// What comes in the end.
pub(crate) async fn ended<T>(work: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(Duration::from_secs(60), work).await;
    ended.expect("nothing may go on for a minute")
}

/// A plain fetch of a page.
pub(crate) fn page(url: Url) -> Fetch {
    Fetch::get(url, Class::Page)
}

/// The code of the failure.
#[track_caller]
pub(crate) fn code(result: &Result<Fetched, Error>) -> Code {
    match result {
        Ok(fetched) => panic!("{} bytes with {}", fetched.body.len(), fetched.status),
        Err(error) => error.code().clone(),
    }
}

/// A clock that stands still but when something waits, and remembers the waits.
#[derive(Clone, Default)]
pub(crate) struct TestClock(Arc<Mutex<(Duration, Vec<Duration>)>>);

/// 2025-10-09 08:53:20 UTC, a Thursday.
const START: Duration = Duration::from_secs(1_760_000_000);

impl TestClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.0.lock().unwrap().0 += by;
    }

    pub(crate) fn waits(&self) -> Vec<Duration> {
        self.0.lock().unwrap().1.clone()
    }
}

impl Clock for TestClock {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + START + self.0.lock().unwrap().0
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        let mut held = self.0.lock().unwrap();
        held.0 += wait;
        held.1.push(wait);
        Box::pin(async {})
    }

    fn chance(&self) -> f64 {
        0.5
    }
}
