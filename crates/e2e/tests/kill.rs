//! The server, or an import, killed (SIGKILL) at random moments.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use e2e::binary;
use e2e::client::Client;
use e2e::history::{History, State};
use e2e::random::{Random, rounds, seed};
use e2e::sample;
use e2e::server::Server;
use e2e::traversal::Traversal;
use e2e::verify::{publish_all, recovered, served};
use tempfile::TempDir;

const WRITERS: usize = 3;
const EACH: usize = 80;

#[test]
fn killed_while_writing_and_publishing() {
    let seed = seed();
    let mut random = seed.random();
    let home = TempDir::new().unwrap();
    let (data, manifest, records) = (
        home.path().join("data"),
        sample::manifest(home.path()),
        home.path().join("records.ndjson"),
    );
    let mut histories: Vec<History> = (0..WRITERS)
        .map(|writer| History::new((0..EACH).map(|n| format!("w{writer}-{n:03}")).collect(), 1))
        .collect();
    let all = histories.iter().flat_map(|history| &history.ids);
    sample::records(&records, all.map(|id| sample::offering(id, 1)));
    binary::succeed(binary::import(&data, &manifest, &[&records]));

    let mut server = Server::start(&data);
    let mut traversals: Vec<Traversal> = Vec::new();
    for _ in 0..rounds(25) {
        let client = Client::new(&server.url);
        // Asked while there is surely somebody to answer: a traversal may begin when the server is gone already.
        let _ = client.operation("");
        let stop = AtomicBool::new(false);
        let opened = Mutex::new(Vec::new());
        let life = random.below(Duration::from_millis(500));
        thread::scope(|scope| {
            for history in &mut histories {
                let (client, stop, mut random) = (&client, &stop, random.fork());
                scope.spawn(move || {
                    let go_on = || !stop.load(Ordering::Relaxed);
                    e2e::writer::write(history, client, &mut random, go_on, |_| ());
                });
            }
            let (client, stop, opened, mut random) = (&client, &stop, &opened, random.fork());
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    opened
                        .lock()
                        .unwrap()
                        .extend(Traversal::open(client, &mut random, || ()));
                }
            });
            thread::sleep(life);
            server.kill();
            stop.store(true, Ordering::Relaxed);
        });
        let opened = opened.into_inner().unwrap();
        for state in opened
            .iter()
            .filter_map(|traversal| traversal.whole.as_ref())
        {
            histories
                .iter()
                .for_each(|history| _ = history.explain(state, 0..=history.changes.len()));
        }
        // Old traversals go on too, a few of them.
        traversals.extend(opened);
        while traversals.len() > 8 {
            let gone = random.within(0..traversals.len());
            traversals.swap_remove(gone);
        }
        let expected: Vec<_> = histories
            .iter()
            .map(|history| (history, history.progress))
            .collect();
        let (restarted, settled) = recovered(
            &data,
            &expected,
            &traversals.iter().collect::<Vec<_>>(),
            |_| (),
        );
        server = restarted;
        histories
            .iter_mut()
            .zip(settled)
            .for_each(|(history, changes)| history.settle(changes));
    }
    assert!(server.terminate().success());
    binary::succeed(binary::check(&data));
}

const RECORDS: usize = 400;

/// The catalog of one import: most Offerings are those of the one before, in another version.
fn catalog(version: u64) -> State {
    let first = usize::try_from(version).unwrap() * 40 % 200;
    (first..first + RECORDS)
        .map(|n| (format!("thing-{n:04}"), version))
        .collect()
}

#[test]
fn killed_while_importing() {
    let seed = seed();
    let mut random = seed.random();
    let home = TempDir::new().unwrap();
    let (manifest, records) = (
        sample::manifest(home.path()),
        home.path().join("records.ndjson"),
    );
    let mut data = home.path().join("data-0");
    let mut state = State::new();
    let mut whole = Duration::from_millis(500);
    for round in 0..rounds(16) {
        let version = round as u64 + 1;
        let (fresh, replace) = (round % 4 == 0, round % 4 != 1);
        if fresh {
            data = home.path().join(format!("data-{round}"));
            state.clear();
        }
        let mut new = if replace { State::new() } else { state.clone() };
        new.extend(catalog(version));
        sample::records(
            &records,
            catalog(version)
                .iter()
                .map(|(id, version)| sample::offering(id, *version)),
        );
        let import = || {
            let mut import = binary::import(&data, &manifest, &[&records]);
            import.args(replace.then_some("--replace"));
            import
        };

        // A server beside it, now and then, with a traversal open.
        let beside = (!fresh && random.chance(50)).then(|| {
            let server = Server::start(&data);
            let client = Client::new(&server.url);
            (Traversal::open(&client, &mut random, || ()), server, client)
        });
        killed(import(), &mut random, whole);
        if let Some((traversal, server, client)) = beside {
            one_of(&served(&client), &state, &new);
            traversal
                .iter()
                .for_each(|traversal| traversal.check(&client));
            if random.chance(50) {
                server.kill();
            } else {
                assert!(server.terminate().success());
            }
        }
        // A first import that was killed leaves nothing to check.
        if !fresh {
            binary::succeed(binary::check(&data));
        }
        let server = Server::start(&data);
        let client = Client::new(&server.url);
        one_of(&served(&client), &state, &new);
        publish_all(&client);
        one_of(&served(&client), &state, &new);

        // Again, this time to the end: the running server serves it too.
        let begin = Instant::now();
        binary::succeed(import());
        whole = whole.min(begin.elapsed());
        let deadline = Instant::now() + Duration::from_secs(30);
        while served(&client) != new {
            assert!(Instant::now() < deadline, "an import is not served");
            thread::sleep(Duration::from_millis(20));
        }
        server.kill();
        binary::succeed(binary::check(&data));
        state = new;
    }
}

/// Runs an import for a random part of the time it takes.
fn killed(mut import: std::process::Command, random: &mut Random, whole: Duration) {
    let mut child = import
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(random.below(whole + whole / 4));
    let _ = child.kill();
    child.wait().unwrap();
}

fn one_of(found: &State, old: &State, new: &State) {
    assert!(found == old || found == new, "half a catalog: {found:?}");
}
