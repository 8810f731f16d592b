//! Every tunable of `purvey serve`: a flag, a variable and a key of the configuration file, described once.

use crate::{
    failure::Failure,
    units::{Size, Time},
};
use purvey_catalog::catalog::Options;
use purvey_server::{AdminToken, ServerConfig, TlsFiles};
use purvey_work::{UploadLimits, config::ProviderConfigs};
use serde::Deserialize;
use std::{
    net::SocketAddr,
    num::NonZeroU32,
    path::{Path, PathBuf},
};

/// The variable that holds the operator's token itself; a flag would show it to every user of the machine.
const TOKEN_VARIABLE: &str = "PURVEY_ADMIN_TOKEN";

macro_rules! settings {
    ($($(#[$meta:meta])* $name:ident: $type:ty,)*) => {
        /// Settings; what is absent takes its default.
        #[derive(Clone, Debug, Default, clap::Args, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct Settings {
            $($(#[$meta])* pub(crate) $name: Option<$type>,)*
        }

        impl Settings {
            /// What is absent here, taken from `other`.
            fn or(self, other: Self) -> Self {
                Self { $($name: self.$name.or(other.$name),)* }
            }
        }
    };
}

settings! {
    /// Directory of the catalog; created if missing. Needed unless --demo
    #[arg(long, value_name = "DIR", env = "PURVEY_DATA")]
    data: PathBuf,
    /// Address and port to listen on; port 0 picks a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR", env = "PURVEY_LISTEN")]
    listen: SocketAddr,
    /// Manifest (catalog.toml) to put in force; without it the catalog keeps the one it has
    #[arg(long, value_name = "FILE", env = "PURVEY_MANIFEST")]
    manifest: PathBuf,
    /// Serve an example catalog; without --data from a directory that goes away at the end
    #[arg(long, value_name = "BOOL", env = "PURVEY_DEMO", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    demo: bool,
    /// Certificate chain for TLS, PEM; with --tls-key [default: plain HTTP]
    #[arg(long, value_name = "FILE", env = "PURVEY_TLS_CERT")]
    tls_cert: PathBuf,
    /// Private key for TLS, PEM; with --tls-cert
    #[arg(long, value_name = "FILE", env = "PURVEY_TLS_KEY")]
    tls_key: PathBuf,
    /// File that holds the operator's bearer token (or put the token in PURVEY_ADMIN_TOKEN); without one writes are refused
    #[arg(long, value_name = "FILE", env = "PURVEY_ADMIN_TOKEN_FILE")]
    admin_token_file: PathBuf,
    /// Longest wait for a TLS handshake or a request's header; also closes idle connections [default: 10s]
    #[arg(long, value_name = "TIME", env = "PURVEY_HEADER_TIMEOUT")]
    header_timeout: Time,
    /// Longest wait for a request body, or for the next piece of a stream [default: 30s]
    #[arg(long, value_name = "TIME", env = "PURVEY_BODY_TIMEOUT")]
    body_timeout: Time,
    /// Longest wait for a client to take any byte of a response; then its connection ends [default: 30s]
    #[arg(long, value_name = "TIME", env = "PURVEY_WRITE_TIMEOUT")]
    write_timeout: Time,
    /// Connections open at once; more wait [default: 4096]
    #[arg(long, value_name = "N", env = "PURVEY_MAX_CONNECTIONS")]
    max_connections: NonZeroU32,
    /// Requests being answered at once, until their responses have left; more get 503 [default: 1024]
    #[arg(long, value_name = "N", env = "PURVEY_MAX_IN_FLIGHT")]
    max_in_flight: NonZeroU32,
    /// Searches at work at once [default: one for each processor]
    #[arg(long, value_name = "N", env = "PURVEY_MAX_SEARCHES")]
    max_searches: NonZeroU32,
    /// Searches that wait for one of those to end; more get 503 [default: 256]
    #[arg(long, value_name = "N", env = "PURVEY_SEARCH_QUEUE")]
    search_queue: u32,
    /// Longest wait of such a search; then it gets 503 [default: 1s]
    #[arg(long, value_name = "TIME", env = "PURVEY_SEARCH_WAIT")]
    search_wait: Time,
    /// Searches that take this long are logged with their shape, never with their text or values [default: 250ms]
    #[arg(long, value_name = "TIME", env = "PURVEY_SLOW_SEARCH")]
    slow_search: Time,
    /// Requests a second that one client address may make; more get 429 [default: no bound]
    #[arg(long, value_name = "N", env = "PURVEY_RATE_PER_SECOND")]
    rate_per_second: NonZeroU32,
    /// Requests that one client address may make at once; with --rate-per-second [default: as many as a second's]
    #[arg(long, value_name = "N", env = "PURVEY_RATE_BURST")]
    rate_burst: NonZeroU32,
    /// Largest record that an operator may write [default: 2MiB]
    #[arg(long, value_name = "SIZE", env = "PURVEY_MAX_RECORD_BYTES")]
    max_record_bytes: Size,
    /// Longest wait of a write with ?wait=published [default: 30s]
    #[arg(long, value_name = "TIME", env = "PURVEY_PUBLISH_WAIT")]
    publish_wait: Time,
    /// Once told to stop, stay reachable but unready for this time [default: 0s]
    #[arg(long, value_name = "TIME", env = "PURVEY_DRAIN_DELAY")]
    drain_delay: Time,
    /// Longest wait for requests in progress once stopping [default: 30s]
    #[arg(long, value_name = "TIME", env = "PURVEY_SHUTDOWN_DEADLINE")]
    shutdown_deadline: Time,
    /// At most one generation of the catalog is published in this time [default: 200ms]
    #[arg(long, value_name = "TIME", env = "PURVEY_PUBLISH_INTERVAL")]
    publish_interval: Time,
    /// Size of the index above which publication slows down [default: no budget]
    #[arg(long, value_name = "SIZE", env = "PURVEY_DISK_BUDGET")]
    disk_budget: Size,
    /// Database of the run platform, postgres://…; several servers may share it [default: work.db in the data directory]
    #[arg(long, value_name = "URL", env = "PURVEY_DATABASE", hide_env_values = true)]
    database: String,
    /// Runs that this server works on at once [default: 64]
    #[arg(long, value_name = "N", env = "PURVEY_WORKERS")]
    workers: NonZeroU32,
    /// Forget runs this long after they ended, for example 30d [default: never]
    #[arg(long, value_name = "TIME", env = "PURVEY_KEEP_RUNS")]
    keep_runs: Time,
    /// Where the bytes of artifacts are kept: s3://BUCKET/PREFIX, with the AWS_… variables, or a directory [default: artifacts in the data directory]
    #[arg(long, value_name = "URL", env = "PURVEY_OBJECTS")]
    objects: String,
    /// Largest artifact [default: 5GiB]
    #[arg(long, value_name = "SIZE", env = "PURVEY_MAX_ARTIFACT_BYTES")]
    max_artifact_bytes: Size,
    /// Room for the artifacts of one organization; more get 429 [default: 100GiB]
    #[arg(long, value_name = "SIZE", env = "PURVEY_STORAGE_QUOTA")]
    storage_quota: Size,
    /// Uploads that one organization may have under way at once; more get 429 [default: 64]
    #[arg(long, value_name = "N", env = "PURVEY_MAX_UPLOADS")]
    max_uploads: NonZeroU32,
    /// Uploads that one organization may begin in a minute; more get 429 [default: 6000]
    #[arg(long, value_name = "N", env = "PURVEY_UPLOADS_PER_MINUTE")]
    uploads_per_minute: NonZeroU32,
    /// Time in which an upload must bring at least 1 KiB for each second of it, or it has failed [default: 30s]
    #[arg(long, value_name = "TIME", env = "PURVEY_UPLOAD_PATIENCE")]
    upload_patience: Time,
    /// Model providers: `[providers.NAME]` in the configuration file
    #[arg(skip)]
    providers: ProviderConfigs,
    /// What is logged: off, error, warn, info, debug, trace, or directives such as purvey_server=debug; info has a line for each request [default: info,purvey_server::access=warn]
    #[arg(long, value_name = "FILTER", env = "PURVEY_LOG")]
    log: String,
    /// How it is logged [default: text]
    #[arg(long, value_name = "FORM", env = "PURVEY_LOG_FORMAT")]
    log_format: LogFormat,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

impl Settings {
    /// Flags and variables first, then what the configuration file says.
    pub(crate) fn with_file(self, file: Option<&Path>) -> Result<Self, Failure> {
        match file {
            None => Ok(self),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Failure::usage(format_args!("--config {}: {error}", path.display()))
                })?;
                Ok(self.or(Self::parse(&text, path)?))
            }
        }
    }

    /// Paths in a file are relative to it, not to wherever the server is started.
    fn parse(text: &str, path: &Path) -> Result<Self, Failure> {
        let mut settings: Self = toml::from_str(text).map_err(|error| {
            Failure::usage(format_args!("--config {}: {error}", path.display()))
        })?;
        let base = path.parent().unwrap_or(Path::new(""));
        let paths = [
            &mut settings.data,
            &mut settings.manifest,
            &mut settings.tls_cert,
            &mut settings.tls_key,
            &mut settings.admin_token_file,
        ];
        for path in paths.into_iter().flatten() {
            *path = base.join(&*path);
        }
        if let Some(directory) = &mut settings.objects
            && !directory.contains("://")
        {
            *directory = base.join(&*directory).to_string_lossy().into_owned();
        }
        Ok(settings)
    }

    /// The server's part.
    pub(crate) fn server(&self) -> Result<ServerConfig, Failure> {
        self.refuse_nothing()?;
        let mut config = ServerConfig::default();
        fn set<T>(slot: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *slot = value;
            }
        }
        let time = |time: Option<Time>| time.map(|Time(time)| time);
        set(&mut config.listen, self.listen);
        set(&mut config.header_timeout, time(self.header_timeout));
        set(&mut config.body_timeout, time(self.body_timeout));
        set(&mut config.write_timeout, time(self.write_timeout));
        let count = |count: Option<NonZeroU32>| count.map(|count| count.get() as usize);
        set(&mut config.max_connections, count(self.max_connections));
        set(&mut config.max_in_flight, count(self.max_in_flight));
        set(&mut config.max_searches, count(self.max_searches));
        set(
            &mut config.search_queue,
            self.search_queue.map(|count| count as usize),
        );
        set(&mut config.search_wait, time(self.search_wait));
        set(&mut config.slow_search, time(self.slow_search));
        set(&mut config.publish_wait, time(self.publish_wait));
        set(&mut config.drain_delay, time(self.drain_delay));
        set(&mut config.shutdown_deadline, time(self.shutdown_deadline));
        if let Some(Size(bytes)) = self.max_record_bytes {
            config.max_record_bytes = usize::try_from(bytes)
                .map_err(|_| Failure::usage("--max-record-bytes: too large for this machine"))?;
        }
        if self.rate_burst.is_some() && self.rate_per_second.is_none() {
            return Err(Failure::usage("--rate-burst needs --rate-per-second"));
        }
        config.rate_per_second = self.rate_per_second;
        config.rate_burst = self.rate_burst;
        config.tls = match (&self.tls_cert, &self.tls_key) {
            (None, None) => None,
            (Some(certificates), Some(key)) => Some(TlsFiles {
                certificates: certificates.clone(),
                key: key.clone(),
            }),
            (Some(_), None) => return Err(Failure::usage("--tls-cert needs --tls-key")),
            (None, Some(_)) => return Err(Failure::usage("--tls-key needs --tls-cert")),
        };
        config.admin_token = self.token()?;
        Ok(config)
    }

    /// Refuses what would leave the server without any time or room for its work.
    fn refuse_nothing(&self) -> Result<(), Failure> {
        let time = |time: Option<Time>| time.is_some_and(|Time(time)| time.is_zero());
        let size = |size: Option<Size>| size == Some(Size(0));
        let nothing = [
            (
                "header-timeout",
                time(self.header_timeout),
                "no request could arrive",
            ),
            (
                "body-timeout",
                time(self.body_timeout),
                "no request body could arrive",
            ),
            (
                "write-timeout",
                time(self.write_timeout),
                "no response could leave",
            ),
            (
                "publish-wait",
                time(self.publish_wait),
                "no write could wait for its publication",
            ),
            (
                "max-record-bytes",
                size(self.max_record_bytes),
                "no record could be written",
            ),
            (
                "disk-budget",
                size(self.disk_budget),
                "every index is larger",
            ),
            (
                "upload-patience",
                time(self.upload_patience),
                "no upload could arrive",
            ),
        ];
        match nothing.into_iter().find(|(_, is_nothing, _)| *is_nothing) {
            None => Ok(()),
            Some((name, _, why)) => Err(Failure::usage(format_args!(
                "--{name} must not be 0: {why}"
            ))
            .hint("give it more, or leave it out for the default")),
        }
    }

    fn token(&self) -> Result<Option<AdminToken>, Failure> {
        let (text, from) = match (&self.admin_token_file, std::env::var(TOKEN_VARIABLE)) {
            (Some(_), Ok(_)) => {
                return Err(Failure::usage(format_args!(
                    "both --admin-token-file and {TOKEN_VARIABLE} are given"
                ))
                .hint("keep one of them"));
            }
            (Some(path), _) => {
                let from = format!("--admin-token-file {}", path.display());
                let text = std::fs::read_to_string(path)
                    .map_err(|error| Failure::usage(format_args!("{from}: {error}")))?;
                (text, from)
            }
            (None, Ok(text)) => (text, TOKEN_VARIABLE.to_owned()),
            (None, Err(std::env::VarError::NotPresent)) => return Ok(None),
            (None, Err(error)) => {
                // Its message would show the value.
                drop(error);
                return Err(Failure::usage(format_args!(
                    "{TOKEN_VARIABLE} is not UTF-8"
                )));
            }
        };
        let token = AdminToken::new(&text).map_err(|error| {
            Failure::usage(format_args!("{from}: {error}"))
                .hint("for example: openssl rand -hex 32")
        })?;
        Ok(Some(token))
    }

    /// The part of artifacts.
    pub(crate) fn bound_uploads(&self, limits: &mut UploadLimits) {
        if let Some(Size(bytes)) = self.max_artifact_bytes {
            limits.bytes = bytes;
        }
        if let Some(Size(bytes)) = self.storage_quota {
            limits.organization_bytes = bytes;
        }
        if let Some(count) = self.max_uploads {
            limits.at_once = count.get();
        }
        if let Some(count) = self.uploads_per_minute {
            limits.per_minute = count.get();
        }
        if let Some(Time(time)) = self.upload_patience {
            limits.patience = time;
        }
    }

    /// The catalog's part.
    pub(crate) fn catalog(&self) -> Options {
        let mut options = Options::default();
        if let Some(Time(interval)) = self.publish_interval {
            options.publish_interval = interval;
        }
        options.disk_budget = self.disk_budget.map(|Size(bytes)| bytes);
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn parse(text: &str) -> Result<Settings, Failure> {
        Settings::parse(text, Path::new("/etc/purvey/purvey.toml"))
    }

    #[test]
    fn a_file_fills_what_flags_leave_open_and_its_paths_are_its_own() {
        let file = parse(
            "data = \"catalog\"\nlisten = \"0.0.0.0:80\"\nheader_timeout = \"3s\"\nmax_record_bytes = \"4KiB\"\nlog_format = \"json\"",
        )
        .unwrap();
        let flags = Settings {
            listen: Some(([127, 0, 0, 1], 0).into()),
            ..Settings::default()
        };
        let settings = flags.or(file);
        assert_eq!(
            settings.data.as_deref(),
            Some(Path::new("/etc/purvey/catalog"))
        );
        assert_eq!(settings.log_format, Some(LogFormat::Json));
        let server = settings.server().unwrap();
        assert_eq!(server.listen, ([127, 0, 0, 1], 0).into());
        assert_eq!(server.header_timeout, Duration::from_secs(3));
        assert_eq!(server.max_record_bytes, 4_096);
        assert_eq!(server.max_connections, 4_096);
    }

    #[test]
    fn wrong_files_are_refused_with_the_key() {
        for (text, named) in [
            ("lisen = \"x\"", "lisen"),
            ("listen = \"x\"", "listen"),
            ("header_timeout = \"10\"", "10s"),
            ("max_connections = 0", "max_connections"),
        ] {
            let message = format!("{:?}", parse(text).unwrap_err());
            assert!(message.contains(named), "{message}");
        }
    }

    #[test]
    fn nothing_is_refused_with_its_name_and_so_is_more_than_can_be() {
        for key in [
            "header_timeout",
            "body_timeout",
            "write_timeout",
            "publish_wait",
        ] {
            let refused = parse(&format!("{key} = \"0s\"")).unwrap().server();
            let said = refused.unwrap_err().message().to_owned();
            assert!(
                said.starts_with(&format!("--{} must not be 0", key.replace('_', "-"))),
                "{said}"
            );
        }
        for key in ["max_record_bytes", "disk_budget"] {
            assert!(
                parse(&format!("{key} = \"0\"")).unwrap().server().is_err(),
                "{key}"
            );
        }
        for key in [
            "max_connections",
            "max_in_flight",
            "max_searches",
            "search_queue",
        ] {
            assert!(parse(&format!("{key} = 4294967296")).is_err(), "{key}");
        }
        // Not to wait at all is a wish that makes sense here.
        let none = "search_wait = \"0s\"\nslow_search = \"0s\"\ndrain_delay = \"0s\"\nshutdown_deadline = \"0s\"\nsearch_queue = 0";
        assert!(parse(none).unwrap().server().is_ok());
    }

    #[test]
    fn halves_of_pairs_are_refused() {
        let cert = Settings {
            tls_cert: Some("cert.pem".into()),
            ..Settings::default()
        };
        assert!(cert.server().is_err());
        let burst = Settings {
            rate_burst: NonZeroU32::new(5),
            ..Settings::default()
        };
        assert!(burst.server().is_err());
    }
}
