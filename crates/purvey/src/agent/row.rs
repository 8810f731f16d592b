//! Collections and Offerings, as rows of a table and as JSON.

use purvey_agent::Item;
use purvey_odp::{
    collection::{Collection, TerseCollection},
    identity::LocalId,
    offering::{Offering, Placement, TerseOffering},
    price::{Price, PriceKind},
    text::Description,
};
use serde_json::Value;

/// What lists and searches show.
pub(super) trait Row: Item {
    /// The table's header.
    const HEADER: &'static [&'static str];
    /// The name of one in JSON.
    const KIND: &'static str;
    /// The row under the header.
    fn cells(&self) -> Vec<String>;
    /// The wire form within a page.
    fn json(&self) -> Value;
}

macro_rules! row {
    ($type:ty, $kind:literal, [$($header:literal),*], |$item:ident| [$($cell:expr),*]) => {
        impl Row for $type {
            const HEADER: &'static [&'static str] = &[$($header),*];
            const KIND: &'static str = $kind;

            fn cells(&self) -> Vec<String> {
                let $item = self;
                vec![$($cell),*]
            }

            fn json(&self) -> Value {
                self.to_value(Placement::Embedded)
            }
        }
    };
}

row!(TerseOffering, "offering", ["ID", "NAME", "PRICE"], |item| [
    item.id().to_string(),
    item.name().to_string(),
    price(item.price())
]);
row!(
    Offering,
    "offering",
    [
        "ID",
        "NAME",
        "PRICE",
        "COLLECTIONS",
        "ACTIONS",
        "DESCRIPTION"
    ],
    |item| [
        item.id().to_string(),
        item.name().to_string(),
        price(item.price()),
        ids(item.collection_ids()),
        joined(item.actions().iter().map(|action| action.id.as_str())),
        description(item.description())
    ]
);
row!(
    TerseCollection,
    "collection",
    ["ID", "NAME", "IN"],
    |item| [
        item.id().to_string(),
        item.name().to_string(),
        ids(item.parent_ids())
    ]
);
row!(
    Collection,
    "collection",
    ["ID", "NAME", "IN", "DESCRIPTION"],
    |item| [
        item.id().to_string(),
        item.name().to_string(),
        ids(item.parent_ids()),
        description(item.description())
    ]
);

/// A price for people; empty without one.
pub(super) fn price(price: Option<&Price>) -> String {
    match price.map(Price::kind) {
        None => String::new(),
        Some(PriceKind::Free) => "free".to_owned(),
        Some(PriceKind::Fixed { amount, currency }) => format!("{} {currency}", amount.as_str()),
        Some(PriceKind::StartingAt { amount, currency }) => {
            format!("from {} {currency}", amount.as_str())
        }
        Some(PriceKind::Range {
            minimum,
            maximum,
            currency,
        }) => format!("{} to {} {currency}", minimum.as_str(), maximum.as_str()),
        Some(PriceKind::Metered {
            amount,
            currency,
            unit,
        }) => format!("{} {currency} per {unit}", amount.as_str()),
        Some(PriceKind::Quote) => "on request".to_owned(),
        Some(PriceKind::Other(name)) => name.to_string(),
    }
}

/// Identifiers with commas between them.
pub(super) fn ids(ids: &[LocalId]) -> String {
    joined(ids.iter().map(LocalId::as_str))
}

/// Texts with commas between them.
pub(super) fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().collect::<Vec<_>>().join(", ")
}

fn description(description: Option<&Description>) -> String {
    description.map_or_else(String::new, ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use purvey_odp::report::{Place, Report};
    use serde_json::json;

    #[test]
    fn prices_read_like_prices() {
        for (wire, expected) in [
            (json!({"type": "free"}), "free"),
            (
                json!({"type": "fixed", "amount": "85.00", "currency": "EUR"}),
                "85.00 EUR",
            ),
            (
                json!({"type": "starting_at", "amount": "5", "currency": "EUR"}),
                "from 5 EUR",
            ),
            (
                json!({"type": "range", "minimum": "5", "maximum": "9.50", "currency": "EUR"}),
                "5 to 9.50 EUR",
            ),
            (
                json!({"type": "metered", "amount": "0.002", "currency": "USD", "unit": "token"}),
                "0.002 USD per token",
            ),
            (json!({"type": "quote"}), "on request"),
        ] {
            let read = Price::read(&mut Report::new(), &Place::ROOT, wire);
            assert_eq!(price(read.as_ref()), expected);
        }
        assert_eq!(price(None), "");
    }
}
