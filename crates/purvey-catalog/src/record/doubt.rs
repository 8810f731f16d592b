//! What the protocol allows and hardly anybody means: it is kept and served, and may be a typing error.

use purvey_odp::collection::Collection;
use purvey_odp::offering::Offering;
use purvey_odp::price::{Price, PriceKind};
use purvey_odp::report::{Place, Report, Violation};
use serde_json::{Map, Value};

/// The doubts about an Offering (ODP §4).
pub(super) fn of_offering(offering: &Offering) -> Vec<Violation> {
    let mut report = Report::new();
    let root = Place::ROOT;
    unknown(&mut report, &root, offering.extra());
    if let Some(price) = offering.price() {
        of_price(&mut report, &root.key("price"), price);
    }
    let actions = root.key("actions");
    for (i, action) in offering.actions().iter().enumerate() {
        if action.rel.core().is_none() {
            report.add(
                &actions.index(i).key("rel"),
                "Is not a relation that the protocol defines (download, purchase, quote, reserve, invoke): no Agent selects it by itself.",
            );
        }
    }
    all(report)
}

/// The doubts about a Collection (ODP §4).
pub(super) fn of_collection(collection: &Collection) -> Vec<Violation> {
    let mut report = Report::new();
    unknown(&mut report, &Place::ROOT, collection.extra());
    all(report)
}

fn of_price(report: &mut Report, place: &Place<'_>, price: &Price) {
    let name = price.kind().as_str();
    if let PriceKind::Other(_) = price.kind() {
        report.add(
            &place.key("type"),
            "Is not a price type that the protocol defines (free, fixed, starting_at, range, metered, quote): Agents leave the price out.",
        );
        return;
    }
    for member in price.extra().keys() {
        let reason = format!(
            "Is not a member of a price of the type {name}; it is kept and served as it is."
        );
        report.add(&place.key(member), reason);
    }
}

fn unknown(report: &mut Report, place: &Place<'_>, extra: &Map<String, Value>) {
    for member in extra.keys() {
        report.add(
            &place.key(member),
            "Is not a member that the protocol defines; it is kept and served as it is.",
        );
    }
}

fn all(report: Report) -> Vec<Violation> {
    match report.finish(Some(())) {
        Ok(()) => Vec::new(),
        Err(invalid) => invalid.into_violations(),
    }
}
