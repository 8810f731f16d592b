//! What is measured, a table each.

use crate::{
    CALLERS, Outcome, artifacts, http, peers, percentiles,
    place::Place,
    stage::{Rules, Stage},
};
use std::{path::PathBuf, time::Duration};
use tokio::runtime::Runtime;

/// Finished runs of a long history.
const HISTORY: u64 = 100_000;
/// Runs of a long queue.
const QUEUE: u64 = 50_000;

pub(crate) struct Bench {
    pub(crate) work: PathBuf,
    pub(crate) postgres: Option<String>,
    pub(crate) peers: Option<PathBuf>,
    pub(crate) serve: Option<PathBuf>,
    /// An S3-speaking peer's bucket.
    pub(crate) s3: Option<String>,
    /// For each figure.
    pub(crate) time: Duration,
}

type Part = fn(&Bench, &Runtime) -> Outcome<()>;

/// In the order of the report.
pub(crate) const ALL: &[(&str, Part)] = &[
    ("starts", starts),
    ("work", work),
    ("idle", idle),
    ("limits", limits),
    ("history", history),
    ("peers", peers::run),
    ("http", http::run),
    ("artifacts", artifacts::run),
];

impl Bench {
    /// Each store that is there: none stands for SQLite, an address for PostgreSQL.
    fn stores(&self) -> impl Iterator<Item = Option<&str>> {
        [None].into_iter().chain(self.postgres.as_deref().map(Some))
    }

    /// A platform on a new store.
    pub(crate) async fn stage(
        &self,
        server: Option<&str>,
        workspaces: usize,
        rules: Rules,
    ) -> Outcome<Stage> {
        Stage::new(Place::new(&self.work, server)?, workspaces, rules).await
    }

    /// Runs whose end is waited for: what a thousand a second would take the time for.
    pub(crate) fn runs(&self) -> u64 {
        self.time.as_secs().max(1) * 1_000
    }

    /// Single starts.
    pub(crate) fn singles(&self) -> u64 {
        self.time.as_secs().max(1) * 40
    }
}

fn starts(bench: &Bench, runtime: &Runtime) -> Outcome<()> {
    println!("\n| store | workspaces | callers | starts/s |\n|---|---|---|---|");
    for server in bench.stores() {
        for (workspaces, callers) in [(1, CALLERS), (100, CALLERS), (1, 1)] {
            let (name, rate) = runtime.block_on(async {
                let stage = bench.stage(server, workspaces, Rules::PLAIN).await?;
                let starts = stage.starts(callers, bench.time).await?;
                stage.check(0, 0)?;
                Outcome::Ok((stage.place.name(), starts.rate))
            })?;
            println!("| {name} | {workspaces} | {callers} | {rate:.0} |");
        }
    }
    Ok(())
}

fn work(bench: &Bench, runtime: &Runtime) -> Outcome<()> {
    println!("\n| store | workspaces | claim-to-finish runs/s |\n|---|---|---|");
    for server in bench.stores() {
        for workspaces in [1, 100] {
            let (name, rate) = runtime.block_on(async {
                let stage = bench.stage(server, workspaces, Rules::PLAIN).await?;
                stage.fill(bench.runs()).await?;
                let rate = stage.work(bench.runs()).await?;
                stage.check(bench.runs(), 0)?;
                Outcome::Ok((stage.place.name(), rate))
            })?;
            println!("| {name} | {workspaces} | {rate:.0} |");
        }
    }
    Ok(())
}

fn idle(bench: &Bench, runtime: &Runtime) -> Outcome<()> {
    println!("\n| store | start to running, p50 ms | p99 ms |\n|---|---|---|");
    for server in bench.stores() {
        let (name, times) = runtime.block_on(noticed(bench, server))?;
        let (p50, p99) = percentiles(times);
        println!("| {name} | {p50:.2} | {p99:.2} |");
    }
    Ok(())
}

/// How long single starts take until their provider is called.
pub(crate) async fn noticed(
    bench: &Bench,
    server: Option<&str>,
) -> Outcome<(&'static str, Vec<f64>)> {
    let rules = Rules {
        provider: "notice",
        ..Rules::PLAIN
    };
    let stage = bench.stage(server, 1, rules).await?;
    let times = stage.idle(bench.singles()).await?;
    stage.check(bench.singles(), 0)?;
    Ok((stage.place.name(), times))
}

fn limits(bench: &Bench, runtime: &Runtime) -> Outcome<()> {
    println!(
        "\n| store | starts/s, no budgets | budgets | cost | claim-to-finish runs/s, no budgets | budgets | cost |\n|{}",
        "---|".repeat(7)
    );
    // The slots are the same, and more than there are runs to be done: only the budgets differ.
    let off = Rules {
        concurrency: 10_000,
        ..Rules::PLAIN
    };
    let on = Rules {
        budgets: true,
        ..off
    };
    for server in bench.stores() {
        let mut name = "";
        let mut sums = [[0.0; 2]; 2];
        // In turns, so that what else the machine does meets both.
        for _ in 0..2 {
            for (rules, [starts, works]) in [off, on].into_iter().zip(&mut sums) {
                runtime.block_on(async {
                    let stage = bench.stage(server, 1, rules).await?;
                    name = stage.place.name();
                    stage.fill(bench.runs()).await?;
                    *works += stage.work(bench.runs()).await?;
                    *starts += stage.starts(CALLERS, bench.time).await?.rate;
                    stage.check(bench.runs(), 0)
                })?;
            }
        }
        let [[starts_off, works_off], [starts_on, works_on]] = sums;
        let cost = |off: f64, on: f64| (off / on - 1.0) * 100.0;
        println!(
            "| {name} | {:.0} | {:.0} | **{:.0} %** | {:.0} | {:.0} | **{:.0} %** |",
            starts_off / 2.0,
            starts_on / 2.0,
            cost(starts_off, starts_on),
            works_off / 2.0,
            works_on / 2.0,
            cost(works_off, works_on)
        );
    }
    Ok(())
}

fn history(bench: &Bench, runtime: &Runtime) -> Outcome<()> {
    println!(
        "\n| store | finished before | pending before | starts/s | ÷ empty | claim-to-finish runs/s | ÷ empty |\n|{}",
        "---|".repeat(7)
    );
    for server in bench.stores() {
        let mut empty = None;
        for (finished, pending) in [(0, 0), (HISTORY, 0), (0, QUEUE)] {
            let (name, starts, works) = runtime.block_on(async {
                let stage = bench.stage(server, 1, Rules::PLAIN).await?;
                stage.fill(1).await?;
                stage.work(1).await?;
                if finished > 0 {
                    stage.place.copy_finished(finished)?;
                }
                stage.fill(pending + bench.runs()).await?;
                let works = stage.work(bench.runs()).await?;
                let starts = stage.starts(CALLERS, bench.time).await?.rate;
                stage.check(1 + bench.runs(), finished)?;
                Outcome::Ok((stage.place.name(), starts, works))
            })?;
            let (starts_empty, works_empty) = *empty.get_or_insert((starts, works));
            println!(
                "| {name} | {finished} | {pending} | {starts:.0} | **{:.2}** | {works:.0} | **{:.2}** |",
                starts / starts_empty,
                works / works_empty
            );
        }
    }
    Ok(())
}
