//! Servers killed while runs make artifacts: each run has made each of its artifacts once, whole, and nothing else is left.

use crate::{
    house::{House, Owner, Place, id, wait_for},
    model::{Act, Model},
    postgres::Schema,
    uploads::{files, hex},
};
use e2e::random;
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};

/// Files that a run leaves, of so many bytes.
const FILES: usize = 8;
const BYTES: usize = 3_000_000;

/// So many times, times `PURVEY_FAULT_ROUNDS`.
fn killed(place: Place, rounds: usize) {
    let seed = random::seed();
    let mut random = seed.random();
    let rounds = random::rounds(rounds);
    let house = House::new(place, Model::start(1, |_: &str, _| Act::Wait));
    house.configure(&format!(
        "[providers.leaves]\nkind = \"command\"\nenvironment = [\"PATH\"]\nfiles = {{ most = {FILES} }}\n\
         command = [\"/bin/sh\", \"-c\", \"for i in 1 2 3 4 5 6 7 8; do head -c {BYTES} /dev/urandom > out/$i; done; echo 1\"]\n"
    ));
    let mut server = house.start("one");
    let owner = Owner::of(&house, "one", &[&server]);
    let starts = owner.agent_of("leaves", 4);
    let mut produced = Vec::new();
    for round in 0..rounds {
        let run = id(&owner.start(&starts, &format!("r{round}")));
        // What the program does takes a tenth of a second, what it left several.
        std::thread::sleep(random.below(Duration::from_millis(600)));
        server.kill_now();
        *owner.urls.lock().unwrap() = vec![None];
        server = house.start("one");
        *owner.urls.lock().unwrap() = vec![Some(server.url.clone())];
        let mut ended = Value::Null;
        wait_for("the end of the run", || {
            ended = owner.must("GET", &format!("/v1/runs/{run}?wait=5"), None);
            !ended["finished_at"].is_null()
        });
        assert_eq!(ended["status"], "succeeded", "{ended}");
        let made = ended["produced"].as_array().unwrap();
        assert_eq!(made.len(), FILES, "{ended}");
        produced.extend(made.iter().map(|made| made.as_str().unwrap().to_owned()));
    }
    println!("{rounds} kills, {} artifacts", produced.len());
    let ready = house.rows("SELECT id, sha256 FROM artifacts WHERE status = 'ready'");
    let ready: BTreeMap<String, String> = ready
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    produced.sort();
    assert!(
        ready.keys().eq(&produced),
        "what is ready is what runs say they made"
    );
    for (id, sha256) in &ready {
        let bytes = owner.download(id).unwrap();
        assert_eq!((bytes.len(), &hex(&bytes)), (BYTES, sha256), "{id}");
    }
    wait_for("the collection of what is left", || {
        files(&house.data("one").join("artifacts")) == ready.len()
    });
    let size = BYTES * ready.len();
    assert_eq!(
        house.rows("SELECT CAST(bytes AS TEXT), CAST(uploads AS TEXT) FROM storage"),
        [[size.to_string(), "0".into()]]
    );
}

#[test]
fn killed_while_runs_make_artifacts_on_sqlite() {
    killed(Place::Sqlite, 5);
}

#[test]
fn killed_while_runs_make_artifacts_on_postgresql() {
    if let Some(schema) = Schema::fresh() {
        // Each waits for a lease to lapse.
        killed(Place::Schema(schema), 2);
    }
}
