//! What must hold of a data directory after a crash.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::binary;
use crate::client::Client;
use crate::history::{History, Progress, State};
use crate::sample::{self, COLLECTIONS};
use crate::server::{Server, serve};
use crate::traversal::Traversal;

/// Written last, and removed again: once it is published, everything before it is. No part of what is compared.
const SENTINEL: &str = "zz-sentinel";

/// The state that a server serves; each item is compared in full with what its version says.
#[must_use]
pub fn served(client: &Client) -> State {
    let target = client.operation("/offerings?limit=100&representation=full");
    state_of(&client.items(&target))
}

/// The state that full items show, in ascending order of their ids.
#[must_use]
pub fn state_of(items: &[Value]) -> State {
    let mut state = State::new();
    for item in items {
        let id = item["id"].as_str().expect("an id");
        if id == SENTINEL {
            continue;
        }
        let version = sample::version_of(item);
        assert_eq!(
            *item,
            sample::offering(id, version),
            "an Offering that nobody wrote"
        );
        assert!(
            state
                .last_key_value()
                .is_none_or(|(last, _)| last.as_str() < id),
            "{id} is out of order"
        );
        state.insert(id.to_owned(), version);
    }
    state
}

/// Checks the directory, starts a server over it and demands everything that the histories, at this progress, and the
/// traversals promise. `prepare` sees each command before it runs. Gives the server, and for each history how many of its
/// changes turned out to be in force.
pub fn recovered(
    data: &Path,
    histories: &[(&History, Progress)],
    traversals: &[&Traversal],
    prepare: impl Fn(&mut Command),
) -> (Server, Vec<usize>) {
    let mut check = binary::check(data);
    prepare(&mut check);
    binary::succeed(check);
    let mut command = serve(data);
    prepare(&mut command);
    let server = Server::run(command)
        .unwrap_or_else(|said| panic!("the server does not start again: {said}"));
    let client = Client::new(&server.url);
    // At once: some whole state, no older than what was said to be published.
    let now = served(&client);
    for (history, progress) in histories {
        history.explain(&now, progress.from(progress.published));
    }
    traversals
        .iter()
        .for_each(|traversal| traversal.check(&client));
    publish_all(&client);
    let state = served(&client);
    let settled = histories
        .iter()
        .map(|(history, progress)| history.explain(&state, progress.from(progress.acknowledged)))
        .collect();
    check_views(&client, &state);
    (server, settled)
}

/// Waits until everything written so far is served, by writing and removing one Offering more.
pub fn publish_all(client: &Client) {
    let target = format!("/v1/catalog/offerings/{SENTINEL}?wait=published");
    // In no Collection: there may be none yet.
    let sentinel = json!({"id": SENTINEL, "name": "Sentinel v0", "description": "Written last."});
    let put = client.put(&target, &sentinel).expect("an answer");
    assert!(
        matches!(put.status, 200 | 201) && put.json()["published"] == true,
        "{}",
        put.text()
    );
    let document = client.operation(&format!("/offerings/{SENTINEL}"));
    let _ = client.get(&document).expect_status(200);
    let delete = client
        .delete(&target)
        .expect("an answer")
        .expect_status(200);
    assert_eq!(delete.json()["published"], true);
    let _ = client.get(&document).expect_status(404);
}

/// The Collections' lists, single documents and the operator's view must agree with the list of all Offerings.
fn check_views(client: &Client, state: &State) {
    for (index, collection) in COLLECTIONS.iter().enumerate() {
        let listed = client
            .items(&client.operation(&format!("/collections/{collection}/offerings?limit=100")));
        let listed: BTreeSet<String> = listed
            .iter()
            .map(|item| item["id"].as_str().expect("an id").to_owned())
            .collect();
        let expected = state
            .iter()
            .filter(|(_, version)| **version % 2 == index as u64);
        assert_eq!(
            listed,
            expected.map(|(id, _)| id.clone()).collect(),
            "members of {collection}"
        );
    }
    let some = [
        state.first_key_value(),
        state.last_key_value(),
        state.iter().nth(state.len() / 2),
    ];
    for (id, version) in some.into_iter().flatten() {
        let mut offering = client
            .get(&client.operation(&format!("/offerings/{id}")))
            .expect_status(200)
            .json();
        offering
            .as_object_mut()
            .expect("a document")
            .shift_remove("odp_version");
        assert_eq!(offering, sample::offering(id, *version));
        let stored = client
            .stored(&format!("/v1/catalog/offerings/{id}"))
            .expect_status(200)
            .json();
        assert_eq!(stored, sample::offering(id, *version));
    }
}
