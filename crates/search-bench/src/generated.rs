//! A catalog of our own, as large as wanted: `search-bench --generated N [--hidden] WORKDIR`. The same records for the same N, everywhere. It asks
//! Purvey alone, and what the table of packages cannot ask: the most that one request may.

use crate::ours::Ours;
use crate::{Outcome, RUNS, SLOW_RUNS, millis, percentiles};
use purvey_catalog::access::Access;
use purvey_catalog::import::{ImportOptions, import};
use purvey_catalog::manifest::Manifest;
use purvey_catalog::reader::Source;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

const MANIFEST: &str = include_str!("../generated.toml");
const SCHEMA: &str =
    r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}"#;
/// The audience of every other record, where some are hidden.
const AUDIENCE: &str = "partners";
/// Refinable filters beside those of the table of packages.
const TAGS: usize = 12;
/// Words of the texts; the first are the most frequent, and those that are asked for.
const WORDS: usize = 50_000;
const FIRST_WORDS: [&str; 16] = [
    "client",
    "http",
    "json",
    "parser",
    "react",
    "component",
    "command",
    "line",
    "test",
    "framework",
    "date",
    "format",
    "image",
    "processing",
    "machine",
    "learning",
];

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Small numbers are much more frequent than large ones.
    fn skewed(&mut self, end: usize) -> usize {
        let unit = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        ((end as f64).powf(unit) as usize).saturating_sub(1)
    }

    fn word(&mut self, out: &mut String) -> std::fmt::Result {
        let rank = self.skewed(WORDS);
        match FIRST_WORDS.get(rank) {
            Some(word) => out.write_str(word),
            None => write!(out, "w{rank}"),
        }
    }
}

/// Builds the catalog and measures.
pub(crate) fn run(count: usize, hidden: bool, work: &Path) -> Outcome<()> {
    let table = work.join("generated.tsv.zst");
    write_table(count, hidden, &table)?;
    let manifest = Manifest::parse_embedded(MANIFEST, &[("any.json", SCHEMA)])?;
    let data = work.join("data");
    let source = Source::of(&table);
    let report = import(&data, &manifest, &[source], &ImportOptions::default(), &())?;
    eprintln!("{} records in {:.1} s", report.offerings, report.seconds);
    std::fs::remove_file(&table)?;
    let contexts = match hidden {
        false => vec![("all is public", Access::public())],
        true => vec![
            ("half is hidden", Access::public()),
            ("all is seen", Access::new([AUDIENCE.to_owned()])?),
        ],
    };
    println!(
        "| search | {} |",
        contexts
            .iter()
            .map(|(name, _)| format!("{name}: p50 / p99 ms"))
            .collect::<Vec<_>>()
            .join(" | ")
    );
    println!("|{}", "---|".repeat(1 + contexts.len()));
    let mut ours = Vec::new();
    for (_, access) in contexts {
        ours.push(Ours::open(&data, access)?);
    }
    for row in crate::ROWS {
        let mut cells = String::new();
        for ours in &mut ours {
            let measured = crate::measure(ours, row)?;
            cells += &format!(
                " {:.2} / {:.2} |",
                millis(measured.p50),
                millis(measured.p99)
            );
        }
        println!("| {} |{cells}", row.name);
    }
    for (name, page) in [("a list, page 1", 0), ("a list, page 1,000", 999)] {
        let mut cells = String::new();
        for ours in &ours {
            let times = ours.list_times(page, 100 * RUNS)?;
            let (p50, p99) = percentiles(times);
            cells += &format!(" {:.4} / {:.4} |", millis(p50), millis(p99));
        }
        println!("| {name} |{cells}");
    }
    let mut cells = String::new();
    for ours in &ours {
        let mut times = Vec::new();
        for n in 0..=SLOW_RUNS {
            let request = worst(n);
            let begin = Instant::now();
            ours.search(request)?;
            times.push(begin.elapsed());
        }
        // The first run warms.
        let (p50, p99) = percentiles(times.split_off(1));
        cells += &format!(" {:.2} / {:.2} |", millis(p50), millis(p99));
    }
    println!("| the worst request |{cells}");
    Ok(())
}

/// The most that a request may ask for: text, 32 sets of 100 values of which most match, three sort keys, 16 refinements.
pub(crate) fn worst(n: usize) -> Value {
    let filters: Value = (0..32)
        .map(|at| {
            let id = format!("tag{:02}", at % TAGS);
            // Other sets each time, over the frequent values.
            let values =
                (0..100).map(|value| json!(format!("t{}", (value * (at / TAGS + 1) + n) % 150)));
            json!({"id": id, "operator": "in", "value": values.collect::<Vec<_>>()})
        })
        .collect();
    let mut refinements: Vec<String> = (0..TAGS).map(|tag| format!("tag{tag:02}")).collect();
    refinements.extend(["registry", "version", "major", "updated"].map(str::to_owned));
    json!({"odp_version": "1.0", "query": "client", "filters": filters, "sort": "thorough",
        "refinements": refinements, "limit": 100})
}

fn write_table(count: usize, hidden: bool, path: &Path) -> Outcome<()> {
    let file = std::fs::File::create(path)?;
    let mut out = zstd::Encoder::new(BufWriter::new(file), 1)?;
    let mut head = String::from(
        "id\tregistry\tname\tversion\tupdated\tdownloads\tdownload_rank\tsummary\taudience",
    );
    for tag in 0..TAGS {
        write!(head, "\ttag{tag:02}")?;
    }
    writeln!(out, "{head}")?;
    let mut random = Random(1);
    let mut line = String::new();
    for n in 0..count {
        line.clear();
        let registry = if random.below(3) == 0 {
            "python"
        } else {
            "node"
        };
        write!(line, "{registry}-{n:08}\t{registry}\t")?;
        random.word(&mut line)?;
        line.push('-');
        random.word(&mut line)?;
        let (major, minor, patch) = (random.skewed(60), random.skewed(40), random.skewed(100));
        let (year, month, day) = (
            2_026 - random.skewed(15),
            random.below(12) + 1,
            random.below(28) + 1,
        );
        let downloads = random.skewed(50_000_000);
        write!(
            line,
            "-{n}\t{major}.{minor}.{patch}\t{year}-{month:02}-{day:02}\t{downloads}\t{}\t",
            n + 1
        )?;
        for word in 0..10 {
            if word > 0 {
                line.push(' ');
            }
            random.word(&mut line)?;
        }
        line.push('\t');
        if hidden && n % 2 == 1 {
            line.push_str(AUDIENCE);
        }
        for tag in 0..TAGS {
            write!(line, "\tt{}", random.skewed(30 * (tag + 1)))?;
        }
        writeln!(out, "{line}")?;
    }
    out.finish()?.flush()?;
    Ok(())
}
