//! `purvey catalog token`

use super::{must_exist, print_json};
use crate::failure::{Failure, print, say};
use crate::units::Time;
use clap::Subcommand;
use purvey_catalog::Error;
use purvey_catalog::catalog::Options;
use purvey_catalog::tokens::{Issued, NewToken, Token, Tokens};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What can be done with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it, once: it is kept nowhere
    #[command(
        after_help = "Whoever presents the token as `Authorization: Bearer TOKEN` sees, beside what is public, the records \
        whose audience names one of the token's. A running server knows it within a second."
    )]
    Create(Create),
    /// Show which tokens there are
    List(super::Inspect),
    /// End a token; a running server refuses it within a second
    Revoke(Revoke),
}

/// A token to make.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// Directory of the catalog
    #[arg(long, value_name = "DIR", env = "PURVEY_DATA")]
    data: PathBuf,
    /// Audience that its bearer belongs to; may be repeated
    #[arg(long = "audience", value_name = "AUDIENCE", required = true)]
    audiences: Vec<String>,
    /// What it is for, to tell it from others
    #[arg(long)]
    name: Option<String>,
    /// How long it works, for example 12h or 30d; without, until it is revoked
    #[arg(long, value_name = "TIME")]
    expires: Option<Time>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A token to end.
#[derive(Debug, clap::Args)]
pub(crate) struct Revoke {
    /// Directory of the catalog
    #[arg(long, value_name = "DIR", env = "PURVEY_DATA")]
    data: PathBuf,
    /// Its id or name, as `list` shows them, or the token itself
    #[arg(value_name = "TOKEN")]
    which: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl TokenCommand {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Create(create) => create.run(),
            Self::List(inspect) => list(&inspect.data, inspect.json),
            Self::Revoke(revoke) => revoke.run(),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

fn open(data: &Path) -> Result<Tokens, Failure> {
    must_exist(data)?;
    Ok(Tokens::open(data, &Options::default())?)
}

impl Create {
    fn run(self) -> Result<(), Failure> {
        let lifetime = self.expires.map(|Time(lifetime)| lifetime);
        if lifetime.is_some_and(|lifetime| lifetime < Duration::from_secs(1)) {
            return Err(Failure::usage(
                "--expires: a token works for a second at least",
            ));
        }
        let new = NewToken {
            name: self.name,
            audiences: self.audiences,
            lifetime,
        };
        let made = open(&self.data)?.create(new);
        let Issued { token, secret } = made.map_err(|error| match error {
            Error::Invalid(invalid) => Failure::usage(invalid),
            error => error.into(),
        })?;
        if self.json {
            print_json(&json!({
                "token": secret,
                "id": token.id,
                "name": token.name,
                "audiences": token.audiences,
                "created": token.created,
                "expires": token.expires,
            }))
        } else {
            say(format_args!(
                "token {} for {}, {}; it is not shown again",
                token.id,
                token.audiences.join(", "),
                ending(token.expires)
            ));
            print(format_args!("{secret}"))
        }
    }
}

impl Revoke {
    fn run(&self) -> Result<(), Failure> {
        let revoked = open(&self.data)?.revoke(&self.which);
        let token = revoked.map_err(|error| match error {
            // What was given may be a secret.
            Error::NotFound => Failure::new("there is no such token")
                .hint("`purvey catalog token list` shows which there are"),
            error => error.into(),
        })?;
        if self.json {
            print_json(&token)?;
        }
        say(format_args!("revoked token {}", token.id));
        Ok(())
    }
}

fn list(data: &Path, as_json: bool) -> Result<(), Failure> {
    let tokens = open(data)?.list()?;
    if as_json {
        return print_json(&tokens);
    }
    for token in &tokens {
        let Token {
            id,
            name,
            audiences,
            expires,
            ending: last,
            ..
        } = token;
        let (audiences, until) = (audiences.join(","), ending(*expires));
        let name = name.as_deref().unwrap_or_default();
        let line = format!("{id}  …{last}  {until:16}  {audiences:24}  {name}");
        print(format_args!("{}", line.trim_end()))?;
    }
    Ok(())
}

/// When a token ends, as seen from now.
fn ending(expires: Option<u64>) -> String {
    let Some(expires) = expires else {
        return "until revoked".to_owned();
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let left = expires.saturating_sub(now.map_or(0, |now| now.as_secs()));
    match left {
        0 => "expired".to_owned(),
        left => format!("in {}", indicatif::HumanDuration(Duration::from_secs(left))),
    }
}
