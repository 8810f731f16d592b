//! Access contexts: who asks, and what an audience may be called.
//!
//! A record may carry an `audience`, a list of names; without one everybody sees it. A caller belongs to audiences by the token that it
//! presents, and sees what is public and what carries one of them.

use purvey_odp::report::{Invalid, Place, Report};
use purvey_odp::shape;
use serde_json::Value;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Key of the postings that hold every document with an audience; no Collection can have such an id.
pub(crate) const RESTRICTED: &str = "\u{1}";

/// Key of the postings that hold the documents of one audience.
pub(crate) fn posting(audience: &str) -> String {
    format!("{RESTRICTED}{audience}")
}

/// The audience whose postings have this key.
pub(crate) fn of_posting(key: &str) -> Option<&str> {
    key.strip_prefix(RESTRICTED).filter(|name| !name.is_empty())
}

/// Most audiences of one record or one token.
pub const AUDIENCES: usize = 16;
/// Longest name of an audience, in characters.
pub const AUDIENCE_CHARS: usize = 64;

/// Who asks: the audiences that a caller belongs to; none is the anonymous public.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access(Arc<[String]>);

impl Access {
    /// Whoever presents nothing.
    pub fn public() -> Self {
        Self::default()
    }

    /// Who belongs to these audiences, in whatever order; to none of them, the public.
    ///
    /// # Errors
    /// At `/audiences`: more than [`AUDIENCES`], what no audience may be called, one that is named twice.
    pub fn new(audiences: impl IntoIterator<Item = String>) -> Result<Self, Invalid> {
        let audiences: Vec<String> = audiences.into_iter().collect();
        if audiences.is_empty() {
            return Ok(Self::public());
        }
        let mut report = Report::new();
        let names = read(&mut report, &Place::ROOT.key("audiences"), audiences.into());
        let mut names = report.finish(names)?;
        names.sort_unstable();
        Ok(Self(names.into()))
    }

    /// Whether it is the anonymous public.
    pub fn is_public(&self) -> bool {
        self.0.is_empty()
    }

    /// The audiences, ascending, each once.
    pub fn audiences(&self) -> &[String] {
        &self.0
    }

    /// Tells contexts apart; 0 is the public, and only that. Bound into cursors (ODP §3).
    pub fn digest(&self) -> u64 {
        if self.is_public() {
            return 0;
        }
        let mut hash = Xxh3::new();
        for audience in self.audiences() {
            // No name has a zero byte.
            hash.update(audience.as_bytes());
            hash.update(&[0]);
        }
        hash.digest().max(1)
    }
}

/// Reads a list of 1 to [`AUDIENCES`] distinct names; notes what breaks the rules.
pub(crate) fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Vec<String>> {
    let names = shape::list(
        report,
        place,
        value,
        1..=AUDIENCES,
        |report, place, value| {
            let name = shape::string(report, place, value)?;
            if !is_audience(&name) {
                report.add(place, "Must be 1 to 64 of A-Z a-z 0-9 . _ ~ -.");
            }
            Some(name)
        },
    )?;
    for (i, name) in names.iter().enumerate() {
        if names.iter().take(i).any(|earlier| earlier == name) {
            report.add(&place.index(i), "Must not be listed twice.");
        }
    }
    Some(names)
}

/// Whether an audience can have this name: 1 to [`AUDIENCE_CHARS`] of `A-Z a-z 0-9 . _ ~ -`.
pub fn is_audience(name: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'-');
    (1..=AUDIENCE_CHARS).contains(&name.len()) && name.bytes().all(allowed)
}
