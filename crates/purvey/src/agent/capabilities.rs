//! `purvey capabilities`

use super::{
    connect::Connect,
    fault::{self, Typed},
    notes,
    row::joined,
};
use crate::{
    failure::{Failure, say},
    output,
    table::Table,
};
use purvey_agent::Capabilities;
use purvey_odp::{
    filter::{FilterDefinition, Operator, Unit},
    service::Operation,
    sort::{Direction, Missing, SortDefinition, SortKey},
};
use serde_json::{Value, json};
use std::process::ExitCode;

/// What a search can use.
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The Service
    #[arg(value_name = "ORIGIN")]
    origin: String,
    /// Also what a search can use that names this Collection
    #[arg(long = "in", value_name = "COLLECTION")]
    within: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

impl Show {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let (service, progress) = self.connect.service(&self.origin).await?;
        let found = service.capabilities(self.within.as_deref()).await;
        let found = found.map_err(|error| {
            let typed = Typed {
                within: self.within.clone(),
                ..Typed::default()
            };
            fault::failure_of(&error, &typed)
        })?;
        let out = match self.json {
            true => output::json_line(&document(service.origin().as_str(), &found)),
            false => shown(&found),
        };
        progress.aside(|| {
            notes::issues("search capabilities", &found.issues);
            if service
                .document()
                .operation(Operation::SearchOfferings)
                .is_none()
            {
                say(format_args!("this Service does not search for Offerings"));
            } else if out.is_empty() {
                say(format_args!("a search can use nothing but text"));
            }
            output::write(out).map(|_| ExitCode::SUCCESS)
        })
    }
}

fn document(service: &str, found: &Capabilities) -> Value {
    let (filters, sorts) = (found.effective.filters(), found.effective.sorts());
    json!({
        "service": service,
        "filters": filters.iter().map(FilterDefinition::to_value).collect::<Value>(),
        "sorts": sorts.iter().map(SortDefinition::to_value).collect::<Value>(),
        "issues": notes::issues_json(&found.issues),
    })
}

fn shown(found: &Capabilities) -> String {
    let (filters, sorts) = (found.effective.filters(), found.effective.sorts());
    let mut parts = Vec::new();
    if !filters.is_empty() {
        let header = ["FILTER", "TYPE", "OPERATORS", "REFINE", "MEANING"];
        parts.push(Table::new(&header).portion(filters.iter().map(filter)));
    }
    if !sorts.is_empty() {
        let header = ["SORT", "BY", "MEANING"];
        parts.push(Table::new(&header).portion(sorts.iter().map(sort)));
    }
    parts.join("\n")
}

fn filter(filter: &FilterDefinition) -> Vec<String> {
    let unit = match filter.unit() {
        None => String::new(),
        Some(Unit::Ucum { code }) => format!(" in {}", code.as_str()),
        Some(Unit::Service { title, .. }) => format!(" in {title}"),
    };
    vec![
        filter.id().to_string(),
        format!("{}{unit}", filter.scalar_type().as_str()),
        joined(
            filter
                .operators()
                .iter()
                .map(|operator: &Operator| operator.as_str()),
        ),
        (if filter.is_refinable() { "yes" } else { "" }).to_owned(),
        meaning(filter.title().as_str(), filter.description().as_str()),
    ]
}

fn sort(sort: &SortDefinition) -> Vec<String> {
    let keys: Vec<String> = sort.keys().iter().map(key).collect();
    vec![
        sort.id().to_string(),
        keys.join(", "),
        meaning(sort.title().as_str(), sort.description().as_str()),
    ]
}

fn key(key: &SortKey) -> String {
    let direction = match key.direction() {
        Direction::Ascending => "",
        Direction::Descending => " descending",
    };
    let missing = match key.missing() {
        Missing::First => " (missing first)",
        Missing::Last => "",
    };
    format!("{}{direction}{missing}", key.filter_id())
}

fn meaning(title: &str, description: &str) -> String {
    format!("{title}: {description}")
}
