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

    /// The token in a file's text.
    pub(crate) fn of(text: String) -> Self {
        Self(text)
    }

    /// The secret, for sending it; nothing for an empty one. `from` says where it comes from.
    ///
    /// Visible ASCII is more than RFC 6750 §2.1 has, since the servers that compare tokens as they are take that too.
    pub(crate) fn secret(&self, from: impl fmt::Display) -> Result<Option<&str>, Failure> {
        let text = self.0.trim();
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let wrong = format_args!("{from}: a token is visible ASCII characters without blanks");
            return Err(Failure::usage(wrong).hint(
                "give the token alone, without `Bearer` and whatever else stands beside it",
            ));
        }
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// The field that carries it; nothing for an empty one.
    fn bearer(&self, from: impl fmt::Display) -> Result<Option<HeaderValue>, Failure> {
        self.secret(from)?
            .map(|text| HeaderValue::try_from(format!("Bearer {text}")))
            .transpose()
            .map_err(Failure::usage)
    }
}

/// Where a token comes from that is in no file.
pub(crate) const TOKEN: &str = "--token or PURVEY_TOKEN";

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
        let bearer = match (&self.token_file, &self.token) {
            (Some(path), _) => {
                let from = format!("--token-file {}", path.display());
                let text = std::fs::read_to_string(path)
                    .map_err(|error| Failure::usage(format_args!("{from}: {error}")))?;
                let bearer = Token::of(text).bearer(&from)?;
                Some(bearer.ok_or_else(|| Failure::usage(format_args!("{from}: it is empty")))?)
            }
            (None, Some(token)) => token.bearer(TOKEN)?,
            (None, None) => None,
        };
        Ok(match bearer {
            Some(value) => builder.credential(origin.clone(), header::AUTHORIZATION, value),
            None => builder,
        })
    }
}
