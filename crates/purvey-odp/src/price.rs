//! Price Preview: what an Offering costs, as far as discovery knows (ODP §4).

use crate::report::{Invalid, Place, Report};
use crate::shape;
use crate::text::{Name, Text};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::fmt;

/// `currency`: the display denomination, 1 through 64 code points. It selects no payment rail.
pub type Currency = Text<64>;

/// A non-negative amount of money: a decimal string without sign, exponent or leading zeros, of any length, kept as written.
///
/// Equality is that of the text; [`Amount::compare`] is numeric.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Amount(String);

impl Amount {
    /// Parses an amount such as `0`, `34.95` or `1450.00`.
    ///
    /// # Errors
    /// Anything else: a sign, an exponent, a leading zero, a dot without digits on both sides.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if is_amount(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Invalid::one("", AMOUNT_RULE))
        }
    }

    /// Reads a JSON string; a JSON number is a violation, since money is never a JSON number.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        if is_amount(&text) {
            return Some(Self(text));
        }
        report.add(place, AMOUNT_RULE);
        None
    }

    /// The amount as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Numeric order, exact at any length: `1.0` equals `1.00`.
    pub fn compare(&self, other: &Self) -> Ordering {
        let (whole, fraction) = self.parts();
        let (other_whole, other_fraction) = other.parts();
        // Without leading zeros the longer integer is the larger; without trailing zeros fractions order as texts.
        (whole.len(), whole, fraction).cmp(&(other_whole.len(), other_whole, other_fraction))
    }

    fn parts(&self) -> (&str, &str) {
        let (whole, fraction) = self.0.split_once('.').unwrap_or((&self.0, ""));
        (whole, fraction.trim_end_matches('0'))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const AMOUNT_RULE: &str =
    "Must be a non-negative decimal string such as 1450.00, without a leading zero or an exponent.";

fn is_amount(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    digits(whole) && (whole.len() == 1 || !whole.starts_with('0')) && fraction.is_none_or(digits)
}

/// A Price Preview. Members that its type does not define are kept, since the object is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    kind: PriceKind,
    extra: Map<String, Value>,
}

/// The `type` of a Price Preview with the members which that type requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriceKind {
    /// No price is required.
    Free,
    /// One advertised price.
    Fixed {
        /// The price.
        amount: Amount,
        /// Its denomination.
        currency: Currency,
    },
    /// The lowest advertised price.
    StartingAt {
        /// The price from which on.
        amount: Amount,
        /// Its denomination.
        currency: Currency,
    },
    /// An inclusive range; [`Price::new`] holds `minimum` ≤ `maximum`.
    Range {
        /// The lowest price.
        minimum: Amount,
        /// The highest price.
        maximum: Amount,
        /// Their denomination.
        currency: Currency,
    },
    /// A rate per Service-defined unit.
    Metered {
        /// The price of one unit.
        amount: Amount,
        /// Its denomination.
        currency: Currency,
        /// What is counted, such as `gpu-hour`; 1 through 128 code points.
        unit: Name,
    },
    /// A later operation determines the price.
    Quote,
    /// A type that this version does not define, 1 through 64 code points. An Agent drops such a price before it validates.
    Other(Text<64>),
}

impl PriceKind {
    /// The wire value of `type`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Free => "free",
            Self::Fixed { .. } => "fixed",
            Self::StartingAt { .. } => "starting_at",
            Self::Range { .. } => "range",
            Self::Metered { .. } => "metered",
            Self::Quote => "quote",
            Self::Other(name) => name.as_str(),
        }
    }

    /// Whether this version of the protocol defines the price type `name`.
    pub fn is_defined(name: &str) -> bool {
        matches!(
            name,
            "free" | "fixed" | "starting_at" | "range" | "metered" | "quote"
        )
    }
}

impl Price {
    /// A price without further members.
    ///
    /// # Errors
    /// A range whose minimum exceeds its maximum; an [`PriceKind::Other`] that bears the name of a defined type.
    pub fn new(kind: PriceKind) -> Result<Self, Invalid> {
        match &kind {
            PriceKind::Range {
                minimum, maximum, ..
            } if minimum.compare(maximum).is_gt() => Err(Invalid::one("/minimum", RANGE_RULE)),
            PriceKind::Other(name) if PriceKind::is_defined(name.as_str()) => Err(Invalid::one(
                "/type",
                "Is a defined price type; its members are missing.",
            )),
            _ => Ok(Self {
                kind,
                extra: Map::new(),
            }),
        }
    }

    /// The type and its members.
    pub fn kind(&self) -> &PriceKind {
        &self.kind
    }

    /// Members which the type does not define.
    pub fn extra(&self) -> &Map<String, Value> {
        &self.extra
    }

    /// Reads a Price Preview and notes every rule that it breaks.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let name = shape::required(report, place, &mut map, "type", Text::<64>::read)?;
        let kind = match name.as_str() {
            "free" => Some(PriceKind::Free),
            "quote" => Some(PriceKind::Quote),
            "fixed" | "starting_at" => {
                let amount = shape::required(report, place, &mut map, "amount", Amount::read);
                let currency = shape::required(report, place, &mut map, "currency", Currency::read);
                match (amount, currency) {
                    (Some(amount), Some(currency)) if name.as_str() == "fixed" => {
                        Some(PriceKind::Fixed { amount, currency })
                    }
                    (Some(amount), Some(currency)) => {
                        Some(PriceKind::StartingAt { amount, currency })
                    }
                    _ => None,
                }
            }
            "range" => {
                let minimum = shape::required(report, place, &mut map, "minimum", Amount::read);
                let maximum = shape::required(report, place, &mut map, "maximum", Amount::read);
                let currency = shape::required(report, place, &mut map, "currency", Currency::read);
                if let (Some(minimum), Some(maximum)) = (&minimum, &maximum)
                    && minimum.compare(maximum).is_gt()
                {
                    report.add(&place.key("minimum"), RANGE_RULE);
                    return None;
                }
                match (minimum, maximum, currency) {
                    (Some(minimum), Some(maximum), Some(currency)) => Some(PriceKind::Range {
                        minimum,
                        maximum,
                        currency,
                    }),
                    _ => None,
                }
            }
            "metered" => {
                let amount = shape::required(report, place, &mut map, "amount", Amount::read);
                let currency = shape::required(report, place, &mut map, "currency", Currency::read);
                let unit = shape::required(report, place, &mut map, "unit", Name::read);
                match (amount, currency, unit) {
                    (Some(amount), Some(currency), Some(unit)) => Some(PriceKind::Metered {
                        amount,
                        currency,
                        unit,
                    }),
                    _ => None,
                }
            }
            _ => Some(PriceKind::Other(name)),
        }?;
        Some(Self { kind, extra: map })
    }

    /// The wire form.
    pub fn to_value(&self) -> Value {
        self.clone().into_value()
    }

    /// The wire form, without copying.
    pub fn into_value(self) -> Value {
        let mut map = Map::new();
        map.insert("type".into(), self.kind.as_str().into());
        match self.kind {
            PriceKind::Fixed { amount, currency } | PriceKind::StartingAt { amount, currency } => {
                map.insert("amount".into(), amount.0.into());
                map.insert("currency".into(), currency.as_str().into());
            }
            PriceKind::Range {
                minimum,
                maximum,
                currency,
            } => {
                map.insert("minimum".into(), minimum.0.into());
                map.insert("maximum".into(), maximum.0.into());
                map.insert("currency".into(), currency.as_str().into());
            }
            PriceKind::Metered {
                amount,
                currency,
                unit,
            } => {
                map.insert("amount".into(), amount.0.into());
                map.insert("currency".into(), currency.as_str().into());
                map.insert("unit".into(), unit.as_str().into());
            }
            PriceKind::Free | PriceKind::Quote | PriceKind::Other(_) => {}
        }
        map.extend(self.extra);
        Value::Object(map)
    }
}

const RANGE_RULE: &str = "Must not exceed maximum.";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(value: Value) -> Result<Price, Invalid> {
        let mut report = Report::new();
        let price = Price::read(&mut report, &Place::ROOT, value);
        report.finish(price)
    }

    fn pointers(value: Value) -> Vec<String> {
        let invalid = check(value).unwrap_err();
        invalid
            .into_violations()
            .into_iter()
            .map(|v| v.pointer)
            .collect()
    }

    #[test]
    fn every_defined_type_comes_back_as_it_went_in() {
        for value in [
            json!({"type": "free"}),
            json!({"type": "quote"}),
            json!({"type": "fixed", "amount": "0", "currency": "USD"}),
            json!({"type": "starting_at", "amount": "199.00", "currency": "USD"}),
            json!({"type": "range", "minimum": "1.0", "maximum": "1.00", "currency": "EUR"}),
            json!({"type": "metered", "amount": "2.40", "currency": "USD", "unit": "gpu-hour"}),
            json!({"type": "auction", "current_bid": "25.00", "currency": "USD"}),
            json!({"type": "free", "note": {"b": 1, "a": 2}}),
        ] {
            assert_eq!(check(value.clone()).unwrap().into_value(), value);
        }
    }

    #[test]
    fn money_is_a_plain_decimal_string() {
        for text in [
            "0",
            "0.00",
            "7",
            "10.5",
            "123456789012345678901234567890.000000000000000000001",
        ] {
            assert_eq!(Amount::parse(text).unwrap().as_str(), text);
        }
        for text in [
            "", "-1", "+1", "01", "00", ".5", "5.", "1e3", "1,5", "1.2.3", " 1", "٣",
        ] {
            assert!(Amount::parse(text).is_err(), "{text}");
        }
        assert_eq!(
            pointers(json!({"type": "fixed", "amount": 1450, "currency": "USD"})),
            ["/amount"]
        );
    }

    #[test]
    fn amounts_compare_by_value() {
        let compare = |a, b| {
            Amount::parse(a)
                .unwrap()
                .compare(&Amount::parse(b).unwrap())
        };
        assert_eq!(compare("1.0", "1.00"), Ordering::Equal);
        assert_eq!(compare("1", "1.000"), Ordering::Equal);
        assert_eq!(compare("9", "10"), Ordering::Less);
        assert_eq!(compare("2.5", "2.49"), Ordering::Greater);
        assert_eq!(
            compare(
                "100000000000000000000000000000001",
                "100000000000000000000000000000000.9"
            ),
            Ordering::Greater
        );
    }

    #[test]
    fn every_fault_is_noted() {
        assert_eq!(
            pointers(
                json!({"type": "range", "minimum": "10", "maximum": "9.99", "currency": "USD"})
            ),
            ["/minimum"]
        );
        assert_eq!(
            pointers(json!({"type": "metered", "amount": "-1", "currency": "", "unit": 3})),
            ["/amount", "/currency", "/unit"]
        );
        assert_eq!(pointers(json!({"type": "fixed"})), ["", ""]);
        assert_eq!(pointers(json!({"amount": "1"})), [""]);
        assert_eq!(pointers(json!({"type": ""})), ["/type"]);
        assert_eq!(pointers(json!("free")), [""]);
    }

    #[test]
    fn a_constructed_price_is_checked() {
        let amount = |text| Amount::parse(text).unwrap();
        let currency = Currency::new("USD").unwrap();
        let range = PriceKind::Range {
            minimum: amount("2"),
            maximum: amount("1"),
            currency,
        };
        assert!(Price::new(range).is_err());
        assert!(Price::new(PriceKind::Other(Text::new("fixed").unwrap())).is_err());
        assert_eq!(
            Price::new(PriceKind::Free).unwrap().to_value(),
            json!({"type": "free"})
        );
    }
}
