//! Identifiers, origins, references.

use crate::adapter::Role;
use crate::case::{Fault, Input, Outcome};
use purvey_odp::identity::{LocalDevelopment, LocalId, ResourceIdentity, ServiceOrigin};
use purvey_odp::reference::ResourceReference;

pub(super) fn comparison(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let side = |name| {
        ResourceIdentity::validate(input.member(name)?, LocalDevelopment::Refused)
            .map_err(Fault::of(name))
    };
    Ok(Outcome::new().with("same_identity", side("left")? == side("right")?))
}

pub(super) fn local_identifier(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let text: String = input.read("value")?;
    Ok(Outcome::valid(LocalId::parse(&text).is_ok()))
}

/// The vectors are about development as much as about production: the exception for loopback hosts is switched on.
pub(super) fn resource_reference(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let text: String = input.read("value")?;
    Ok(Outcome::valid(
        ResourceReference::parse(&text, LocalDevelopment::Allowed).is_ok(),
    ))
}

pub(super) fn service_origin(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let text: String = input.read("value")?;
    Ok(Outcome::valid(
        ServiceOrigin::parse(&text, LocalDevelopment::Allowed).is_ok(),
    ))
}
