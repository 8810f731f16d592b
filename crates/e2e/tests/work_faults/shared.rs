//! Several servers on one PostgreSQL: they share the work, and each shows all of it.

use crate::{
    house::{House, Owner, Place, id, wait_for},
    model::{Act, Model},
    postgres::Schema,
};
use std::{
    io::{BufRead, BufReader},
    time::Duration,
};

const NAMES: [&str; 3] = ["one", "two", "three"];

#[test]
fn servers_share_the_work() {
    let Some(schema) = Schema::fresh() else {
        return;
    };
    let plan = |_: &str, _| Act::Wait;
    let house = House::new(Place::Schema(schema), Model::start(9, plan));
    let database = house.database();
    // Started together on an empty database: one of them makes the first workspace.
    let servers = std::thread::scope(|scope| {
        let start = |name| {
            let (house, database) = (&house, database.as_deref());
            scope.spawn(move || house.start_with(name, database, &["--workers", "3"]))
        };
        NAMES.map(start).map(|server| server.join().unwrap())
    });
    let welcomed: Vec<_> = NAMES
        .into_iter()
        .filter(|name| house.data(name).join("owner-token").exists())
        .collect();
    assert_eq!(welcomed.len(), 1, "{welcomed:?}");
    assert_eq!(
        house.number("SELECT CAST(COUNT(*) AS TEXT) FROM organizations"),
        1
    );

    let [first, second, third] = servers.each_ref();
    let owner = Owner::of(&house, welcomed[0], &[first]);
    let starts = owner.agent(9);
    let runs: Vec<_> = (0..10)
        .map(|number| id(&owner.start(&starts, &format!("key-{number:05}"))))
        .collect();
    wait_for("three runs at each server", || {
        house.model.answering()
            == [
                "one", "one", "one", "three", "three", "three", "two", "two", "two",
            ]
    });
    let seen = owner
        .call_at(&second.url, "GET", &owner.workspace, None, None)
        .unwrap();
    assert_eq!(
        (&seen.body["running"], &seen.body["queued"]),
        (&9.into(), &1.into())
    );

    // Whichever server works on a run, the others cancel it.
    let path = format!("/v1/runs/{}/cancel", runs[0]);
    let cancelled = [first, second, third].map(|server| {
        owner
            .call_at(&server.url, "POST", &path, None, None)
            .unwrap()
            .status
    });
    assert_eq!(cancelled, [200; 3]);
    let path = format!("/v1/runs/{}?wait=60", runs[0]);
    let ended = owner.call_at(&third.url, "GET", &path, None, None).unwrap();
    assert_eq!(ended.body["status"], "cancelled", "{}", ended.body);
    // Its slot is the tenth run's.
    wait_for("the tenth run", || {
        house.model.answering().len() == 9 && house.model.calls("key-00009") == 1
    });

    // And whoever waits for a run, or watches it, may do so at any of them.
    let waiting = std::thread::scope(|scope| {
        let waiting = [first, second, third].map(|server| {
            let (owner, runs) = (&owner, &runs);
            scope.spawn(move || {
                let path = format!("/v1/runs/{}?wait=60", runs[1]);
                let ended = owner
                    .call_at(&server.url, "GET", &path, None, None)
                    .unwrap();
                (
                    ended.body["status"].clone(),
                    watched(owner, &server.url, &runs[2]),
                )
            })
        });
        std::thread::sleep(Duration::from_millis(200));
        house.model.open();
        waiting.map(|waiting| waiting.join().unwrap())
    });
    for (status, events) in waiting {
        assert_eq!(status, "succeeded");
        assert_eq!(events, ["status", "step", "step", "output", "status"]);
    }
    for run in &runs[1..] {
        let path = format!("/v1/runs/{run}?wait=60");
        let ended = owner
            .call_at(&second.url, "GET", &path, None, None)
            .unwrap();
        assert_eq!(ended.body["status"], "succeeded", "{}", ended.body);
    }
    assert_eq!(house.model.wrong(), [""; 0]);
}

/// The kinds of a run's events, until there will be no more.
fn watched(owner: &Owner, url: &str, run: &str) -> Vec<String> {
    let events = owner.events(url, run);
    BufReader::new(events)
        .lines()
        .map(Result::unwrap)
        .filter_map(|line| line.strip_prefix("event: ").map(str::to_owned))
        .collect()
}
