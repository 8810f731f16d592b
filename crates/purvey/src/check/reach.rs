//! How a Service is reached by `check` and `mcp`.

use crate::failure::Failure;
use http::{HeaderValue, header};
use purvey_agent::transport::{Guarded, GuardedBuilder};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use std::path::PathBuf;

/// Where the token may stand as well.
const TOKEN_VARIABLE: &str = "PURVEY_TOKEN";

/// How to reach a Service.
#[derive(Debug, clap::Args)]
pub(crate) struct Reach {
    /// Allow http on localhost, 127.0.0.1 and [::1]
    #[arg(long)]
    pub(crate) local: bool,
    /// File with a bearer token for ORIGIN, sent nowhere else; PURVEY_TOKEN does the same
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

impl Reach {
    pub(crate) fn local(&self) -> LocalDevelopment {
        match self.local {
            true => LocalDevelopment::Allowed,
            false => LocalDevelopment::Refused,
        }
    }

    /// The origin that is meant: a bare host means `https`, or `http` on this machine when that is allowed.
    pub(crate) fn origin(&self, text: &str) -> String {
        if text.contains("://") {
            return text.to_owned();
        }
        let local = ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| {
            let rest = text.strip_prefix(host);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
        });
        match local && self.local {
            true => format!("http://{text}"),
            false => format!("https://{text}"),
        }
    }

    /// The way there; with the token for `origin`, if there is one.
    pub(crate) fn transport(&self, origin: Option<&str>) -> Result<Guarded, Failure> {
        self.builder(origin)?.build().map_err(Failure::new)
    }

    pub(crate) fn builder(&self, origin: Option<&str>) -> Result<GuardedBuilder, Failure> {
        let builder = Guarded::builder().local_development(self.local());
        let (Some(token), Some(origin)) = (self.token()?, origin) else {
            return Ok(builder);
        };
        let origin = ServiceOrigin::parse(origin.trim_end_matches('/'), self.local())
            .map_err(|invalid| Failure::usage(format_args!("{origin}: {invalid}")))?;
        let value = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| Failure::usage("the token must be printable ASCII characters"))?;
        Ok(builder.credential(origin, header::AUTHORIZATION, value))
    }

    /// The token, without the line's end that a file has.
    fn token(&self) -> Result<Option<String>, Failure> {
        let text = match (&self.token_file, std::env::var(TOKEN_VARIABLE)) {
            (Some(path), _) => std::fs::read_to_string(path).map_err(|error| {
                Failure::usage(format_args!("--token-file {}: {error}", path.display()))
            })?,
            (None, Ok(text)) => text,
            (None, Err(std::env::VarError::NotPresent)) => return Ok(None),
            (None, Err(_)) => {
                return Err(Failure::usage(format_args!(
                    "{TOKEN_VARIABLE} is not UTF-8"
                )));
            }
        };
        let token = text.trim();
        Ok((!token.is_empty()).then(|| token.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_host_means_https() {
        let reach = |local| Reach {
            local,
            token_file: None,
        };
        for (text, local, expected) in [
            ("market.example", false, "https://market.example"),
            ("localhost:8080", false, "https://localhost:8080"),
            ("localhost:8080", true, "http://localhost:8080"),
            ("[::1]:8080", true, "http://[::1]:8080"),
            ("localhost.example", true, "https://localhost.example"),
            ("http://127.0.0.1:1", true, "http://127.0.0.1:1"),
        ] {
            assert_eq!(reach(local).origin(text), expected);
        }
    }
}
