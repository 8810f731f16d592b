//! Who asks: the context of a request to an operation.
//!
//! The Service Document, attribute schemas and the OpenAPI document are public: they are the same for everybody, and `Authorization` counts for nothing there. Every
//! operation takes a token that the operator made; whatever else is presented is refused, so that nobody mistakes the public part for all.

use super::{Odp, problem::Failure};
use http::{HeaderMap, header::AUTHORIZATION};
use purvey_catalog::{Access, catalog::Catalog};
use purvey_odp::service::{Authentication, Operation};

/// The context in which an operation is asked for (ODP §13).
pub(super) async fn access(
    odp: &Odp,
    headers: &HeaderMap,
    operation: Operation,
) -> Result<Access, Failure> {
    let catalog = &odp.catalog;
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let presented = match (sent.next(), sent.next()) {
        (None, _) => return public(catalog, operation),
        (Some(one), None) => one.to_str().ok().and_then(bearer),
        _ => None,
    };
    let known = match presented {
        Some(token) => catalog.authenticate(token)?,
        None => None,
    };
    match (known, presented) {
        (Some(access), _) => Ok(access),
        // Whoever is to start a published agent presents one token to the whole origin: a user of the run platform reads what is public.
        (None, Some(token)) if Box::pin(odp.knows(token)).await => public(catalog, operation),
        (None, presented) => Err(refusal(catalog, presented.is_some())),
    }
}

/// The context of whoever presents nothing, if the operation needs nothing.
fn public(catalog: &Catalog, operation: Operation) -> Result<Access, Failure> {
    match catalog.manifest().service().authentication(operation) {
        Authentication::Required => Err(refusal(catalog, false)),
        Authentication::NotRequired | Authentication::Optional => Ok(Access::public()),
    }
}

fn refusal(catalog: &Catalog, invalid_token: bool) -> Failure {
    Failure::NotAuthenticated {
        invalid_token,
        enrollment: catalog.manifest().service().enrollment(),
    }
}

/// The token of `Bearer TOKEN`.
pub(crate) fn bearer(credentials: &str) -> Option<&str> {
    let (scheme, token) = credentials.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
