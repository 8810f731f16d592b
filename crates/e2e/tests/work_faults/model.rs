//! A model provider that sees what really runs: who is being answered at each moment, which caller has gone away.

use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// What one answered call costs: 7 tokens of the request and 5 of the reply, each 1,000 micro-cents.
pub(crate) const COST: i64 = 12_000;
/// What it says.
pub(crate) const SAYS: &str = "done";
/// How long a call that was given up may still look open: its connection is closed by a task of its own.
const GIVEN_UP: Duration = Duration::from_secs(1);

/// What is done with a call.
#[derive(Clone, Copy)]
pub(crate) enum Act {
    /// Answers after so long.
    Answer(Duration),
    /// Refuses for a second, as a rate limit.
    Limit,
    /// Answers once the model is opened.
    Wait,
}

/// What is done with the call of this number, from 1, for a run's input.
pub(crate) type Plan = fn(&str, u32) -> Act;

#[derive(Clone)]
pub(crate) struct Model(Arc<Inner>);

struct Inner {
    url: String,
    plan: Plan,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    number: u64,
    open: bool,
    limit: usize,
    answering: HashMap<u64, Caller>,
    calls: BTreeMap<String, u32>,
    callers: BTreeSet<String>,
    wrong: Vec<String>,
}

struct Caller {
    input: String,
    by: String,
    connection: TcpStream,
}

impl Caller {
    fn is_gone(&self) -> bool {
        match self.connection.peek(&mut [0]) {
            Ok(bytes) => bytes == 0,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}

impl Model {
    /// One that may be called by `limit` callers at once.
    pub(crate) fn start(limit: usize, plan: Plan) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let model = Self(Arc::new(Inner {
            url: format!("http://{}/v1", listener.local_addr().unwrap()),
            plan,
            seen: Mutex::new(Seen {
                limit,
                ..Seen::default()
            }),
        }));
        let serving = model.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let model = serving.clone();
                std::thread::spawn(move || model.serve(connection));
            }
        });
        model
    }

    pub(crate) fn url(&self) -> &str {
        &self.0.url
    }

    /// Answers everyone who waits, now and from now on.
    pub(crate) fn open(&self) {
        self.0.seen.lock().unwrap().open = true;
    }

    /// How many calls there were for a run's input.
    pub(crate) fn calls(&self, input: &str) -> u32 {
        let seen = self.0.seen.lock().unwrap();
        seen.calls.get(input).copied().unwrap_or_default()
    }

    /// Whose calls are being answered now: the keys that they came with, in order.
    pub(crate) fn answering(&self) -> Vec<String> {
        let mut seen = self.0.seen.lock().unwrap();
        seen.answering.retain(|_, caller| !caller.is_gone());
        let mut by: Vec<_> = seen.answering.values().map(|c| c.by.clone()).collect();
        by.sort_unstable();
        by
    }

    /// The keys that calls came with.
    pub(crate) fn callers(&self) -> BTreeSet<String> {
        self.0.seen.lock().unwrap().callers.clone()
    }

    /// What should not have been: more callers than the limit allows, two for one run.
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.0.seen.lock().unwrap().wrong.clone()
    }

    fn serve(&self, mut connection: TcpStream) {
        // Whoever is killed in the middle of a request is no caller.
        let Some((by, request)) = read(&connection) else {
            return;
        };
        let messages = request["messages"].as_array().unwrap();
        let input = messages.last().unwrap()["content"].as_str().unwrap();
        let (number, call) = self.enter(&connection, &by, input);
        let act = (self.0.plan)(input, call);
        let since = Instant::now();
        let there = loop {
            std::thread::sleep(Duration::from_millis(2));
            let seen = self.0.seen.lock().unwrap();
            let Some(caller) = seen.answering.get(&number) else {
                break false;
            };
            if caller.is_gone() {
                break false;
            }
            if match act {
                Act::Answer(after) => since.elapsed() >= after,
                Act::Limit => true,
                Act::Wait => seen.open,
            } {
                break true;
            }
        };
        // What the caller does after the answer does not count as a call.
        self.0.seen.lock().unwrap().answering.remove(&number);
        if there {
            let _ = connection.set_nonblocking(false);
            let _ = connection.write_all(answer(act).as_bytes());
        }
    }

    fn enter(&self, connection: &TcpStream, by: &str, input: &str) -> (u64, u32) {
        connection.set_nonblocking(true).unwrap();
        let until = Instant::now() + GIVEN_UP;
        loop {
            let mut seen = self.0.seen.lock().unwrap();
            seen.answering.retain(|_, caller| !caller.is_gone());
            let twice = seen.answering.values().any(|c| c.input == input);
            let over = seen.answering.len() >= seen.limit;
            if (over || twice) && Instant::now() < until {
                drop(seen);
                std::thread::sleep(Duration::from_millis(2));
                continue;
            }
            if over || twice {
                let others: Vec<_> = seen
                    .answering
                    .values()
                    .map(|caller| format!("{} by {}", caller.input, caller.by))
                    .collect();
                seen.wrong
                    .push(format!("{input} by {by} beside {others:?}"));
            }
            seen.number += 1;
            let number = seen.number;
            let caller = Caller {
                input: input.to_owned(),
                by: by.to_owned(),
                connection: connection.try_clone().unwrap(),
            };
            seen.answering.insert(number, caller);
            seen.callers.insert(by.to_owned());
            let calls = seen.calls.entry(input.to_owned()).or_default();
            *calls += 1;
            return (number, *calls);
        }
    }
}

/// The bearer token and the body of a request.
fn read(connection: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(connection);
    let (mut by, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        match name.to_ascii_lowercase().as_str() {
            "authorization" => by = value.trim_start_matches("Bearer ").to_owned(),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((by, serde_json::from_slice(&body).ok()?))
}

fn answer(act: Act) -> String {
    let (head, body) = match act {
        Act::Limit => (
            "429 Too Many Requests\r\nRetry-After: 1",
            json!({ "error": { "type": "rate_limit" } }),
        ),
        Act::Answer(_) | Act::Wait => (
            "200 OK",
            json!({
                "choices": [{ "index": 0, "message": { "content": SAYS }, "finish_reason": "stop" }],
                "usage": { "prompt_tokens": 7, "completion_tokens": 5 },
            }),
        ),
    };
    let body = body.to_string();
    format!(
        "HTTP/1.1 {head}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
