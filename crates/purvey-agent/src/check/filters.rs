//! Filters: what each advertised operator finds, held against the others.

use super::probe::{Exhausted, Probe};
use super::refinements::Known;
use super::rules;
use super::search::Target;
use super::traversal::Traversal;
use purvey_odp::filter::{FilterDefinition, Operator};
use purvey_odp::value::{Scalar, ScalarType};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) async fn check(
    probe: &mut Probe<'_>,
    target: &Target,
    all: Option<&BTreeSet<String>>,
    filters: &[FilterDefinition],
    known: &Known,
) -> Result<(), Exhausted> {
    for definition in filters.iter().take(probe.extent.samples) {
        no_match(probe, target, definition).await?;
        let absent = exists(probe, target, definition, all).await?;
        let known = known.get(definition.id().as_str());
        let values = known.map_or(&[][..], Vec::as_slice);
        for value in values.iter().take(2) {
            equality(probe, target, definition, value, &absent).await?;
        }
        for (operator, ascending) in [
            (Operator::Lt, true),
            (Operator::Lte, true),
            (Operator::Gt, false),
            (Operator::Gte, false),
        ] {
            if definition.operators().contains(&operator) {
                bounds(probe, target, definition, operator, ascending).await?;
            }
        }
    }
    Ok(())
}

fn expression(definition: &FilterDefinition, operator: Operator, value: &Value) -> Value {
    json!({"filters": [{
        "id": definition.id().as_str(), "operator": operator.as_str(), "value": value
    }]})
}

async fn no_match(
    probe: &mut Probe<'_>,
    target: &Target,
    definition: &FilterDefinition,
) -> Result<(), Exhausted> {
    let value = match definition.scalar_type() {
        ScalarType::String => json!("purvey-check: no such value"),
        ScalarType::Integer => json!(-8_675_309_421_i64),
        ScalarType::Number => json!(-8_675_309_421.125),
        ScalarType::Decimal => json!("-8675309421.125"),
        ScalarType::Date => json!("1601-02-03"),
        ScalarType::DateTime => json!("1601-02-03T04:05:06Z"),
        _ => return Ok(()),
    };
    if !definition.operators().contains(&Operator::Eq) {
        return Ok(());
    }
    let members = expression(definition, Operator::Eq, &value);
    let found = probe.found(target, &members).await?;
    if found.pages.is_empty() {
        return Ok(());
    }
    let ids = found.ids();
    probe.hold_at(
        &rules::FILTER_NO_MATCH,
        found.request(),
        "/items",
        ids.is_empty(),
        || format!("{} Offerings are found.", ids.len()),
    );
    Ok(())
}

/// Divides by `exists`; gives what has no value, as far as it is known.
async fn exists(
    probe: &mut Probe<'_>,
    target: &Target,
    definition: &FilterDefinition,
    all: Option<&BTreeSet<String>>,
) -> Result<BTreeSet<String>, Exhausted> {
    if !definition.operators().contains(&Operator::Exists) {
        return Ok(BTreeSet::new());
    }
    let of = |value: bool| expression(definition, Operator::Exists, &json!(value));
    let with = probe.found(target, &of(true)).await?;
    let without = probe.found(target, &of(false)).await?;
    if with.pages.is_empty() || without.pages.is_empty() {
        return Ok(BTreeSet::new());
    }
    let (present, absent) = (with.set(), without.set());
    let both: Vec<_> = present.intersection(&absent).cloned().collect();
    let rule = &rules::FILTER_EXISTS;
    probe.hold_at(rule, without.request(), "/items", both.is_empty(), || {
        format!("{both:?} are found by true and by false.")
    });
    if let (true, true, Some(all)) = (with.complete, without.complete, all) {
        let neither: Vec<_> = all
            .iter()
            .filter(|id| !present.contains(*id) && !absent.contains(*id))
            .collect();
        probe.hold_at(
            rule,
            without.request(),
            "/items",
            neither.is_empty(),
            || format!("{neither:?} are found by neither true nor false."),
        );
    }
    Ok(absent)
}

async fn equality(
    probe: &mut Probe<'_>,
    target: &Target,
    definition: &FilterDefinition,
    value: &Scalar,
    absent: &BTreeSet<String>,
) -> Result<(), Exhausted> {
    let value = value.to_value();
    let has = |operator| definition.operators().contains(&operator);
    if !has(Operator::Eq) {
        return Ok(());
    }
    let equal = probe
        .found(target, &expression(definition, Operator::Eq, &value))
        .await?;
    let ids = equal.set();
    let wrong: Vec<_> = ids.intersection(absent).collect();
    probe.hold_at(
        &rules::FILTER_EQ,
        equal.request(),
        "/items",
        wrong.is_empty(),
        || format!("{wrong:?} have no value, says exists false."),
    );
    if has(Operator::In) {
        let members = expression(definition, Operator::In, &json!([value]));
        let within = probe.found(target, &members).await?;
        let same = !equal.complete || !within.complete || within.set() == ids;
        probe.hold_at(&rules::FILTER_EQ, within.request(), "/items", same, || {
            format!("eq finds {}, in {}.", ids.len(), within.ids().len())
        });
    }
    Ok(())
}

/// Values to compare with, in ascending order.
pub(super) fn bounds_of(scalar_type: ScalarType) -> Vec<Value> {
    let texts = |texts: [&str; 3]| texts.iter().map(|text| json!(text)).collect();
    match scalar_type {
        ScalarType::Integer | ScalarType::Number => vec![json!(1), json!(10), json!(100)],
        ScalarType::Decimal => texts(["1", "10", "100"]),
        ScalarType::Date => texts(["2000-01-01", "2026-01-01", "2027-03-01"]),
        ScalarType::DateTime => texts([
            "2000-01-01T00:00:00Z",
            "2026-01-01T00:00:00Z",
            "2027-03-01T00:00:00Z",
        ]),
        _ => Vec::new(),
    }
}

/// What a narrow bound finds, a wider one finds as well.
async fn bounds(
    probe: &mut Probe<'_>,
    target: &Target,
    definition: &FilterDefinition,
    operator: Operator,
    ascending: bool,
) -> Result<(), Exhausted> {
    let mut values = bounds_of(definition.scalar_type());
    if !ascending {
        values.reverse();
    }
    let mut narrow: Option<Traversal> = None;
    for value in values {
        let members = expression(definition, operator, &value);
        let wide = probe.found(target, &members).await?;
        if !wide.complete {
            return Ok(());
        }
        if let Some(narrow) = narrow {
            let set = wide.set();
            let lost: Vec<_> = narrow
                .ids()
                .into_iter()
                .filter(|id| !set.contains(*id))
                .collect();
            let rule = &rules::FILTER_ORDER;
            probe.hold_at(rule, wide.request(), "/items", lost.is_empty(), || {
                format!("{lost:?} were found by a narrower bound.")
            });
        }
        narrow = Some(wide);
    }
    Ok(())
}
