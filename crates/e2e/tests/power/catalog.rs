//! The catalog: nothing acknowledged is lost and no half catalog is served.

use crate::cuts::each_cut;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use e2e::binary;
use e2e::client::Client;
use e2e::fault::{Mark, Recorder, without_sync};
use e2e::history::{History, Progress, State};
use e2e::random::{Random, rounds, seed};
use e2e::sample;
use e2e::server::{Server, serve};
use e2e::traversal::Traversal;
use e2e::verify::{publish_all, recovered, served};
use tempfile::TempDir;

/// What a mark of the log stands for.
#[derive(Clone, Copy, Debug)]
enum Event {
    Progress(usize, Progress),
    Traversal(usize),
    Restart,
    ImportBegins,
    ImportDone,
}

/// The recorder, and what its marks stand for.
struct Ledger {
    recorder: Recorder,
    events: Mutex<Vec<Event>>,
    opened: Mutex<BTreeMap<usize, Traversal>>,
}

impl Ledger {
    fn start(root: &Path) -> Self {
        Self {
            recorder: Recorder::start(root).slow(Duration::from_millis(8)),
            events: Mutex::default(),
            opened: Mutex::default(),
        }
    }

    fn note(&self, event: Event) -> Mark {
        let mut events = self.events.lock().unwrap();
        events.push(event);
        let mark = Mark(events.len() as u64 - 1);
        self.recorder.mark(mark);
        mark
    }

    /// Opens a traversal and notes its continuation.
    fn traverse(&self, client: &Client, random: &mut Random) {
        let number = self.events.lock().unwrap().len();
        if let Some(traversal) =
            Traversal::open(client, random, || _ = self.note(Event::Traversal(number)))
        {
            self.opened.lock().unwrap().insert(number, traversal);
        }
    }

    fn serve(&self, data: &Path) -> Server {
        let mut command = serve(data);
        self.recorder.attach(&mut command);
        Server::run(command).unwrap()
    }
}

const WRITERS: usize = 3;
const EACH: usize = 60;

#[test]
fn power_cut_while_writing_and_publishing() {
    let seed = seed();
    let mut random = seed.random();
    for _ in 0..rounds(1) {
        let home = TempDir::new().unwrap();
        let root = home.path().join("disk");
        let data = root.join("data");
        std::fs::create_dir(&root).unwrap();
        let mut histories: Vec<History> = (0..WRITERS)
            .map(|writer| History::new((0..EACH).map(|n| format!("w{writer}-{n:03}")).collect(), 1))
            .collect();
        let ids = histories.iter().flat_map(|history| &history.ids);
        import(
            home.path(),
            &data,
            &ids.map(|id| (id.clone(), 1)).collect(),
            false,
            without_sync,
        );

        let ledger = Ledger::start(&root);
        let mut restarts = Vec::new();
        for _ in 0..5 {
            write(&ledger, &data, &mut histories, &mut random);
            // Killed and started again within the recording: recovery itself can lose power, and what was written but not
            // yet durable when the process was killed is still there to be read.
            let server = ledger.serve(&data);
            let client = Client::new(&server.url);
            let idle = Instant::now() + random.below(Duration::from_millis(200));
            while Instant::now() < idle {
                ledger.traverse(&client, &mut random);
            }
            restarts.push(ledger.note(Event::Restart));
            publish_all(&client);
            let state = served(&client);
            for (writer, history) in histories.iter_mut().enumerate() {
                let at_least = history.progress.acknowledged;
                let settled = history.explain(&state, history.progress.from(at_least));
                history.resolve(settled);
                ledger.note(Event::Progress(writer, history.progress));
            }
            ledger.recorder.killing(|| server.kill());
        }

        let Ledger {
            recorder,
            events,
            opened,
        } = ledger;
        let (start, log) = recorder.finish();
        let (events, opened) = (events.into_inner().unwrap(), opened.into_inner().unwrap());
        assert!(log.syncs() > 0, "nothing is ever synced");
        each_cut(
            &start,
            &log,
            (160, &restarts),
            &mut random,
            |cut, image, random| {
                let mut progress = [Progress::default(); WRITERS];
                let mut traversals = Vec::new();
                for mark in log.marks_before(cut) {
                    match events[usize::try_from(mark.0).unwrap()] {
                        Event::Progress(writer, now) => progress[writer] = now,
                        Event::Traversal(number) => traversals.extend(opened.get(&number)),
                        Event::Restart => {}
                        Event::ImportBegins | Event::ImportDone => unreachable!(),
                    }
                }
                while traversals.len() > 3 {
                    let gone = random.within(0..traversals.len());
                    traversals.swap_remove(gone);
                }
                let expected: Vec<_> = histories.iter().zip(progress).collect();
                let (server, _) =
                    recovered(&image.join("data"), &expected, &traversals, without_sync);
                server.kill();
                check(&image.join("data"));
            },
        );
    }
}

/// Lets writers and a reader loose on a recorded server for a while, then kills it.
fn write(ledger: &Ledger, data: &Path, histories: &mut [History], random: &mut Random) {
    let server = ledger.serve(data);
    let client = Client::new(&server.url);
    // Asked while there is surely somebody to answer.
    let _ = client.operation("");
    let stop = AtomicBool::new(false);
    let life = random.below(Duration::from_millis(200));
    thread::scope(|scope| {
        for (writer, history) in histories.iter_mut().enumerate() {
            let (client, stop, mut random) = (&client, &stop, random.fork());
            scope.spawn(move || {
                let go_on = || !stop.load(Ordering::Relaxed);
                let note = |progress| _ = ledger.note(Event::Progress(writer, progress));
                e2e::writer::write(history, client, &mut random, go_on, note);
            });
        }
        let (client, stop, mut random) = (&client, &stop, random.fork());
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                ledger.traverse(client, &mut random);
                thread::sleep(Duration::from_millis(30));
            }
        });
        thread::sleep(Duration::from_millis(150) + life);
        ledger.recorder.killing(|| server.kill());
        stop.store(true, Ordering::Relaxed);
    });
}

/// The catalogs that follow one another: made, replaced, added to.
fn catalogs() -> Vec<(State, bool)> {
    let of = |first: usize, version: u64| {
        (first..first + 200)
            .map(|n| (format!("thing-{n:04}"), version))
            .collect()
    };
    let mut added: State = of(50, 2);
    added.extend(of(150, 3));
    vec![(of(0, 1), false), (of(50, 2), true), (added, false)]
}

#[test]
fn power_cut_while_importing() {
    let seed = seed();
    let mut random = seed.random();
    let catalogs = catalogs();
    for _ in 0..rounds(1) {
        let home = TempDir::new().unwrap();
        let root = home.path().join("disk");
        let data = root.join("data");
        std::fs::create_dir(&root).unwrap();
        let ledger = Ledger::start(&root);
        let run = |number: usize| {
            let (state, replace) = &catalogs[number];
            ledger.note(Event::ImportBegins);
            import(home.path(), &data, state, *replace, |command| {
                ledger.recorder.attach(command);
            });
            ledger.note(Event::ImportDone);
        };
        run(0);
        let server = ledger.serve(&data);
        let client = Client::new(&server.url);
        for (number, (catalog, _)) in catalogs.iter().enumerate().skip(1) {
            ledger.traverse(&client, &mut random);
            run(number);
            let deadline = Instant::now() + Duration::from_secs(30);
            while served(&client) != *catalog {
                assert!(Instant::now() < deadline, "an import is not served");
                thread::sleep(Duration::from_millis(20));
            }
        }
        ledger.traverse(&client, &mut random);
        assert!(server.terminate().success());

        let Ledger {
            recorder,
            events,
            opened,
        } = ledger;
        let (start, log) = recorder.finish();
        let (events, opened) = (events.into_inner().unwrap(), opened.into_inner().unwrap());
        each_cut(
            &start,
            &log,
            (120, &[]),
            &mut random,
            |cut, image, random| {
                let (mut begun, mut done, mut traversals) = (0, 0, Vec::new());
                for mark in log.marks_before(cut) {
                    match events[usize::try_from(mark.0).unwrap()] {
                        Event::ImportBegins => begun += 1,
                        Event::ImportDone => done += 1,
                        Event::Traversal(number) => traversals.extend(opened.get(&number)),
                        Event::Progress(..) | Event::Restart => unreachable!(),
                    }
                }
                after_import_cut(
                    &image.join("data"),
                    &catalogs,
                    begun,
                    done,
                    &traversals,
                    random,
                );
            },
        );
    }
}

/// An image must show the catalog of the last finished import, or that of the one under way; which then can be repeated.
fn after_import_cut(
    data: &Path,
    catalogs: &[(State, bool)],
    begun: usize,
    done: usize,
    traversals: &[&Traversal],
    random: &mut Random,
) {
    let empty = State::new();
    let state = |finished: usize| {
        if finished == 0 {
            &empty
        } else {
            &catalogs[finished - 1].0
        }
    };
    let whole = |found: &State| {
        assert!(
            found == state(begun) || found == state(done),
            "half a catalog: {found:?}"
        );
    };
    let start = || {
        let mut command = serve(data);
        without_sync(&mut command);
        let server =
            Server::run(command).unwrap_or_else(|said| panic!("the server does not start: {said}"));
        let client = Client::new(&server.url);
        (server, client)
    };
    if done > 0 {
        check(data);
    }
    if done > 0 || random.chance(50) {
        let (server, client) = start();
        whole(&served(&client));
        traversals
            .iter()
            .for_each(|traversal| traversal.check(&client));
        publish_all(&client);
        whole(&served(&client));
        server.kill();
    }
    if begun > done {
        let home = TempDir::new().unwrap();
        let (records, replace) = &catalogs[begun - 1];
        import(home.path(), data, records, *replace, without_sync);
        check(data);
        let (server, client) = start();
        assert_eq!(served(&client), *state(begun));
        traversals
            .iter()
            .for_each(|traversal| traversal.check(&client));
        server.kill();
    }
}

fn check(data: &Path) {
    let mut check = binary::check(data);
    without_sync(&mut check);
    binary::succeed(check);
}

/// Imports Offerings in the given versions, to the end.
fn import(
    home: &Path,
    data: &Path,
    state: &State,
    replace: bool,
    prepare: impl Fn(&mut std::process::Command),
) {
    let records = home.join("records.ndjson");
    sample::records(
        &records,
        state
            .iter()
            .map(|(id, version)| sample::offering(id, *version)),
    );
    let mut command = binary::import(data, &sample::manifest(home), &[&records]);
    command.args(replace.then_some("--replace"));
    prepare(&mut command);
    binary::succeed(command);
}
