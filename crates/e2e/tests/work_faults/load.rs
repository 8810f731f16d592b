//! Starts by key, cancels and repeats without end, and what must hold of them afterwards.

use crate::{
    house::{House, Owner, id, wait_for},
    model::{Act, COST, SAYS},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

/// Most runs at once.
pub(crate) const LIMIT: usize = 8;
const CALLERS: usize = 6;
/// Callers hold back while so many runs wait: what waits has to end some time.
const QUEUE: u64 = 40;
/// How often a worker may be lost before its run fails.
const CRASHES: i64 = 5;
/// What a call is asked, as its size is counted. Inputs have one length, so all calls are reserved with the same.
const REQUEST: &str = r#"{"model":"m","instructions":"","messages":[{"role":"user","content":"key-00000"}],"max_output_tokens":10}"#;
/// What is reserved for a call, in micro-cents: a token for each byte of the request, and ten of the reply.
const RESERVED: i64 = (REQUEST.len() as i64 + 10) * 1_000;

/// What the model does: mostly it answers after a moment; every eighth run is limited at first.
pub(crate) fn plan(input: &str, call: u32) -> Act {
    let number = number(input);
    match (number % 8, call) {
        (6, 1) => Act::Limit,
        _ => Act::Answer(Duration::from_millis(100 + number % 7 * 50)),
    }
}

fn number(input: &str) -> u64 {
    input.trim_start_matches("key-").parse().unwrap()
}

/// Callers at work.
pub(crate) struct Load {
    owner: Owner,
    done: Arc<Done>,
    callers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Done {
    stop: AtomicBool,
    next: AtomicUsize,
    /// Runs by their input, which is their key.
    accepted: Mutex<BTreeMap<String, String>>,
    /// Runs whose cancellation was answered.
    cancelled: Mutex<BTreeSet<String>>,
    /// Calls that no server answered, or none could do.
    again: AtomicUsize,
}

impl Load {
    pub(crate) fn begin(owner: &Owner, starts: &str) -> Self {
        let done = Arc::<Done>::default();
        let call = |_| {
            let (owner, starts, done) = (owner.clone(), starts.to_owned(), done.clone());
            std::thread::spawn(move || done.call(&owner, &starts))
        };
        Self {
            owner: owner.clone(),
            callers: (0..CALLERS).map(call).collect(),
            done,
        }
    }

    /// How many runs were accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.done.accepted.lock().unwrap().len()
    }

    /// Stops the callers, waits until every run has ended and holds the store to what was answered and what the model saw.
    pub(crate) fn end(self, house: &House) {
        self.done.stop.store(true, Ordering::Relaxed);
        for caller in self.callers {
            caller.join().unwrap();
        }
        let (owner, done) = (self.owner, self.done);
        wait_for("the end of every run", || {
            let seen = owner.must("GET", &owner.workspace, None);
            assert!(seen["running"].as_u64().unwrap() <= LIMIT as u64, "{seen}");
            seen["running"] == 0 && seen["queued"] == 0
        });
        let accepted = done.accepted.lock().unwrap();
        assert_eq!(
            accepted.len(),
            done.next.load(Ordering::Relaxed),
            "every start was accepted"
        );
        done.answered_as_listed(&owner, &accepted);
        kept(house, &accepted);
        assert_eq!(house.model.wrong(), [""; 0]);
        println!(
            "{} runs, {} calls made again, {} attempts lost",
            accepted.len(),
            done.again.load(Ordering::Relaxed),
            house.number("SELECT CAST(SUM(crashes) AS TEXT) FROM runs")
        );
    }
}

impl Done {
    fn call(&self, owner: &Owner, starts: &str) {
        while !self.stop.load(Ordering::Relaxed) {
            let key = format!("key-{:05}", self.next.fetch_add(1, Ordering::Relaxed));
            let run = self.start(owner, starts, &key);
            let run_id = id(&run);
            self.accepted
                .lock()
                .unwrap()
                .insert(key.clone(), run_id.clone());
            match number(&key) % 8 {
                3 => self.cancel(owner, &run_id),
                5 => assert_eq!(
                    id(&self.start(owner, starts, &key)),
                    run_id,
                    "one run a key"
                ),
                _ => {}
            }
            let ahead = run["waiting_for"]["position"].as_u64().unwrap_or(0);
            let pause = if ahead < QUEUE { 20 } else { 400 };
            std::thread::sleep(Duration::from_millis(pause));
        }
    }

    /// The same start under the same key until it is accepted, whatever happens to the servers meanwhile.
    fn start(&self, owner: &Owner, starts: &str, key: &str) -> Value {
        let body = json!({"input": key});
        loop {
            match owner.call("POST", starts, Some(key), Some(&body)) {
                Some(answer) if [200, 202].contains(&answer.status) => return answer.body,
                Some(answer) if answer.status < 500 => {
                    panic!("{key}: {} {}", answer.status, answer.body)
                }
                _ => self.wait(),
            }
        }
    }

    fn cancel(&self, owner: &Owner, run: &str) {
        loop {
            match owner.call("POST", &format!("/v1/runs/{run}/cancel"), None, None) {
                Some(answer) if answer.status == 200 => {
                    self.cancelled.lock().unwrap().insert(run.to_owned());
                    return;
                }
                // It has ended before.
                Some(answer) if answer.status == 409 => return,
                Some(answer) if answer.status < 500 => panic!("{} {}", answer.status, answer.body),
                _ => self.wait(),
            }
        }
    }

    fn wait(&self) {
        self.again.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
    }

    /// Exactly the runs that were accepted, each at an end that it may have.
    fn answered_as_listed(&self, owner: &Owner, accepted: &BTreeMap<String, String>) {
        let cancelled = self.cancelled.lock().unwrap();
        let mut listed = BTreeMap::new();
        let mut cursor = String::new();
        loop {
            let path = format!("{}/runs?limit=100{cursor}", owner.workspace);
            let page = owner.must("GET", &path, None);
            for run in page["items"].as_array().unwrap() {
                let input = run["input"].as_str().unwrap().to_owned();
                match run["status"].as_str().unwrap() {
                    "succeeded" => assert_eq!(run["output"], SAYS, "{run}"),
                    "cancelled" => assert_eq!(number(&input) % 8, 3, "nobody cancelled {run}"),
                    _ => assert!(
                        run["error_code"] == "run.crashed"
                            && run["attempt"].as_i64() >= Some(CRASHES),
                        "{run}"
                    ),
                }
                let run = id(run);
                assert_eq!(listed.insert(input, run), None, "one run for a key");
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(listed, *accepted, "exactly the runs that were accepted");
        assert!(
            listed
                .values()
                .filter(|run| cancelled.contains(*run))
                .count()
                == cancelled.len()
        );
    }
}

/// What the store keeps agrees with itself, with what was answered and with what the model saw.
fn kept(house: &House, accepted: &BTreeMap<String, String>) {
    let keys = house.rows("SELECT key, target_id FROM keys");
    let keys: BTreeMap<_, _> = keys
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    assert_eq!(keys, *accepted, "each key names its run");
    let runs = house
        .rows("SELECT key, status, CAST(cost_micros AS TEXT), CAST(attempt AS TEXT) FROM runs");
    for run in &runs {
        let [key, status, cost, attempt] = &run[..] else {
            panic!("{run:?}")
        };
        let (cost, attempt): (i64, i64) = (cost.parse().unwrap(), attempt.parse().unwrap());
        let calls = i64::from(house.model.calls(key));
        assert!(
            calls <= attempt,
            "an attempt calls once: {run:?}, {calls} calls"
        );
        // What was answered is paid once; what was lost is charged with what was reserved for it.
        let answered = i64::from(status == "succeeded");
        let lost = cost - answered * COST;
        assert!(
            answered <= calls
                && lost % RESERVED == 0
                && (0..=attempt - answered).contains(&(lost / RESERVED)),
            "{run:?} was charged {lost} for lost calls"
        );
    }
    let of_runs = house.number("SELECT CAST(SUM(cost_micros) AS TEXT) FROM runs");
    let sum = |sql: &str| assert_eq!(house.number(sql), of_runs, "{sql}");
    sum("SELECT CAST(SUM(cost_micros) AS TEXT) FROM steps");
    sum("SELECT CAST(SUM(settled) AS TEXT) FROM ledger WHERE scope = 'platform'");
    sum("SELECT CAST(SUM(settled) AS TEXT) FROM ledger WHERE scope LIKE 'ws_%'");
    for sql in [
        "SELECT CAST(COUNT(*) AS TEXT) FROM reservations",
        "SELECT CAST(SUM(reserved) AS TEXT) FROM ledger",
        "SELECT CAST(SUM(unfinished) AS TEXT) FROM agents",
        "SELECT CAST(SUM(running + queued) AS TEXT) FROM workspaces",
    ] {
        assert_eq!(house.number(sql), 0, "{sql}");
    }
}

/// Looks, beside the servers and whatever happens to them, whether slots are counted exactly and never passed.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    looks: JoinHandle<usize>,
}

impl Watch {
    pub(crate) fn begin(database: &str) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let (stopped, database) = (stop.clone(), database.to_owned());
        let looks = std::thread::spawn(move || {
            let mut looks = 0;
            let mut client = None;
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(15));
                let open = match client.take() {
                    Some(open) => open,
                    // The database itself may be down.
                    None => match postgres::Client::connect(&database, postgres::NoTls) {
                        Ok(open) => open,
                        Err(_) => continue,
                    },
                };
                client = look(open);
                looks += usize::from(client.is_some());
            }
            looks
        });
        Self { stop, looks }
    }

    pub(crate) fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        let looks = self.looks.join().unwrap();
        assert!(looks > 0, "nobody looked");
        println!("{looks} looks at the slots");
    }
}

fn look(mut client: postgres::Client) -> Option<postgres::Client> {
    // A connection that is lost is made anew at the next look.
    client.simple_query("SELECT 1").ok()?;
    let counts = client.query(
        "SELECT w.running, w.concurrency_limit, (SELECT COUNT(*) FROM runs WHERE workspace_id = w.id
            AND status IN ('running', 'paused_limit_exceeded')) FROM workspaces w",
        &[],
    );
    for row in counts.ok()? {
        let (running, limit, held): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        assert!(
            running == held && held <= limit,
            "{running} counted, {held} held of {limit}"
        );
    }
    Some(client)
}
