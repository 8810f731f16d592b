//! Sorts. The values that are ordered by need not be visible, but filters can tell: in ascending order, what `lte` finds comes
//! before all else, since a filter's lowest value is the one that counts; in descending order, what `gte` finds.

use super::filters::bounds_of;
use super::probe::{Exhausted, Probe};
use super::refinements::{Known, equal};
use super::rules;
use super::search::Target;
use purvey_odp::capability::EffectiveCapabilities;
use purvey_odp::filter::{FilterDefinition, Operator};
use purvey_odp::sort::{Direction, Missing, SortDefinition, SortKey};
use purvey_odp::value::ScalarType;
use serde_json::{Value, json};

pub(super) async fn check(
    probe: &mut Probe<'_>,
    target: &Target,
    capabilities: &EffectiveCapabilities,
    sorts: &[SortDefinition],
    known: &Known,
) -> Result<(), Exhausted> {
    for sort in sorts.iter().take(probe.extent.samples) {
        let id = sort.id().as_str();
        let Some(key) = sort.keys().first() else {
            continue;
        };
        let Some(definition) = capabilities.filter(key.filter_id().as_str()) else {
            continue;
        };
        // Everything that has a value; then what has none plays no part.
        let Some(base) = everything(definition) else {
            probe.skip(format!(
                "The order of {id}: no filter finds all that it orders."
            ));
            continue;
        };
        let found = probe
            .found(target, &json!({"filters": [base], "sort": id}))
            .await?;
        let ordered = found.ids();
        let mut seen_apart = false;
        for first in divisions(definition, key, known) {
            let earlier = probe
                .found(target, &json!({"filters": [base, first]}))
                .await?;
            if !earlier.complete {
                continue;
            }
            let earlier = earlier.set();
            let end = ordered.iter().position(|id| !earlier.contains(*id));
            let late = end.and_then(|end| {
                let rest = ordered.get(end..)?;
                rest.iter().find(|id| earlier.contains(**id))
            });
            seen_apart |= end.is_some_and(|end| end > 0);
            probe.hold_at(
                &rules::SORT_ORDER,
                found.request(),
                "/items",
                late.is_none(),
                || {
                    let late = late.copied().unwrap_or_default();
                    format!("{late} comes after others although {first} finds it and not them.")
                },
            );
        }
        if !seen_apart {
            probe.skip(format!(
                "The order of {id}: no value divides what it orders."
            ));
        }
        absent(probe, target, id, definition, key).await?;
    }
    Ok(())
}

fn has(definition: &FilterDefinition, operator: Operator) -> bool {
    definition.operators().contains(&operator)
}

/// An expression for all that has a value.
fn everything(definition: &FilterDefinition) -> Option<Value> {
    let id = definition.id().as_str();
    if has(definition, Operator::Exists) {
        return Some(json!({"id": id, "operator": "exists", "value": true}));
    }
    let bounds = bounds_of(definition.scalar_type());
    let (operator, value) = if has(definition, Operator::Gte) {
        ("gte", bounds.first()?)
    } else if has(definition, Operator::Lte) {
        ("lte", bounds.last()?)
    } else {
        return None;
    };
    Some(json!({"id": id, "operator": operator, "value": value}))
}

/// Expressions, each for what comes first in the order.
fn divisions(definition: &FilterDefinition, key: &SortKey, known: &Known) -> Vec<Value> {
    let id = definition.id().as_str();
    let ascending = key.direction() == Direction::Ascending;
    if definition.scalar_type() == ScalarType::Boolean {
        let equality = has(definition, Operator::Eq) || has(definition, Operator::In);
        let first = json!(!ascending);
        return equality
            .then(|| equal(definition, &first))
            .into_iter()
            .collect();
    }
    let operators = match ascending {
        true => [Operator::Lte, Operator::Lt],
        false => [Operator::Gte, Operator::Gt],
    };
    let Some(operator) = operators.into_iter().find(|o| has(definition, *o)) else {
        return Vec::new();
    };
    let seen = known.get(id).into_iter().flatten().take(3);
    let values = seen.map(purvey_odp::value::Scalar::to_value);
    let values = values.chain(bounds_of(definition.scalar_type()));
    values
        .map(|value| json!({"id": id, "operator": operator.as_str(), "value": value}))
        .collect()
}

/// What has no value stands where the sort says. Only `exists` tells what that is, and another constraint has to find it.
async fn absent(
    probe: &mut Probe<'_>,
    target: &Target,
    id: &str,
    definition: &FilterDefinition,
    key: &SortKey,
) -> Result<(), Exhausted> {
    if !has(definition, Operator::Exists) {
        return Ok(());
    }
    let filter = definition.id().as_str();
    let without = json!({"id": filter, "operator": "exists", "value": false});
    let missing = probe.found(target, &json!({"filters": [without]})).await?;
    let Some(name) = missing.items().find_map(|item| item.get("name")?.as_str()) else {
        return Ok(());
    };
    // Text that finds at least one of them, and with luck others.
    let query: String = name.chars().take(64).collect();
    let found = probe
        .found(target, &json!({"query": query, "sort": id}))
        .await?;
    if !missing.complete || !found.complete {
        return Ok(());
    }
    let missing = missing.set();
    let ordered = found.ids();
    let first = key.missing() == Missing::First;
    let apart = ordered
        .iter()
        .skip_while(|id| missing.contains(**id) == first)
        .all(|id| missing.contains(*id) != first);
    probe.hold_at(&rules::SORT_ORDER, found.request(), "/items", apart, || {
        let place = if first { "first" } else { "last" };
        format!("What has no {filter} does not all come {place}.")
    });
    Ok(())
}
