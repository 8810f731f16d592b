//! What a killed server has started does not outlive it.

use crate::house::{House, Owner, Place, wait_for};
use serde_json::json;
use std::path::Path;

#[test]
fn programs_end_with_the_server_that_is_killed() {
    let house = House::new(
        Place::Sqlite,
        crate::model::Model::start(0, crate::load::plan),
    );
    let seen = house.data("pids");
    // A program and what it has started beside it, neither of which reads what it is given.
    let script = r#"sleep 1000 & echo $$ $! >> "$0"; wait"#;
    house.configure(&format!(
        "[providers.program]\nkind = \"command\"\nenvironment = [\"PATH\"]\ncommand = [\"/bin/sh\", \"-c\", '{script}', \"{}\"]\n",
        seen.display()
    ));
    let mut server = house.start("one");
    let owner = Owner::of(&house, "one", &[&server]);
    let starts = owner.agent_of("program", 2);
    for key in ["key-1", "key-2"] {
        owner.start(&starts, key);
    }
    for round in 1..=2 {
        // Those of earlier rounds have ended: the runs were taken up again by the server that came after.
        wait_for("two programs", || processes(&seen).len() == 4 * round);
        let all = processes(&seen);
        let (before, now) = all.split_at(4 * (round - 1));
        assert!(
            before.iter().all(|process| has_ended(process)),
            "{before:?}"
        );
        assert!(!now.iter().any(|process| has_ended(process)), "{now:?}");
        server.kill();
        wait_for("the end of every program", || {
            now.iter().all(|process| has_ended(process))
        });
        server = house.start("one");
        *owner.urls.lock().unwrap() = vec![Some(server.url.clone())];
    }
    wait_for("two programs", || processes(&seen).len() == 12);
    let path = format!("{}/runs", owner.workspace);
    for run in owner.must("GET", &path, None)["items"].as_array().unwrap() {
        assert_eq!(
            (&run["status"], &run["attempt"]),
            (&json!("running"), &json!(3)),
            "{run}"
        );
    }
    server.kill();
    let all = processes(&seen);
    wait_for("the end of every program", || {
        all.iter().all(|process| has_ended(process))
    });
}

/// The numbers of all processes that were started.
fn processes(seen: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(seen).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Whether nothing is left of a process but its number.
fn has_ended(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    stat.ok().is_none_or(|stat| {
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('Z'))
    })
}
