//! Attribute schemas (ODP §10): fetched whole, made locally complete, evaluated within bounds.
//!
//! Bounds of the Agent's own, beside those of the protocol: 2,048 references, 256 distinct regular expressions of 16,384 bytes
//! together, 2,000,000 steps of an evaluation, counted before it begins. `format` is not asserted, as the dialect has it.

mod check;
mod cost;
mod expansion;
mod graph;
mod index;

use crate::issue::{Fault, Issue, IssueCode, Scope};
use crate::supporting::Supporting;
pub(crate) use index::percent_decoded;

use check::Misfit;
use serde_json::{Map, Value};
use std::sync::Arc;
use url::Url;

/// A schema with everything that it refers to, as one document.
///
/// Documents that were fetched beside the first are embedded in its `$defs`, each under its own `$id`, and every `$ref` is
/// absolute: any validator of Draft 2020-12 can use it without a network. The dialect's own schemas are not embedded.
#[derive(Clone, Debug)]
pub struct Schema {
    document: Arc<Value>,
    /// JSON Pointers of schemas that no keyword of a schema holds.
    beside: Vec<String>,
}

/// One place at which a value does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// JSON Pointer into the value.
    pub instance: String,
    /// JSON Pointer into the schema, through the references that were followed.
    pub keyword: String,
    /// The broken rule, at most some 300 bytes. Says `value` for the value itself.
    pub reason: String,
}

impl Schema {
    /// A schema of the caller's own: a whole document of Draft 2020-12 that refers to nothing outside of itself. `$schema` may be
    /// left out. Blocks for as long as the schema takes to compile, which is bounded.
    ///
    /// # Errors
    /// An issue whose pointer leads to what is wrong with it, or to the whole.
    pub fn local(document: Value) -> Result<Self, Issue> {
        let at = |pointer, fault: Fault| fault.at(Scope::Member, pointer);
        let checked = check::deeply(|| {
            let document = graph::local(document)?;
            Ok(match check::usable(&document) {
                Ok(()) => Ok(document),
                Err((pointer, fault)) => Err(at(pointer, fault)),
            })
        });
        let document = checked.map_err(|fault| at(String::new(), fault))??;
        Ok(Self {
            document: Arc::new(document),
            beside: Vec::new(),
        })
    }

    /// Every place at which `value` does not fit, at most `most`; blocks for as long as that takes, which is bounded.
    ///
    /// # Errors
    /// Why the value cannot be held to the schema: an [`IssueCode::TooCostly`] issue.
    pub fn mismatches(&self, value: &Value, most: usize) -> Result<Vec<Mismatch>, Issue> {
        check::deeply(|| check::mismatches(&self.document, value, most))
            .map_err(|fault| fault.at(Scope::Member, ""))
    }

    /// The document; at most 16 documents and 1,048,576 bytes went into it.
    pub fn document(&self) -> &Value {
        &self.document
    }

    pub(crate) async fn fetch(supporting: &Supporting<'_>, url: Url) -> Result<Self, Fault> {
        let document = Arc::new(graph::fetch(supporting, url).await?);
        Ok(Self {
            document,
            beside: Vec::new(),
        })
    }

    /// The schema at `pointer` in a document that is no schema itself.
    pub(crate) fn embedded(
        document: &Map<String, Value>,
        url: &Url,
        pointer: &str,
        mut beside: Vec<String>,
    ) -> Result<Self, Fault> {
        let document = Arc::new(graph::embedded(document, url, pointer, &beside)?);
        beside.push(pointer.to_owned());
        Ok(Self { document, beside })
    }

    /// Holds `value` to the schema, on a thread of its own.
    ///
    /// # Errors
    /// One issue of this `scope`, its place below `pointer`: [`IssueCode::Mismatch`] at the first place that does not fit, or
    /// why the schema cannot be evaluated ([`IssueCode::Invalid`], [`IssueCode::TooCostly`]).
    pub async fn check(&self, scope: Scope, pointer: &str, value: Value) -> Result<(), Issue> {
        let checked = check::check(self.document.clone(), self.beside.clone(), value).await;
        checked.map_err(|misfit| match misfit {
            Misfit::Fault(fault) => fault.at(scope, pointer),
            Misfit::Mismatch(below, rule) => {
                Fault::new(IssueCode::Mismatch, rule).at(scope, format!("{pointer}{below}"))
            }
        })
    }
}
