//! Server-sent events as they arrive.

/// Most bytes of one event.
const EVENT_BYTES: usize = 1_048_576;

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Its `event` field, if it has one.
    pub(super) name: String,
    /// Its `data` lines.
    pub(super) data: String,
}

/// The stream holds an event that is too large.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Puts events together from pieces.
#[derive(Default)]
pub(super) struct Events {
    line: Vec<u8>,
    /// Whether the last line ended with a carriage return, whose line feed may come yet.
    returned: bool,
    name: String,
    data: Option<String>,
}

impl Events {
    /// Takes a piece of the stream; gives the events that it completes.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<Vec<Event>, TooLarge> {
        let mut events = Vec::new();
        for byte in piece {
            let returned = std::mem::take(&mut self.returned);
            match byte {
                b'\n' if returned => {}
                b'\n' | b'\r' => {
                    self.returned = *byte == b'\r';
                    events.extend(self.end_line());
                }
                byte => self.line.push(*byte),
            }
            if self.line.len() + self.data.as_ref().map_or(0, String::len) > EVENT_BYTES {
                return Err(TooLarge);
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            return self.data.take().map(|data| Event { name, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> Event {
        Event {
            name: name.to_owned(),
            data: data.to_owned(),
        }
    }

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        let stream = "\u{feff}: hi\nevent: a\ndata: 1\ndata:  2\n\ndata\r\n\r\nid: 7\rdata: é\r\r: end\n\nevent: lost\ndata: x";
        let stream = stream.trim_start_matches('\u{feff}').as_bytes();
        let expected = [event("a", "1\n 2"), event("", ""), event("", "é")];
        for cut in 0..=stream.len() {
            let mut events = Events::default();
            let mut all = events.push(&stream[..cut]).unwrap();
            all.extend(events.push(&stream[cut..]).unwrap());
            assert_eq!(all, expected, "cut at {cut}");
        }
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; EVENT_BYTES];
        assert_eq!(events.push(&piece), Ok(vec![]));
        assert_eq!(events.push(b"x"), Err(TooLarge));
        let mut events = Events::default();
        let lines = "data: 0123456789\n".repeat(100_000);
        assert_eq!(events.push(lines.as_bytes()), Err(TooLarge));
    }
}
