//! `purvey limits`

use super::{
    connect::Connect,
    show,
    workspace::{Cents, cents},
};
use crate::failure::Failure;
use clap::Subcommand;
use http::Method;
use serde_json::{Map, json};
use std::process::ExitCode;

/// The platform's limits.
#[derive(Debug, Subcommand)]
pub(crate) enum LimitsCommand {
    /// Show them
    Show(Show),
    /// Change them
    Set(Set),
}

/// Which server.
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    #[command(flatten)]
    connect: Connect,
}

/// What to change.
#[derive(Debug, clap::Args)]
pub(crate) struct Set {
    /// Most cents a day of free usage on the whole platform, or none
    #[arg(long, value_name = "CENTS", value_parser = cents)]
    platform_daily_cents: Option<Cents>,
    /// Most cents a day of free usage of one owner's workspaces, or none
    #[arg(long, value_name = "CENTS", value_parser = cents)]
    allowance_daily_cents: Option<Cents>,
    /// Stop all spending, or let it go on
    #[arg(long, value_name = "BOOL")]
    budget_stop: Option<bool>,
    #[command(flatten)]
    connect: Connect,
}

impl LimitsCommand {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let path = "/v1/admin/limits";
        match self {
            Self::Show(Show { connect }) => {
                show::one(&connect.get(path).await?, connect.json)?;
            }
            Self::Set(set) => {
                let mut body = Map::new();
                let limits = [
                    ("platform_daily_cents", set.platform_daily_cents),
                    ("allowance_daily_cents", set.allowance_daily_cents),
                ];
                for (member, limit) in limits {
                    if let Some(limit) = limit {
                        body.insert(member.into(), limit.json());
                    }
                }
                if let Some(stop) = set.budget_stop {
                    body.insert("budget_stop".into(), json!(stop));
                }
                let changed = set
                    .connect
                    .send(Method::PATCH, path, Some(&body.into()))
                    .await?;
                show::one(&changed, set.connect.json)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
