//! What is done for each subject of the vectors.
//!
//! A handler gets a case without its expectation and says what happened. In the Service's role it asks the running Service
//! wherever the case is about what a Service serves or takes; what only a reader does is done by an Agent, or by the types that
//! readers use.

mod actions;
mod advertisement;
mod behaviours;
mod challenges;
mod collections;
mod complete;
mod constraints;
mod documents;
mod enriched;
mod exchange;
mod graph;
mod identity;
mod network;
mod pages;
mod problems;
mod schemas;
mod search;

use crate::adapter::Role;
use crate::case::{Fault, Input, Outcome};

/// Carries out one case.
type Handler = fn(Role, &Input) -> Result<Outcome, Fault>;

/// Names of the members in which cases of a subject hold what they expect; empty when it is not known.
pub fn expectation(subject: &str, operation: &str) -> &'static [&'static str] {
    find(subject, operation).map_or(&[], |(expected, _)| expected)
}

/// Carries out one case of a subject; nothing when it is not known.
///
/// # Errors
/// When the case cannot be carried out.
pub fn carry_out(role: Role, subject: &str, input: &Input) -> Result<Option<Outcome>, Fault> {
    find(subject, input.operation())
        .map(|(_, handler)| handler(role, input))
        .transpose()
}

/// One handler for each role.
macro_rules! by_role {
    (service: $service:path, agent: $agent:path) => {
        |role, input| match role {
            Role::Service => $service(input),
            Role::Agent => $agent(input),
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
        ("action-contract", "resolve-openapi") => (VALID, enriched::openapi),

        ("attribute-schema-retrieval", "validate-reference") => (VALID, schemas::reference),
        ("attribute-schema-retrieval", "validate-response") => (
            VALID,
            by_role!(service: schemas::response, agent: enriched::response),
        ),
        ("attribute-schema-retrieval", "validate-schema-reference-profile") => (
            VALID,
            by_role!(service: schemas::profile, agent: enriched::profile),
        ),
        ("attribute-schema-retrieval", "validation-scope") => (
            &["complete_instance_validation"],
            by_role!(service: schemas::scope, agent: enriched::scope),
        ),
        ("attribute-schema-retrieval", "failure-scope") => (EXPECTED, enriched::failure),

        ("auth-expands", "") => (VALID, pages::auth_expands),

        ("collection-envelope", "") => (VALID, documents::collection),
        ("collection-hierarchy", "") => (VALID, collections::hierarchy),
        ("collection-membership", "") => (&["offering_ids", "valid"], collections::membership),
        ("invalid-edge-handling", "") => (EXPECTED, collections::invalid_edge),

        ("collection-search-contract", "validate-request") => (VALID, search::collection_request),
        ("collection-search-contract", "apply-constraints") => {
            (&["collection_ids"], constraints::collections)
        }

        ("composition-contract", "validate-advertisement") => (VALID, advertisement::protocols),
        ("composition-contract", "filter-advertisement") => {
            (EXPECTED, advertisement::known_protocols)
        }
        ("composition-contract", "normalize-agent-response") => (EXPECTED, documents::normalised),
        ("composition-contract", "classify-live-response") => (EXPECTED, challenges::classify),
        ("composition-contract", "validate-sequence") => (VALID, challenges::sequence),

        ("detail-fields", "") => (VALID, documents::detail_fields),

        ("errors-limits-contract", "validate-problem") => (VALID, problems::problem),
        ("errors-limits-contract", "validate-limit") => (VALID, problems::limit),
        ("errors-limits-contract", "limit-failure-scope") => (EXPECTED, network::page_failure),
        ("errors-limits-contract", "retry") => (&["retry"], network::retry),

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
        ("offering-search-contract", "apply-constraints") => (EXPECTED, constraints::offerings),

        ("pagination-contract", "validate-page") => (VALID, pages::page),
        ("pagination-contract", "validate-limit") => (VALID, pages::limit),
        ("pagination-contract", "validate-sequence") => (VALID, pages::sequence),
        ("pagination-contract", "validate-next") => (VALID, pages::next),
        ("pagination-contract", "validate-lifetime") => (VALID, pages::lifetime),
        ("pagination-contract", "validate-storage-model") => (VALID, pages::storage_model),
        ("pagination-contract", "conditional-get") => (
            &["status", "valid"],
            by_role!(service: exchange::conditional_get, agent: network::conditional_get),
        ),

        ("protocol-version", "") => (&["valid", "compatible"], documents::protocol_version),

        ("refinement-contract", "validate-request") => (VALID, search::refinement_request),
        ("refinement-contract", "validate-response") => (VALID, search::refinement_response),
        ("refinement-contract", "compute-counts") => (EXPECTED, search::refinement_counts),

        // Here `operation` is that of the protocol.
        ("representation-selection", _) => (EXPECTED, exchange::representation),

        ("role-baseline", "") => (
            VALID,
            by_role!(service: exchange::baseline, agent: behaviours::baseline),
        ),

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

        ("security-contract", "validate-destination") => (VALID, network::destination),
        ("security-contract", "validate-redirect") => (VALID, network::redirect),
        ("security-contract", "forwarded-sensitive-fields") => (EXPECTED, network::forwarded),
        ("security-contract", "action-invocable") => (VALID, challenges::invocable),
        ("security-contract", "payment-authorized") => (VALID, challenges::payment),
        ("security-contract", "cache-reusable") => (VALID, network::cache_reusable),

        ("service-document", "") => (VALID, documents::service_document),
        ("version-placement", "") => (VALID, exchange::version_placement),
        _ => return None,
    })
}
