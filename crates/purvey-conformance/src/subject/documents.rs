//! Single documents.

use crate::adapter::Role;
use crate::case::{Fault, Input, Outcome};
use crate::service::Service;
use purvey_odp::collection::Collection;
use purvey_odp::filter::FilterDefinition;
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use purvey_odp::offering::{Offering, Placement, Representation, TerseOffering};
use purvey_odp::page::PageEnvelope;
use purvey_odp::problem::Problem;
use purvey_odp::service::{Operation, ServiceDocument};
use purvey_odp::sort::SortDefinition;
use purvey_odp::version::ProtocolVersion;
use purvey_odp::{detail, normalise};
use serde_json::Value;

/// The rules of version 1.0. An Agent holds documents to the same rules, after it dropped what is newer; what it drops has cases of
/// its own.
pub(super) fn service_document(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let valid = ServiceDocument::validate(input.member("document")?).is_ok();
    Ok(Outcome::valid(valid))
}

pub(super) fn collection(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let valid = Collection::validate(input.member("document")?, Placement::TopLevel).is_ok();
    Ok(Outcome::valid(valid))
}

/// A Service must take a Full Offering from its operator exactly when it is valid, and serve it as it is.
pub(super) fn offering(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let document = input.member("document")?;
    let representation: String = input.read("representation")?;
    if representation == Representation::Terse.as_str() {
        let valid = TerseOffering::validate(document, Placement::Embedded).is_ok();
        return Ok(Outcome::valid(valid));
    }
    let read = Offering::validate(document.clone(), Placement::TopLevel);
    if role == Role::Service {
        let service = Service::empty()?;
        let taken = service.put("offerings", &document)?;
        if taken != read.is_ok() {
            return Err(Fault(format!("taken: {taken}, but {read:?}")));
        }
        let path = service.path(
            Operation::GetOffering,
            document.get("id").and_then(Value::as_str),
        )?;
        if taken && service.document(&path)? != document {
            return Err(Fault(
                "what is served differs from what was written".to_owned(),
            ));
        }
    }
    Ok(Outcome::valid(read.is_ok()))
}

/// What a Service says beside a Terse Representation that exists is checked against what it would say itself.
pub(super) fn detail_fields(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let (full, terse) = (input.member("full")?, input.member("terse")?);
    let valid = detail::check(&full, &terse).is_ok();
    if role == Role::Service
        && valid
        && let Some(published) = terse.get(detail::MEMBER)
    {
        let mut published: Vec<String> =
            serde_json::from_value(published.clone()).map_err(Fault::of(detail::MEMBER))?;
        let mut own = detail::detail_fields(&full, &terse).unwrap_or_default();
        own.sort_unstable();
        published.sort_unstable();
        if own != published {
            return Err(Fault(format!("the Service would publish {own:?}")));
        }
    }
    Ok(Outcome::valid(valid))
}

/// Exactly 1.0 is supported, whatever version a case supposes to be.
pub(super) fn protocol_version(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let received: String = input.read("received")?;
    let version = ProtocolVersion::parse(&received);
    let compatible = version.as_ref().is_ok_and(|version| version.is_supported());
    Ok(Outcome::valid(version.is_ok()).with("compatible", compatible))
}

/// What an Agent has in hand after a document passed all three steps: it must have become the type that it is.
pub(super) fn normalised(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let mut document = input.member("document")?;
    let kind: String = input.read("kind")?;
    let origin = ServiceOrigin::parse("https://market.example", LocalDevelopment::Refused)
        .map_err(Fault::of("origin"))?;
    let value = match kind.as_str() {
        "service-document" => {
            ServiceDocument::receive(document).map(|(document, _)| document.to_value())
        }
        "offering" => {
            normalise::offering(&mut document, Representation::Full);
            Offering::validate(document, Placement::TopLevel)
                .map(|offering| offering.into_value(Placement::TopLevel))
        }
        "collection" => {
            normalise::collection(&mut document);
            Collection::validate(document, Placement::TopLevel)
                .map(|collection| collection.into_value(Placement::TopLevel))
        }
        "filter-page" => {
            normalise::filter_page(&mut document);
            PageEnvelope::validate(document, &origin, FilterDefinition::read)
                .map(|page| value(&page))
        }
        "sort-page" => {
            normalise::sort_page(&mut document);
            PageEnvelope::validate(document, &origin, SortDefinition::read).map(|page| value(&page))
        }
        "problem" => {
            normalise::problem(&mut document);
            let status = document
                .get("status")
                .and_then(Value::as_u64)
                .and_then(|status| u16::try_from(status).ok());
            Problem::read_lenient(document, status.unwrap_or_default())
                .map(|problem| value(&problem))
        }
        _ => return Err(Fault(format!("the kind {kind} is not known"))),
    };
    let value = value.map_err(Fault::of("after normalisation"))?;
    Ok(Outcome::new().with("expected", value))
}

fn value(document: &impl serde::Serialize) -> Value {
    serde_json::to_value(document).unwrap_or_default()
}
