//! An operator that writes at random, one request after the other.

use serde_json::Value;

use crate::client::{Answer, Client};
use crate::history::{Change, History, Progress};
use crate::random::Random;
use crate::sample;

/// Writes until `go_on` says no or the server is gone; `note` hears of each step of progress as it happens.
pub fn write(
    history: &mut History,
    client: &Client,
    random: &mut Random,
    go_on: impl Fn() -> bool,
    note: impl Fn(Progress),
) {
    while go_on() {
        let wait = random.chance(20);
        let query = if wait { "?wait=published" } else { "" };
        let first = history.changes.len();
        let answer = match random.within(0..100) {
            0..25 => {
                let count = random.within(2..13);
                let lines = (0..count)
                    .map(|_| put(history, random).to_string() + "\n")
                    .collect();
                announce(history, &note);
                let join = if wait { '&' } else { '?' };
                client.post_lines(
                    &format!("/v1/catalog/records{query}{join}kind=offering"),
                    lines,
                )
            }
            25..40 if let Some(id) = delete(history, random) => {
                announce(history, &note);
                client.delete(&format!("/v1/catalog/offerings/{id}{query}"))
            }
            _ => {
                let offering = put(history, random);
                announce(history, &note);
                let id = offering["id"].as_str().expect("an id");
                client.put(&format!("/v1/catalog/offerings/{id}{query}"), &offering)
            }
        };
        // No whole answer: the server is gone, and what was sent last may be there or not.
        let Ok(answer) = answer else { return };
        let published = settle(&mut history.changes[first..], &answer);
        assert!(
            !wait || published.is_none_or(|published| published),
            "not published in time: {}",
            answer.text()
        );
        history.progress.acknowledged = history.changes.len();
        if published == Some(true) {
            history.progress.published = history.changes.len();
        }
        note(history.progress);
    }
}

fn announce(history: &mut History, note: &impl Fn(Progress)) {
    history.progress.sent = history.changes.len();
    note(history.progress);
}

fn put(history: &mut History, random: &mut Random) -> Value {
    history.version += 1;
    let id = random.pick(&history.ids).clone();
    let offering = sample::offering(&id, history.version);
    history.changes.push(Change {
        id,
        to: Some(history.version),
        refused: false,
    });
    offering
}

fn delete(history: &mut History, random: &mut Random) -> Option<String> {
    let present: Vec<String> = history.after(history.changes.len()).into_keys().collect();
    // A few always stay, so that lists have pages.
    let id = (present.len() > 10).then(|| random.pick(&present).clone())?;
    history.changes.push(Change {
        id: id.clone(),
        to: None,
        refused: false,
    });
    Some(id)
}

/// Takes what the server said of the changes: done, or refused because somebody else writes. Tells whether they are
/// published, if it says so.
fn settle(changes: &mut [Change], answer: &Answer) -> Option<bool> {
    let lines: Vec<Value> = match answer.status {
        409 => {
            assert!(
                answer.headers.contains_key("retry-after"),
                "a conflict: {}",
                answer.text()
            );
            changes.iter_mut().for_each(|change| change.refused = true);
            return None;
        }
        200 | 201 => answer
            .body
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).expect("JSON lines"))
            .collect(),
        status => panic!("a write ended with {status}: {}", answer.text()),
    };
    let last = lines.last().expect("an answer");
    if last.get("done").is_some() {
        assert_eq!(last["done"], true, "{}", answer.text());
        assert_eq!(lines.len(), changes.len() + 1, "{}", answer.text());
        for (change, line) in changes.iter_mut().zip(&lines) {
            change.refused = line["status"] == "rejected";
            assert!(!change.refused || line["code"] == "catalog.busy", "{line}");
        }
    }
    last.get("published").and_then(Value::as_bool)
}
