//! How a Service is reached: the same for every command that reads one.

use crate::agent::parse_origin;
use crate::failure::Failure;
use http::{HeaderValue, header};
use purvey_agent::transport::{Guarded, GuardedBuilder};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use std::{convert::Infallible, fmt, path::PathBuf};

/// How to reach a Service.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Reach {
    /// Allow http on localhost, 127.0.0.1 and ::1
    #[arg(long)]
    pub(crate) local: bool,
    /// Bearer token for ORIGIN, sent nowhere else; other users of the machine do not see it in PURVEY_TOKEN
    #[arg(long, value_name = "TOKEN", env = "PURVEY_TOKEN", hide_env_values = true, value_parser = Token::read)]
    token: Option<Token>,
    /// File with that token; it wins over the variable
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
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

    /// The secret, for sending it.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }

    /// The field that carries it; nothing for an empty one.
    fn bearer(&self) -> Result<Option<HeaderValue>, Failure> {
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

impl Reach {
    /// Whether there is a token, which is for one Service alone.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some() || self.token_file.is_some()
    }

    fn local(&self) -> LocalDevelopment {
        match self.local {
            true => LocalDevelopment::Allowed,
            false => LocalDevelopment::Refused,
        }
    }

    /// The origin that is meant.
    pub(crate) fn origin(&self, text: &str) -> Result<ServiceOrigin, Failure> {
        parse_origin(text, self.local())
    }

    /// The way to Services, with the token for `origin` if there is one.
    pub(crate) fn transport(
        &self,
        origin: Option<&ServiceOrigin>,
    ) -> Result<GuardedBuilder, Failure> {
        let builder = Guarded::builder().local_development(self.local());
        let Some(origin) = origin else {
            return Ok(builder);
        };
        let token = match &self.token_file {
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    Failure::usage(format_args!("--token-file {}: {error}", path.display()))
                })?;
                if text.trim().is_empty() {
                    return Err(Failure::usage(format_args!(
                        "--token-file {}: it is empty",
                        path.display()
                    )));
                }
                Token::read(&text).ok()
            }
            None => self.token.clone(),
        };
        let bearer = token.as_ref().map_or(Ok(None), Token::bearer)?;
        Ok(match bearer {
            Some(value) => builder.credential(origin.clone(), header::AUTHORIZATION, value),
            None => builder,
        })
    }
}
