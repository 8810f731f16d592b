//! What input and output must fit: JSON Schema Draft 2020-12 within bounds (Work §3, §6).
//!
//! A schema may refer only to itself; patterns, depth and steps are bounded before anything is evaluated, and what cannot be evaluated within
//! those bounds does not fit. `format` is not asserted, as the dialect has it. Every function here blocks for some ten microseconds at
//! least: callers that must not block use a thread for blocking work.

use crate::{
    error::{Error, Fault, Refusal},
    model::VerificationError,
};
use purvey_agent::{Issue, Mismatch, Schema};
use serde_json::Value;

/// Most bytes of one schema.
pub const SCHEMA_BYTES: usize = 262_144;
/// Most broken rules that are told of one value.
pub const ERRORS: usize = 32;

/// Whether `schema` can be kept as an agent's; `pointer` is where it stands in the request.
///
/// # Errors
/// What is wrong with it, and where.
pub fn check_schema(schema: &Value, pointer: &str) -> Result<(), Fault> {
    compile(schema)
        .map(|_| ())
        .map_err(|unusable| Fault::body(format!("{pointer}{}", unusable.pointer), unusable.reason))
}

/// Holds a start's `input` to the agent's input schema.
///
/// # Errors
/// `request.invalid` with each broken rule, its pointer below `/input`.
pub fn check_input(schema: &Value, input: &Value) -> Result<(), Error> {
    let faults: Vec<_> = broken(schema, input)
        .into_iter()
        .map(|broken| Fault::body(format!("/input{}", broken.instance), broken.reason))
        .collect();
    if faults.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(faults).into())
}

/// Holds a run's `output` to its contract: the broken rules, none when it fits.
#[must_use]
pub fn verify(contract: &Value, output: &Value) -> Vec<VerificationError> {
    let broken = broken(contract, output).into_iter();
    broken
        .map(|broken| VerificationError {
            instance: broken.instance,
            keyword: broken.keyword,
            reason: broken.reason,
        })
        .collect()
}

/// Why a schema cannot be used, and where in it.
struct Unusable {
    pointer: String,
    reason: String,
}

impl From<Issue> for Unusable {
    fn from(issue: Issue) -> Self {
        Self {
            pointer: issue.pointer,
            reason: issue.message,
        }
    }
}

fn compile(schema: &Value) -> Result<Schema, Unusable> {
    if schema.to_string().len() > SCHEMA_BYTES {
        return Err(Unusable {
            pointer: String::new(),
            reason: format!("The schema has more than {SCHEMA_BYTES} bytes."),
        });
    }
    Ok(Schema::local(schema.clone())?)
}

fn broken(schema: &Value, value: &Value) -> Vec<Mismatch> {
    let held =
        compile(schema).and_then(|schema| schema.mismatches(value, ERRORS).map_err(Unusable::from));
    held.unwrap_or_else(|unusable| {
        vec![Mismatch {
            instance: String::new(),
            keyword: unusable.pointer,
            reason: format!("cannot be held to the schema: {}", unusable.reason),
        }]
    })
}
