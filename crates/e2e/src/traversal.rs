//! Open traversals: a continuation must go on exactly as it would have, whatever happened to the server since.

use serde_json::Value;

use crate::client::{Client, page_of};
use crate::history::State;
use crate::random::Random;
use crate::sample::{self, COLLECTIONS};

/// A continuation, and what comes after it.
#[derive(Clone, Debug)]
pub struct Traversal {
    /// What the whole list showed, when it was the list of all Offerings.
    pub whole: Option<State>,
    /// The target of the page to go on with.
    next: String,
    /// The items from there to the end.
    rest: Vec<Value>,
}

impl Traversal {
    /// Walks a list of a random kind to its end and keeps one continuation of it; `received` is called when that has just
    /// arrived. `None` when the list had one page only, or the server went away.
    pub fn open(client: &Client, random: &mut Random, received: impl FnOnce()) -> Option<Self> {
        let limit = random.within(3..90);
        let representation = random.pick(&["terse", "full"]);
        let (all, path) = if random.chance(60) {
            (true, "/offerings".to_owned())
        } else {
            (
                false,
                format!("/collections/{}/offerings", random.pick(&COLLECTIONS)),
            )
        };
        let keep = random.within(0..3);
        let mut received = Some(received);
        let mut kept: Option<(String, usize)> = None;
        let mut items = Vec::new();
        let mut target = client.operation(&format!(
            "{path}?limit={limit}&representation={representation}"
        ));
        for page in 0.. {
            let answer = client.try_get(&target).ok()?;
            let (of_page, next) = page_of(&answer.expect_status(200));
            items.extend(of_page);
            let Some(next) = next else { break };
            if page == keep
                && let Some(received) = received.take()
            {
                received();
                kept = Some((next.clone(), items.len()));
            }
            target = next;
        }
        let (next, from) = kept?;
        let rest = items.split_off(from);
        let whole = all.then(|| {
            let all = items.iter().chain(&rest);
            all.map(|item| {
                (
                    item["id"].as_str().expect("an id").to_owned(),
                    sample::version_of(item),
                )
            })
            .collect()
        });
        Some(Self { whole, next, rest })
    }

    /// Goes on from the continuation; anything but the same items in the same order is a panic.
    pub fn check(&self, client: &Client) {
        let found = client.items(&self.next);
        assert!(
            found == self.rest,
            "a traversal goes on differently:\n{found:#?}\ninstead of\n{:#?}",
            self.rest
        );
    }
}
