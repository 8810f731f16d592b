//! What an Agent meets: a server on a loopback socket that answers as a case says.

use crate::case::Fault;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use purvey_odp::media;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use url::Url;

/// How long the other side of a connection may keep silent.
const SILENCE: Duration = Duration::from_secs(10);

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// The fields.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Vec<u8>,
    /// The status that it was answered with; 0 before.
    pub status: u16,
}

impl Seen {
    /// The path without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// What a request is answered with.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Reply {
    /// This status, and nothing else.
    pub fn new(status: u16) -> Self {
        Self {
            status,
            fields: Vec::new(),
            body: Vec::new(),
        }
    }

    /// A JSON document of this media type.
    pub fn json(content_type: &str, document: &Value) -> Self {
        Self::new(200)
            .with(header::CONTENT_TYPE.as_str(), content_type)
            .body(document.to_string())
    }

    /// An ODP document.
    pub fn document(document: &Value) -> Self {
        Self::json(media::ODP, document)
    }

    /// A problem.
    pub fn problem(status: u16, code: &str) -> Self {
        let class = code.to_lowercase().replace('_', "-");
        let problem = json!({
            "type": format!("https://offeringprotocol.org/problems/{class}"),
            "title": "Problem", "status": status, "code": code,
        });
        let reply = Self::json(media::PROBLEM, &problem);
        Self { status, ..reply }
    }

    /// The same with a further field.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same with this body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }
}

/// A running server. It ends when it is dropped.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Peer {
    /// A server on a free port of `127.0.0.1` that answers each request by itself.
    ///
    /// # Errors
    /// When there is no port.
    pub fn start(answer: impl FnMut(&Seen) -> Reply + Send + 'static) -> Result<Self, Fault> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Fault::of("loopback socket"))?;
        let address = listener
            .local_addr()
            .map_err(Fault::of("loopback socket"))?;
        let (seen, stopped) = (
            Arc::<Mutex<Vec<Seen>>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let thread = std::thread::spawn({
            let (seen, stopped) = (Arc::clone(&seen), Arc::clone(&stopped));
            move || serve(&listener, &seen, &stopped, answer)
        });
        Ok(Self {
            address,
            seen,
            stopped,
            thread: Some(thread),
        })
    }

    /// Scheme, host and port.
    ///
    /// # Errors
    /// None in practice.
    pub fn origin(&self) -> Result<ServiceOrigin, Fault> {
        let text = format!("http://{}", self.address);
        ServiceOrigin::parse(&text, LocalDevelopment::Allowed).map_err(Fault::of("origin"))
    }

    /// The URL of a path.
    ///
    /// # Errors
    /// When it is none.
    pub fn url(&self, path: &str) -> Result<Url, Fault> {
        let origin = self.origin()?;
        origin.as_url().join(path).map_err(Fault::of("path"))
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Seen> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }

    /// The requests for this path, whatever the query.
    pub fn at(&self, path: &str) -> Vec<Seen> {
        let mut seen = self.seen();
        seen.retain(|request| request.path() == path);
        seen
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the one who waits for connections.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn serve(
    listener: &TcpListener,
    seen: &Mutex<Vec<Seen>>,
    stopped: &AtomicBool,
    mut answer: impl FnMut(&Seen) -> Reply,
) {
    for connection in listener.incoming() {
        if stopped.load(Ordering::SeqCst) {
            return;
        }
        // A connection that breaks is the Agent's to tell.
        let Ok(Ok(request)) = connection.map(receive) else {
            continue;
        };
        let (mut request, stream) = request;
        let reply = answer(&request);
        request.status = reply.status;
        let mut all = seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(request);
        drop(all);
        drop(send(stream, &reply));
    }
}

fn receive(stream: TcpStream) -> io::Result<(Seen, TcpStream)> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        match reader.read_line(&mut line)? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            _ => Ok(line.trim_end().to_owned()),
        }
    };
    let first = line()?;
    let mut words = first.split(' ');
    let method = words.next().and_then(|word| word.parse().ok());
    let (Some(method), Some(target)) = (method, words.next()) else {
        return Err(malformed());
    };
    let mut headers = HeaderMap::new();
    loop {
        let line = line()?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(malformed)?;
        let name: HeaderName = name.parse().map_err(|_| malformed())?;
        let value = HeaderValue::from_str(value.trim()).map_err(|_| malformed())?;
        headers.append(name, value);
    }
    let mut request = Seen {
        method,
        target: target.to_owned(),
        headers,
        body: Vec::new(),
        status: 0,
    };
    let length = request.field(header::CONTENT_LENGTH.as_str());
    let length = length.map_or(Ok(0), str::parse).map_err(|_| malformed())?;
    request.body.resize(length, 0);
    reader.read_exact(&mut request.body)?;
    Ok((request, reader.into_inner()))
}

fn send(mut stream: TcpStream, reply: &Reply) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} \r\nConnection: close\r\n", reply.status);
    for (name, value) in &reply.fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    // Such a response has no body, and must not seem to lack one.
    if reply.status != StatusCode::NOT_MODIFIED.as_u16() {
        head.push_str(&format!("Content-Length: {}\r\n", reply.body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(&reply.body)?;
    stream.flush()
}

/// A Service that answers each path as it is told, and every other one with 404.
#[derive(Debug, Default)]
pub struct Site(HashMap<String, VecDeque<Reply>>);

impl Site {
    /// A Service with this Service Document.
    pub fn new(document: &Value) -> Self {
        Self::default().on("/.well-known/odp", Reply::document(document))
    }

    /// Adds a reply for `path`. Replies come in their order, and the last one stays.
    #[must_use]
    pub fn on(mut self, path: &str, reply: Reply) -> Self {
        self.0.entry(path.to_owned()).or_default().push_back(reply);
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// As [`Peer::start`].
    pub fn start(mut self) -> Result<Peer, Fault> {
        Peer::start(move |request| {
            let replies = self.0.get_mut(request.path());
            let reply = replies.and_then(|replies| match replies.len() {
                0 | 1 => replies.front().cloned(),
                _ => replies.pop_front(),
            });
            reply.unwrap_or_else(|| Reply::problem(404, "NOT_FOUND"))
        })
    }
}
