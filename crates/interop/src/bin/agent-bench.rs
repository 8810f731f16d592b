//! Our Agent beside the official Agent SDK in one run: `agent-bench PURVEY WORKDIR` prints Markdown tables. The programs of both
//! sides lie beside this one and in `examples/`; they take turns, and what they saw must be alike.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout)]

use interop::agents::{Documents, Form, Outcome, PAGE, data, text};
use load::Connection;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Offerings of the catalog that is traversed.
const OFFERINGS: usize = 100_000;
/// Turns of each side with what is timed.
const ROUNDS: usize = 3;

fn main() -> Outcome<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [purvey, work] = arguments.as_slice() else {
        return Err("usage: agent-bench PURVEY WORKDIR".to_owned());
    };
    if work.exists() {
        fs::remove_dir_all(work).map_err(text)?;
    }
    fs::create_dir_all(work).map_err(text)?;
    let server = Server::start(purvey, work)?;
    let sides = Sides {
        programs: std::env::current_exe().map_err(text)?,
    };

    println!("| work | ours p50 / p99 ms | official SDK | official ÷ ours |\n|---|---|---|---|");
    let mut rows = Vec::new();
    for form in [Form::Terse, Form::Full] {
        let place = work.join(form.name());
        let bytes = server.page(form, &place)?;
        let kib = bytes / 1024;
        for (job, how) in [("decode", "by functions"), ("page", "through the client")] {
            let name = format!("page of {PAGE}, {}, {kib} KiB, {how}", form.name());
            let pair = sides.both(job, form, text(place.display()).as_str())?;
            rows.push(pair.row(&name, PAGE as u64)?);
        }
    }
    let place = work.join("capabilities");
    data::capabilities().write(&place)?;
    let pair = sides.both("capabilities", Form::Full, &text(place.display()))?;
    let name = format!(
        "{} filters and {} sorts, linked",
        data::FILTERS,
        data::SORTS
    );
    rows.push(pair.row(&name, (data::FILTERS + data::SORTS) as u64)?);

    println!("\n| work | ours s | official SDK s | official ÷ ours |\n|---|---|---|---|");
    for form in [Form::Terse, Form::Full] {
        let pair = sides.both("traverse", form, &server.origin)?;
        let name = format!("{OFFERINGS} Offerings, {}, by {PAGE}", form.name());
        rows.push(pair.row(&name, OFFERINGS as u64)?);
    }

    println!(
        "\n| work | ours allocations (MiB, peak KiB) | official SDK | official ÷ ours (MiB, peak) |\n|---|---|---|---|"
    );
    for row in rows {
        println!("{row}");
    }
    Ok(())
}

/// The programs of both sides.
struct Sides {
    programs: PathBuf,
}

impl Sides {
    fn both(&self, job: &str, form: Form, place: &str) -> Outcome<Pair> {
        let mut pair = Pair::default();
        let rounds = if job == "traverse" { 1 } else { ROUNDS };
        let arguments = [job, form.name(), place];
        for _ in 0..rounds {
            pair.ours
                .push(engine(&self.ours("agent-ours"), &arguments)?);
            let official = self.programs.with_file_name("agent-official");
            pair.official.push(engine(&official, &arguments)?);
        }
        let counted = self.ours("agent-ours-counted");
        pair.ours_counted = engine(&counted, &arguments)?;
        let counted = self.programs.with_file_name("agent-official-counted");
        pair.official_counted = engine(&counted, &arguments)?;
        Ok(pair)
    }

    fn ours(&self, name: &str) -> PathBuf {
        self.programs.with_file_name("examples").join(name)
    }
}

fn engine(program: &Path, arguments: &[&str]) -> Outcome<Value> {
    let output = Command::new(program)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("{} {arguments:?} failed", program.display()));
    }
    serde_json::from_slice(&output.stdout).map_err(text)
}

/// What both sides said about one job.
#[derive(Default)]
struct Pair {
    ours: Vec<Value>,
    official: Vec<Value>,
    ours_counted: Value,
    official_counted: Value,
}

impl Pair {
    /// Prints the row of times, and gives back the one of allocations. Fails when the sides saw different things.
    fn row(&self, name: &str, items: u64) -> Outcome<String> {
        let counted = [&self.ours_counted, &self.official_counted];
        let mut all = self.ours.iter().chain(&self.official).chain(counted);
        let digest = &self.ours_counted["digest"];
        if !all.all(|said| said["items"] == items && said["digest"] == *digest) {
            return Err(format!("{name}: the sides saw different things"));
        }
        let (ours, official) = (times(&self.ours), times(&self.official));
        let ratio = at(&official, 0.5) / at(&ours, 0.5);
        if ours.len() > 1 {
            let cell = |times: &[f64]| {
                let (p50, p99) = (at(times, 0.5), at(times, 0.99));
                format!("{:.2} / {:.2}", p50 * 1e3, p99 * 1e3)
            };
            let (ours, official) = (cell(&ours), cell(&official));
            println!("| {name} | {ours} | {official} | **{ratio:.1}** |");
        } else {
            let (ours, official) = (at(&ours, 0.5), at(&official, 0.5));
            println!("| {name} | {ours:.2} | {official:.2} | **{ratio:.1}** |");
        }

        let number = |said: &Value, what: &str| said["allocations"][what].as_f64().unwrap_or(0.0);
        let cell = |said: &Value| {
            format!(
                "{} ({:.1}, {:.0})",
                number(said, "count"),
                number(said, "bytes") / 1_048_576.0,
                number(said, "peak") / 1024.0
            )
        };
        let [ours, official] = counted;
        let ratio = |what: &str| number(official, what) / number(ours, what);
        Ok(format!(
            "| {name} | {} | {} | **{:.1}** ({:.1}, {:.1}) |",
            cell(ours),
            cell(official),
            ratio("count"),
            ratio("bytes"),
            ratio("peak")
        ))
    }
}

/// Seconds, the shortest first.
fn times(said: &[Value]) -> Vec<f64> {
    let lists = said.iter().filter_map(|said| said["seconds"].as_array());
    let mut times: Vec<f64> = lists.flatten().filter_map(Value::as_f64).collect();
    times.sort_by(f64::total_cmp);
    times
}

fn at(times: &[f64], share: f64) -> f64 {
    let last = times.len().saturating_sub(1) as f64;
    times
        .get((last * share) as usize)
        .copied()
        .unwrap_or(f64::NAN)
}

/// `purvey serve` with the catalog; it ends when it goes out of scope.
struct Server {
    child: Child,
    origin: String,
}

impl Server {
    fn start(purvey: &Path, work: &Path) -> Outcome<Self> {
        let (data, manifest, records) = (
            work.join("data"),
            work.join("catalog.toml"),
            work.join("records.ndjson"),
        );
        fs::write(&manifest, data::MANIFEST).map_err(text)?;
        fs::write(work.join("thing.json"), data::SCHEMA).map_err(text)?;
        let mut out = BufWriter::new(fs::File::create(&records).map_err(text)?);
        data::records(&mut out, OFFERINGS)?;
        out.flush().map_err(text)?;
        let status = Command::new(purvey)
            .args(["catalog", "import", "--data"])
            .arg(&data)
            .arg("--manifest")
            .args([&manifest, &records])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(text)?;
        if !status.success() {
            return Err(format!("import ended with {status}"));
        }
        let mut child = Command::new(purvey)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(&data)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(text)?;
        let mut reader = BufReader::new(child.stderr.take().ok_or("no pipe")?);
        let mut line = String::new();
        while reader.read_line(&mut line).map_err(text)? > 0 {
            let word = line.split_whitespace().last().unwrap_or_default();
            if word.starts_with("http://") {
                let origin = word.to_owned();
                // Whatever else the process says must not fill the pipe.
                std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
                return Ok(Self { child, origin });
            }
            line.clear();
        }
        Err("the server ended without naming its address".to_owned())
    }

    /// Puts the first page that it answers with into `place`; its bytes.
    fn page(&self, form: Form, place: &Path) -> Outcome<usize> {
        let address = self.origin.trim_start_matches("http://");
        let mut connection = Connection::open(address.parse().map_err(text)?).map_err(text)?;
        let target = format!("/odp/offerings?limit={PAGE}&representation={}", form.name());
        let (status, body) = connection.get(&target).map_err(text)?;
        if status != 200 {
            return Err(format!("{target} answered {status}"));
        }
        let documents: Documents = data::page(body);
        documents.write(place)?;
        Ok(body.len())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
