//! `purvey actions`

use super::{connect::Connect, fault, notes, row::joined};
use crate::{
    failure::{Failure, say},
    output,
    table::Table,
};
use purvey_agent::ResolvedAction;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Of which Offering.
#[derive(Debug, clap::Args)]
pub(crate) struct Actions {
    /// The Service
    #[arg(value_name = "ORIGIN")]
    origin: String,
    /// Identifier of the Offering
    #[arg(value_name = "ID")]
    id: String,
    /// Print a line of JSON for each Action that can be invoked
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

impl Actions {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let (service, progress) = self.connect.service(&self.origin).await?;
        let found = service.get_offering(&self.id).await;
        let found = found.map_err(|error| fault::failure(&error))?;
        let out = match self.json {
            true => found
                .actions
                .iter()
                .map(|action| output::json_line(&json(action)))
                .collect(),
            false => table(&found.actions),
        };
        progress.aside(|| {
            notes::issues(&self.id, &found.issues);
            if found.actions.is_empty() {
                say(format_args!("nothing can be done about it here"));
            }
            output::write(out).map(|_| ExitCode::SUCCESS)
        })
    }
}

/// Actions for people; empty when there are none.
pub(super) fn table(actions: &[ResolvedAction]) -> String {
    if actions.is_empty() {
        return String::new();
    }
    let header = [
        "ACTION",
        "REL",
        "REQUEST",
        "SENDS",
        "AUTHENTICATION",
        "MEANING",
    ];
    let rows = actions.iter().map(|resolved| {
        let action = resolved.action();
        vec![
            action.id.to_string(),
            action.rel.as_str().to_owned(),
            format!("{} {}", resolved.method(), resolved.url()),
            joined(resolved.content_types()),
            action.authentication.as_str().to_owned(),
            action
                .description
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
        ]
    });
    Table::new(&header).portion(rows)
}

/// One Action, with where its request goes.
pub(super) fn json(resolved: &ResolvedAction) -> Value {
    json!({
        "action": resolved.action().to_value(),
        "method": resolved.method().as_str(),
        "url": resolved.url(),
        "content_types": resolved.content_types(),
    })
}
