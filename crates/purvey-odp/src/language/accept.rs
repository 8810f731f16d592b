//! What a client would like to read: `Accept-Language` (RFC 9110 §12.5.4) and Lookup (RFC 4647 §3.4).

use super::LanguageTag;

/// The language ranges of an `Accept-Language` field, by falling weight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AcceptLanguage {
    /// Lower case, without wildcards; equal weights in the field's order.
    wanted: Vec<Box<str>>,
    /// Ranges of weight zero, lower case.
    refused: Vec<Box<str>>,
}

impl AcceptLanguage {
    /// Most ranges considered; what comes after them in the field is ignored, so that a hostile field costs little.
    pub const MAX_RANGES: usize = 64;

    /// The ranges in `field`. What is malformed is skipped, since a language preference never fails a request.
    pub fn parse(field: Option<&str>) -> Self {
        let mut weighted: Vec<(u16, Box<str>)> = Vec::new();
        let mut refused = Vec::new();
        let elements = field.unwrap_or_default().split(',').take(Self::MAX_RANGES);
        for (range, weight) in elements.filter_map(element) {
            match weight {
                0 => refused.push(range),
                weight => weighted.push((weight, range)),
            }
        }
        weighted.sort_by_key(|&(weight, _)| std::cmp::Reverse(weight));
        Self {
            wanted: weighted.into_iter().map(|(_, range)| range).collect(),
            refused,
        }
    }

    /// The indexes of `available` in the order in which Lookup would take them, each at most once: for every range by falling
    /// weight, the tag that equals it, then those that equal its successive truncations. Tags that are refused (weight zero,
    /// unless a longer range wants them) do not occur; `*` adds nothing, since the default stands for it.
    ///
    /// Lookup for one resource takes the first of these languages that the resource has, else its default.
    pub fn preferred(&self, available: &[LanguageTag]) -> Vec<usize> {
        let mut order = Vec::new();
        if self.wanted.is_empty() {
            return order;
        }
        for range in &self.wanted {
            let mut next = Some(&**range);
            while let Some(range) = next {
                for (index, tag) in available.iter().enumerate() {
                    if tag.as_str().eq_ignore_ascii_case(range)
                        && !order.contains(&index)
                        && !self.refuses(tag)
                    {
                        order.push(index);
                    }
                }
                next = truncated(range);
            }
        }
        order
    }

    /// The language that Lookup picks among `available`, as an index; nothing when the default is to be used.
    pub fn lookup(&self, available: &[LanguageTag]) -> Option<usize> {
        self.preferred(available).first().copied()
    }

    /// Whether the longest range that covers `tag` has weight zero.
    fn refuses(&self, tag: &LanguageTag) -> bool {
        let longest = |ranges: &[Box<str>]| {
            ranges
                .iter()
                .filter(|range| covers(range, tag.as_str()))
                .map(|range| range.len())
                .max()
        };
        longest(&self.refused).is_some_and(|refused| longest(&self.wanted) < Some(refused))
    }
}

/// Whether `range` equals `tag` or a prefix of it that ends at a hyphen (RFC 4647 §3.3.1).
fn covers(range: &str, tag: &str) -> bool {
    tag.get(..range.len())
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case(range))
        && matches!(tag.as_bytes().get(range.len()), None | Some(b'-'))
}

/// `range` without its last subtag, and without a single-character subtag before that (RFC 4647 §3.4).
fn truncated(range: &str) -> Option<&str> {
    let (head, _) = range.rsplit_once('-')?;
    match head.rsplit_once('-') {
        Some((shorter, last)) if last.len() == 1 => Some(shorter),
        None if head.len() == 1 => None,
        _ => Some(head),
    }
}

/// A basic language range in lower case and its weight in thousandths; nothing for `*` and what is malformed.
fn element(text: &str) -> Option<(Box<str>, u16)> {
    let (range, weight) = match text.split_once(';') {
        Some((range, weight)) => (range, qvalue(weight)?),
        None => (text, 1000),
    };
    let range = range.trim_matches([' ', '\t']);
    let mut subtags = range.split('-');
    let primary = subtags.next()?;
    let fits = |subtag: &str| (1..=8).contains(&subtag.len());
    let well_formed = fits(primary)
        && primary.bytes().all(|b| b.is_ascii_alphabetic())
        && subtags.all(|subtag| fits(subtag) && subtag.bytes().all(|b| b.is_ascii_alphanumeric()));
    well_formed.then(|| (range.to_ascii_lowercase().into_boxed_str(), weight))
}

/// The weight in `q=0.5`, in thousandths.
fn qvalue(parameter: &str) -> Option<u16> {
    let (name, value) = parameter.trim_matches([' ', '\t']).split_once('=')?;
    if !name.eq_ignore_ascii_case("q") {
        return None;
    }
    crate::media::weight(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(texts: &[&str]) -> Vec<LanguageTag> {
        texts
            .iter()
            .map(|text| LanguageTag::parse(text).unwrap())
            .collect()
    }

    fn preferred<'a>(field: &str, available: &[&'a str]) -> Vec<&'a str> {
        let order = AcceptLanguage::parse(Some(field)).preferred(&tags(available));
        order.into_iter().map(|i| available[i]).collect()
    }

    #[test]
    fn lookup_truncates_progressively() {
        // The fallback pattern of RFC 4647 §3.4: the single-character subtag goes with the one after it.
        let available = ["zh", "zh-Hant", "zh-Hant-CN", "zh-Hant-CN-x-private1", "en"];
        assert_eq!(
            preferred("zh-Hant-CN-x-private1-private2", &available),
            ["zh-Hant-CN-x-private1", "zh-Hant-CN", "zh-Hant", "zh"]
        );
        assert_eq!(preferred("x-a", &["x-b", "en"]), Vec::<&str>::new());
        assert_eq!(preferred("i-klingon", &["i-klingon", "en"]), ["i-klingon"]);
    }

    #[test]
    fn a_range_is_exhausted_before_the_next_one() {
        assert_eq!(preferred("de-CH, fr", &["fr", "de"]), ["de", "fr"]);
        assert_eq!(
            preferred("fr;q=0.5, de-CH;q=0.8", &["fr", "de"]),
            ["de", "fr"]
        );
        assert_eq!(preferred("en, en-GB", &["en-GB", "en"]), ["en", "en-GB"]);
    }

    #[test]
    fn lookup_never_lengthens() {
        assert_eq!(preferred("de", &["de-CH"]), Vec::<&str>::new());
    }

    #[test]
    fn weights() {
        assert_eq!(
            preferred("a;q=0.1, b;q=0.9, c, d ; Q=0.001 , e;q=1.000", &[]),
            Vec::<&str>::new()
        );
        assert_eq!(
            preferred(
                "aa;q=0.1, bb;q=0.9, cc, dd ; Q=0.001 , ee;q=1.000",
                &["aa", "bb", "cc", "dd", "ee"]
            ),
            ["cc", "ee", "bb", "aa", "dd"]
        );
        assert_eq!(preferred("de;q=0", &["de"]), Vec::<&str>::new());
        assert_eq!(preferred("de-CH, de;q=0", &["de", "de-CH"]), ["de-CH"]);
        assert_eq!(preferred("de, de-CH;q=0", &["de", "de-CH"]), ["de"]);
        assert_eq!(
            preferred("de-CH;q=0, de-CH-1996", &["de-CH"]),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn malformed_elements_are_skipped() {
        for field in [
            "",
            ",,",
            "*",
            "*;q=0.5",
            "de;q=2",
            "de;q=0.1234",
            "de;q",
            "de;x=1",
            "de_DE",
            "123",
            "d\u{e9}",
        ] {
            assert_eq!(
                preferred(field, &["de", "en"]),
                Vec::<&str>::new(),
                "{field}"
            );
        }
        assert_eq!(preferred("*, ;, de;q=x, en", &["de", "en"]), ["en"]);
        assert_eq!(AcceptLanguage::parse(None), AcceptLanguage::default());
    }

    #[test]
    fn case_is_ignored_and_each_language_comes_once() {
        assert_eq!(
            preferred("DE-de, de, EN", &["en", "de", "De-DE"]),
            ["De-DE", "de", "en"]
        );
    }

    #[test]
    fn a_hostile_field_is_bounded() {
        let field = "en-a-b,".repeat(10_000) + "de";
        assert_eq!(
            AcceptLanguage::parse(Some(&field)).wanted.len(),
            AcceptLanguage::MAX_RANGES
        );
    }

    #[test]
    fn lookup_is_the_first_preference() {
        let accept = AcceptLanguage::parse(Some("fr, de"));
        assert_eq!(accept.lookup(&tags(&["en", "de", "fr"])), Some(2));
        assert_eq!(accept.lookup(&tags(&["en"])), None);
    }
}
