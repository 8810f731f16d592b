//! What is done for each subject of the vectors.
//!
//! A handler gets a case without its expectation and says what happened. In the Service's role it asks the running Service
//! wherever the case is about what a Service serves or takes; what only a reader does is done by the types that readers use.

mod actions;
mod advertisement;
mod collections;
mod complete;
mod documents;
mod exchange;
mod identity;
mod pages;
mod problems;
mod schemas;
mod search;

use crate::adapter::Role;
use crate::case::{Fault, Input, Outcome};

/// What a handler has to say.
#[derive(Clone, Debug)]
pub enum Reply {
    /// The case was carried out.
    Happened(Outcome),
    /// There is no behaviour for it yet; why.
    Skipped(&'static str),
}

impl From<Outcome> for Reply {
    fn from(outcome: Outcome) -> Self {
        Self::Happened(outcome)
    }
}

/// Carries out one case.
type Handler = fn(Role, &Input) -> Result<Reply, Fault>;

/// Names of the members in which cases of a subject hold what they expect; empty when it is not known.
pub fn expectation(subject: &str, operation: &str) -> &'static [&'static str] {
    find(subject, operation).map_or(&[], |(expected, _)| expected)
}

/// Carries out one case of a subject.
///
/// # Errors
/// When the case cannot be carried out.
pub fn carry_out(role: Role, subject: &str, input: &Input) -> Result<Reply, Fault> {
    match find(subject, input.operation()) {
        Some((_, handler)) => handler(role, input),
        None => Ok(Reply::Skipped(
            "this subject and operation are not known here",
        )),
    }
}

const SEARCH: &str = "the Service does not search yet";
const AGENT: &str = "there is no Agent yet";

const NO_SEARCH: Handler = |_, _| Ok(Reply::Skipped(SEARCH));
const NO_AGENT: Handler = |_, _| Ok(Reply::Skipped(AGENT));

/// `handler` in the Service's role; nothing yet in the Agent's.
macro_rules! service_only {
    ($handler:path) => {
        |role, input| match role {
            Role::Service => $handler(input),
            Role::Agent => NO_AGENT(role, input),
        }
    };
}

/// The one table: subject and operation, where expectations are, what is done.
fn find(subject: &str, operation: &str) -> Option<(&'static [&'static str], Handler)> {
    const VALID: &[&str] = &["valid"];
    const EXPECTED: &[&str] = &["expected"];
    Some(match (subject, operation) {
        ("action-contract", "validate-actions") => {
            (&["expected_usable", "expected_issues"], actions::usable)
        }
        ("action-contract", "resolve-openapi") => (VALID, NO_AGENT),

        ("attribute-schema-retrieval", "validate-reference") => (VALID, schemas::reference),
        ("attribute-schema-retrieval", "validate-response") => {
            (VALID, service_only!(schemas::response))
        }
        ("attribute-schema-retrieval", "validate-schema-reference-profile") => {
            (VALID, service_only!(schemas::profile))
        }
        ("attribute-schema-retrieval", "validation-scope") => (
            &["complete_instance_validation"],
            service_only!(schemas::scope),
        ),
        ("attribute-schema-retrieval", "failure-scope") => (EXPECTED, NO_AGENT),

        ("auth-expands", "") => (VALID, pages::auth_expands),

        ("collection-envelope", "") => (VALID, documents::collection),
        ("collection-hierarchy", "") => (VALID, collections::hierarchy),
        ("collection-membership", "") => (&["offering_ids", "valid"], collections::membership),
        ("invalid-edge-handling", "") => (EXPECTED, collections::invalid_edge),

        ("collection-search-contract", "validate-request") => (VALID, search::collection_request),
        ("collection-search-contract", "apply-constraints") => (&["collection_ids"], NO_SEARCH),

        ("composition-contract", "validate-advertisement") => (VALID, advertisement::protocols),
        ("composition-contract", "filter-advertisement") => {
            (EXPECTED, advertisement::known_protocols)
        }
        ("composition-contract", "normalize-agent-response") => (EXPECTED, documents::normalised),
        ("composition-contract", "classify-live-response") => (EXPECTED, NO_AGENT),
        ("composition-contract", "validate-sequence") => (VALID, NO_AGENT),

        ("detail-fields", "") => (VALID, documents::detail_fields),

        ("errors-limits-contract", "validate-problem") => (VALID, problems::problem),
        ("errors-limits-contract", "validate-limit") => (VALID, problems::limit),
        ("errors-limits-contract", "limit-failure-scope") => (EXPECTED, NO_AGENT),
        ("errors-limits-contract", "retry") => (&["retry"], NO_AGENT),

        ("filter-sort-contract", "validate-definition") => (VALID, search::definition),
        ("filter-sort-contract", "validate-expression") => (VALID, search::expression),
        ("filter-sort-contract", "evaluate-expression") => (VALID, search::evaluation),
        ("filter-sort-contract", "validate-sort") => (VALID, search::sort),

        ("identity-comparison", "") => (&["same_identity"], identity::comparison),
        ("local-identifier", "") => (VALID, identity::local_identifier),
        ("resource-reference", "") => (VALID, identity::resource_reference),
        ("service-origin", "") => (VALID, identity::service_origin),

        ("media-negotiation", "") => (
            &["response", "agent", "effective_odp_version"],
            exchange::media,
        ),

        ("offering-contract", "") => (VALID, documents::offering),

        ("offering-search-contract", "validate-request") => (VALID, search::offering_request),
        ("offering-search-contract", "apply-constraints") => (EXPECTED, NO_SEARCH),

        ("pagination-contract", "validate-page") => (VALID, pages::page),
        ("pagination-contract", "validate-limit") => (VALID, pages::limit),
        ("pagination-contract", "validate-sequence") => (VALID, pages::sequence),
        ("pagination-contract", "validate-next") => (VALID, pages::next),
        ("pagination-contract", "validate-lifetime") => (VALID, pages::lifetime),
        ("pagination-contract", "validate-storage-model") => (VALID, pages::storage_model),
        ("pagination-contract", "conditional-get") => (
            &["status", "valid"],
            service_only!(exchange::conditional_get),
        ),

        ("protocol-version", "") => (&["valid", "compatible"], documents::protocol_version),

        ("refinement-contract", "validate-request") => (VALID, search::refinement_request),
        ("refinement-contract", "validate-response") => (VALID, search::refinement_response),
        ("refinement-contract", "compute-counts") => (EXPECTED, search::refinement_counts),

        // Here `operation` is that of the protocol.
        ("representation-selection", _) => (EXPECTED, exchange::representation),

        ("role-baseline", "") => (VALID, service_only!(exchange::baseline)),

        ("search-capability-contract", "validate-advertisement") => {
            (VALID, advertisement::capabilities)
        }
        ("search-capability-contract", "validate-linked-source") => {
            (VALID, advertisement::linked_source)
        }
        ("search-capability-contract", "validate-linked-page-count") => {
            (VALID, advertisement::page_count)
        }
        ("search-capability-contract", "merge-capabilities") => (EXPECTED, advertisement::merge),

        ("security-contract", "forwarded-sensitive-fields") => (EXPECTED, NO_AGENT),
        (
            "security-contract",
            "validate-destination"
            | "validate-redirect"
            | "action-invocable"
            | "payment-authorized"
            | "cache-reusable",
        ) => (VALID, NO_AGENT),

        ("service-document", "") => (VALID, documents::service_document),
        ("version-placement", "") => (VALID, exchange::version_placement),
        _ => return None,
    })
}
