//! Language tags.

use crate::report::{Invalid, Place, Report};
use crate::shape;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A well-formed language tag (RFC 5646) of at most 35 characters, kept as it was written. Equality, order and hash ignore
/// case.
#[derive(Clone, Debug)]
pub struct LanguageTag(Box<str>);

impl LanguageTag {
    /// The longest tag, in ASCII characters.
    pub const MAX_CHARS: usize = 35;

    const RULE: &'static str = "Must be a language tag of RFC 5646 with at most 35 characters, no variant or extension twice.";

    /// The tag, when `text` is one.
    ///
    /// # Errors
    /// When `text` does not fit the grammar, repeats a variant or an extension, or is too long; at the pointer `""`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if is_tag(text) {
            Ok(Self(text.into()))
        } else {
            Err(Invalid::one("", Self::RULE))
        }
    }

    /// The tag as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a JSON string; notes what breaks the rule.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        if is_tag(&text) {
            return Some(Self(text.into_boxed_str()));
        }
        report.add(place, Self::RULE);
        None
    }

    fn folded(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.bytes().map(|b| b.to_ascii_lowercase())
    }
}

fn is_tag(text: &str) -> bool {
    if text.len() > LanguageTag::MAX_CHARS {
        return false;
    }
    let Ok(tag) = oxilangtag::LanguageTag::parse(text) else {
        return false;
    };
    // RFC 5646 §2.2.5 and §2.2.6: a tag that repeats one of these is not valid, though it fits the grammar.
    let mut variants: Vec<&str> = tag.variant_subtags().collect();
    let mut singletons: Vec<char> = tag
        .extension_subtags()
        .map(|(singleton, _)| singleton.to_ascii_lowercase())
        .collect();
    let (variant_count, singleton_count) = (variants.len(), singletons.len());
    variants.sort_unstable_by_key(|variant| variant.to_ascii_lowercase());
    variants.dedup_by(|a, b| a.eq_ignore_ascii_case(b));
    singletons.sort_unstable();
    singletons.dedup();
    variants.len() == variant_count && singletons.len() == singleton_count
}

impl PartialEq for LanguageTag {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for LanguageTag {}

impl PartialOrd for LanguageTag {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LanguageTag {
    fn cmp(&self, other: &Self) -> Ordering {
        self.folded().cmp(other.folded())
    }
}

impl Hash for LanguageTag {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for b in self.folded() {
            state.write_u8(b);
        }
        state.write_u8(0xff);
    }
}

impl fmt::Display for LanguageTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for LanguageTag {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for LanguageTag {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::parse(text)
    }
}

impl Serialize for LanguageTag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn well_formed() {
        for text in [
            "en",
            "zh-Hant-TW",
            "de-DE-u-co-phonebk",
            "i-klingon",
            "x-a-a",
            "sl-rozaj-biske",
            "es-419",
            "en-a-bbb-x-a-ccc",
            "de-1996",
        ] {
            assert_eq!(LanguageTag::parse(text).unwrap().as_str(), text);
        }
        for text in [
            "",
            "e",
            "en-a",
            "en_US",
            "sl-rozaj-rozaj",
            "sl-rozaj-ROZAJ",
            "en-a-bbb-A-ccc",
            "en-",
            "-en",
            "en--us",
            "*",
            "languages-too",
            "\u{e9}n",
            "en-x-abcdefgh-abcdefgh-abcdefgh-abcd",
        ] {
            assert!(LanguageTag::parse(text).is_err(), "{text}");
        }
        assert!(LanguageTag::parse("en-x-abcdefgh-abcdefgh-abcdefgh-abc").is_ok());
    }

    #[test]
    fn case_does_not_matter() {
        let tag = |text| LanguageTag::parse(text).unwrap();
        assert_eq!(tag("en-us"), tag("EN-US"));
        assert_ne!(tag("en"), tag("en-us"));
        assert!(tag("DE") < tag("en"));
        let set: HashSet<_> = [tag("en-GB"), tag("EN-gb"), tag("fr")].into();
        assert_eq!(set.len(), 2);
        assert_eq!(serde_json::to_value(tag("EN-gb")).unwrap(), "EN-gb");
    }
}
