//! 1.1 million real entries: imported, and traversed once from end to end while records are written, the server is killed and
//! the whole catalog is replaced.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

mod agent;
mod searches;

use std::io::{BufRead as _, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use e2e::binary::{import, inspect, json as json_of, said, succeed};
use e2e::client::{Client, page_of};
use e2e::random::Random;
use e2e::sample;
use e2e::server::Server;
use e2e::shared::{project, shared};
use serde_json::json;
use tempfile::TempDir;

const OFFERINGS: usize = 1_106_897;
/// The line of the one entry whose name has 188 characters, which is more than the 128 that a name may have.
const TOO_LONG: usize = 881_369;

/// Prints how long each phase took.
struct Phases(Instant);

impl Phases {
    fn done(&mut self, what: &str) {
        eprintln!("{what}: {:.1} s", self.0.elapsed().as_secs_f64());
        self.0 = Instant::now();
    }
}

/// The ids of the table's entries but the bad one, in the order of their bytes.
fn ids_of(table: &Path) -> Vec<String> {
    let file = std::fs::File::open(table).unwrap();
    let lines = BufReader::new(zstd::Decoder::new(file).unwrap()).lines();
    let mut ids: Vec<String> = lines
        .enumerate()
        .filter(|(index, _)| *index != 0 && index + 1 != TOO_LONG)
        .map(|(_, line)| line.unwrap().split('\t').next().unwrap().to_owned())
        .collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_full_traversal_while_everything_happens() {
    let Some(table) = shared("data/registry-packages.tsv.zst") else {
        return;
    };
    let mut phases = Phases(Instant::now());
    let ids = ids_of(&table);
    assert_eq!(ids.len(), OFFERINGS);
    assert!(ids.is_sorted_by(|a, b| a < b));
    phases.done("reading the table");

    let home = TempDir::new().unwrap();
    let data = home.path().join("data");
    let manifest = project().join("catalogs/registry-packages.toml");
    import_all(&data, &manifest, &table);
    phases.done("import");

    let stats = inspect("stats", &data);
    assert_eq!(
        (&stats["offerings"], &stats["collections"]),
        (&json!(OFFERINGS), &json!(2))
    );
    assert_eq!(stats["generation"], stats["change"]);
    phases.done("stats");
    let check = inspect("check", &data);
    assert_eq!(check["records"], json!(OFFERINGS + 2));
    assert_eq!(
        (&check["unindexed"], &check["faults"]),
        (&json!(0), &json!([]))
    );
    phases.done("check");

    let mut random = Random::new(20_261_130);
    let mut traversal = Traversal::new(&ids);
    let server = Server::start(&data);
    phases.done("start");
    let packages = searches::packages(&table, TOO_LONG);
    searches::first_pages_are_exact(&server, &packages);
    searches::official_sdks_search(&server, &packages);
    phases.done("searches");
    agent::shows_what_the_table_says(&server, &packages);
    agent::lists_everything(&server, &ids);
    phases.done("the command line");
    // The traversals are ones of what was imported: they begin before anything is written.
    let client = Client::new(&server.url);
    traversal.follow(&client, 100);
    let search = searches::begin(&client, &packages);
    with_writer(&server, &ids, &mut random, |client| search.follow(client));
    phases.done("a search to its end under writes");

    // A third under writes, until the server is killed in the middle of them.
    let written = with_writer(&server, &ids, &mut random, |client| {
        traversal.follow(client, OFFERINGS / 3);
        server.kill_now();
    });
    drop(server);
    assert!(
        written.len() > 50,
        "hardly anything was written: {}",
        written.len()
    );
    phases.done("a third, then SIGKILL");

    let server = Server::start(&data);
    let client = Client::new(&server.url);
    phases.done("start again");
    for change in written.iter().rev().take(20) {
        let stored = client.stored(&format!("/v1/catalog/offerings/{}", change.id));
        match &change.name {
            Some(name) => assert_eq!(stored.expect_status(200).json()["name"], **name),
            None => assert_eq!(stored.status, 404, "{}", change.id),
        }
    }
    let written = with_writer(&server, &ids, &mut random, |client| {
        traversal.follow(client, OFFERINGS / 3 * 2);
    });
    assert!(
        written.len() > 50,
        "hardly anything was written: {}",
        written.len()
    );
    phases.done("another third under writes");

    // Another process replaces everything. What begins now sees the new catalog; the traversal sees the end of its own.
    let small = sample::manifest(home.path());
    let records = home.path().join("records.ndjson");
    sample::records(
        &records,
        (0..7).map(|n| sample::offering(&format!("new-{n}"), n)),
    );
    let mut replace = import(&data, &small, &[&records]);
    replace.arg("--replace");
    succeed(replace);
    let list = client.operation("/offerings");
    let deadline = Instant::now() + Duration::from_secs(10);
    while client.items(&format!("{list}?limit=10")).len() != 7 {
        assert!(
            Instant::now() < deadline,
            "the server does not take up what was imported"
        );
        thread::sleep(Duration::from_millis(50));
    }
    phases.done("replaced");
    traversal.follow(&client, OFFERINGS);
    assert!(traversal.next.is_none(), "more than was imported");
    phases.done("the last third");

    assert_eq!(inspect("stats", &data)["offerings"], 7);
    let check = inspect("check", &data);
    assert_eq!(
        (&check["records"], &check["faults"]),
        (&json!(9), &json!([]))
    );
    assert_eq!(server.terminate().code(), Some(0));
    phases.done("the end");
}

fn import_all(data: &Path, manifest: &Path, table: &Path) {
    let mut command = import(data, manifest, &[table]);
    command.args(["--on-error", "skip", "--json"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let report = json_of(&output);
    assert_eq!(report["committed"], true);
    assert_eq!(report["read"], json!(OFFERINGS + 1));
    assert_eq!(report["offerings"], json!(OFFERINGS));
    assert_eq!(report["rejected"], 1);
    let fault = &report["faults"][0];
    assert_eq!(fault["line"], json!(TOO_LONG));
    assert_eq!(fault["violations"][0]["pointer"], "/name");
    assert_eq!(
        fault["violations"][0]["reason"],
        "Must have from 1 through 128 Unicode code points, not 188."
    );
    let rejects = std::fs::read_to_string(data.join("rejects")).unwrap();
    let row = rejects.lines().last().unwrap();
    assert!(
        row.starts_with("python.zzzz") && row.contains("\t0.1.0\t2025-09-01\t"),
        "{rejects}"
    );
}

/// A list being followed: each id must come once, in order, and be one of those imported.
struct Traversal<'a> {
    ids: &'a [String],
    seen: usize,
    next: Option<String>,
}

impl<'a> Traversal<'a> {
    fn new(ids: &'a [String]) -> Self {
        Self {
            ids,
            seen: 0,
            next: Some("/odp/offerings?limit=100".to_owned()),
        }
    }

    /// Goes on until this many items have come, or the list ends, which it must not do before.
    fn follow(&mut self, client: &Client, until: usize) {
        while self.seen < until {
            let target = self
                .next
                .take()
                .unwrap_or_else(|| panic!("ends after {} items", self.seen));
            let (items, next) = page_of(&client.get(&target).expect_status(200));
            for item in &items {
                assert_eq!(
                    item["id"].as_str(),
                    self.ids.get(self.seen).map(String::as_str),
                    "item {}",
                    self.seen
                );
                self.seen += 1;
            }
            self.next = next;
        }
    }
}

/// An acknowledged change: the Offering's new name, `None` when it was removed.
struct Change {
    id: String,
    name: Option<String>,
}

/// Does `work` while an operator writes to the same server; gives what was acknowledged, the last change of each Offering.
fn with_writer(
    server: &Server,
    ids: &[String],
    random: &mut Random,
    work: impl FnOnce(&Client),
) -> Vec<Change> {
    let client = Client::new(&server.url);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(&client, ids, random, &stop));
        // A failure must not leave the writer writing.
        let worked = catch_unwind(AssertUnwindSafe(|| work(&client)));
        stop.store(true, Ordering::Relaxed);
        let written = writer.join().unwrap();
        worked.unwrap_or_else(|failure| resume_unwind(failure));
        written
    })
}

/// Writes until told to stop or until there is no server: changes, removes and adds Offerings all over the range of ids.
fn write(client: &Client, ids: &[String], random: &mut Random, stop: &AtomicBool) -> Vec<Change> {
    let mut acknowledged: Vec<Change> = Vec::new();
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let known = &ids[random.within(0..ids.len())];
        let (id, name) = match n % 3 {
            0 => (known.clone(), Some(format!("changed {n}"))),
            1 => (known.clone(), None),
            _ => (format!("{known}_"), Some(format!("added {n}"))),
        };
        let target = format!("/v1/catalog/offerings/{id}");
        let answer = match &name {
            Some(name) => client.put(&target, &json!({"id": id, "name": name})),
            None => client.delete(&target),
        };
        // No answer: the server is gone, and this change may be there or not.
        let Ok(answer) = answer else {
            acknowledged.retain(|change| change.id != id);
            break;
        };
        match answer.status {
            200 | 201 => {
                acknowledged.retain(|change| change.id != id);
                acknowledged.push(Change { id, name });
            }
            // Removed already, in the life before.
            404 if name.is_none() => {}
            status => panic!("{target}: {status} {}", answer.text()),
        }
        thread::sleep(Duration::from_millis(5));
    }
    acknowledged
}
