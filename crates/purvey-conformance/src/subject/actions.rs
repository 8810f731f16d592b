//! Actions.

use crate::adapter::Role;
use crate::case::{Fault, Input, Outcome};
use purvey_odp::normalise;
use purvey_odp::offering::{Offering, Placement, Representation};
use serde_json::{Value, json};

/// What an Agent keeps of an Offering's Actions. A Service may publish the Offering only when that is all of them.
pub(super) fn usable(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let offering = json!({"odp_version": "1.0", "id": "item", "name": "Item", "actions": input.member("actions")?});
    let mut kept = offering.clone();
    let dropped = normalise::offering(&mut kept, Representation::Full);
    let kept = Offering::validate(kept, Placement::TopLevel)
        .map_err(Fault::of("the Offering that is left"))?;
    let usable: Value = kept
        .actions()
        .iter()
        .map(|action| action.id.as_str())
        .collect();
    let issues: Value = dropped
        .iter()
        .filter(|dropped| dropped.pointer.starts_with("/actions/"))
        .map(|dropped| dropped.value.get("id").cloned().unwrap_or_default())
        .collect();
    if role == Role::Service {
        let published = Offering::validate(offering, Placement::TopLevel);
        if published.is_ok() != dropped.is_empty() {
            return Err(Fault(format!(
                "a Service may publish it: {published:?}; an Agent drops {dropped:?}"
            )));
        }
    }
    Ok(Outcome::new()
        .with("expected_usable", usable)
        .with("expected_issues", issues))
}
