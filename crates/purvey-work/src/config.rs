//! The providers as the operator writes them: `[providers.NAME]` of the server's configuration file.
//!
//! ```toml
//! [providers.fast]
//! kind = "openai"                       # or anthropic, command
//! base_url = "http://127.0.0.1:8000/v1"
//! api_key_env = "FAST_KEY"
//! [providers.fast.prices."small-model"] # cents per million tokens
//! input = 100
//! output = 400
//! max_output_tokens = 2048              # of one reply; 4096 unless set
//!
//! [providers.tidy]
//! kind = "command"
//! command = ["/usr/local/bin/tidy", "--json"]
//! environment = ["PATH"]                # what it gets of the server's environment
//! files = { most = 16, bytes = 104857600 } # it works on files, and may leave so many; these are the defaults of files = {}
//! ```

use crate::{
    clock::Clock,
    provider::{
        Anthropic, ApiKey, Command, Endpoint, FileLimits, OpenAi, OutputLimitField, Priced, Prices,
        Providers, Timeouts,
    },
};
use serde::Deserialize;
use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, sync::Arc, time::Duration};
use url::Url;

/// The highest price: a cent a token.
const HIGHEST_PRICE: u32 = 1_000_000;
/// The longest reply.
const MOST_OUTPUT_TOKENS: u32 = 1_000_000;
/// The most files that a program may leave, and bytes in them.
const MOST_FILES: usize = 1_000;
const MOST_FILE_BYTES: u64 = 1 << 40;
/// The longest silence.
const LONGEST_IDLE: u64 = 3_600;

/// The table of providers by name.
pub type ProviderConfigs = BTreeMap<String, ProviderConfig>;

/// One `[providers.NAME]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// What it speaks.
    pub kind: Kind,
    /// Where it is, up to the path that `chat/completions` or `messages` is put after; the maker's own address unless set. Not for
    /// `command`.
    pub base_url: Option<String>,
    /// The environment variable that holds its key; no key is sent without one. Not for `command`.
    pub api_key_env: Option<String>,
    /// The member of a request that bounds the reply; only for `openai`.
    pub output_limit_field: Option<OutputLimitField>,
    /// Seconds that it may send nothing, 1 to 3,600; 120 unless set. Not for `command`.
    pub idle_timeout_seconds: Option<u64>,
    /// The program and its arguments; only for `command`.
    pub command: Option<Vec<String>>,
    /// Names of the server's environment variables that the program gets; none unless set. Only for `command`.
    pub environment: Option<Vec<String>>,
    /// That the program works on files, and how many it may leave. Only for `command`.
    pub files: Option<FilesConfig>,
    /// What its models cost, by their names; a model that is not here costs nothing.
    #[serde(default)]
    pub prices: BTreeMap<String, PriceConfig>,
}

/// What a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Chat completions.
    OpenAi,
    /// The Messages API.
    Anthropic,
    /// A program that reads and writes JSON.
    Command,
}

/// How many files a program may leave.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesConfig {
    /// Most files, 0 to 1,000; 16 unless set.
    pub most: Option<usize>,
    /// Most bytes of all of them, 0 to 1 TiB; 100 MiB unless set.
    pub bytes: Option<u64>,
}

/// One `[providers.NAME.prices."MODEL"]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceConfig {
    /// Cents per million tokens of requests, 0 to 1,000,000.
    pub input: u32,
    /// Cents per million tokens of replies, 0 to 1,000,000.
    pub output: u32,
    /// Most tokens of one reply, 1 to 1,000,000; 4,096 unless set.
    pub max_output_tokens: Option<u32>,
}

/// A setting that cannot be used, and what to write instead.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {fix}")]
pub struct ConfigError {
    /// The setting, such as `providers.fast.base_url`.
    pub field: String,
    /// What is wrong and what to write.
    pub fix: String,
}

/// Where values of environment variables come from.
pub type Environment<'e> = &'e dyn Fn(&str) -> Option<OsString>;

/// Makes the providers ready. Keys and programs are looked up now, so that what is missing shows at the start and not in a run.
///
/// # Errors
/// The first setting that cannot be used.
pub fn providers(
    configs: &ProviderConfigs,
    environment: Environment<'_>,
    clock: &Arc<dyn Clock>,
) -> Result<Providers, ConfigError> {
    let mut providers = Providers::default();
    for (name, config) in configs {
        let reader = Reader {
            name,
            config,
            environment,
        };
        providers = providers.with(name, reader.provider(clock)?);
    }
    Ok(providers)
}

struct Reader<'a> {
    name: &'a str,
    config: &'a ProviderConfig,
    environment: Environment<'a>,
}

impl Reader<'_> {
    fn provider(&self, clock: &Arc<dyn Clock>) -> Result<Priced, ConfigError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if self.name == "echo" {
            return Err(self.error("", "this name is built in; choose another"));
        }
        if self.name.is_empty() || self.name.len() > 64 || !self.name.bytes().all(plain) {
            return Err(self.error("", "a name has 1 to 64 letters, digits, - and _"));
        }
        self.check_fields()?;
        let prices = self.prices()?;
        Ok(match self.config.kind {
            Kind::OpenAi => {
                let endpoint = self.endpoint("https://api.openai.com/v1", clock)?;
                Priced::new(
                    OpenAi::new(endpoint, self.config.output_limit_field),
                    prices,
                )
            }
            Kind::Anthropic => {
                let endpoint = self.endpoint("https://api.anthropic.com/v1", clock)?;
                Priced::new(Anthropic::new(endpoint), prices)
            }
            Kind::Command => Priced::new(self.command()?, prices),
        })
    }

    fn error(&self, field: &str, fix: impl Into<String>) -> ConfigError {
        let dot = if field.is_empty() { "" } else { "." };
        ConfigError {
            field: format!("providers.{}{dot}{field}", self.name),
            fix: fix.into(),
        }
    }

    /// Refuses what another kind has.
    fn check_fields(&self) -> Result<(), ConfigError> {
        let config = self.config;
        let (http, openai, command) = ("openai and anthropic", "openai", "command");
        let kind = config.kind;
        let fields = [
            (
                "base_url",
                config.base_url.is_some(),
                kind != Kind::Command,
                http,
            ),
            (
                "api_key_env",
                config.api_key_env.is_some(),
                kind != Kind::Command,
                http,
            ),
            (
                "idle_timeout_seconds",
                config.idle_timeout_seconds.is_some(),
                kind != Kind::Command,
                http,
            ),
            (
                "output_limit_field",
                config.output_limit_field.is_some(),
                kind == Kind::OpenAi,
                openai,
            ),
            (
                "command",
                config.command.is_some(),
                kind == Kind::Command,
                command,
            ),
            (
                "files",
                config.files.is_some(),
                kind == Kind::Command,
                command,
            ),
            (
                "environment",
                config.environment.is_some(),
                kind == Kind::Command,
                command,
            ),
        ];
        match fields.iter().find(|(_, set, known, _)| *set && !known) {
            Some((field, _, _, kinds)) => Err(self.error(
                field,
                format!("only providers of kind {kinds} have it; remove it"),
            )),
            None => Ok(()),
        }
    }

    fn prices(&self) -> Result<BTreeMap<String, Prices>, ConfigError> {
        let mut prices = BTreeMap::new();
        for (model, price) in &self.config.prices {
            let field = |member: &str| format!("prices.{model:?}.{member}");
            for (member, value) in [("input", price.input), ("output", price.output)] {
                if value > HIGHEST_PRICE {
                    let fix = format!("must be 0 to {HIGHEST_PRICE} cents per million tokens");
                    return Err(self.error(&field(member), fix));
                }
            }
            let mut read = Prices {
                input: price.input,
                output: price.output,
                ..Prices::default()
            };
            if let Some(most) = price.max_output_tokens {
                if !(1..=MOST_OUTPUT_TOKENS).contains(&most) {
                    let fix = format!("must be 1 to {MOST_OUTPUT_TOKENS} tokens");
                    return Err(self.error(&field("max_output_tokens"), fix));
                }
                read.max_output_tokens = most;
            }
            prices.insert(model.clone(), read);
        }
        Ok(prices)
    }

    fn endpoint(&self, usual: &str, clock: &Arc<dyn Clock>) -> Result<Endpoint, ConfigError> {
        let text = self.config.base_url.as_deref().unwrap_or(usual);
        let url = Url::parse(text).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        });
        let fix = "must be an http or https URL without user, query and fragment, such as http://127.0.0.1:8000/v1";
        let url = url.ok_or_else(|| self.error("base_url", fix))?;
        let mut timeouts = Timeouts::default();
        if let Some(seconds) = self.config.idle_timeout_seconds {
            if !(1..=LONGEST_IDLE).contains(&seconds) {
                let fix = format!("must be 1 to {LONGEST_IDLE} seconds");
                return Err(self.error("idle_timeout_seconds", fix));
            }
            timeouts.idle = Duration::from_secs(seconds);
        }
        Endpoint::new(url, self.key()?, timeouts, Arc::clone(clock))
            .map_err(|why| self.error("base_url", format!("there can be no connection: {why}")))
    }

    fn key(&self) -> Result<Option<ApiKey>, ConfigError> {
        let Some(variable) = &self.config.api_key_env else {
            return Ok(None);
        };
        let unset = format!(
            "the environment variable {variable} is not set; set it to the key, or remove this line"
        );
        let Some(value) = (self.environment)(variable) else {
            return Err(self.error("api_key_env", unset));
        };
        let key = value.to_str().and_then(|text| ApiKey::new(text.trim()));
        let fix = format!(
            "the environment variable {variable} does not hold a key: 1 or more visible ASCII characters"
        );
        key.map(Some).ok_or_else(|| self.error("api_key_env", fix))
    }

    fn command(&self) -> Result<Command, ConfigError> {
        let fix = "must be the program and its arguments, such as [\"/usr/bin/jq\", \".\"]";
        let words = self.config.command.as_deref().unwrap_or_default();
        let Some((program, arguments)) = words.split_first().filter(|(name, _)| !name.is_empty())
        else {
            return Err(self.error("command", fix));
        };
        let missing = || {
            self.error(
                "command",
                format!("there is no file {program} that can be run; write its path"),
            )
        };
        let program = self.found(program).ok_or_else(missing)?;
        let mut environment = Vec::new();
        for name in self.config.environment.iter().flatten() {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(self.error("environment", format!("{name:?} is no name of a variable")));
            }
            // What is not set for the server is not set for the program.
            if let Some(value) = (self.environment)(name) {
                environment.push((name.clone(), value));
            }
        }
        Ok(Command {
            program,
            arguments: arguments.to_vec(),
            environment,
            files: self
                .config
                .files
                .map(|files| self.files(files))
                .transpose()?,
        })
    }

    fn files(&self, files: FilesConfig) -> Result<FileLimits, ConfigError> {
        let limits = FileLimits {
            most: files.most.unwrap_or(16),
            bytes: files.bytes.unwrap_or(100 << 20),
        };
        if limits.most > MOST_FILES {
            return Err(self.error("files.most", format!("must be 0 to {MOST_FILES}")));
        }
        if limits.bytes > MOST_FILE_BYTES {
            return Err(self.error("files.bytes", format!("must be 0 to {MOST_FILE_BYTES}")));
        }
        Ok(limits)
    }

    /// The file of a program: a path as it is, a name from the server's `PATH`.
    fn found(&self, program: &str) -> Option<PathBuf> {
        let runnable = |path: &PathBuf| {
            rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
        };
        if program.contains('/') {
            return Some(PathBuf::from(program)).filter(runnable);
        }
        let path = (self.environment)("PATH")?;
        std::env::split_paths(&path)
            .map(|directory| directory.join(program))
            .find(runnable)
    }
}
