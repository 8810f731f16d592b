//! Which protocols a Service supports beside this one. Advertising them triggers nothing: live challenges decide.

use super::Authentication;
use crate::report::{Place, Report};
use crate::shape;
use serde_json::{Map, Value};

/// `protocols`: at least one of enrollment, payments and trust. The object is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocols {
    enrollment: bool,
    payments: Vec<Payment>,
    trust: bool,
}

/// One supported payment protocol. The object is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    name: PaymentProtocol,
    authentication_required: bool,
    options: Vec<PaymentOption>,
}

/// A payment protocol that this version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PaymentProtocol {
    /// The `Payment` HTTP authentication scheme.
    Mpp,
    /// x402.
    X402,
}

impl PaymentProtocol {
    /// The protocol with the wire name `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "mpp" => Some(Self::Mpp),
            "x402" => Some(Self::X402),
            _ => None,
        }
    }

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mpp => "mpp",
            Self::X402 => "x402",
        }
    }

    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let name = shape::string(report, place, value)?;
        let found = Self::from_name(&name);
        if found.is_none() {
            report.add(place, "Must be mpp or x402.");
        }
        found
    }
}

/// A payment option: one of the sixteen labels of the protocol's text. (Its published schema lists two more, `arc` and
/// `monad`, which the text does not have; the text wins.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PaymentOption(&'static str);

impl PaymentOption {
    /// Every name, in order.
    pub const NAMES: [&'static str; 16] = [
        "algorand",
        "aptos",
        "arbitrum",
        "avalanche",
        "base",
        "card",
        "ethereum",
        "hedera",
        "inflow",
        "lightning",
        "polygon",
        "solana",
        "stellar",
        "stripe",
        "tempo",
        "ton",
    ];

    /// The option with the wire name `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .into_iter()
            .find(|known| *known == name)
            .map(Self)
    }

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let name = shape::string(report, place, value)?;
        let found = Self::from_name(&name);
        if found.is_none() {
            report.add(place, "Must be a payment option of the protocol.");
        }
        found
    }
}

impl Payment {
    /// Which protocol.
    pub fn name(&self) -> PaymentProtocol {
        self.name
    }

    /// Whether the Agent authenticates before it pays; such a Service advertises enrollment.
    pub fn authentication_required(&self) -> bool {
        self.authentication_required
    }

    /// The options, each once; empty: the Service says nothing about them.
    pub fn options(&self) -> &[PaymentOption] {
        &self.options
    }

    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        let authentication = shape::required(
            report,
            place,
            &mut map,
            "authentication",
            |report, place, value| match Authentication::read(report, place, value)? {
                Authentication::NotRequired => Some(false),
                Authentication::Required => Some(true),
                Authentication::Optional => {
                    report.add(place, "Must be not-required or required.");
                    None
                }
            },
        );
        let name = shape::required(report, place, &mut map, "name", PaymentProtocol::read);
        let options = shape::optional(
            report,
            place,
            &mut map,
            "options",
            |report, place, value| {
                let options = shape::list(
                    report,
                    place,
                    value,
                    1..=PaymentOption::NAMES.len(),
                    PaymentOption::read,
                )?;
                for (i, option) in options.iter().enumerate() {
                    if options.iter().take(i).any(|earlier| earlier == option) {
                        report.add(&place.index(i), "Must not be listed twice.");
                    }
                }
                Some(options)
            },
        );
        shape::closed(report, place, &map);
        let payment = Self {
            name: name?,
            authentication_required: authentication?,
            options: options.unwrap_or_default(),
        };
        (report.len() == before).then_some(payment)
    }

    fn to_value(&self) -> Value {
        let authentication = if self.authentication_required {
            Authentication::Required
        } else {
            Authentication::NotRequired
        };
        let mut map = Map::new();
        map.insert("authentication".into(), authentication.as_str().into());
        map.insert("name".into(), self.name.as_str().into());
        if !self.options.is_empty() {
            let options: Vec<Value> = self
                .options
                .iter()
                .map(|option| option.as_str().into())
                .collect();
            map.insert("options".into(), options.into());
        }
        Value::Object(map)
    }
}

impl Protocols {
    /// Whether Agents can enroll, by AEP.
    pub fn enrollment(&self) -> bool {
        self.enrollment
    }

    /// The payment protocols in the Service's order of preference, each once.
    pub fn payments(&self) -> &[Payment] {
        &self.payments
    }

    /// Whether the Service verifies requests by TAP.
    pub fn trust(&self) -> bool {
        self.trust
    }

    /// Reads `protocols` and notes every rule that it breaks.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        if map.is_empty() {
            report.add(place, "Must be omitted rather than empty.");
        }
        let advertises_enrollment = map.contains_key("enrollment");
        let enrollment = shape::optional(
            report,
            place,
            &mut map,
            "enrollment",
            |report, place, value| read_single(report, place, value, "aep"),
        );
        let payments = shape::optional(
            report,
            place,
            &mut map,
            "payments",
            |report, place, value| {
                let payments = shape::list(report, place, value, 1..=2, Payment::read)?;
                for (i, payment) in payments.iter().enumerate() {
                    if payments
                        .iter()
                        .take(i)
                        .any(|earlier| earlier.name == payment.name)
                    {
                        report.add(&place.index(i).key("name"), "Must not be advertised twice.");
                    }
                    if payment.authentication_required && !advertises_enrollment {
                        report.add(
                            &place.index(i).key("authentication"),
                            "Must be not-required, since no enrollment protocol is advertised.",
                        );
                    }
                }
                Some(payments)
            },
        );
        let trust = shape::optional(report, place, &mut map, "trust", |report, place, value| {
            read_single(report, place, value, "tap")
        });
        shape::closed(report, place, &map);
        let protocols = Self {
            enrollment: enrollment.is_some(),
            payments: payments.unwrap_or_default(),
            trust: trust.is_some(),
        };
        (report.len() == before).then_some(protocols)
    }

    /// The wire form.
    pub fn to_value(&self) -> Value {
        let single = |name: &str| {
            let mut map = Map::new();
            map.insert("name".into(), name.into());
            Value::Array(vec![Value::Object(map)])
        };
        let mut map = Map::new();
        if self.enrollment {
            map.insert("enrollment".into(), single("aep"));
        }
        if !self.payments.is_empty() {
            let payments: Vec<Value> = self.payments.iter().map(Payment::to_value).collect();
            map.insert("payments".into(), payments.into());
        }
        if self.trust {
            map.insert("trust".into(), single("tap"));
        }
        Value::Object(map)
    }
}

/// Reads `[{"name": known}]`, the only value of a category with one protocol.
fn read_single(report: &mut Report, place: &Place<'_>, value: Value, known: &str) -> Option<()> {
    let before = report.len();
    shape::list(report, place, value, 1..=1, |report, place, value| {
        let mut map = shape::object(report, place, value)?;
        shape::required(report, place, &mut map, "name", |report, place, value| {
            let name = shape::string(report, place, value)?;
            if name != known {
                report.add(place, format!("Must be {known}."));
            }
            Some(())
        });
        shape::closed(report, place, &map);
        Some(())
    })?;
    (report.len() == before).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Invalid;
    use serde_json::json;

    fn check(value: Value) -> Result<Protocols, Invalid> {
        let mut report = Report::new();
        let protocols = Protocols::read(&mut report, &Place::ROOT, value);
        report.finish(protocols)
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
    fn what_is_supported_comes_back() {
        for value in [
            json!({"enrollment": [{"name": "aep"}], "payments": [
                {"authentication": "not-required", "name": "mpp", "options": ["card", "inflow", "solana"]},
                {"authentication": "required", "name": "x402"}]}),
            json!({"trust": [{"name": "tap"}]}),
        ] {
            assert_eq!(check(value.clone()).unwrap().to_value(), value);
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert_eq!(pointers(json!({})), [""]);
        assert_eq!(
            pointers(json!({"trust": [{"name": "future-trust"}]})),
            ["/trust/0/name"]
        );
        assert_eq!(
            pointers(json!({"trust": [{"name": "tap"}, {"name": "tap"}]})),
            ["/trust"]
        );
        assert_eq!(
            pointers(json!({"trust": [{"name": "tap", "version": "1"}]})),
            ["/trust/0/version"]
        );
        assert_eq!(
            pointers(json!({"trust": [], "payments": [], "enrollment": []})),
            ["/enrollment", "/payments", "/trust"]
        );
        assert_eq!(
            pointers(json!({"reputation": [{"name": "x"}]})),
            ["/reputation"]
        );
    }

    #[test]
    fn payments_are_distinct_and_need_enrollment_to_authenticate() {
        let payments = |payments: Value| json!({"payments": payments});
        let free = |name: &str| json!({"authentication": "not-required", "name": name});
        assert_eq!(
            pointers(payments(json!([free("mpp"), free("mpp")]))),
            ["/payments/1/name"]
        );
        assert_eq!(
            pointers(payments(json!([free("future-pay")]))),
            ["/payments/0/name"]
        );
        assert_eq!(
            pointers(payments(
                json!([{"authentication": "required", "name": "mpp"}])
            )),
            ["/payments/0/authentication"]
        );
        assert_eq!(
            pointers(payments(
                json!([{"authentication": "optional", "name": "mpp"}])
            )),
            ["/payments/0/authentication"]
        );
        let options = |options: Value| {
            payments(json!([{"authentication": "not-required", "name": "mpp", "options": options}]))
        };
        assert_eq!(
            pointers(options(json!(["solana", "solana"]))),
            ["/payments/0/options/1"]
        );
        assert_eq!(pointers(options(json!([]))), ["/payments/0/options"]);
        assert_eq!(
            pointers(options(json!(["future-option"]))),
            ["/payments/0/options/0"]
        );
        assert!(check(options(json!(PaymentOption::NAMES))).is_ok());
    }
}
