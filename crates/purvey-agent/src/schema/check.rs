//! Holding a value to a schema, within bounds of time and memory.

use super::index::Index;
use super::{Mismatch, cost, expansion};
use crate::issue::{Fault, IssueCode};
use jsonschema::{Draft, PatternOptions, Uri, Validator};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Memory that one compiled regular expression may take.
pub(super) const PATTERN_BYTES: usize = 262_144;
/// Steps that one search may take when it has to go back and forth.
const BACKTRACK_LIMIT: usize = 10_000;
/// Stack of the thread that evaluates: schemas refer to schemas, and each reference is a call.
const STACK_BYTES: usize = 64 * 1_048_576;
/// Most work, in steps times values, that is spent on telling what does not fit.
const TELLING: u64 = 250_000;
/// The same where every place is told, to whoever made both schema and value.
const TELLING_ALL: u64 = 10_000_000;
/// Most bytes of one reason.
const REASON: usize = 300;

/// Why a value is not known to fit.
pub(super) enum Misfit {
    /// It breaks the schema at this JSON Pointer; the sentence names the rule, not the value.
    Mismatch(String, String),
    /// The schema cannot be used.
    Fault(Fault),
}

impl From<Fault> for Misfit {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Holds `value` to `schema`, a locally complete document; `beside` are JSON Pointers of further schemas in it that no keyword
/// holds. Evaluation has a thread of its own: it needs a deep stack, and nobody else should wait for it.
pub(super) async fn check(
    schema: Arc<Value>,
    beside: Vec<String>,
    value: Value,
) -> Result<(), Misfit> {
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        // Nobody listens any more when the caller gave up.
        let _ = sender.send(evaluate(&schema, &beside, &value));
    };
    let thread = std::thread::Builder::new()
        .name("purvey-schema".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(work);
    let stopped = || Fault::new(IssueCode::TooCostly, "The schema could not be evaluated.");
    match thread {
        Ok(_) => receiver.await.map_err(|_| stopped())?,
        Err(_) => Err(stopped().into()),
    }
}

fn evaluate(schema: &Value, beside: &[String], value: &Value) -> Result<(), Misfit> {
    let beside: Vec<&Value> = beside.iter().filter_map(|at| schema.pointer(at)).collect();
    let index = Index::new(schema, &beside)?;
    let steps = cost::count(&index, schema, value)?;
    expansion::check(&index, schema)?;
    let validator = compile(schema)?;
    if validator.is_valid(value) {
        return Ok(());
    }
    let telling = steps.saturating_mul(nodes(value).saturating_add(nodes(schema)));
    let (pointer, rule) = match (telling <= TELLING).then(|| validator.validate(value)) {
        Some(Err(error)) => (
            error.instance_path().to_string(),
            format!("Does not fit its schema: {}.", error.kind().keyword()),
        ),
        _ => (String::new(), "Do not fit their schema.".to_owned()),
    };
    Err(Misfit::Mismatch(pointer, rule))
}

/// Runs `work` on a stack deep enough for schemas that refer to schemas, and waits for it.
pub(super) fn deeply<T: Send>(work: impl FnOnce() -> Result<T, Fault> + Send) -> Result<T, Fault> {
    let stopped = || Fault::new(IssueCode::TooCostly, "The schema could not be evaluated.");
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("purvey-schema".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|_| stopped())?;
        thread.join().map_err(|_| stopped())?
    })
}

/// Whether `schema` can be used at all; if not, why, and where in it.
pub(super) fn usable(schema: &Value) -> Result<(), (String, Fault)> {
    let whole = |fault| (String::new(), fault);
    let index = Index::new(schema, &[]).map_err(whole)?;
    index.check_references().map_err(whole)?;
    // Finds what refers to itself without end before a value comes along.
    cost::count(&index, schema, &Value::Null).map_err(whole)?;
    expansion::check(&index, schema).map_err(whole)?;
    build(schema).map(|_| ()).map_err(|error| {
        let reason = bounded(error.masked().to_string());
        let why = format!("It breaks a rule of its dialect: {reason}.");
        let place = error.instance_path().to_string();
        (place, Fault::new(IssueCode::Invalid, why))
    })
}

/// What does not fit, at most `most` places; one that names none when telling them would take too much work.
pub(super) fn mismatches(
    schema: &Value,
    value: &Value,
    most: usize,
) -> Result<Vec<Mismatch>, Fault> {
    let index = Index::new(schema, &[])?;
    let steps = cost::count(&index, schema, value)?;
    expansion::check(&index, schema)?;
    let validator = compile(schema)?;
    if validator.is_valid(value) {
        return Ok(Vec::new());
    }
    let telling = steps.saturating_mul(nodes(value).saturating_add(nodes(schema)));
    if telling > TELLING_ALL {
        return Ok(vec![Mismatch {
            instance: String::new(),
            keyword: String::new(),
            reason: "does not fit; there are too many values to say where".to_owned(),
        }]);
    }
    let errors = validator.iter_errors(value).take(most);
    Ok(errors
        .map(|error| Mismatch {
            instance: error.instance_path().to_string(),
            keyword: error.evaluation_path().to_string(),
            reason: bounded(error.masked().to_string()),
        })
        .collect())
}

fn bounded(mut reason: String) -> String {
    if reason.len() > REASON {
        reason.truncate(reason.floor_char_boundary(REASON));
        reason.push('…');
    }
    reason
}

fn compile(schema: &Value) -> Result<Validator, Fault> {
    build(schema).map_err(|error| {
        Fault::new(
            IssueCode::Invalid,
            format!(
                "The schema breaks a rule of its dialect at {}: {}.",
                error.instance_path(),
                error.kind().keyword()
            ),
        )
    })
}

fn build(schema: &Value) -> Result<Validator, jsonschema::ValidationError<'static>> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_retriever(Nowhere)
        .with_pattern_options(
            PatternOptions::fancy_regex()
                .backtrack_limit(BACKTRACK_LIMIT)
                .size_limit(PATTERN_BYTES)
                .dfa_size_limit(PATTERN_BYTES),
        )
        .build(schema)
}

/// Values within `value`, itself included.
fn nodes(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(nodes).fold(1, u64::saturating_add),
        Value::Object(map) => map.values().map(nodes).fold(1, u64::saturating_add),
        _ => 1,
    }
}

/// A locally complete schema refers to nothing elsewhere.
struct Nowhere;

impl jsonschema::Retrieve for Nowhere {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{} is not at hand", uri.as_str()).into())
    }
}
