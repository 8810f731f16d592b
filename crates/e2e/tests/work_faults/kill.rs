//! Servers killed at random while runs are started, cancelled and worked on.

use crate::{
    house::{House, Owner, Place},
    load::{LIMIT, Load, Watch, plan},
    model::Model,
    postgres::Schema,
};
use e2e::random;
use std::time::Duration;

fn one_server(place: Place) {
    let seed = random::seed();
    let mut random = seed.random();
    let rounds = random::rounds(8);
    let house = House::new(place, Model::start(LIMIT, plan));
    let mut server = house.start("one");
    let owner = Owner::of(&house, "one", &[&server]);
    let starts = owner.agent(LIMIT);
    let watch = house.database().map(|database| Watch::begin(&database));
    let load = Load::begin(&owner, &starts);
    for _ in 0..rounds {
        std::thread::sleep(Duration::from_millis(150) + random.below(Duration::from_millis(600)));
        server.kill();
        server = house.start("one");
        *owner.urls.lock().unwrap() = vec![Some(server.url.clone())];
        let seen = owner.must("GET", &owner.workspace, None);
        assert!(seen["running"].as_u64().unwrap() <= LIMIT as u64, "{seen}");
    }
    println!("{rounds} kills");
    load.end(&house);
    watch.into_iter().for_each(Watch::end);
}

#[test]
fn one_server_on_sqlite() {
    one_server(Place::Sqlite);
}

#[test]
fn one_server_on_postgresql() {
    if let Some(schema) = Schema::fresh() {
        one_server(Place::Schema(schema));
    }
}

#[test]
fn one_of_three_servers() {
    const NAMES: [&str; 3] = ["one", "two", "three"];
    let Some(schema) = Schema::fresh() else {
        return;
    };
    let seed = random::seed();
    let mut random = seed.random();
    let rounds = random::rounds(6);
    let house = House::new(Place::Schema(schema), Model::start(LIMIT, plan));
    let mut servers = NAMES.map(|name| house.start(name));
    let owner = Owner::of(&house, "one", &servers.each_ref());
    let starts = owner.agent(LIMIT);
    let watch = Watch::begin(&house.database().unwrap());
    let load = Load::begin(&owner, &starts);
    for _ in 0..rounds {
        std::thread::sleep(Duration::from_millis(300) + random.below(Duration::from_millis(1_500)));
        let which = random.within(0..3);
        owner.urls.lock().unwrap()[which] = None;
        servers[which].kill_now();
        // The others go on alone for a while.
        std::thread::sleep(random.below(Duration::from_millis(500)));
        servers[which] = house.start(NAMES[which]);
        owner.urls.lock().unwrap()[which] = Some(servers[which].url.clone());
    }
    println!("{rounds} kills of one of three");
    load.end(&house);
    watch.end();
    let callers = house.model.callers();
    assert_eq!(callers.len(), 3, "each server has worked: {callers:?}");
}
