//! What an Offering refers to: its schema and its Actions. Whatever fails here costs only what depends on it (ODP §6, §10).

use crate::action::{ResolvedAction, Resolver};
use crate::issue::{Fault, Issue, Scope};
use crate::schema::Schema;
use crate::service::Service;
use crate::supporting::Supporting;
use crate::transport::Operation as Budget;
use futures_util::future::join;
use purvey_odp::action::CoreRelation;
use purvey_odp::offering::{Offering, Placement};
use serde_json::Value;
use std::collections::HashMap;

/// An Offering with what it refers to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EnrichedOffering {
    /// The Full Representation. Attributes that could not be interpreted are left out of it, with their schema.
    pub offering: Offering,
    /// The schema that the attributes fit, locally complete; nothing without attributes.
    pub schema: Option<Schema>,
    /// The Actions that can be invoked, in their order. Nothing was invoked to find out.
    pub actions: Vec<ResolvedAction>,
    /// The `Content-Language` that it came with.
    pub content_language: Option<String>,
    /// What could not be used; pointers lead into the document as it was received.
    pub issues: Vec<Issue>,
}

impl EnrichedOffering {
    /// The usable Action of this identifier.
    pub fn action(&self, id: &str) -> Option<&ResolvedAction> {
        self.actions
            .iter()
            .find(|action| action.action().id.as_str() == id)
    }

    /// The usable Actions that bring this result. One with a relation that this version does not define is never among them:
    /// it has to be chosen by its identifier.
    pub fn actions_for(&self, relation: CoreRelation) -> impl Iterator<Item = &ResolvedAction> {
        self.actions
            .iter()
            .filter(move |action| action.action().rel.core() == Some(relation))
    }
}

/// Where the Actions stood in the document as it was received.
#[derive(Default)]
pub(crate) struct Received(HashMap<String, usize>);

impl Received {
    pub(crate) fn of(value: &Value) -> Self {
        let actions = value.get("actions").and_then(Value::as_array);
        let ids = actions.into_iter().flatten().enumerate();
        Self(
            ids.filter_map(|(i, action)| Some((action.get("id")?.as_str()?.to_owned(), i)))
                .collect(),
        )
    }

    fn pointer(&self, id: &str, index: usize) -> String {
        format!("/actions/{}", self.0.get(id).unwrap_or(&index))
    }
}

impl Service {
    /// Fetches what an Offering of this Service refers to, and holds its attributes to their schema. For Full Representations
    /// that came from a list or a search; [`get_offering`](Self::get_offering) does it itself.
    pub async fn enrich(&self, offering: Offering) -> EnrichedOffering {
        let budget = self.settings().operation();
        self.enrich_within(&budget, offering, &Received::default(), Vec::new())
            .await
    }

    pub(crate) async fn enrich_within(
        &self,
        budget: &Budget,
        offering: Offering,
        received: &Received,
        mut issues: Vec<Issue>,
    ) -> EnrichedOffering {
        let supporting = Supporting {
            transport: &*self.settings().transport,
            operation: budget,
        };
        let resolved = self.resolve_actions(supporting, &offering, received);
        let (schema, (actions, failed)) =
            join(self.schema_of(supporting, &offering), resolved).await;
        let (schema, unfit) = match schema {
            Ok(schema) => (schema, None),
            Err(issue) => (None, Some(issue)),
        };
        let offering = match &unfit {
            None => offering,
            Some(_) => without_attributes(offering),
        };
        issues.extend(unfit);
        issues.extend(failed);
        EnrichedOffering {
            offering,
            schema,
            actions,
            content_language: None,
            issues,
        }
    }

    /// The schema of the attributes, which they fit.
    async fn schema_of(
        &self,
        supporting: Supporting<'_>,
        offering: &Offering,
    ) -> Result<Option<Schema>, Issue> {
        let (attributes, Some(reference)) = (offering.attributes(), offering.schema()) else {
            return Ok(None);
        };
        let url = reference.url.resolve(self.origin());
        let schema = Schema::fetch(&supporting, url)
            .await
            .map_err(|fault| fault.at(Scope::Attributes, "/schema"))?;
        let value = Value::Object(attributes.clone());
        schema
            .check(Scope::Attributes, "/attributes", value)
            .await?;
        Ok(Some(schema))
    }

    async fn resolve_actions(
        &self,
        supporting: Supporting<'_>,
        offering: &Offering,
        received: &Received,
    ) -> (Vec<ResolvedAction>, Vec<Issue>) {
        let mut resolver = Resolver::new(self, supporting);
        let (mut actions, mut issues) = (Vec::new(), Vec::new());
        for (i, action) in offering.actions().iter().enumerate() {
            match resolver.resolve(action).await {
                Ok(resolved) => actions.push(resolved),
                Err(fault) => {
                    let pointer = received.pointer(action.id.as_str(), i);
                    issues.push(Fault::at(fault, Scope::Action, pointer));
                }
            }
        }
        (actions, issues)
    }
}

/// The same Offering without its attributes and their schema: an Offering never depends on them.
fn without_attributes(offering: Offering) -> Offering {
    let mut value = offering.to_value(Placement::TopLevel);
    if let Value::Object(map) = &mut value {
        map.shift_remove("attributes");
        map.shift_remove("schema");
    }
    Offering::validate(value, Placement::TopLevel).unwrap_or(offering)
}
