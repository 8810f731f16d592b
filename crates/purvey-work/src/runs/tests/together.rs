//! What workers write for many runs at once is as if each had been written alone.

use super::world::World;
use crate::{
    code::Code,
    error::Error,
    model::{RunStatus, VerificationError},
    runs::{self, Begun, CallOf, Lease, Outcome, Target, What, Write},
    sql::Value as Column,
};
use serde_json::json;

super::on_each_store! {
    what_is_written_together_is_as_if_each_came_alone,
    limits_are_as_exact_together_as_alone,
    what_ends_makes_room_for_what_begins_with_it,
    what_was_begun_before_is_left_to_be_written_alone,
}

const CENT: i64 = 1_000_000;

/// Everything that runs change.
fn everything(world: &World) -> Vec<Vec<Column>> {
    let tables = [
        "SELECT id, status, started_at, finished_at, output, error_code, error_detail, verification_status, verification_errors,
            cost_micros, attempt, lease_owner, due_at, deadline_at FROM runs ORDER BY id",
        "SELECT run_id, seq, attempt, kind, name, state, result, input_tokens, output_tokens, cost_micros, started_at, finished_at
            FROM steps ORDER BY run_id, seq",
        "SELECT run_id, seq, kind, data, at FROM events ORDER BY run_id, seq",
        "SELECT day, scope, settled, reserved FROM ledger ORDER BY day, scope",
        "SELECT run_id, seq, call, attempt, day, workspace_id, owner_id, micros FROM reservations ORDER BY run_id",
        "SELECT id, running, queued, next_position FROM workspaces ORDER BY id",
        "SELECT id, unfinished FROM agents ORDER BY id",
        "SELECT id, state FROM turns ORDER BY id",
    ];
    let read = |session: &mut dyn crate::sql::Session| {
        let mut all = Vec::new();
        for table in tables {
            let rows = session.query(table, &[])?;
            all.extend(rows.iter().map(|row| row.values().to_vec()));
        }
        Ok(all)
    };
    world.store.read_now(read).unwrap()
}

fn begins(lease: &Lease, most_micros: i64) -> Write {
    Write {
        lease: lease.clone(),
        call: CallOf { seq: 1, call: 1 },
        what: What::Begin {
            name: Some("m".into()),
            most_micros,
        },
    }
}

fn ends(lease: &Lease, micros: i64, outcome: Outcome) -> Write {
    Write {
        lease: lease.clone(),
        call: CallOf { seq: 1, call: 1 },
        what: What::End(Box::new(runs::Last {
            produced: Vec::new(),
            micros,
            result: json!({"run": lease.run}),
            input_tokens: 3,
            output_tokens: 4,
            outcome,
        })),
    }
}

fn said(answer: Result<Begun, Error>) -> &'static str {
    match answer {
        Ok(Begun::Go) => "go",
        Ok(Begun::Refused(limit)) => limit.code.text(),
        Err(Error::LeaseLost) => "lost",
        Err(other) => panic!("{other}"),
    }
}

/// Writes all, so many in each transaction; what came of each.
fn write(world: &World, writes: &[Write], at_once: usize) -> Vec<&'static str> {
    let groups = writes.chunks(at_once);
    let answers = groups.flat_map(|group| {
        world
            .at(|session, cx| runs::together(session, cx, group))
            .unwrap()
    });
    answers.map(said).collect()
}

/// Two workspaces of one owner, one of them with a thread; runs at work and runs that wait, and all of it written so many at once.
fn history(at_once: usize) -> Vec<Vec<Column>> {
    let mut world = World::new(77);
    let owner = world.user();
    let mut waiting = None;
    for (limit, starts) in [(3, 5), (2, 3)] {
        let workspace = world.workspace(owner, limit, 10);
        let agent = world.agent(workspace, owner);
        let thread = world.thread(workspace, agent, owner);
        for target in [Target::Thread(thread), Target::Thread(thread)] {
            world
                .admit(&world.start(world.by(owner), target, None))
                .unwrap();
        }
        for _ in 2..starts {
            let run = world.run(agent, owner);
            waiting = Some(run)
                .filter(|run| run.status == RunStatus::Pending)
                .or(waiting);
        }
    }
    let leases: Vec<_> = world.claim("n", 9).into_iter().map(|it| it.lease).collect();
    assert_eq!(leases.len(), 5);
    let waiting = waiting.unwrap();
    let lost = Lease {
        run: waiting.id,
        workspace: waiting.workspace_id,
        ..leases[0].clone()
    };
    world.pass(10);
    let mut writes: Vec<_> = leases.iter().map(|lease| begins(lease, CENT)).collect();
    writes.insert(1, begins(&lost, CENT));
    let said = write(&world, &writes, at_once);
    assert_eq!(said, ["go", "lost", "go", "go", "go", "go"]);
    world.pass(10);
    let succeeded = Outcome::Succeeded {
        output: json!("done"),
        verified: false,
    };
    let broken = Outcome::Broken {
        output: json!(1),
        errors: vec![VerificationError {
            instance: "/a".into(),
            keyword: "/type".into(),
            reason: "is no string".into(),
        }],
    };
    let failed = Outcome::failed(Code::ProviderRejected, None);
    let writes = [
        ends(&leases[0], CENT / 2, succeeded.clone()),
        ends(&leases[1], 0, broken),
        ends(&lost, 0, succeeded.clone()),
        ends(&leases[2], CENT, failed),
        ends(&leases[3], 1, succeeded.clone()),
        ends(&leases[4], 2, succeeded),
    ];
    let said = write(&world, &writes, at_once);
    assert_eq!(said, ["go", "go", "lost", "go", "go", "go"]);
    assert_eq!(
        world.numbers(
            "SELECT running, queued FROM workspaces ORDER BY running DESC",
            &[]
        ),
        [[2, 0], [1, 0]]
    );
    assert_eq!(
        world.numbers(
            "SELECT settled, reserved FROM ledger WHERE scope = 'platform'",
            &[]
        ),
        [[CENT + CENT / 2 + 3, 0]]
    );
    everything(&world)
}

fn what_is_written_together_is_as_if_each_came_alone() {
    let alone = history(1);
    assert_eq!(history(6), alone);
    assert_eq!(history(4), alone);
}

fn limits_are_as_exact_together_as_alone() {
    let world = World::new(78);
    let owner = world.user();
    world.sql("UPDATE limits SET platform_daily_cents = 3", &[]);
    for _ in 0..2 {
        let agent = world.agent(world.workspace(owner, 3, 0), owner);
        for _ in 0..3 {
            world.run(agent, owner);
        }
    }
    let claims = world.claim("n", 9);
    let most = [2 * CENT, 0, 0, CENT, CENT, 0];
    let writes = claims.iter().zip(most);
    let writes: Vec<_> = writes
        .map(|(claim, most)| begins(&claim.lease, most))
        .collect();
    let refused = "daily.platform_cents";
    assert_eq!(
        write(&world, &writes, 6),
        ["go", "go", "go", "go", refused, refused]
    );
    assert_eq!(
        world.numbers(
            "SELECT settled, reserved FROM ledger WHERE scope = 'platform'",
            &[]
        ),
        [[0, 3 * CENT]]
    );
    assert_eq!(world.number("SELECT COUNT(*) FROM reservations", &[]), 2);
}

fn what_ends_makes_room_for_what_begins_with_it() {
    let world = World::new(80);
    let owner = world.user();
    world.sql("UPDATE limits SET platform_daily_cents = 3", &[]);
    let agent = world.agent(world.workspace(owner, 2, 0), owner);
    for _ in 0..2 {
        world.run(agent, owner);
    }
    let claims = world.claim("n", 2);
    let (first, second) = (&claims[0].lease, &claims[1].lease);
    assert_eq!(write(&world, &[begins(first, 3 * CENT)], 1), ["go"]);
    let ended = Outcome::Succeeded {
        output: json!("done"),
        verified: false,
    };
    let writes = [ends(first, CENT, ended), begins(second, CENT)];
    assert_eq!(write(&world, &writes, 2), ["go", "go"]);
    assert_eq!(
        world.numbers(
            "SELECT settled, reserved FROM ledger WHERE scope = 'platform'",
            &[]
        ),
        [[CENT, CENT]]
    );
}

fn what_was_begun_before_is_left_to_be_written_alone() {
    let world = World::new(79);
    let owner = world.user();
    let agent = world.agent(world.workspace(owner, 2, 0), owner);
    for _ in 0..2 {
        world.run(agent, owner);
    }
    let claims = world.claim("n", 2);
    let writes: Vec<_> = claims.iter().map(|it| begins(&it.lease, CENT)).collect();
    write(&world, &writes[..1], 1);
    let before = everything(&world);
    let together = world.at(|session, cx| runs::together(session, cx, &writes));
    assert!(matches!(together, Err(Error::Store { .. })));
    assert_eq!(everything(&world), before);
    // The answer to the first may have got lost: asked again alone, it is as it was.
    assert_eq!(write(&world, &writes, 1), ["go", "go"]);
    assert_eq!(
        world.number("SELECT reserved FROM ledger WHERE scope = 'platform'", &[]),
        2 * CENT
    );
}
