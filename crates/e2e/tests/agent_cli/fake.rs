//! A Service that answers whatever a test wants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// Nothing is sent and the connection stays open.
    silent: bool,
}

impl Reply {
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: body.into(),
            silent: false,
        }
    }

    /// A document of the protocol.
    pub(crate) fn odp(document: &Value) -> Self {
        Self::new(200, "application/odp+json", document.to_string())
    }

    /// A problem.
    pub(crate) fn problem(status: u16, code: &str, more: &Value) -> Self {
        let name = code.to_lowercase().replace('_', "-");
        let mut problem = json!({
            "type": format!("https://offeringprotocol.org/problems/{name}"),
            "title": "A problem",
            "status": status,
            "code": code,
        });
        for (name, value) in more.as_object().unwrap() {
            problem[name] = value.clone();
        }
        Self::new(status, "application/problem+json", problem.to_string())
    }

    /// No answer at all.
    pub(crate) fn silence() -> Self {
        Self {
            silent: true,
            ..Self::new(200, "text/plain", "")
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A server on a port of its own; it ends when it is dropped.
pub(crate) struct Fake {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Fake {
    pub(crate) fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let ended = Arc::new(AtomicBool::new(false));
        let answer = Arc::new(answer);
        let thread = std::thread::spawn({
            let (requests, ended) = (Arc::clone(&requests), Arc::clone(&ended));
            move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    if ended.load(Ordering::SeqCst) {
                        return;
                    }
                    let (requests, answer) = (Arc::clone(&requests), Arc::clone(&answer));
                    // A client that goes away is none of the server's business.
                    std::thread::spawn(move || serve(stream, &requests, &*answer));
                }
            }
        });
        Self {
            url,
            requests,
            ended,
            thread: Some(thread),
        }
    }

    /// What was asked so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// What was asked so far of one path, whatever the query.
    pub(crate) fn requests_for(&self, path: &str) -> Vec<Request> {
        let of_path = |request: &Request| request.target.split('?').next() == Some(path);
        self.requests().into_iter().filter(of_path).collect()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // So that the loop sees it.
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(
    mut stream: TcpStream,
    requests: &Mutex<Vec<Request>>,
    answer: &dyn Fn(&Request) -> Reply,
) -> Option<()> {
    let request = read(&stream)?;
    requests.lock().unwrap().push(request.clone());
    let reply = answer(&request);
    if reply.silent {
        // Until the client has had enough.
        let _ = stream.read(&mut [0; 1]);
        return None;
    }
    let mut head = format!("HTTP/1.1 {} X\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!(
        "content-length: {}\r\nconnection: close\r\n\r\n",
        reply.body.len()
    ));
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&reply.body).ok()
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut parts = line.split(' ');
    let (method, target) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            None => break,
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
        }
    }
    let mut request = Request {
        method,
        target,
        headers,
        body: Vec::new(),
    };
    let length = request
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    request.body.resize(length, 0);
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

/// A Service Document that advertises these operations, with more members.
pub(crate) fn service(operations: &[&str], more: &Value) -> Reply {
    let operations: Vec<Value> = operations
        .iter()
        .map(|name| json!({"name": name, "authentication": "not-required"}))
        .collect();
    let mut document = json!({
        "odp_version": "1.0",
        "name": "Corner shop",
        "description": "What the corner shop sells.",
        "language": "en",
        "localizations": ["en"],
        "http": {"endpoint_base": "/odp"},
        "operations": operations,
    });
    for (name, value) in more.as_object().unwrap() {
        document[name] = value.clone();
    }
    Reply::odp(&document)
}

/// A page of these items.
pub(crate) fn page(items: &Value, more: &Value) -> Reply {
    let mut page = json!({"odp_version": "1.0", "items": items});
    for (name, value) in more.as_object().unwrap() {
        page[name] = value.clone();
    }
    Reply::odp(&page)
}

/// What a Service answers where nothing is.
pub(crate) fn nothing() -> Reply {
    Reply::problem(404, "NOT_FOUND", &json!({}))
}

/// The operations that every Service has.
pub(crate) const LEAST: [&str; 2] = ["list-offerings", "get-offering"];
