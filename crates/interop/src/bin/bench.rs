//! Ours beside the peers in one run: `bench PURVEY RECORDS MANIFEST WORKDIR` imports the records, then loads `purvey serve`, the
//! official Service SDK and a bare axum handler with the same requests, and prints Markdown tables.
//!
//! All three binaries run on the same machine as the load, one at a time.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout)]

use load::{Connection, Measured, run};
use serde_json::Value;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

const SMALL: usize = 1_000;
const DEEP_PAGE: usize = 10_000;

fn main() -> Outcome<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [purvey, records, manifest, work] = arguments.as_slice() else {
        return Err("usage: bench PURVEY RECORDS MANIFEST WORKDIR".into());
    };
    let seconds = std::env::var("BENCH_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(5);
    let bench = Bench {
        purvey: purvey.clone(),
        work: work.clone(),
        duration: Duration::from_secs(seconds),
    };
    bench.run(records, manifest)
}

struct Bench {
    purvey: PathBuf,
    work: PathBuf,
    duration: Duration,
}

/// A process that is ended when it goes out of scope.
struct Running {
    child: Child,
    address: SocketAddr,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Resident memory in MiB: (anonymous, file-backed).
    fn resident(&self) -> (u64, u64) {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        (
            field(&status, "RssAnon:") / 1024,
            field(&status, "RssFile:") / 1024,
        )
    }
}

fn field(status: &str, name: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

impl Bench {
    fn run(&self, records: &Path, manifest: &Path) -> Outcome<()> {
        let full = self.work.join("full");
        let small = self.work.join("small");
        let export = self.work.join("export");
        for directory in [&full, &small, &export] {
            if directory.exists() {
                fs::remove_dir_all(directory)?;
            }
        }
        fs::create_dir_all(&self.work)?;

        println!("## Import\n");
        println!("| records | seconds | records/s | peak resident MiB |\n|---|---|---|---|");
        let (seconds, peak) = self.import(&full, manifest, records)?;
        self.purvey(&["catalog", "export", "--data", text(&full)?, text(&export)?])?;
        let offerings = export.join("offerings.ndjson");
        let count = BufReader::new(fs::File::open(&offerings)?).lines().count();
        println!(
            "| {count} | {seconds:.1} | {:.0} | {peak} |",
            count as f64 / seconds
        );

        let first = export.join("first.ndjson");
        let mut out = fs::File::create(&first)?;
        for line in BufReader::new(fs::File::open(&offerings)?)
            .lines()
            .take(SMALL)
        {
            writeln!(out, "{}", line?)?;
        }
        self.import(&small, &export.join("catalog.toml"), &first)?;

        println!("\n## Serving\n");
        println!(
            "| entries | request | connections | purvey req/s (p50 / p99 ms) | bare axum | official SDK | purvey ÷ bare | purvey ÷ SDK |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        let mut memory = Vec::new();
        for (entries, data, wire) in [(SMALL, &small, &first), (count, &full, &offerings)] {
            let ids = ids(wire, entries)?;
            self.serve(entries, data, wire, &ids, &mut memory)?;
        }
        println!(
            "\n## Memory at rest and after the load (MiB)\n\n| process | entries | RssAnon | RssFile |\n|---|---|---|---|"
        );
        for (process, entries, (anon, file)) in memory {
            println!("| {process} | {entries} | {anon} | {file} |");
        }
        Ok(())
    }

    fn serve(
        &self,
        entries: usize,
        data: &Path,
        wire: &Path,
        ids: &[String],
        memory: &mut Vec<(&'static str, usize, (u64, u64))>,
    ) -> Outcome<()> {
        let gets: Vec<String> = ids
            .iter()
            .map(|id| format!("/odp/offerings/{id}"))
            .collect();
        let list = vec!["/odp/offerings?limit=50".to_owned()];
        let mut requests = vec![
            ("get-offering", gets),
            ("list-offerings?limit=50, page 1", list),
        ];

        let ours = self.start(
            &self.purvey,
            &["serve", "--data", text(data)?, "--listen", "127.0.0.1:0"],
        )?;
        memory.push(("purvey at rest", entries, ours.resident()));
        if entries > SMALL {
            requests.push((
                "list-offerings?limit=50, page 10,000",
                vec![deep(ours.address)?],
            ));
        }
        // The bare handler serves the bytes that ours answers.
        let mut bodies = Vec::new();
        for (index, (_, targets)) in requests.iter().enumerate() {
            let path = self.work.join(format!("body-{index}"));
            fs::write(&path, Connection::open(ours.address)?.get(&targets[0])?.1)?;
            bodies.push(path);
        }
        let mut measured = Vec::new();
        for connections in [2, 32] {
            for (_, targets) in &requests {
                measured.push(run(ours.address, targets, connections, self.duration)?);
            }
        }
        memory.push(("purvey after the load", entries, ours.resident()));
        drop(ours);

        let mut bare_measured = Vec::new();
        let bare = self.start(
            &sibling("bare")?,
            &bodies
                .iter()
                .map(|path| text(path))
                .collect::<Outcome<Vec<_>>>()?,
        )?;
        for connections in [2, 32] {
            for index in 0..requests.len() {
                bare_measured.push(run(
                    bare.address,
                    &[format!("/{index}")],
                    connections,
                    self.duration,
                )?);
            }
        }
        drop(bare);

        let mut peer_measured = Vec::new();
        let peer = self.start(&sibling("peer-service")?, &[text(wire)?])?;
        memory.push(("official SDK at rest", entries, peer.resident()));
        let mut peer_requests = requests.clone();
        if let Some((_, targets)) = peer_requests.get_mut(2) {
            *targets = vec![deep(peer.address)?];
        }
        for connections in [2, 32] {
            for (_, targets) in &peer_requests {
                peer_measured.push(run(peer.address, targets, connections, self.duration)?);
            }
        }
        drop(peer);

        let mut rows = measured.iter().zip(&bare_measured).zip(&peer_measured);
        for connections in [2, 32] {
            for (name, _) in &requests {
                if let Some(((ours, bare), peer)) = rows.next() {
                    println!(
                        "| {entries} | {name} | {connections} | {} | {} | {} | **{:.2}** | **{:.1}** |",
                        cell(ours),
                        cell(bare),
                        cell(peer),
                        ours.rate / bare.rate,
                        ours.rate / peer.rate
                    );
                }
            }
        }
        Ok(())
    }

    /// Imports into a fresh directory; seconds and peak resident MiB.
    fn import(&self, data: &Path, manifest: &Path, records: &Path) -> Outcome<(f64, u64)> {
        let begin = Instant::now();
        let mut child = Command::new(&self.purvey)
            .args([
                "catalog",
                "import",
                "--on-error",
                "skip",
                "--data",
                text(data)?,
            ])
            .args(["--manifest", text(manifest)?, text(records)?])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut peak = 0;
        let status = loop {
            let status =
                fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            peak = peak.max(field(&status, "VmHWM:") / 1024);
            if let Some(status) = child.try_wait()? {
                break status;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        // Some records may be rejected, which has an exit code of its own.
        if !matches!(status.code(), Some(0 | 3)) {
            return Err(format!("import ended with {status}").into());
        }
        Ok((begin.elapsed().as_secs_f64(), peak))
    }

    fn purvey(&self, arguments: &[&str]) -> Outcome<()> {
        let status = Command::new(&self.purvey)
            .args(arguments)
            .stderr(Stdio::null())
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("purvey {arguments:?} ended with {status}").into())
        }
    }

    /// Starts a server and waits for the line that names its address.
    fn start(&self, program: &Path, arguments: &[&str]) -> Outcome<Running> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines: Vec<Box<dyn BufRead + Send>> = Vec::new();
        if program == self.purvey {
            lines.extend(
                child
                    .stderr
                    .take()
                    .map(|pipe| Box::new(BufReader::new(pipe)) as Box<dyn BufRead + Send>),
            );
        } else {
            lines.extend(
                child
                    .stdout
                    .take()
                    .map(|pipe| Box::new(BufReader::new(pipe)) as Box<dyn BufRead + Send>),
            );
        }
        let mut reader = lines.pop().ok_or("no pipe")?;
        let mut line = String::new();
        while reader.read_line(&mut line)? > 0 {
            let word = line.split_whitespace().last().unwrap_or_default();
            if let Ok(address) = word.trim_start_matches("http://").parse() {
                // Whatever else the process says must not fill the pipe.
                std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
                return Ok(Running { child, address });
            }
            line.clear();
        }
        Err(format!("{} ended without naming its address", program.display()).into())
    }
}

fn text(path: &Path) -> Outcome<&str> {
    path.to_str()
        .ok_or_else(|| format!("{} is not UTF-8", path.display()).into())
}

fn sibling(name: &str) -> Outcome<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(name))
}

/// 1,000 ids spread evenly over the records.
fn ids(wire: &Path, entries: usize) -> Outcome<Vec<String>> {
    let stride = (entries / 1_000).max(1);
    let mut ids = Vec::new();
    for line in BufReader::new(fs::File::open(wire)?)
        .lines()
        .step_by(stride)
    {
        let record: Value = serde_json::from_str(&line?)?;
        ids.push(
            record["id"]
                .as_str()
                .ok_or("a record without id")?
                .to_owned(),
        );
    }
    Ok(ids)
}

/// The target of the 10,000th page of 50.
fn deep(address: SocketAddr) -> Outcome<String> {
    let mut connection = Connection::open(address)?;
    let mut target = "/odp/offerings?limit=50".to_owned();
    for page in 1..DEEP_PAGE {
        let (status, body) = connection.get(&target)?;
        let page_body: Value = serde_json::from_slice(body)?;
        target = page_body["next"]
            .as_str()
            .ok_or_else(|| format!("page {page} answered {status} without next"))?
            .to_owned();
    }
    Ok(target)
}

fn cell(measured: &Measured) -> String {
    format!(
        "{:.0} ({:.2} / {:.2})",
        measured.rate,
        measured.p50.as_secs_f64() * 1e3,
        measured.p99.as_secs_f64() * 1e3
    )
}
