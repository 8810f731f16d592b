//! How Services are reached: the same for every command.

use super::{fault, origin, progress::Progress};
use crate::{failure::Failure, units::Time};
use http::{HeaderValue, header};
use purvey_agent::{
    Agent, Service,
    cache::Cache,
    transport::{Guarded, Limits},
};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use std::{convert::Infallible, fmt, path::PathBuf, time::Duration};

/// Largest cache in a directory.
const DIRECTORY_BYTES: u64 = 256 << 20;
/// Largest cache in memory: what one command reads twice.
const MEMORY_BYTES: usize = 16 << 20;
/// Longest wait for one operation unless --timeout says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Pages of one sequence at most: whoever asks for all of a catalog of millions gets them, and an endless one ends.
const PAGES: usize = 1_000_000;

/// How to reach a Service.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct Connect {
    /// Allow http on localhost, 127.0.0.1 and ::1; nothing is kept then, unless --cache says where
    #[arg(long)]
    local: bool,
    /// Longest wait for one operation, its retries included; each page is one [default: 60s]
    #[arg(long, value_name = "TIME")]
    timeout: Option<Time>,
    /// Where responses are kept as long as they are fresh [default: purvey in the user's cache directory]
    #[arg(long, value_name = "DIR", env = "PURVEY_CACHE")]
    cache: Option<PathBuf>,
    /// Keep nothing, and use nothing that was kept
    #[arg(long)]
    no_cache: bool,
    /// Bearer token for ORIGIN, sent nowhere else; other users of the machine do not see it in PURVEY_TOKEN
    #[arg(long, value_name = "TOKEN", env = "PURVEY_TOKEN", hide_env_values = true, value_parser = Token::read)]
    token: Option<Token>,
    /// Languages to ask for, the preferred one first: de or de-AT,en
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    lang: Vec<String>,
}

/// A secret that is never shown.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    /// Takes anything: whatever a parser refuses would be shown.
    #[expect(clippy::unnecessary_wraps, reason = "as clap has it")]
    pub(crate) fn read(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl Token {
    /// The secret, for sending it.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }

    /// The field that carries it; nothing for an empty one.
    pub(crate) fn bearer(&self) -> Result<Option<HeaderValue>, Failure> {
        let text = self.0.trim();
        if text.is_empty() {
            return Ok(None);
        }
        HeaderValue::try_from(format!("Bearer {text}"))
            .map(Some)
            .map_err(|_| Failure::usage("the token must be printable ASCII characters"))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Connect {
    /// The origin that is meant.
    pub(super) fn origin(&self, text: &str) -> Result<ServiceOrigin, Failure> {
        origin::parse(text, self.local())
    }

    /// An Agent whose token, if there is one, is for `origin`.
    pub(super) fn agent(&self, origin: &ServiceOrigin) -> Result<Agent, Failure> {
        let mut transport = Guarded::builder()
            .local_development(self.local())
            .limits(self.limits())
            .cache(self.store()?);
        if let Some(value) = self.credential()? {
            transport = transport.credential(origin.clone(), header::AUTHORIZATION, value);
        }
        let transport = transport.build().map_err(|error| fault::failure(&error))?;
        Agent::builder()
            .transport(transport)
            .local_development(self.local)
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

    fn local(&self) -> LocalDevelopment {
        match self.local {
            true => LocalDevelopment::Allowed,
            false => LocalDevelopment::Refused,
        }
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

    fn credential(&self) -> Result<Option<HeaderValue>, Failure> {
        self.token.as_ref().map_or(Ok(None), Token::bearer)
    }

    fn store(&self) -> Result<Cache, Failure> {
        let named = self.cache.clone().filter(|_| !self.no_cache);
        if let Some(path) = named {
            return Cache::directory(&path, DIRECTORY_BYTES).map_err(|error| {
                Failure::usage(format_args!("--cache {}: {error}", path.display()))
                    .hint("name a directory that can be written to, or use --no-cache")
            });
        }
        let usual = user_directory().filter(|_| !self.no_cache && !self.local);
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
