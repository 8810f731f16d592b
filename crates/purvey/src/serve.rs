//! `purvey serve`

use crate::{
    demo,
    failure::{Failure, must_be_directory, say},
    platform,
    settings::{LogFormat, Settings},
};
use purvey_catalog::{catalog::Catalog, manifest::Manifest};
use purvey_server::{Server, Surfaces};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};
use tracing_subscriber::EnvFilter;

/// Serves until told to stop.
pub(crate) fn run(settings: &Settings) -> Result<ExitCode, Failure> {
    start_log(settings)?;
    let config = settings.server()?;
    let manifest = settings
        .manifest
        .as_deref()
        .map(read_manifest)
        .transpose()?;
    let data = Data::of(settings)?;
    if settings.demo == Some(true) {
        if manifest.is_some() {
            return Err(Failure::usage("--demo brings a manifest of its own")
                .hint("leave --manifest out, or import the records first"));
        }
        demo::load(data.path(), &settings.catalog())?;
    }
    let catalog = Catalog::open(data.path(), settings.catalog())?;
    if let Some(manifest) = manifest {
        catalog.set_manifest(&manifest)?;
        // The first request is to see it.
        catalog.publish()?;
    }
    catalog.start_indexer()?;
    let work = platform::open(settings, data.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format_args!("cannot start threads: {error}")))?;
    let secure = config.tls.is_some();
    let served = runtime.block_on(async {
        let stop = stop_signal()?;
        let surfaces = Surfaces::from(catalog.clone()).with_work(work.platform.clone());
        let deadline = config.shutdown_deadline;
        let server = Server::bind(config, surfaces)
            .await
            .map_err(|error| Failure::new(error).hint("choose another address with --listen"))?;
        let scheme = if secure { "https" } else { "http" };
        let engine = work.start(catalog.clone(), data.path()).await?;
        say(format_args!("listening on {scheme}://{}", server.addr()));
        let stop = async {
            stop.await;
            // What is started while callers are still answered is for the next process, or another.
            engine.close();
        };
        server.run(stop).await;
        engine.shutdown(deadline).await;
        Ok(ExitCode::SUCCESS)
    });
    // What is left past the deadline is cut off, not waited for.
    runtime.shutdown_background();
    catalog.shutdown();
    served
}

/// The catalog's directory.
enum Data {
    Given(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Data {
    fn of(settings: &Settings) -> Result<Self, Failure> {
        if let Some(path) = &settings.data {
            must_be_directory(path)?;
            return Ok(Self::Given(path.clone()));
        }
        if settings.demo == Some(true) {
            return tempfile::Builder::new()
                .prefix("purvey-demo-")
                .tempdir()
                .map(Self::Temporary)
                .map_err(|error| {
                    Failure::new(format_args!("no temporary directory: {error}"))
                        .hint("name one with --data")
                });
        }
        Err(Failure::usage("there is no data directory").hint(
            "name one with --data DIR (or PURVEY_DATA, or data in the configuration file); --demo needs none",
        ))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}

/// Reads a manifest; the files that it names lie beside it.
pub(crate) fn read_manifest(path: &Path) -> Result<Manifest, Failure> {
    let named = |error: &dyn std::fmt::Display| {
        Failure::usage(format_args!("--manifest {}: {error}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    let base = path.parent().unwrap_or(Path::new(""));
    Manifest::parse(&text, base).map_err(|error| named(&error))
}

/// Without a line for each request: writing them takes a seventh to a fifth of what small answers could be given.
const LOG: &str = "info,purvey_server::access=warn";

fn start_log(settings: &Settings) -> Result<(), Failure> {
    let filter = settings.log.as_deref().unwrap_or(LOG);
    // The library takes a bare word that is no level for the name of a target: a misspelt level would silence the log.
    if let Some(word) = filter.split(',').find(|word| !is_directive(word.trim())) {
        return Err(
            Failure::usage(format_args!("--log {filter}: {word:?} is no level")).hint(
                "off, error, warn, info, debug, trace, or directives such as purvey_server=debug",
            ),
        );
    }
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| Failure::usage(format_args!("--log {filter}: {error}")))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match settings.log_format.unwrap_or(LogFormat::Text) {
        LogFormat::Text => log
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}

/// Whether this part of a filter is a level or names what it applies to.
fn is_directive(part: &str) -> bool {
    part.contains(['=', '[', ']', '{', '}', '"'])
        || part
            .parse::<tracing_subscriber::filter::LevelFilter>()
            .is_ok()
}

/// Done at ctrl-c or SIGTERM; at the second one the process ends at once, as the user has asked twice.
pub(crate) fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    let mut signals = Signals::new()
        .map_err(|error| Failure::new(format_args!("cannot listen for signals: {error}")))?;
    Ok(async move {
        signals.next().await;
        tokio::spawn(async move {
            signals.next().await;
            std::process::exit(i32::from(crate::failure::FAILED));
        });
    })
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
