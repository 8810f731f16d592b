//! Exact decimal numbers of any length.

use std::cmp::{Ordering, Reverse};
use std::fmt;

/// Padding zeros up to which a number is written out instead of with an exponent.
const PLAIN_ZEROS: u64 = 20;

/// An exact decimal number: any number of digits, any exponent, neither ever expanded.
///
/// Held in one normal form (no leading or trailing zeros, no negative zero), so equality, order and hash are by value:
/// `1.0`, `1` and `1e0` are one number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    /// Power of ten of the first digit; zero for zero.
    exponent: Exponent,
    /// Significant digits as 0–9, first and last not 0; empty for zero.
    digits: Box<[u8]>,
}

/// A power of ten. Variants and fields are ordered so that the derived order is the numeric one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Exponent {
    /// At most -10^18.
    Below(Reverse<Magnitude>),
    /// Of fewer than 19 digits.
    Small(i64),
    /// At least 10^18.
    Above(Magnitude),
}

/// At least 19 digits without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Magnitude {
    len: usize,
    digits: Box<[u8]>,
}

/// Digits that always fit an `i64`, with room for adding the length of a text.
const SMALL_DIGITS: usize = 18;

impl Exponent {
    /// The integer of these digits (0–9, any leading zeros) and sign, plus `by`; `|by|` is below 10^18.
    fn new(negative: bool, digits: &[u8], by: i64) -> Self {
        let digits = without_leading_zeros(digits);
        if digits.len() <= SMALL_DIGITS {
            let magnitude = integer(digits);
            let sum = if negative {
                by - magnitude
            } else {
                by + magnitude
            };
            let text = sum.unsigned_abs().to_string();
            if text.len() <= SMALL_DIGITS {
                return Self::Small(sum);
            }
            let digits = text.bytes().map(|b| b - b'0').collect();
            return Self::large(sum < 0, digits);
        }
        // More than |by|, so the sign stays.
        let mut digits = digits.to_vec();
        let mut carry = if negative { -by } else { by };
        for digit in digits.iter_mut().rev() {
            if carry == 0 {
                break;
            }
            let sum = i64::from(*digit) + carry;
            *digit = u8::try_from(sum.rem_euclid(10)).unwrap_or_default();
            carry = sum.div_euclid(10);
        }
        if carry > 0 {
            let front = carry
                .to_string()
                .bytes()
                .map(|b| b - b'0')
                .collect::<Vec<_>>();
            digits.splice(0..0, front);
        }
        let rest = without_leading_zeros(&digits);
        if rest.len() <= SMALL_DIGITS {
            let magnitude = integer(rest);
            return Self::Small(if negative { -magnitude } else { magnitude });
        }
        Self::large(negative, rest.to_vec())
    }

    fn large(negative: bool, digits: Vec<u8>) -> Self {
        let magnitude = Magnitude {
            len: digits.len(),
            digits: digits.into(),
        };
        if negative {
            Self::Below(Reverse(magnitude))
        } else {
            Self::Above(magnitude)
        }
    }

    /// One byte for everyday exponents; the lengths of the others come first, so that keys compare as the numbers do.
    fn order_key(&self, out: &mut Vec<u8>) {
        match self {
            Self::Below(Reverse(magnitude)) => {
                out.push(0);
                let start = out.len();
                magnitude.order_key(out);
                complement(&mut out[start..]);
            }
            Self::Small(e) => match u8::try_from(e.saturating_add(128)) {
                Ok(byte @ 2..=253) => out.push(byte),
                _ => {
                    out.push(if *e < 0 { 1 } else { 254 });
                    // Flipping the sign bit makes two's complement sort as unsigned.
                    out.extend((*e ^ i64::MIN).to_be_bytes());
                }
            },
            Self::Above(magnitude) => {
                out.push(255);
                magnitude.order_key(out);
            }
        }
    }
}

impl Magnitude {
    fn order_key(&self, out: &mut Vec<u8>) {
        out.extend((self.len as u64).to_be_bytes());
        out.extend(&self.digits);
    }
}

impl fmt::Display for Exponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, magnitude) = match self {
            Self::Small(e) => return e.fmt(f),
            Self::Below(Reverse(magnitude)) => ("-", magnitude),
            Self::Above(magnitude) => ("", magnitude),
        };
        f.write_str(sign)?;
        write_digits(f, &magnitude.digits)
    }
}

impl Decimal {
    /// Zero.
    pub fn zero() -> Self {
        Self {
            negative: false,
            exponent: Exponent::Small(0),
            digits: Box::default(),
        }
    }

    /// Reads a number in JSON's grammar (RFC 8259 §6), exponent allowed; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let (negative, exponent) = match exponent {
            None => (false, ""),
            Some(text) => {
                let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
                if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                (text.starts_with('-'), unsigned)
            }
        };
        Self::read(mantissa, negative, exponent)
    }

    /// Reads a number as the `decimal` filter type spells it: JSON's grammar without an exponent. `None` for any other text.
    pub fn parse_plain(text: &str) -> Option<Self> {
        Self::read(text, false, "")
    }

    fn read(mantissa: &str, exponent_negative: bool, exponent: &str) -> Option<Self> {
        let (negative, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return None,
            None => (mantissa, ""),
        };
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        let numeric = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || leading_zero || !numeric(whole) || !numeric(fraction) {
            return None;
        }
        let all = || whole.bytes().chain(fraction.bytes());
        let Some(first) = all().position(|b| b != b'0') else {
            return Some(Self::zero());
        };
        let mut digits: Vec<u8> = all().skip(first).map(|b| b - b'0').collect();
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let exponent: Vec<u8> = exponent.bytes().map(|b| b - b'0').collect();
        // Texts are shorter than 2^63 bytes.
        let by = i64::try_from(whole.len()).ok()? - 1 - i64::try_from(first).ok()?;
        Some(Self {
            negative,
            exponent: Exponent::new(exponent_negative, &exponent, by),
            digits: digits.into(),
        })
    }

    /// Whether the number is an integer.
    pub fn is_integer(&self) -> bool {
        match &self.exponent {
            Exponent::Below(_) => false,
            Exponent::Small(e) => {
                i64::try_from(self.digits.len()).is_ok_and(|digits| digits <= e.saturating_add(1))
            }
            Exponent::Above(_) => true,
        }
    }

    /// The number as a `u64`, when it is one.
    pub fn to_u64(&self) -> Option<u64> {
        let Exponent::Small(e) = self.exponent else {
            return None;
        };
        if self.digits.is_empty() {
            return Some(0);
        }
        if self.negative || !self.is_integer() || e > 19 {
            return None;
        }
        let places = usize::try_from(e).ok()? + 1;
        (0..places).try_fold(0u64, |sum, i| {
            let digit = self.digits.get(i).copied().unwrap_or(0);
            sum.checked_mul(10)?.checked_add(u64::from(digit))
        })
    }

    /// Appends bytes whose lexicographic order is the numeric order and whose equality is the numeric equality. No key is a
    /// prefix of another.
    pub fn order_key(&self, out: &mut Vec<u8>) {
        if self.digits.is_empty() {
            out.push(1);
            return;
        }
        out.push(if self.negative { 0 } else { 2 });
        let start = out.len();
        self.exponent.order_key(out);
        digit_key(&self.digits, out);
        if self.negative {
            complement(&mut out[start..]);
        }
    }

    /// The number without an exponent, whatever it takes: only for numbers that came without one, or that are small.
    pub(super) fn to_plain(&self) -> String {
        let mut out = String::new();
        let digits = || self.digits.iter().map(|d| char::from(b'0' + d));
        if self.negative {
            out.push('-');
        }
        let e = match self.exponent {
            Exponent::Small(e) if !self.digits.is_empty() => e,
            _ => return "0".to_owned(),
        };
        if e < 0 {
            out.push_str("0.");
            out.extend((1..e.unsigned_abs()).map(|_| '0'));
            out.extend(digits());
            return out;
        }
        let whole = usize::try_from(e).unwrap_or(usize::MAX).saturating_add(1);
        out.extend(digits().take(whole));
        if self.digits.len() > whole {
            out.push('.');
            out.extend(digits().skip(whole));
        } else {
            out.extend((self.digits.len()..whole).map(|_| '0'));
        }
        out
    }
}

/// JSON's grammar: written out where that takes few padding zeros, with an exponent otherwise.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.digits.split_first() else {
            return f.write_str("0");
        };
        let padding = match self.exponent {
            Exponent::Small(e) if e < 0 => Some(e.unsigned_abs()),
            Exponent::Small(e) => {
                Some((e.unsigned_abs() + 1).saturating_sub(self.digits.len() as u64))
            }
            _ => None,
        };
        if padding.is_some_and(|zeros| zeros <= PLAIN_ZEROS) {
            return f.write_str(&self.to_plain());
        }
        if self.negative {
            f.write_str("-")?;
        }
        write_digits(f, &[*first])?;
        if !rest.is_empty() {
            f.write_str(".")?;
            write_digits(f, rest)?;
        }
        write!(f, "e{}", self.exponent)
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self::parse_plain(&value.to_string()).unwrap_or_else(Self::zero)
    }
}

impl From<u64> for Decimal {
    fn from(value: u64) -> Self {
        Self::parse_plain(&value.to_string()).unwrap_or_else(Self::zero)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        // -1, 0 or 1.
        let sign = |d: &Self| match (d.digits.is_empty(), d.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let signs = sign(self).cmp(&sign(other));
        let magnitudes = || {
            // Without trailing zeros a longer text of equal beginning is the larger one, which is the order of slices.
            self.exponent
                .cmp(&other.exponent)
                .then_with(|| self.digits.cmp(&other.digits))
        };
        match signs {
            Ordering::Equal if self.negative => magnitudes().reverse(),
            Ordering::Equal => magnitudes(),
            unequal => unequal,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Digits without trailing zeros, two to a byte, ended by the lowest byte: what is shorter comes first.
pub(super) fn digit_key(digits: &[u8], out: &mut Vec<u8>) {
    for pair in digits.chunks(2) {
        let (tens, units) = (pair[0], pair.get(1).copied().unwrap_or(0));
        out.push(tens * 10 + units + 1);
    }
    out.push(0);
}

fn complement(bytes: &mut [u8]) {
    for byte in bytes {
        *byte = !*byte;
    }
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let start = digits.iter().position(|d| *d != 0).unwrap_or(digits.len());
    &digits[start..]
}

/// At most [`SMALL_DIGITS`] digits as an integer.
fn integer(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |sum, d| sum * 10 + i64::from(*d))
}

fn write_digits(f: &mut fmt::Formatter<'_>, digits: &[u8]) -> fmt::Result {
    digits
        .iter()
        .try_for_each(|d| fmt::Write::write_char(f, char::from(b'0' + d)))
}
