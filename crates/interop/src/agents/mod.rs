//! Agents beside each other: what each has to do, how it is measured, and what it saw.
//!
//! An engine runs in a process of its own, built for it alone, so that each has its own features of shared dependencies. It does
//! one job and prints one line of JSON.

pub mod data;
pub mod official;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Items of a page.
pub const PAGE: usize = 100;
/// Where an engine finds the Service whose documents are in memory.
pub const ORIGIN: &str = "https://bench.example";
/// The continuation of that Service's page.
pub const NEXT: &str = "/odp/offerings?cursor=1";

/// How long a job in memory goes on, after a quarter of it to get warm.
const SECONDS: f64 = 1.0;

/// An error in words.
pub type Outcome<T> = Result<T, String>;

/// An error in its own words.
pub fn text(error: impl Display) -> String {
    error.to_string()
}

/// A representation of an Offering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Terse.
    Terse,
    /// Full.
    Full,
}

impl Form {
    /// As a query says it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Terse => "terse",
            Self::Full => "full",
        }
    }
}

/// Bodies by the path that answers with them; any query is ignored.
#[derive(Clone, Debug, Default)]
pub struct Documents(pub BTreeMap<String, Vec<u8>>);

impl Documents {
    /// Writes them into `directory`, a file each.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write(&self, directory: &Path) -> Outcome<()> {
        fs::create_dir_all(directory).map_err(text)?;
        for (path, body) in &self.0 {
            fs::write(directory.join(path.replace('/', "+")), body).map_err(text)?;
        }
        Ok(())
    }

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// The operating system's.
    pub fn read(directory: &Path) -> Outcome<Self> {
        let mut documents = BTreeMap::new();
        for entry in fs::read_dir(directory).map_err(text)? {
            let entry = entry.map_err(text)?;
            let path = entry.file_name().to_string_lossy().replace('+', "/");
            documents.insert(path, fs::read(entry.path()).map_err(text)?);
        }
        Ok(Self(documents))
    }

    /// The body at `path`.
    ///
    /// # Errors
    /// When there is none.
    pub fn body(&self, path: &str) -> Outcome<&[u8]> {
        let found = self.0.get(path).map(Vec::as_slice);
        found.ok_or_else(|| format!("nothing is at {path}"))
    }
}

/// What an engine gave out: how many items, and a digest of what they say, in order.
#[derive(Debug, Default)]
pub struct Seen {
    items: u64,
    digest: DefaultHasher,
}

impl Seen {
    /// Counts an item.
    pub fn item(&mut self) {
        self.items += 1;
    }

    /// Takes part of what the item says.
    pub fn say(&mut self, part: impl Hash) {
        part.hash(&mut self.digest);
    }
}

/// An Agent.
pub trait Engine: Sized {
    /// A validated page of Offerings.
    type Page;
    /// Effective capabilities.
    type Capabilities;

    /// The Agent for a Service in memory, through its own client.
    fn in_memory(documents: Documents) -> impl Future<Output = Outcome<Self>>;

    /// The Agent for a Service on this machine, as its users set it up.
    fn on_loopback(origin: &str) -> impl Future<Output = Outcome<Self>>;

    /// Decodes and validates a page, with all its items, by functions alone.
    fn decode(form: Form, page: &[u8]) -> Outcome<Self::Page>;

    /// Fetches one page.
    fn page(&self, form: Form) -> impl Future<Output = Outcome<Self::Page>>;

    /// Fetches every page of [`PAGE`] items.
    fn traverse(
        &self,
        form: Form,
        each: impl FnMut(Self::Page),
    ) -> impl Future<Output = Outcome<()>>;

    /// Reads the Service Document and what it links to.
    fn capabilities(&self) -> impl Future<Output = Outcome<Self::Capabilities>>;

    /// Says what is on a page.
    fn look(page: &Self::Page, seen: &mut Seen);

    /// Says what is effective, in the order of identifiers.
    fn look_at_capabilities(capabilities: &Self::Capabilities, seen: &mut Seen);
}

/// What was allocated while something ran.
#[derive(Clone, Copy, Debug)]
pub struct Allocated {
    /// Number of allocations.
    pub count: u64,
    /// Bytes in them all.
    pub bytes: u64,
    /// Bytes held at once at most.
    pub peak: u64,
}

/// Runs something and counts what it allocates.
pub type Count = fn(&mut dyn FnMut()) -> Allocated;

/// Does the job that the arguments name, and prints what was measured: with `count` what was allocated, without it the time.
///
/// # Errors
/// The engine's, and arguments that name no job.
pub fn run<E: Engine>(arguments: &[String], count: Option<Count>) -> Outcome<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(text)?;
    let [job, form, place] = arguments else {
        return Err("usage: ENGINE JOB FORM DIRECTORY|ORIGIN".to_owned());
    };
    let form = match form.as_str() {
        "full" => Form::Full,
        _ => Form::Terse,
    };
    let in_memory = || Documents::read(Path::new(place));
    match job.as_str() {
        "decode" => {
            let documents = in_memory()?;
            let page = documents.body("/odp/offerings")?;
            repeat(count, || E::decode(form, page), E::look)
        }
        "page" => {
            let engine = runtime.block_on(E::in_memory(in_memory()?))?;
            repeat(count, || runtime.block_on(engine.page(form)), E::look)
        }
        "capabilities" => {
            let engine = runtime.block_on(E::in_memory(in_memory()?))?;
            let resolve = || runtime.block_on(engine.capabilities());
            repeat(count, resolve, E::look_at_capabilities)
        }
        "traverse" => traverse::<E>(&runtime, count, form, place),
        _ => Err(format!("{job} is no job")),
    }
}

/// Does it again and again. What comes out is looked at when the clock stands.
fn repeat<T>(
    count: Option<Count>,
    mut work: impl FnMut() -> Outcome<T>,
    look: fn(&T, &mut Seen),
) -> Outcome<Value> {
    let mut last = work()?;
    let begin = Instant::now();
    let warm = Duration::from_secs_f64(SECONDS / 4.0);
    let mut times = Vec::new();
    while begin.elapsed() < warm + Duration::from_secs_f64(SECONDS) {
        let is_warm = begin.elapsed() >= warm;
        let start = Instant::now();
        last = work()?;
        let took = start.elapsed();
        if is_warm {
            times.push(took);
        }
        if count.is_some() {
            break;
        }
    }
    let allocated = count.map(|count| {
        count(&mut || {
            if let Ok(done) = work() {
                last = done;
            }
        })
    });
    let mut seen = Seen::default();
    look(&last, &mut seen);
    Ok(report(&times, allocated, &seen))
}

fn traverse<E: Engine>(
    runtime: &Runtime,
    count: Option<Count>,
    form: Form,
    origin: &str,
) -> Outcome<Value> {
    let engine = runtime.block_on(E::on_loopback(origin))?;
    let mut seen = Seen::default();
    let begin = Instant::now();
    let mut done = Ok(());
    let mut work = || {
        done = runtime.block_on(engine.traverse(form, |page| E::look(&page, &mut seen)));
    };
    let allocated = match count {
        Some(count) => Some(count(&mut work)),
        None => {
            work();
            None
        }
    };
    done?;
    Ok(report(&[begin.elapsed()], allocated, &seen))
}

fn report(times: &[Duration], allocated: Option<Allocated>, seen: &Seen) -> Value {
    let seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    json!({
        "seconds": seconds,
        "items": seen.items,
        "digest": seen.digest.finish().to_string(),
        "allocations": allocated.map(|a| json!({"count": a.count, "bytes": a.bytes, "peak": a.peak})),
    })
}
