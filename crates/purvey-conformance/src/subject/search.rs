//! Search: definitions, expressions, requests, refinements.

use super::complete;
use crate::adapter::Role;
use crate::case::{Fault, Input, Outcome};
use purvey_odp::capability::{EffectiveCapabilities, Fetched, ScopeCapabilities};
use purvey_odp::filter::{FilterDefinition, FilterExpression};
use purvey_odp::identity::CapabilityId;
use purvey_odp::refinement::read_groups;
use purvey_odp::report::{Invalid, Place, Report};
use purvey_odp::request::{CollectionSearchRequest, OfferingSearchRequest, ResolvedSearch};
use purvey_odp::sort::SortDefinition;
use purvey_odp::value::Scalar;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

pub(super) fn definition(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let valid = FilterDefinition::validate(input.member("definition")?).is_ok();
    Ok(Outcome::valid(valid))
}

fn defined(input: &Input) -> Result<(FilterDefinition, Result<FilterExpression, Invalid>), Fault> {
    let definition =
        FilterDefinition::validate(input.member("definition")?).map_err(Fault::of("definition"))?;
    let expression = FilterExpression::validate(input.member("expression")?, &definition);
    Ok((definition, expression))
}

pub(super) fn expression(_: Role, input: &Input) -> Result<Outcome, Fault> {
    Ok(Outcome::valid(defined(input)?.1.is_ok()))
}

/// Whether an Offering with these values matches.
pub(super) fn evaluation(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let (definition, expression) = defined(input)?;
    let expression = expression.map_err(Fault::of("expression"))?;
    let values = scalars(&definition, &input.member("values")?)?;
    Ok(Outcome::valid(expression.matches(&values)))
}

fn scalars(definition: &FilterDefinition, values: &Value) -> Result<Vec<Scalar>, Fault> {
    let scalar_type = definition.scalar_type();
    let values = values.as_array().into_iter().flatten();
    values
        .map(|value| {
            scalar_type
                .scalar(value)
                .ok_or_else(|| Fault(format!("{value} is not of the type {scalar_type}")))
        })
        .collect()
}

/// Whether a Service may publish the sort beside these filters.
pub(super) fn sort(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let filters = definitions(input)?;
    let valid = SortDefinition::validate(input.member("sort")?).is_ok_and(|sort| {
        let service = ScopeCapabilities {
            filters: Fetched::Definitions(filters),
            sorts: Fetched::Definitions(vec![sort]),
        };
        EffectiveCapabilities::check(service, None).is_ok()
    });
    Ok(Outcome::valid(valid))
}

fn definitions(input: &Input) -> Result<Vec<FilterDefinition>, Fault> {
    let definitions: Vec<Value> = input.read("definitions")?;
    definitions
        .into_iter()
        .map(|definition| {
            FilterDefinition::validate(complete::filter(definition))
                .map_err(Fault::of("definition"))
        })
        .collect()
}

pub(super) fn collection_request(_: Role, input: &Input) -> Result<Outcome, Fault> {
    Ok(Outcome::valid(
        CollectionSearchRequest::validate(input.member("request")?).is_ok(),
    ))
}

pub(super) fn offering_request(_: Role, input: &Input) -> Result<Outcome, Fault> {
    Ok(Outcome::valid(
        OfferingSearchRequest::validate(input.member("request")?).is_ok(),
    ))
}

/// Both steps: the request by itself, and against what is advertised.
fn resolved(request: Value, filters: Vec<FilterDefinition>) -> Result<ResolvedSearch, Invalid> {
    let service = ScopeCapabilities {
        filters: Fetched::Definitions(filters),
        sorts: Fetched::Absent,
    };
    let effective = EffectiveCapabilities::merge(service, None);
    OfferingSearchRequest::validate(complete::search(request))?.resolve(&effective)
}

pub(super) fn refinement_request(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let resolved = resolved(input.member("request")?, definitions(input)?);
    Ok(Outcome::valid(resolved.is_ok()))
}

/// On a continuation nothing was asked for.
pub(super) fn refinement_response(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let resolved =
        resolved(input.member("request")?, definitions(input)?).map_err(Fault::of("request"))?;
    let continuation: bool = input.read_or_default("continuation")?;
    let requested = if continuation {
        &[]
    } else {
        resolved.refinements()
    };
    let response: Map<String, Value> = input.read("response")?;
    let Some(groups) = response.get("refinements") else {
        return Ok(Outcome::valid(true));
    };
    let mut report = Report::new();
    let place = Place::ROOT.key("refinements");
    let groups = read_groups(&mut report, &place, groups.clone(), requested);
    Ok(Outcome::valid(report.finish(groups).is_ok()))
}

/// Counts the Offerings that match beside the filter's own expressions, by value.
pub(super) fn refinement_counts(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let request = input.member("request")?;
    let offerings: Vec<Value> = input.read("service_matches")?;
    let mapped: Vec<Map<String, Value>> = offerings
        .into_iter()
        .map(|mut offering| serde_json::from_value(offering["mapped_values"].take()))
        .collect::<Result<_, _>>()
        .map_err(Fault::of("mapped_values"))?;
    let refined: String = input.read("filter_id")?;
    let refined = CapabilityId::parse(&refined).map_err(Fault::of("filter_id"))?;
    let definitions = implied(&mapped)?;
    let values: Vec<HashMap<CapabilityId, Vec<Scalar>>> = mapped
        .iter()
        .map(|mapped| {
            let pairs = definitions.iter().map(|definition| {
                let values = mapped.get(definition.id().as_str()).unwrap_or(&Value::Null);
                Ok((definition.id().clone(), scalars(definition, values)?))
            });
            pairs.collect()
        })
        .collect::<Result<_, Fault>>()?;
    let definition = definitions
        .iter()
        .find(|definition| *definition.id() == refined);
    let definition =
        definition.ok_or_else(|| Fault(format!("no Offering has the filter {refined}")))?;
    let counted = input.member("values")?;
    let search = resolved(request, definitions.clone()).map_err(Fault::of("request"))?;
    let mut counts = Map::new();
    for value in scalars(definition, &counted)? {
        let count = values
            .iter()
            .filter(|of| {
                let of = |id: &CapabilityId| of.get(id).map_or(&[][..], Vec::as_slice);
                of(&refined).contains(&value) && search.matches_beside(&refined, of)
            })
            .count();
        let name = match value.to_value() {
            Value::String(text) => text,
            other => other.to_string(),
        };
        counts.insert(name, count.into());
    }
    Ok(Outcome::new().with("expected", counts))
}

/// Definitions for the values that Offerings are said to have: the case leaves them out.
fn implied(mapped: &[Map<String, Value>]) -> Result<Vec<FilterDefinition>, Fault> {
    let mut types = Map::new();
    for (id, values) in mapped.iter().flatten() {
        let kind = match values.get(0) {
            Some(Value::Bool(_)) => "boolean",
            Some(Value::Number(_)) => "number",
            _ => "string",
        };
        types.insert(id.clone(), kind.into());
    }
    types
        .into_iter()
        .map(|(id, kind)| {
            let definition = complete::filter(json!({"id": id, "type": kind, "refinable": true}));
            FilterDefinition::validate(definition).map_err(Fault::of("definition"))
        })
        .collect()
}
