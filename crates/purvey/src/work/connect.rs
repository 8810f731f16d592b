//! Which server, and as whom.

use super::fault;
use crate::{
    failure::Failure,
    reach::{TOKEN, Token},
    units::Time,
};
use http::Method;
use purvey_client::Client;
use serde_json::Value;
use std::{path::PathBuf, time::Duration};

/// How to reach a server.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(super) struct Connect {
    /// Origin of the server
    #[arg(
        long,
        value_name = "ORIGIN",
        env = "PURVEY_SERVER",
        default_value = "http://127.0.0.1:8080"
    )]
    server: String,
    /// File that holds the bearer token, for example DATA/owner-token
    #[arg(long, value_name = "FILE", env = "PURVEY_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// The bearer token; other users of the machine do not see it in PURVEY_TOKEN
    #[arg(long, value_name = "TOKEN", env = "PURVEY_TOKEN", hide_env_values = true, value_parser = Token::read)]
    token: Option<Token>,
    /// Longest time for one call, its retries included [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = Time::some)]
    timeout: Option<Time>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Which workspace.
#[derive(Debug, clap::Args)]
pub(super) struct InWorkspace {
    /// The workspace; may be left out when there is only one
    #[arg(long, value_name = "ID", env = "PURVEY_WORKSPACE")]
    workspace: Option<String>,
}

/// How much of a list.
#[derive(Debug, clap::Args)]
pub(super) struct Part {
    /// How many at most, the newest first
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl Connect {
    pub(super) fn client(&self) -> Result<Client, Failure> {
        let mut builder = Client::builder(&self.server);
        if let Some(token) = self.secret()? {
            builder = builder.token(token);
        }
        if let Some(Time(time)) = self.timeout {
            builder = builder.deadline(time.max(Duration::from_secs(1)));
        }
        builder.build().map_err(|error| fault::failure(&error))
    }

    fn secret(&self) -> Result<Option<String>, Failure> {
        let (token, from) = match (&self.token_file, &self.token) {
            (Some(path), _) => {
                let from = format!("--token-file {}", path.display());
                let text = std::fs::read_to_string(path)
                    .map_err(|error| Failure::usage(format_args!("{from}: {error}")))?;
                (Token::of(text), from)
            }
            (None, Some(token)) => (token.clone(), TOKEN.to_owned()),
            (None, None) => return Ok(None),
        };
        let secret = token.secret(&from)?;
        let secret = secret.ok_or_else(|| Failure::usage(format_args!("{from}: it is empty")))?;
        Ok(Some(secret.to_owned()))
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        let got = self.client()?.get(path).await;
        got.map_err(|error| fault::failure(&error))
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let sent = self.client()?.send(method, path, body).await;
        sent.map_err(|error| fault::failure(&error))
    }

    /// The items of a list, over its pages.
    pub(super) async fn list(&self, path: &str, part: &Part) -> Result<Listed, Failure> {
        let client = self.client()?;
        let wanted = if part.all { usize::MAX } else { part.limit };
        let mut items = Vec::new();
        let mut cursor: Option<String> = None;
        let joined = if path.contains('?') { '&' } else { '?' };
        while items.len() < wanted {
            let limit = (wanted - items.len()).min(100);
            let mut path = format!("{path}{joined}limit={limit}");
            if let Some(cursor) = &cursor {
                path += &format!("&cursor={}", escaped(cursor));
            }
            let mut page: Value = client
                .get(&path)
                .await
                .map_err(|error| fault::failure(&error))?;
            if let Some(Value::Array(more)) = page.get_mut("items").map(Value::take) {
                items.extend(more);
            }
            cursor = page["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        Ok(Listed {
            items,
            more: cursor.is_some(),
        })
    }
}

/// What a list gave.
pub(super) struct Listed {
    pub(super) items: Vec<Value>,
    pub(super) more: bool,
}

impl InWorkspace {
    /// The workspace that is meant.
    pub(super) async fn id(&self, connect: &Connect) -> Result<String, Failure> {
        if let Some(id) = &self.workspace {
            return Ok(escaped(id));
        }
        let page = connect.get("/v1/workspaces?limit=2").await?;
        let items = page["items"].as_array().map_or(&[][..], Vec::as_slice);
        match items {
            [only] => Ok(only["id"].as_str().unwrap_or_default().to_owned()),
            [] => Err(Failure::usage("there is no workspace that you can see")),
            _ => Err(Failure::usage("there is more than one workspace")
                .hint("name one with --workspace; `purvey workspace list` shows them")),
        }
    }
}

/// An identifier as a part of a path.
pub(super) fn escaped(id: &str) -> String {
    url::form_urlencoded::byte_serialize(id.as_bytes()).collect()
}
