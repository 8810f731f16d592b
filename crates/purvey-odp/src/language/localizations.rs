//! The languages in which a document is available.

use super::LanguageTag;
use crate::report::{Place, Report};
use crate::{limits, shape};
use serde::Serialize;
use serde_json::Value;

/// `localizations`: from 1 through 16 language tags, none twice (in whatever case).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Localizations(Vec<LanguageTag>);

impl Localizations {
    /// The localizations, when their count is right and none occurs twice.
    pub fn new(tags: Vec<LanguageTag>) -> Option<Self> {
        let counted = (1..=limits::LOCALIZATIONS).contains(&tags.len());
        (counted && first_repeated(&tags).is_none()).then_some(Self(tags))
    }

    /// The tags in their published order.
    pub fn tags(&self) -> &[LanguageTag] {
        &self.0
    }

    /// Whether `language` is among the tags.
    pub fn contains(&self, language: &LanguageTag) -> bool {
        self.0.contains(language)
    }

    /// Reads a JSON array; notes every fault.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let count = 1..=limits::LOCALIZATIONS;
        let tags = shape::list(report, place, value, count, LanguageTag::read)?;
        if let Some(index) = first_repeated(&tags) {
            report.add(
                &place.index(index),
                "Must not occur twice, in whatever case.",
            );
            return None;
        }
        Some(Self(tags))
    }

    /// Notes, at `place`, that `language` is missing among the tags.
    pub fn check_language(&self, report: &mut Report, place: &Place<'_>, language: &LanguageTag) {
        if !self.contains(language) {
            report.add(
                place,
                format!("Must contain {language}, the document's language."),
            );
        }
    }
}

/// The index of the first tag that occurred before.
fn first_repeated(tags: &[LanguageTag]) -> Option<usize> {
    (1..tags.len()).find(|&i| {
        tags.iter()
            .take(i)
            .any(|earlier| Some(earlier) == tags.get(i))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> (Option<Localizations>, Vec<String>) {
        let mut report = Report::new();
        let place = Place::ROOT.key("localizations");
        let read = Localizations::read(&mut report, &place, value);
        let pointers = report
            .finish::<()>(None)
            .unwrap_err()
            .into_violations()
            .into_iter()
            .map(|v| v.pointer)
            .collect();
        (read, pointers)
    }

    #[test]
    fn bounds_and_uniqueness() {
        let two = read(json!(["en", "ja"])).0.unwrap();
        assert_eq!(serde_json::to_value(&two).unwrap(), json!(["en", "ja"]));
        let tags: Vec<String> = (b'a'..=b'p')
            .map(|c| format!("a{}", char::from(c)))
            .collect();
        assert!(read(json!(tags)).0.is_some());
        let tags: Vec<String> = (b'a'..=b'q')
            .map(|c| format!("a{}", char::from(c)))
            .collect();
        assert_eq!(read(json!(tags)), (None, vec!["/localizations".to_owned()]));
        assert_eq!(read(json!([])), (None, vec!["/localizations".to_owned()]));
        assert_eq!(
            read(json!(["en", "EN"])),
            (None, vec!["/localizations/1".to_owned()])
        );
        assert_eq!(
            read(json!(["en", 1, "_"])),
            (
                None,
                vec!["/localizations/1".to_owned(), "/localizations/2".to_owned()]
            )
        );
    }

    #[test]
    fn the_language_must_be_among_them() {
        let tag = |text| LanguageTag::parse(text).unwrap();
        let english = Localizations::new(vec![tag("en")]).unwrap();
        let mut report = Report::new();
        english.check_language(&mut report, &Place::ROOT, &tag("EN"));
        assert!(report.is_empty());
        english.check_language(&mut report, &Place::ROOT, &tag("ja"));
        assert_eq!(report.len(), 1);
        assert!(Localizations::new(vec![tag("en"), tag("En")]).is_none());
        assert!(Localizations::new(vec![]).is_none());
    }
}
