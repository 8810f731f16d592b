//! The run platform beside job queues, in one run: `work-bench WORKDIR [--postgres URL] [--peers DIR] [--serve PURVEY] [--s3 URL] [--only PART,…]`. Everything is measured in
//! process on SQLite, with an address also on PostgreSQL (in schemas of its own, dropped at the end), with a directory for their packages also the peers there, with
//! a `purvey` binary also over HTTP. Prints Markdown on standard output, progress on standard error. `BENCH_SECONDS` is how long each figure takes, 5 unless set.
//!
//! Nothing timed is demanded; that every run which was started is in the store, and ended if it should have, is.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

mod artifacts;
mod http;
mod parts;
mod peers;
mod place;
mod stage;

use parts::Bench;
use std::{
    error::Error,
    path::PathBuf,
    time::{Duration, Instant},
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Callers at once, workers at once, and jobs at once of the peers.
const CALLERS: usize = 64;

const USAGE: &str =
    "usage: work-bench WORKDIR [--postgres URL] [--peers DIR] [--serve PURVEY] [--s3 http://HOST:PORT/BUCKET] [--only PART,...]
parts: starts, work, idle, limits, history, peers, http, artifacts";

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let work = PathBuf::from(arguments.next().ok_or(USAGE)?);
    let seconds = std::env::var("BENCH_SECONDS").ok();
    let seconds: u64 = seconds.map_or(Ok(5), |text| text.parse())?;
    let mut bench = Bench {
        work,
        postgres: None,
        peers: None,
        serve: None,
        s3: None,
        time: Duration::from_secs(seconds),
    };
    let mut only = None;
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match option.as_str() {
            "--postgres" => bench.postgres = Some(value),
            "--peers" => bench.peers = Some(value.into()),
            "--serve" => bench.serve = Some(value.into()),
            "--s3" => bench.s3 = Some(value),
            "--only" => only = Some(value),
            _ => return Err(USAGE.into()),
        }
    }
    std::fs::create_dir_all(&bench.work)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    for (part, run) in parts::ALL {
        let wanted = only.as_ref();
        if wanted.is_none_or(|only| only.split(',').any(|name| name == *part)) {
            let begin = Instant::now();
            run(&bench, &runtime)?;
            eprintln!("{part}: {:.0?}", begin.elapsed());
        }
    }
    Ok(())
}

/// Median and 99th percentile in milliseconds.
fn percentiles(mut millis: Vec<f64>) -> (f64, f64) {
    millis.sort_by(f64::total_cmp);
    let at = |part: usize| {
        let index = (millis.len() * part / 100).min(millis.len().saturating_sub(1));
        millis.get(index).copied().unwrap_or_default()
    };
    (at(50), at(99))
}
