//! How Services are reached: the same for every command.

use super::{fault, progress::Progress};
use crate::{failure::Failure, reach::Reach, units::Time};
use purvey_agent::{Agent, Service, cache::Cache, transport::Limits};
use purvey_odp::identity::ServiceOrigin;
use std::{path::PathBuf, time::Duration};

/// Largest cache in a directory.
const DIRECTORY_BYTES: u64 = 256 << 20;
/// Largest cache in memory: what one command reads twice.
const MEMORY_BYTES: usize = 16 << 20;
/// Longest wait for one operation unless --timeout says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Pages of one sequence at most: whoever asks for all of a catalog of millions gets them, and an endless one ends.
const PAGES: usize = 1_000_000;

/// How to reach a Service, and how responses are kept.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct Connect {
    #[command(flatten)]
    reach: Reach,
    /// Longest wait for one operation, its retries included; each page is one [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = Time::some)]
    timeout: Option<Time>,
    /// Where responses are kept as long as they are fresh [default: purvey in the user's cache directory; nowhere with --local]
    #[arg(long, value_name = "DIR", env = "PURVEY_CACHE")]
    cache: Option<PathBuf>,
    /// Keep nothing, and use nothing that was kept
    #[arg(long)]
    no_cache: bool,
    /// Languages to ask for, the preferred one first: de or de-AT,en
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    lang: Vec<String>,
}

impl Connect {
    /// The origin that is meant.
    pub(super) fn origin(&self, text: &str) -> Result<ServiceOrigin, Failure> {
        self.reach.origin(text)
    }

    /// An Agent whose token, if there is one, is for `origin`.
    pub(super) fn agent(&self, origin: &ServiceOrigin) -> Result<Agent, Failure> {
        let transport = self.reach.transport(Some(origin))?;
        let transport = transport.limits(self.limits()).cache(self.store()?);
        let transport = transport.build().map_err(|error| fault::failure(&error))?;
        Agent::builder()
            .transport(transport)
            .local_development(self.reach.local)
            .languages(self.lang.iter().map(String::as_str))
            .deadline(self.timeout())
            .max_pages(PAGES)
            .build()
            .map_err(|error| fault::failure(&error))
    }

    /// The Service at ORIGIN, and how its reading goes on.
    pub(super) async fn service(&self, text: &str) -> Result<(Service, Progress), Failure> {
        let origin = self.origin(text)?;
        let agent = self.agent(&origin)?;
        let progress = Progress::start();
        let service = agent.service(origin.as_str()).await;
        let service = service.map_err(|error| fault::failure(&error))?;
        Ok((service, progress))
    }

    fn timeout(&self) -> Duration {
        self.timeout.map_or(TIMEOUT, |Time(time)| time)
    }

    /// The deadline bounds everything; a longer one than usual is meant for a slow Service.
    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        if let Some(Time(time)) = self.timeout {
            limits.header = limits.header.max(time);
            limits.idle = limits.idle.max(time);
            limits.total = limits.total.max(time);
        }
        limits
    }

    fn store(&self) -> Result<Cache, Failure> {
        if self.no_cache {
            return Ok(Cache::memory(0));
        }
        if let Some(path) = self.cache.clone() {
            return Cache::directory(&path, DIRECTORY_BYTES).map_err(|error| {
                Failure::usage(format_args!("--cache {}: {error}", path.display()))
                    .hint("name a directory that can be written to, or use --no-cache")
            });
        }
        let usual = user_directory().filter(|_| !self.reach.local);
        let kept = usual.and_then(|path| Cache::directory(path, DIRECTORY_BYTES).ok());
        Ok(kept.unwrap_or_else(|| Cache::memory(MEMORY_BYTES)))
    }
}

/// Where this user's programs keep what can be had again.
fn user_directory() -> Option<PathBuf> {
    let variable = |name| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA")?
    } else if cfg!(target_os = "macos") {
        std::env::home_dir()?.join("Library/Caches")
    } else {
        variable("XDG_CACHE_HOME").or_else(|| Some(std::env::home_dir()?.join(".cache")))?
    };
    Some(base.join("purvey"))
}
