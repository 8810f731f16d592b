//! Any bytes as every kind of document: decode, normalise, validate, write, and read again.

use purvey_odp::collection::{Collection, TerseCollection};
use purvey_odp::decode::{Bounds, DecodeError, Decoder, decode, depth};
use purvey_odp::filter::FilterDefinition;
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use purvey_odp::normalise::{self, Dropped};
use purvey_odp::offering::{Offering, Placement, Representation, TerseOffering};
use purvey_odp::page::PageEnvelope;
use purvey_odp::problem::Problem;
use purvey_odp::report::{Invalid, Place, Report};
use purvey_odp::request::{CollectionSearchRequest, OfferingSearchRequest};
use purvey_odp::service::ServiceDocument;
use purvey_odp::sort::SortDefinition;
use serde_json::Value;
use std::fmt::Debug;

/// The member by which `serde_json` itself passes numbers around: it reads such an object as a number, ours does not.
const SERDE_NUMBER: &[u8] = b"$serde_json::private";

/// A document has one meaning or none, and each type writes what it read.
pub fn holds(input: &[u8]) {
    let decoded = decode(input, Bounds::PAGE);
    in_pieces(input, &decoded);
    let value = match decoded {
        Ok(value) => value,
        Err(error) => return refused(input, &error),
    };
    assert!(depth(&value) <= Bounds::PAGE.depth);
    let written = value.to_string();
    assert!(written.len() <= input.len(), "{written}");
    assert_eq!(
        decode(written.as_bytes(), Bounds::PAGE).as_ref(),
        Ok(&value)
    );
    if !contains(input, SERDE_NUMBER) {
        // That reader spells exponents in a way of its own.
        let other = serde_json::from_slice::<Value>(input).ok();
        assert_eq!(serde_json::from_str(&written).ok(), other);
    }
    documents(&value);
}

/// However a document is cut, it is the same.
fn in_pieces(input: &[u8], whole: &Result<Value, DecodeError>) {
    let middle = input.first().map_or(0, |b| usize::from(*b) % input.len());
    let mut decoder = Decoder::new(Bounds::PAGE);
    for piece in [&input[..middle], &input[middle..]] {
        if decoder.push(piece).is_err() {
            break;
        }
    }
    assert_eq!(&decoder.finish(), whole);
}

/// Only what another reader refuses too, or reads in a way that not every reader does.
fn refused(input: &[u8], error: &DecodeError) {
    match error {
        DecodeError::Utf8 { offset } => {
            let error = std::str::from_utf8(input).expect_err("bytes that are not UTF-8");
            assert_eq!(error.valid_up_to(), *offset);
        }
        DecodeError::Syntax { offset, .. } => {
            assert!(*offset <= input.len());
            assert!(serde_json::from_slice::<Value>(input).is_err());
        }
        DecodeError::TooLarge { limit } => assert!(input.len() > *limit),
        _ => {}
    }
}

fn contains(input: &[u8], part: &[u8]) -> bool {
    input.windows(part.len()).any(|window| window == part)
}

fn documents(value: &Value) {
    kind(
        value,
        normalise::service_document,
        ServiceDocument::validate,
        ServiceDocument::to_value,
    );
    for placement in [Placement::TopLevel, Placement::Embedded] {
        kind(
            value,
            normalise::collection,
            |value| Collection::validate(value, placement),
            |document| document.to_value(placement),
        );
        kind(
            value,
            normalise::collection,
            |value| TerseCollection::validate(value, placement),
            |document| document.to_value(placement),
        );
        kind(
            value,
            full,
            |value| Offering::validate(value, placement),
            |document| document.to_value(placement),
        );
        kind(
            value,
            terse,
            |value| TerseOffering::validate(value, placement),
            |document| document.to_value(placement),
        );
    }
    pages(value);
    let status = value.get("status").and_then(Value::as_u64);
    let status = status
        .and_then(|status| status.try_into().ok())
        .unwrap_or(400);
    kind(
        value,
        normalise::problem,
        |value| Problem::validate(value, status),
        |problem| serde_json::to_value(problem).expect("a problem is JSON"),
    );
    kind(
        value,
        untouched,
        FilterDefinition::validate,
        FilterDefinition::to_value,
    );
    kind(
        value,
        untouched,
        SortDefinition::validate,
        SortDefinition::to_value,
    );
    kind(
        value,
        untouched,
        OfferingSearchRequest::validate,
        OfferingSearchRequest::to_value,
    );
    kind(
        value,
        untouched,
        CollectionSearchRequest::validate,
        CollectionSearchRequest::to_value,
    );
}

fn pages(value: &Value) {
    let embedded = Placement::Embedded;
    page(
        value,
        normalise::collection_page,
        |report, place, value| Collection::read(report, place, value, embedded),
        |item| item.to_value(embedded),
    );
    page(
        value,
        normalise::collection_page,
        |report, place, value| TerseCollection::read(report, place, value, embedded),
        |item| item.to_value(embedded),
    );
    page(
        value,
        |value| normalise::offering_page(value, Representation::Full),
        |report, place, value| Offering::read(report, place, value, embedded),
        |item| item.to_value(embedded),
    );
    page(
        value,
        |value| normalise::offering_page(value, Representation::Terse),
        |report, place, value| TerseOffering::read(report, place, value, embedded),
        |item| item.to_value(embedded),
    );
    page(
        value,
        normalise::filter_page,
        FilterDefinition::read,
        FilterDefinition::to_value,
    );
    page(
        value,
        normalise::sort_page,
        SortDefinition::read,
        SortDefinition::to_value,
    );
}

fn full(value: &mut Value) -> Vec<Dropped> {
    normalise::offering(value, Representation::Full)
}

fn terse(value: &mut Value) -> Vec<Dropped> {
    normalise::offering(value, Representation::Terse)
}

/// Requests and definitions by themselves are read as they are.
fn untouched(_: &mut Value) -> Vec<Dropped> {
    Vec::new()
}

fn page<T: PartialEq + Debug>(
    value: &Value,
    normalise: impl Fn(&mut Value) -> Vec<Dropped>,
    read: impl Fn(&mut Report, &Place<'_>, Value) -> Option<T>,
    write: impl Fn(&T) -> Value,
) {
    let origin = ServiceOrigin::parse("https://market.example", LocalDevelopment::Refused);
    let origin = origin.expect("an origin");
    kind(
        value,
        normalise,
        |value| PageEnvelope::validate(value, &origin, &read),
        |page| {
            let written = PageEnvelope {
                items: page.items.iter().map(&write).collect::<Vec<_>>(),
                next: page.next.clone(),
                auth_expands: page.auth_expands,
            };
            serde_json::to_value(written).expect("a page is JSON")
        },
    );
}

fn kind<T: PartialEq + Debug>(
    value: &Value,
    normalise: impl Fn(&mut Value) -> Vec<Dropped>,
    read: impl Fn(Value) -> Result<T, Invalid>,
    write: impl Fn(&T) -> Value,
) {
    let valid = validated(value, &read, &write);
    let mut normal = value.clone();
    let dropped = normalise(&mut normal);
    for dropped in &dropped {
        assert!(value.pointer(&dropped.pointer).is_some(), "{dropped:?}");
    }
    if dropped.is_empty() {
        assert_eq!(&normal, value, "changed without a word");
    } else {
        // What is valid may say more than an Agent knows; it stays valid without that.
        assert!(validated(&normal, &read, &write) || !valid);
        let mut again = normal.clone();
        assert_eq!(normalise(&mut again), []);
        assert_eq!(again, normal);
    }
}

/// Whether `value` is valid. Either way its type says so consistently.
fn validated<T: PartialEq + Debug>(
    value: &Value,
    read: impl Fn(Value) -> Result<T, Invalid>,
    write: impl Fn(&T) -> Value,
) -> bool {
    match read(value.clone()) {
        Ok(document) => {
            let written = write(&document).to_string();
            let again = decode(written.as_bytes(), Bounds::PAGE).expect("what is written decodes");
            assert_eq!(read(again), Ok(document), "{written}");
            true
        }
        Err(invalid) => {
            let violations = invalid.violations();
            assert!((1..=Report::CAPACITY).contains(&violations.len()));
            for violation in violations {
                assert!(
                    value.pointer(&violation.pointer).is_some(),
                    "{violation}: {value}"
                );
                assert!(!violation.reason.is_empty());
            }
            false
        }
    }
}
