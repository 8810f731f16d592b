//! What a 401 or 402 asks for (ODP §13). Live challenges are authoritative; nothing is enrolled or paid here.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

/// The field in which x402 asks for payment.
const PAYMENT_REQUIRED: &str = "payment-required";

/// One challenge field as received, for the caller's handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    status: StatusCode,
    name: HeaderName,
    value: HeaderValue,
}

/// A protocol that has to be gone through before the operation succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Demand {
    /// Authentication by AEP: 401 and the scheme `AEP`.
    Aep,
    /// Payment by MPP: 402 and the scheme `Payment`.
    Mpp,
    /// Payment by x402: 402 and the field `PAYMENT-REQUIRED`.
    X402,
}

impl Demand {
    /// The protocol's name as a Service advertises it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aep => "aep",
            Self::Mpp => "mpp",
            Self::X402 => "x402",
        }
    }

    /// Whether it is payment, which comes after authentication.
    pub fn is_payment(self) -> bool {
        matches!(self, Self::Mpp | Self::X402)
    }
}

impl Challenge {
    /// `WWW-Authenticate` or `PAYMENT-REQUIRED`, in lower case.
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// The field's value, byte for byte.
    pub fn value(&self) -> &HeaderValue {
        &self.value
    }

    /// What the field demands, whether the Service advertises it or not; empty for schemes that are not known.
    pub fn demands(&self) -> Vec<Demand> {
        if self.name == PAYMENT_REQUIRED {
            return vec![Demand::X402];
        }
        let schemes = self.value.to_str().map(schemes).unwrap_or_default();
        let has = |scheme: &str| {
            schemes
                .iter()
                .any(|found| found.eq_ignore_ascii_case(scheme))
        };
        match self.status {
            StatusCode::UNAUTHORIZED if has("AEP") => vec![Demand::Aep],
            StatusCode::PAYMENT_REQUIRED if has("Payment") => vec![Demand::Mpp],
            _ => Vec::new(),
        }
    }
}

/// The challenges of a response, in the order received: `WWW-Authenticate` of a 401 or 402, `PAYMENT-REQUIRED` of a 402. Empty
/// for every other status.
pub fn read(status: StatusCode, headers: &HeaderMap) -> Vec<Challenge> {
    let names: &[HeaderName] = match status {
        StatusCode::UNAUTHORIZED => &[header::WWW_AUTHENTICATE],
        StatusCode::PAYMENT_REQUIRED => &[
            header::WWW_AUTHENTICATE,
            HeaderName::from_static(PAYMENT_REQUIRED),
        ],
        _ => &[],
    };
    names
        .iter()
        .flat_map(|name| headers.get_all(name).iter().map(move |value| (name, value)))
        .map(|(name, value)| Challenge {
            status,
            name: name.clone(),
            value: value.clone(),
        })
        .collect()
}

/// What all `challenges` together demand, each once; authentication before payment.
pub fn demands(challenges: &[Challenge]) -> Vec<Demand> {
    let mut all: Vec<_> = challenges.iter().flat_map(Challenge::demands).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The schemes of a `WWW-Authenticate` field (RFC 9110 §11.6.1). Several challenges may stand in one field, and commas divide
/// parameters as well as challenges: a token that `=` does not follow begins a challenge.
fn schemes(field: &str) -> Vec<&str> {
    unquoted_elements(field)
        .into_iter()
        .filter_map(|element| {
            let element = element.trim_matches([' ', '\t']);
            let end = element.find([' ', '\t', '=']).unwrap_or(element.len());
            let (token, rest) = element.split_at_checked(end)?;
            let parameter = rest.trim_start_matches([' ', '\t']).starts_with('=');
            (!token.is_empty() && !parameter).then_some(token)
        })
        .collect()
}

/// The elements of a list, where commas within quotes divide nothing.
fn unquoted_elements(field: &str) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    field
        .split(move |c| {
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                ',' if !quoted => return true,
                _ => {}
            }
            false
        })
        .collect()
}
