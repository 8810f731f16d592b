//! Search beside its peers, in one process: `search-bench DATA RECORDS WORKDIR [POSTGRES-URL]`. `DATA` is a data directory into which `RECORDS` were imported
//! with `catalogs/registry-packages.toml`; the peers index the same records. `search-bench --generated N [--hidden] WORKDIR` measures Purvey alone over a catalog that
//! it makes, `search-bench --http ADDRESS CONNECTIONS SECONDS` a server with one. Prints Markdown.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

mod ask;
mod generated;
mod http;
mod ours;
mod plain_tantivy;
mod postgresql;
mod records;
mod sql;
mod sqlite;

use ask::{Answer, Ask, Engine, Facet, Raw};
use ours::Ours;
use purvey_catalog::access::Access;
use serde_json::{Value, json};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Runs of each measurement.
const RUNS: usize = 41;
/// Runs of what takes longer than a tenth of a second.
const SLOW_RUNS: usize = 7;

const TWO: &[Facet] = &[Facet::Registry, Facet::Major];
const FOUR: &[Facet] = &[
    Facet::Registry,
    Facet::Major,
    Facet::Updated,
    Facet::Version,
];

/// A row of the table: what is asked in its n-th run, so that no engine can answer from a cache what it has been asked before.
struct Row {
    name: &'static str,
    ask: fn(usize) -> Ask,
    /// Whether engines must agree on the ids, not only on the counts: they do not where relevance orders.
    same_order: bool,
}

const TEXTS: [&str; 8] = [
    "http client",
    "machine learning",
    "json parser",
    "react component",
    "command line",
    "test framework",
    "date format",
    "image processing",
];

const ROWS: &[Row] = &[
    Row {
        name: "text only",
        ask: |n| Ask {
            text: Some(TEXTS[n % TEXTS.len()]),
            ..Ask::default()
        },
        same_order: false,
    },
    Row {
        name: "two filters, by id",
        ask: |n| Ask {
            registry: Some("python"),
            updated_from: Some(format!("2023-{:02}-{:02}", n % 12 + 1, n % 28 + 1)),
            ..Ask::default()
        },
        same_order: true,
    },
    Row {
        name: "text + two filters + sort + two refinements",
        ask: |n| Ask {
            text: Some(TEXTS[n % TEXTS.len()]),
            registry: Some("node"),
            downloads_from: Some(100 + n as i64),
            most_downloaded: true,
            facets: TWO,
            ..Ask::default()
        },
        same_order: false,
    },
    Row {
        name: "two filters + sort + two refinements",
        ask: |n| Ask {
            registry: Some("node"),
            downloads_from: Some(100 + n as i64),
            most_downloaded: true,
            facets: TWO,
            ..Ask::default()
        },
        same_order: true,
    },
    Row {
        name: "a filter that nearly all match, four refinements",
        ask: |n| Ask {
            major_from: Some(-(n as i64)),
            facets: FOUR,
            ..Ask::default()
        },
        same_order: true,
    },
    Row {
        name: "one filter, by downloads, page 1",
        ask: |n| Ask {
            downloads_from: Some(n as i64 % 4),
            most_downloaded: true,
            ..Ask::default()
        },
        same_order: true,
    },
    Row {
        name: "one filter, by downloads, page 1,000",
        ask: |n| Ask {
            downloads_from: Some(n as i64 % 4),
            most_downloaded: true,
            page: 999,
            ..Ask::default()
        },
        same_order: true,
    },
];

struct Measured {
    p50: Duration,
    p99: Duration,
    last: Answer,
}

const USAGE: &str = "usage: search-bench DATA RECORDS WORKDIR [POSTGRES-URL]
       search-bench --generated N [--hidden] WORKDIR
       search-bench --http ADDRESS CONNECTIONS SECONDS";

/// An empty directory in place of whatever is there.
fn fresh(work: &Path) -> Outcome<&Path> {
    if work.exists() {
        std::fs::remove_dir_all(work)?;
    }
    std::fs::create_dir_all(work)?;
    Ok(work)
}

fn main() -> Outcome<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    match words.as_slice() {
        ["--http", address, connections, seconds] => {
            return http::run(address, connections.parse()?, seconds.parse()?);
        }
        ["--generated", count, more @ .., work] if matches!(more, [] | ["--hidden"]) => {
            let work = fresh(Path::new(work))?;
            return generated::run(count.parse()?, !more.is_empty(), work);
        }
        _ => {}
    }
    let (data, records, work, url) = match arguments.as_slice() {
        [data, records, work] => (data, records, work, None),
        [data, records, work, url] => (data, records, work, url.to_str()),
        _ => return Err(USAGE.into()),
    };
    fresh(work)?;
    let mut ours = Ours::open(data, Access::public())?;
    let mut peers: Vec<Box<dyn Engine>> = Vec::new();
    let built = |name: &str, begin: Instant| eprintln!("{name}: built in {:.1?}", begin.elapsed());
    let begin = Instant::now();
    peers.push(Box::new(plain_tantivy::Plain::build(records)?));
    built("Tantivy", begin);
    let begin = Instant::now();
    peers.push(Box::new(sqlite::Sqlite::build(
        &work.join("sqlite.db"),
        records,
    )?));
    built("SQLite", begin);
    if let Some(url) = url {
        let begin = Instant::now();
        peers.push(Box::new(postgresql::Postgres::build(url, records)?));
        built("PostgreSQL", begin);
    }

    let names: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
    println!(
        "| search | purvey p50 / p99 ms | {} | {} |",
        names
            .iter()
            .map(|name| format!("{name} p50 ms"))
            .collect::<Vec<_>>()
            .join(" | "),
        names
            .iter()
            .map(|name| format!("{name} ÷ purvey"))
            .collect::<Vec<_>>()
            .join(" | ")
    );
    println!("|{}", "---|".repeat(2 + 2 * names.len()));
    for row in ROWS {
        let mine = measure(&mut ours, row)?;
        let mut times = String::new();
        let mut ratios = String::new();
        for peer in &mut peers {
            let theirs = measure(peer.as_mut(), row)?;
            compare(row, peer.name(), &mine.last, &theirs.last);
            times += &format!(" {:.2} |", millis(theirs.p50));
            ratios += &format!(" **{:.1}** |", millis(theirs.p50) / millis(mine.p50));
        }
        println!(
            "| {} | {:.2} / {:.2} |{times}{ratios}",
            row.name,
            millis(mine.p50),
            millis(mine.p99)
        );
    }
    worst(&ours)
}

/// Ours alone: the most that one request may ask for of these filters.
fn worst(ours: &Ours) -> Outcome<()> {
    let mut times = Vec::new();
    for run in 0..SLOW_RUNS {
        let filters: Vec<Value> = (0..32)
            .map(|at| {
                let number = |n: usize| n * 7 + at + run * 13;
                let (id, values): (_, Vec<Value>) = match at % 2 {
                    0 => ("major", (0..100).map(|n| json!(number(n))).collect()),
                    _ => (
                        "version",
                        (0..100)
                            .map(|n| json!(format!("0.{}.0", number(n))))
                            .collect(),
                    ),
                };
                json!({"id": id, "operator": "in", "value": values})
            })
            .collect();
        let request = json!({"odp_version": "1.0", "filters": filters, "sort": "recently-updated", "limit": 100,
            "refinements": ["registry", "major", "updated", "version"]});
        let begin = Instant::now();
        ours.search(request)?;
        times.push(begin.elapsed());
    }
    let (p50, p99) = percentiles(times);
    println!(
        "| 32 sets of 100 values, all refinements | {:.2} / {:.2} |",
        millis(p50),
        millis(p99)
    );
    Ok(())
}

fn measure(engine: &mut dyn Engine, row: &Row) -> Outcome<Measured> {
    let mut times = Vec::new();
    let mut runs = RUNS;
    let mut last = Answer::default();
    let mut at = 0;
    while at <= runs {
        let ask = (row.ask)(at);
        if at == 0 || ask.page > 0 {
            engine.prepare(&ask)?;
        }
        let begin = Instant::now();
        let raw = engine.answer(&ask)?;
        let took = begin.elapsed();
        // The first run warms.
        if at > 0 {
            times.push(took);
        }
        if took > Duration::from_millis(100) {
            runs = SLOW_RUNS;
        }
        if at == 1 {
            last = match raw {
                Raw::Answer(answer) => answer,
                Raw::Body(body) => ours::read(&body)?,
            };
        }
        at += 1;
    }
    let (p50, p99) = percentiles(times);
    Ok(Measured { p50, p99, last })
}

fn percentiles(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    let at = |part: usize| {
        times
            .get(((times.len() * part) / 100).min(times.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    };
    (at(50), at(99))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Says where engines answer differently.
fn compare(row: &Row, peer: &str, mine: &Answer, theirs: &Answer) {
    if row.same_order && mine.ids != theirs.ids {
        let at = mine.ids.iter().zip(&theirs.ids).position(|(a, b)| a != b);
        eprintln!("{}: {peer} has other ids from {at:?} on", row.name);
    }
    for (at, (mine, theirs)) in mine.facets.iter().zip(&theirs.facets).enumerate() {
        if row.same_order && mine.iter().map(|v| v.1).ne(theirs.iter().map(|v| v.1)) {
            eprintln!(
                "{}: {peer} counts facet {at} otherwise:\n  {mine:?}\n  {theirs:?}",
                row.name
            );
        }
    }
}
