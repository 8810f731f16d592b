//! `purvey token`

use super::{
    connect::{Connect, Part, escaped},
    show,
};
use crate::{
    failure::{Failure, print, say},
    output,
    units::Time,
};
use clap::Subcommand;
use http::Method;
use serde_json::json;
use std::{process::ExitCode, time::SystemTime};

/// What can be done with tokens of the Work API.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it, once
    Create(Create),
    /// List tokens without their secrets
    List(List),
    /// End a token
    Revoke(Revoke),
}

/// A token to make.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// The user whose token it is to be
    #[arg(value_name = "USER")]
    user: String,
    /// What it may be used for, such as runs:write; may be repeated
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    scopes: Vec<String>,
    /// How long it works, for example 12h or 30d; without, until it is revoked
    #[arg(long, value_name = "TIME")]
    expires: Option<Time>,
    #[command(flatten)]
    connect: Connect,
}

/// Which tokens.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    connect: Connect,
}

/// A token to end.
#[derive(Debug, clap::Args)]
pub(crate) struct Revoke {
    /// Its identifier
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    connect: Connect,
}

impl TokenCommand {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Create(create) => create.run().await?,
            Self::List(list) => {
                let listed = list.connect.list("/v1/tokens", &list.part).await?;
                let columns = [
                    ("ID", "id"),
                    ("USER", "user_id"),
                    ("SCOPES", "scopes"),
                    ("EXPIRES", "expires_at"),
                    ("REVOKED", "revoked_at"),
                ];
                show::list(&listed, &columns, list.connect.json)?;
            }
            Self::Revoke(revoke) => {
                let path = format!("/v1/tokens/{}", escaped(&revoke.id));
                revoke.connect.send(Method::DELETE, &path, None).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Create {
    async fn run(&self) -> Result<(), Failure> {
        let mut body = json!({ "user_id": self.user, "scopes": self.scopes });
        if let Some(Time(lifetime)) = self.expires {
            let end = SystemTime::now() + lifetime;
            body["expires_at"] = json!(purvey_work::Timestamp::from(end).to_string());
        }
        let made = self
            .connect
            .send(Method::POST, "/v1/tokens", Some(&body))
            .await?;
        if self.connect.json {
            return output::write(output::json_line(&made)).map(|_| ());
        }
        let id = show::cell(&made["id"]);
        say(format_args!("token {id}; it is not shown again"));
        print(format_args!("{}", show::cell(&made["token"])))
    }
}
