//! `purvey user` and `purvey organization`

use super::{
    connect::{Connect, escaped},
    show,
};
use crate::failure::Failure;
use clap::Subcommand;
use http::Method;
use serde_json::{Map, json};
use std::process::ExitCode;

/// What can be done with organizations.
#[derive(Debug, Subcommand)]
pub(crate) enum OrganizationCommand {
    /// Create an organization
    Create(CreateOrganization),
}

/// An organization to create.
#[derive(Debug, clap::Args)]
pub(crate) struct CreateOrganization {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    connect: Connect,
}

/// What can be done with users.
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    /// Create a user
    Create(Create),
    /// Change a user's state, or approve the account
    Update(Update),
}

/// A user to create.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// Their name
    #[arg(value_name = "NAME")]
    name: String,
    /// Their organization
    #[arg(long, value_name = "ID")]
    organization: String,
    /// The user who invited them
    #[arg(long, value_name = "ID")]
    invited_by: Option<String>,
    #[command(flatten)]
    connect: Connect,
}

/// A change.
#[derive(Debug, clap::Args)]
pub(crate) struct Update {
    /// The user
    #[arg(value_name = "USER")]
    user: String,
    /// active, deactivated, locked or deleted
    #[arg(long)]
    state: Option<String>,
    /// Whether the account is approved
    #[arg(long, value_name = "BOOL")]
    approved: Option<bool>,
    #[command(flatten)]
    connect: Connect,
}

impl OrganizationCommand {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let Self::Create(create) = self;
        let body = json!({ "name": create.name });
        let path = "/v1/admin/organizations";
        let made = create.connect.send(Method::POST, path, Some(&body)).await?;
        show::one(&made, create.connect.json)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl UserCommand {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Create(create) => {
                let mut body = json!({
                    "organization_id": create.organization, "display_name": create.name,
                });
                if let Some(inviter) = &create.invited_by {
                    body["invited_by"] = json!(inviter);
                }
                let path = "/v1/admin/users";
                let made = create.connect.send(Method::POST, path, Some(&body)).await?;
                show::one(&made, create.connect.json)?;
            }
            Self::Update(update) => {
                let mut body = Map::new();
                if let Some(state) = &update.state {
                    body.insert("state".into(), json!(state));
                }
                if let Some(approved) = update.approved {
                    body.insert("approved".into(), json!(approved));
                }
                let path = format!("/v1/admin/users/{}", escaped(&update.user));
                let connect = &update.connect;
                let user = connect
                    .send(Method::PATCH, &path, Some(&body.into()))
                    .await?;
                show::one(&user, connect.json)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
