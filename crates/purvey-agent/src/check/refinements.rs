//! Refinements: their form, and their counts against what is found.

use super::probe::{Exhausted, Probe};
use super::rules;
use super::search::Target;
use purvey_odp::filter::{FilterDefinition, Operator};
use purvey_odp::limits;
use purvey_odp::refinement::{RefinementGroup, read_groups};
use purvey_odp::report::{Place, Report};
use purvey_odp::value::Scalar;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Values that Offerings have, by filter.
pub(super) type Known = BTreeMap<String, Vec<Scalar>>;

/// Buckets of one group that are counted again.
const BUCKETS: usize = 3;

pub(super) async fn check(
    probe: &mut Probe<'_>,
    target: &Target,
    word: &str,
    filters: &[FilterDefinition],
) -> Result<Known, Exhausted> {
    let mut known = Known::new();
    let refinable = filters.iter().filter(|d| d.is_refinable());
    for definition in refinable.take(probe.extent.samples) {
        let base = base(definition, word);
        let id = definition.id().as_str();
        let mut members = base.clone();
        if let Value::Object(map) = &mut members {
            map.insert("refinements".to_owned(), json!([id]));
        }
        let found = probe.found(target, &members).await?;
        let Some(page) = found.pages.first() else {
            continue;
        };
        let Some(group) = group(probe, &page.request, page.refinements.as_ref(), definition) else {
            continue;
        };
        for (i, bucket) in group.values().iter().enumerate().take(BUCKETS) {
            let at = format!("/refinements/0/values/{i}/count");
            probe.hold_at(
                &rules::REFINEMENT_ZERO,
                &page.request,
                &at,
                bucket.count > 0,
                || format!("{} is counted with 0.", bucket.value.to_value()),
            );
            let most = u64::try_from(probe.extent.pages * limits::PAGE_ITEMS).unwrap_or(u64::MAX);
            if bucket.count <= most {
                let value = bucket.value.to_value();
                count(
                    probe,
                    target,
                    &base,
                    definition,
                    &value,
                    bucket.count,
                    bucket.lower_bound,
                )
                .await?;
            }
        }
        let values = group.values().iter().map(|bucket| bucket.value.clone());
        known.insert(id.to_owned(), values.collect());
    }
    Ok(known)
}

/// A search that finds what the filter has a value for, or at least something.
fn base(definition: &FilterDefinition, word: &str) -> Value {
    if definition.operators().contains(&Operator::Exists) {
        let id = definition.id().as_str();
        return json!({"filters": [{"id": id, "operator": "exists", "value": true}]});
    }
    json!({"query": word})
}

fn group(
    probe: &mut Probe<'_>,
    request: &str,
    refinements: Option<&Value>,
    definition: &FilterDefinition,
) -> Option<RefinementGroup> {
    let mut report = Report::new();
    let root = Place::ROOT;
    let requested = std::slice::from_ref(definition);
    // Without any value to count, nothing has to be there.
    let value = refinements?.clone();
    let read = read_groups(&mut report, &root.key("refinements"), value, requested);
    probe.outcome.exercise(&rules::REFINEMENT_VALID);
    match report.finish(read) {
        Ok(groups) => groups.into_iter().next(),
        Err(invalid) => {
            for violation in invalid.violations() {
                let pointer = &violation.pointer;
                let rule = &rules::REFINEMENT_VALID;
                probe
                    .outcome
                    .find(rule, request, pointer, &violation.reason);
            }
            None
        }
    }
}

/// Counts again what a bucket counted.
async fn count(
    probe: &mut Probe<'_>,
    target: &Target,
    base: &Value,
    definition: &FilterDefinition,
    value: &Value,
    counted: u64,
    lower_bound: bool,
) -> Result<(), Exhausted> {
    let equal = equal(definition, value);
    let mut members = base.clone();
    if let Value::Object(map) = &mut members {
        // A count leaves out what the base says about the same filter; equality says it all.
        map.insert("filters".to_owned(), json!([equal]));
    }
    let found = probe.found(target, &members).await?;
    if !found.complete {
        return Ok(());
    }
    let number = u64::try_from(found.ids().len()).unwrap_or(u64::MAX);
    let kept = number == counted || (lower_bound && number > counted);
    probe.hold_at(&rules::REFINEMENT_COUNT, found.request(), "", kept, || {
        format!("{value} is counted with {counted}; {number} are found.")
    });
    Ok(())
}

/// An expression for Offerings that have this value; a refinable filter has one of the two operators.
pub(super) fn equal(definition: &FilterDefinition, value: &Value) -> Value {
    let id = definition.id().as_str();
    match definition.operators().contains(&Operator::Eq) {
        true => json!({"id": id, "operator": "eq", "value": value}),
        false => json!({"id": id, "operator": "in", "value": [value]}),
    }
}
