//! Media types and their negotiation (ODP §1, RFC 9110 §8.3.1 and §12.5.1).

/// ODP documents.
pub const ODP: &str = "application/odp+json";
/// Problem Details.
pub const PROBLEM: &str = "application/problem+json";
/// Attribute schemas.
pub const SCHEMA: &str = "application/schema+json";

/// A `qvalue` of RFC 9110 in thousandths.
pub(crate) fn weight(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let thousandths = format!("{fraction:0<3}").parse().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}
