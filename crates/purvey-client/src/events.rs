//! `text/event-stream`, resumed by `Last-Event-ID`.

use crate::{
    attempt::{Call, Caller, Repeat},
    client::call,
    error::Error,
};
use futures_util::{Stream, StreamExt};
use http::{HeaderName, HeaderValue, Method, header::ACCEPT};
use std::{sync::Arc, time::Duration};

/// Longest line or event that is read, in bytes.
const EVENT_BYTES: usize = 16 * 1_024 * 1_024;
/// Longest silence of a live stream: the server comments every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Where to go on from after it.
    pub id: Option<String>,
    /// What happened: `status`, `step` or `output`.
    pub kind: String,
    /// JSON.
    pub data: String,
}

/// What a stream of bytes has said so far.
#[derive(Default)]
struct Reader {
    line: Vec<u8>,
    id: Option<String>,
    kind: String,
    data: String,
    begun: bool,
    after_cr: bool,
}

impl Reader {
    /// Takes bytes and gives the events that they complete.
    fn take(&mut self, bytes: &[u8]) -> Result<Vec<Event>, String> {
        let mut events = Vec::new();
        for &byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    let line = std::mem::take(&mut self.line);
                    let line = String::from_utf8(line).map_err(|_| "it is not UTF-8")?;
                    events.extend(self.line(&line));
                }
                _ => self.line.push(byte),
            }
            if self.line.len() + self.data.len() > EVENT_BYTES {
                return Err("an event is too long".into());
            }
        }
        Ok(events)
    }

    fn line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let event = Event {
                id: self.id.clone(),
                kind: std::mem::take(&mut self.kind),
                data: std::mem::take(&mut self.data),
            };
            return std::mem::take(&mut self.begun).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.begun {
                    self.data.push('\n');
                }
                self.begun = true;
                self.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.kind),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            _ => {}
        }
        None
    }
}

/// Events of `path`, going on after the last one whenever the connection is lost.
pub(crate) fn follow(
    caller: Arc<Caller>,
    path: String,
) -> impl Stream<Item = Result<Event, Error>> {
    async_stream::try_stream! {
        let mut last: Option<String> = None;
        let mut failures = 0_u32;
        loop {
            let mut call = call(Method::GET, &path, None, Repeat::Safe);
            call.headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
            if let Some(id) = last.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
                call.headers.insert(LAST_EVENT_ID, id);
            }
            match caller.open(&call).await {
                Ok(response) => {
                    let mut reader = Reader::default();
                    let mut pieces = response.bytes_stream();
                    loop {
                        match tokio::time::timeout(SILENCE, pieces.next()).await {
                            // The server has said all there is.
                            Ok(None) => return,
                            Ok(Some(Ok(bytes))) => {
                                for event in reader.take(&bytes).map_err(|detail| unreadable(&call, detail))? {
                                    failures = 0;
                                    last.clone_from(&event.id);
                                    yield event;
                                }
                            }
                            Ok(Some(Err(_))) | Err(_) => break,
                        }
                    }
                }
                Err(error) if !passing(&error) || failures + 1 >= caller.attempts => Err(error)?,
                Err(_) => {}
            }
            failures += 1;
            let wait = Duration::from_millis(500) * 2_u32.saturating_pow(failures.min(5));
            caller.time.sleep(wait.mul_f64(caller.time.chance())).await;
        }
    }
}

fn unreadable(call: &Call, detail: String) -> Error {
    Error::Answer {
        endpoint: call.endpoint(),
        detail,
    }
}

/// Whether trying again can help.
fn passing(error: &Error) -> bool {
    match error {
        Error::Connection { .. } => true,
        Error::Problem(problem) => problem.status >= 500 || problem.retry_after.is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_the_bytes_are_cut() {
        let text = "id: 1\nevent: status\ndata: {\"a\":\ndata: 1}\n\n: alive\r\n\r\nid: 2\r\nevent: output\r\ndata: x\r\n\r\ndata: lost";
        for cut in 1..8 {
            let mut reader = Reader::default();
            let mut events = Vec::new();
            for piece in text.as_bytes().chunks(cut) {
                events.extend(reader.take(piece).unwrap());
            }
            let event = |id: &str, kind: &str, data: &str| Event {
                id: Some(id.into()),
                kind: kind.into(),
                data: data.into(),
            };
            assert_eq!(
                events,
                [
                    event("1", "status", "{\"a\":\n1}"),
                    event("2", "output", "x")
                ]
            );
        }
    }
}
