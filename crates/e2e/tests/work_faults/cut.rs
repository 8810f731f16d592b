//! PostgreSQL out of reach: connections that are cut, stalled or refused at random, and the server itself stopped and crashed.

use crate::{
    cluster::Cluster,
    house::{House, Owner, Place, id, wait_for},
    load::{LIMIT, Load, Watch, plan},
    model::{Act, Model},
    postgres::Schema,
    proxy::{Proxy, Way},
};
use e2e::random;
use serde_json::json;
use std::time::Duration;

#[test]
fn connections_are_cut_and_stalled() {
    let Some(schema) = Schema::fresh() else {
        return;
    };
    let seed = random::seed();
    let mut random = seed.random();
    let rounds = random::rounds(12);
    let house = House::new(Place::Schema(schema), Model::start(LIMIT, plan));
    let database = house.database().unwrap();
    let ways = [(); 2].map(|()| Proxy::to(&database));
    let one = house.start_with("one", Some(ways[0].url()), &[]);
    let two = house.start_with("two", Some(ways[1].url()), &[]);
    let owner = Owner::of(&house, "one", &[&one, &two]);
    let starts = owner.agent(LIMIT);
    let watch = Watch::begin(&database);
    let load = Load::begin(&owner, &starts);
    for _ in 0..rounds {
        std::thread::sleep(random.below(Duration::from_millis(500)));
        let way = random.pick(&ways);
        let fault = *random.pick(&[Way::Open, Way::Stalled, Way::Closed, Way::Deaf]);
        way.set(fault);
        if fault != Way::Open {
            std::thread::sleep(random.below(Duration::from_millis(900)));
        }
        // What was stalled sometimes arrives late, and sometimes never.
        if fault != Way::Stalled || random.chance(50) {
            way.cut();
        }
        way.set(Way::Open);
    }
    println!("{rounds} cuts");
    load.end(&house);
    watch.end();
}

#[test]
fn postgresql_is_restarted() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let seed = random::seed();
    let mut random = seed.random();
    let rounds = random::rounds(3);
    let house = House::new(Place::Database(cluster.url()), Model::start(LIMIT, plan));
    let (one, two) = (house.start("one"), house.start("two"));
    let owner = Owner::of(&house, "one", &[&one, &two]);
    let starts = owner.agent(LIMIT);
    let watch = Watch::begin(&cluster.url());
    let load = Load::begin(&owner, &starts);
    for round in 0..rounds {
        std::thread::sleep(Duration::from_millis(500) + random.below(Duration::from_millis(1_000)));
        let before = load.accepted();
        cluster.down(round % 2 == 0);
        std::thread::sleep(random.below(Duration::from_millis(1_500)));
        cluster.up();
        wait_for("a start after the restart", || load.accepted() > before);
    }
    println!("{rounds} restarts of PostgreSQL");
    load.end(&house);
    watch.end();
}

#[test]
fn a_server_whose_connections_are_refused_lets_its_runs_go() {
    cut_off(Way::Closed);
}

#[test]
fn a_server_whose_connections_are_silent_lets_its_runs_go() {
    cut_off(Way::Stalled);
}

fn cut_off(fault: Way) {
    const RUNS: usize = 4;
    let Some(schema) = Schema::fresh() else {
        return;
    };
    // What is called first is not answered before the test says so; the second call is answered at once.
    let plan = |_: &str, call| match call {
        1 => Act::Wait,
        _ => Act::Answer(Duration::ZERO),
    };
    let house = House::new(Place::Schema(schema), Model::start(RUNS, plan));
    let way = Proxy::to(&house.database().unwrap());
    let one = house.start_with("one", Some(way.url()), &[]);
    let owner = Owner::of(&house, "one", &[&one]);
    let starts = owner.agent(RUNS);
    let runs: Vec<_> = (0..RUNS)
        .map(|number| id(&owner.start(&starts, &format!("key-{number:05}"))))
        .collect();
    wait_for("a call of each run", || {
        house.model.answering().len() == RUNS
    });
    let two = house.start("two");
    way.set(fault);
    // Who asks it is told that it cannot do anything now.
    let body = json!({"input": "key-00008"});
    std::thread::scope(|scope| {
        let (read, start) = (
            || owner.call("GET", &owner.workspace, None, None),
            || owner.call("POST", &starts, Some("key-00008"), Some(&body)),
        );
        for call in [scope.spawn(read), scope.spawn(start)] {
            let refused = call.join().unwrap().expect("an answer");
            assert_eq!(refused.status, 503, "{}", refused.body);
        }
    });
    // The model would see it if they began before the first server has let go.
    for run in &runs {
        let path = format!("/v1/runs/{run}?wait=60");
        let ended = owner.call_at(&two.url, "GET", &path, None, None).unwrap();
        assert_eq!(ended.body["status"], "succeeded", "{}", ended.body);
        assert_eq!(ended.body["attempt"], 2, "{}", ended.body);
    }
    assert_eq!(house.model.wrong(), [""; 0]);
    drop(two);
    // Back in reach, it works again: the start that was refused is made again under its key.
    way.set(Way::Open);
    house.model.open();
    let run = id(&owner.start(&starts, "key-00008"));
    let ended = owner.must("GET", &format!("/v1/runs/{run}?wait=60"), None);
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert_eq!(
        house.number("SELECT CAST(COUNT(*) AS TEXT) FROM runs"),
        RUNS as i64 + 1
    );
}
