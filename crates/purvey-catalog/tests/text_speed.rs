//! How fast and how small the text engine is over the names and summaries of 1.1 million software packages, beside a plain Tantivy program. By hand:
//! `cargo test --release --workspace --test text_speed speed -- --ignored --nocapture`
//! With `TEXT_SPEED_DIR` the indexes are kept there and used again. Where others use the machine too, count instructions: run the test `counted` with such a directory under
//! `valgrind --tool=callgrind --toggle-collect='*measured*'`, with one of the lines that it prints as `TEXT_ONLY`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for people"
)]

mod text_common;

use purvey_catalog::fs::Durability;
use purvey_catalog::search::{Bitset, TextMatch};
use purvey_catalog::text::{Analyzer, Prepared, TextIndex, TextWriter};
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tantivy::collector::TopDocs;
use tantivy::directory::RamDirectory;
use tantivy::query::QueryParser;
use tantivy::schema::{Schema, TEXT};
use tantivy::{Directory, Index, IndexWriter, TantivyDocument};
use text_common::config;

const QUERIES: [&str; 14] = [
    "json",
    "json parser",
    "parser json fast",
    "left-pad",
    "left pad",
    "leftpad",
    "http client",
    "react component library",
    "machine learning",
    "a library for the web",
    "zstd compression bindings",
    "@types/node",
    "rea",
    "postgresql driver async",
];

struct Package {
    id: String,
    name: String,
    summary: String,
}

fn shared(relative: &str) -> Option<PathBuf> {
    let found = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|directory| directory.join("shared").join(relative))
        .find(|path| path.exists());
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci != "true"),
            "../shared/{relative} is absent"
        );
        println!("skipped: ../shared is absent ({relative})");
    }
    found
}

fn packages(path: &Path) -> Vec<Package> {
    let file = std::fs::File::open(path).unwrap();
    let lines = BufReader::new(zstd::Decoder::new(file).unwrap()).lines();
    let mut packages: Vec<Package> = lines
        .skip(1)
        .map(|line| {
            let line = line.unwrap();
            let columns: Vec<&str> = line.split('\t').collect();
            Package {
                id: columns[0].to_owned(),
                name: columns[2].to_owned(),
                summary: columns[7].to_owned(),
            }
        })
        .collect();
    packages.sort_by(|a, b| a.id.cmp(&b.id));
    packages
}

/// Memory of the process in MiB: now, or the most since the last reset.
fn memory(which: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(which)).unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024
}

fn build(path: &Path, packages: &[Package], config: &purvey_catalog::text::TextConfig) {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = memory("VmRSS");
    let begin = Instant::now();
    let (mut analysis, mut pushing) = (Duration::ZERO, Duration::ZERO);
    let analyzer = Analyzer::new(config);
    let mut writer = TextWriter::create(path, config, Durability::Full).unwrap();
    let threads = std::thread::available_parallelism().unwrap().get();
    for batch in packages.chunks(20_000) {
        let now = Instant::now();
        let prepare = |packages: &[Package]| -> Vec<Prepared> {
            let packages = packages.iter();
            packages
                .map(|package| analyzer.prepare(&[vec![&package.name], vec![&package.summary]]))
                .collect()
        };
        let prepared: Vec<Vec<Prepared>> = std::thread::scope(|scope| {
            let chunks = batch.chunks(batch.len().div_ceil(threads));
            let workers: Vec<_> = chunks.map(|c| scope.spawn(|| prepare(c))).collect();
            workers.into_iter().map(|w| w.join().unwrap()).collect()
        });
        analysis += now.elapsed();
        let now = Instant::now();
        for document in prepared.into_iter().flatten() {
            writer.push(document).unwrap();
        }
        pushing += now.elapsed();
    }
    let now = Instant::now();
    writer.finish().unwrap();
    println!(
        "built {} documents in {:.1} s: analysis {:.1} s on {threads} threads, push {:.1} s, finish {:.1} s; at most {} MiB beside the {} MiB of the records",
        packages.len(),
        begin.elapsed().as_secs_f64(),
        analysis.as_secs_f64(),
        pushing.as_secs_f64(),
        now.elapsed().as_secs_f64(),
        memory("VmHWM") - before,
        before,
    );
}

fn plain(packages: &[Package]) -> Index {
    let begin = Instant::now();
    let mut schema = Schema::builder();
    let name = schema.add_text_field("name", TEXT);
    let summary = schema.add_text_field("summary", TEXT);
    let index = Index::create_in_ram(schema.build());
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 2_000_000_000).unwrap();
    for package in packages {
        let mut document = TantivyDocument::default();
        document.add_text(name, &package.name);
        document.add_text(summary, &package.summary);
        writer.add_document(document).unwrap();
    }
    writer.commit().unwrap();
    let segments = index.searchable_segments().unwrap().len();
    println!(
        "plain: built in {:.1} s, {segments} segments",
        begin.elapsed().as_secs_f64()
    );
    index
}

/// Median and 99th percentile of many runs.
fn times(mut run: impl FnMut()) -> (Duration, Duration) {
    for _ in 0..10 {
        run();
    }
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            let begin = Instant::now();
            run();
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[100], times[198])
}

/// Where indexes are kept.
fn kept() -> Option<PathBuf> {
    std::env::var_os("TEXT_SPEED_DIR").map(PathBuf::from)
}

fn save(index: &Index, dir: &Path) {
    std::fs::create_dir_all(dir).unwrap();
    for name in index.directory().list_managed_files() {
        let bytes = index.directory().atomic_read(&name).unwrap();
        std::fs::write(dir.join(name), bytes).unwrap();
    }
}

fn load(dir: &Path) -> Index {
    let ram = RamDirectory::create();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        ram.atomic_write(Path::new(&entry.file_name()), &bytes)
            .unwrap();
    }
    Index::open(ram).unwrap()
}

fn parser(peer: &Index) -> QueryParser {
    let fields: Vec<_> = peer.schema().fields().map(|(field, _)| field).collect();
    let mut parser = QueryParser::for_index(peer, fields.clone());
    parser.set_conjunction_by_default();
    parser.set_field_boost(fields[0], 3.0);
    parser
}

#[inline(never)]
fn measured(run: &mut dyn FnMut()) {
    run();
    // Without it the call would be a jump, which the profiler does not see.
    black_box(());
}

#[test]
#[ignore = "a measurement"]
fn counted() {
    let Some(dir) = kept() else {
        println!("skipped: TEXT_SPEED_DIR is not set");
        return;
    };
    let config = config("en", &[3.0, 1.0]);
    let index = Arc::new(TextIndex::open(&dir.join("a.text")).unwrap());
    let all = Bitset::full(index.documents());
    let search = text_common::search(index, &config);
    let peer = load(&dir.join("plain"));
    let searcher = peer.reader().unwrap().searcher();
    let parser = parser(&peer);
    let only = std::env::var("TEXT_ONLY").ok();
    for text in QUERIES {
        let words = text.replace(|c: char| !c.is_alphanumeric(), " ");
        let mut ours = || {
            let query = search.query(text).unwrap();
            black_box(query.best(0, &all, None, 50).unwrap());
        };
        let mut theirs = || {
            let query = parser.parse_query(&words).unwrap();
            let top = TopDocs::with_limit(50).order_by_score();
            black_box(searcher.search(&query, &top).unwrap());
        };
        let mut matching = || {
            let query = search.query(text).unwrap();
            black_box(query.matching(0).unwrap());
        };
        let runs: [(&str, &mut dyn FnMut()); 3] = [
            ("ours", &mut ours),
            ("plain", &mut theirs),
            ("matching", &mut matching),
        ];
        for (name, run) in runs {
            let line = format!("{text}: {name}");
            if only.as_ref().is_none_or(|only| *only == line) {
                run();
                measured(run);
                println!("{line}");
            }
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    let Some(data) = shared("data/registry-packages.tsv.zst") else {
        return;
    };
    let packages = packages(&data);
    let temporary = tempfile::tempdir().unwrap();
    let dir = kept().unwrap_or_else(|| temporary.path().to_owned());
    let path = dir.join("a.text");
    let config = config("en", &[3.0, 1.0]);
    if !path.exists() {
        build(&path, &packages, &config);
    }
    let before = memory("RssAnon");
    let begin = Instant::now();
    let index = Arc::new(TextIndex::open(&path).unwrap());
    println!(
        "opened in {:.1} ms; {:.1} MB on disk, {} MiB in memory",
        begin.elapsed().as_secs_f64() * 1e3,
        index.disk_bytes() as f64 / 1e6,
        memory("RssAnon").saturating_sub(before),
    );
    let all = Bitset::full(index.documents());
    let search = text_common::search(index, &config);
    let plain_dir = dir.join("plain");
    if !plain_dir.exists() {
        save(&plain(&packages), &plain_dir);
    }
    let peer = load(&plain_dir);
    let searcher = peer.reader().unwrap().searcher();
    let parser = parser(&peer);
    let mut ratios = Vec::new();
    println!(
        "{:26} {:>8}  {:>17}  {:>17}  {:>8}",
        "query", "matches", "ours p50 p99 ms", "plain p50 p99 ms", "matching"
    );
    for text in QUERIES {
        let ours = times(|| {
            let query = search.query(text).unwrap();
            black_box(query.best(0, &all, None, 50).unwrap());
        });
        let words = text.replace(|c: char| !c.is_alphanumeric(), " ");
        let theirs = times(|| {
            let query = parser.parse_query(&words).unwrap();
            let top = TopDocs::with_limit(50).order_by_score();
            black_box(searcher.search(&query, &top).unwrap());
        });
        let query = search.query(text).unwrap();
        let matching = times(|| {
            black_box(query.matching(0).unwrap());
        });
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "{text:26} {:8}  {:8.3} {:8.3}  {:8.3} {:8.3}  {:8.3}",
            query.matching(0).unwrap().count(),
            ms(ours.0),
            ms(ours.1),
            ms(theirs.0),
            ms(theirs.1),
            ms(matching.0),
        );
        let best = query.best(0, &all, None, 3).unwrap();
        let best = best
            .iter()
            .map(|(score, n)| format!("{} {score:.1}", packages[*n as usize].id));
        println!("    {}", best.collect::<Vec<_>>().join(", "));
        ratios.push(ms(theirs.0) / ms(ours.0));
    }
    let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
    println!(
        "as fast as plain Tantivy times {:.2} (geometric mean)",
        mean.exp()
    );
}
