//! Who sees the difference that a new segment makes.

use super::changed::Touched;
use super::view::naming;
use super::{Part, slot};
use crate::Error;
use crate::access::{self, RESTRICTED};
use crate::segment::codec::corrupt;
use crate::segment::{Region, Segment};
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use serde_json::Value;
use std::sync::Arc;

/// A segment whose documents are about to replace others.
pub(super) struct Arrival<'a> {
    pub(super) kind: ResourceType,
    pub(super) segment: &'a Arc<Segment>,
    /// What is alive until then.
    pub(super) parts: &'a [Vec<Part>; 2],
    /// The Collections of the generation before.
    pub(super) collections: &'a [Part],
}

/// The Full form of a document in a language.
type Form<'a> = (Option<&'a LanguageTag>, Vec<u8>);

impl Arrival<'_> {
    /// Notes who sees that documents are new, or other than before.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] when a document cannot be read.
    pub(super) fn note(&self, touched: &mut Touched) -> Result<(), Error> {
        let hides = |part: &Part| part.segment.postings(RESTRICTED).is_some();
        let restricted = self.segment.postings(RESTRICTED);
        if restricted.is_none() && !self.parts.iter().flatten().any(hides) {
            // Nothing is hidden from anybody.
            if !self.segment.is_empty() {
                touched.add_everybody();
            }
            return Ok(());
        }
        let is_restricted = |at: &u32| restricted.is_some_and(|all| all.contains(*at));
        // What everybody sees decides for everybody.
        let public = (0..self.segment.len()).filter(|at| !is_restricted(at));
        let restricted = (0..self.segment.len()).filter(is_restricted);
        for ordinal in public.chain(restricted) {
            self.note_document(ordinal, touched)?;
            if touched.is_everybody() {
                break;
            }
        }
        Ok(())
    }

    fn note_document(&self, ordinal: u32, touched: &mut Touched) -> Result<(), Error> {
        let audiences = audiences(self.segment, ordinal);
        let id = self.segment.id(ordinal);
        let Some((old, at)) = find(&self.parts[slot(self.kind)], id) else {
            touched.add(audiences);
            return Ok(());
        };
        let before = self::audiences(&old.segment, at);
        if touched.covers(&audiences) && touched.covers(&before) {
            return Ok(());
        }
        if audiences != before {
            touched.add(audiences);
            touched.add(before);
            return Ok(());
        }
        let (forms, before) = (forms(self.segment, ordinal)?, forms(&old.segment, at)?);
        if forms == before {
            return Ok(());
        }
        match self.renamed(&forms, &before)? {
            // Only who sees one of these Collections sees the difference.
            Some(hidden) if audiences.is_empty() => hidden
                .into_iter()
                .for_each(|audiences| touched.add(audiences)),
            _ => touched.add(audiences),
        }
        Ok(())
    }

    /// The audiences of each Collection that is named in one of the forms and not in the other, when the forms differ in nothing else and all of
    /// these are hidden from somebody.
    fn renamed(&self, new: &[Form<'_>], old: &[Form<'_>]) -> Result<Option<Vec<Vec<&str>>>, Error> {
        if new.len() != old.len() {
            return Ok(None);
        }
        let mut found = Vec::new();
        for ((language, new), (other, old)) in new.iter().zip(old) {
            let (mut new, mut old) = (self.parse(new)?, self.parse(old)?);
            let (named, before) = (
                take_names(&mut new, self.kind),
                take_names(&mut old, self.kind),
            );
            if language != other || new != old {
                return Ok(None);
            }
            let gone = before.iter().filter(|id| !named.contains(id));
            let come = named.iter().filter(|id| !before.contains(id));
            let count = found.len();
            for id in gone.chain(come) {
                let now = &self.parts[slot(ResourceType::Collection)];
                let known = [now.as_slice(), self.collections];
                let known = known.into_iter().filter_map(|parts| find(parts, id));
                let known: Vec<_> = known
                    .map(|(part, at)| audiences(&part.segment, at))
                    .collect();
                if known.is_empty() || known.iter().any(Vec::is_empty) {
                    return Ok(None);
                }
                found.extend(known);
            }
            // The same names in another order.
            if found.len() == count && named != before {
                return Ok(None);
            }
        }
        Ok(Some(found).filter(|found| !found.is_empty()))
    }

    fn parse(&self, text: &[u8]) -> Result<Value, Error> {
        serde_json::from_slice(text)
            .map_err(|error| corrupt(self.segment.path(), error.to_string()))
    }
}

fn find<'a>(parts: &'a [Part], id: &str) -> Option<(&'a Part, u32)> {
    parts
        .iter()
        .find_map(|part| Some((part, part.find_live(id)?)))
}

/// The audiences of a document, ascending; empty when everybody sees it.
pub(super) fn audiences(segment: &Segment, ordinal: u32) -> Vec<&str> {
    let restricted = segment.postings(RESTRICTED);
    if restricted.is_none_or(|all| !all.contains(ordinal)) {
        return Vec::new();
    }
    // Their keys come before those of all Collections.
    let postings = segment.all_postings();
    let reserved = postings.take_while(|(key, _)| key.starts_with(RESTRICTED));
    let of_document = reserved.filter(|(_, documents)| documents.contains(ordinal));
    of_document
        .filter_map(|(key, _)| access::of_posting(key))
        .collect()
}

/// A document in its own language and in all others: everything else is made of these.
fn forms(segment: &Segment, ordinal: u32) -> Result<Vec<Form<'_>>, Error> {
    let languages = segment.languages();
    let own = segment.named_language(ordinal).unwrap_or_default();
    let mut forms = vec![(
        languages.get(usize::from(own)),
        read(segment, ordinal, None)?,
    )];
    for (at, language) in segment.variant_languages(ordinal).enumerate() {
        let language = languages.get(usize::from(language));
        forms.push((language, read(segment, ordinal, Some(at))?));
    }
    Ok(forms)
}

fn read(segment: &Segment, ordinal: u32, variant: Option<usize>) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    segment.append(&segment.place(Region::Full, ordinal, variant)?, &mut text)?;
    Ok(text)
}

/// Takes the ids of Collections out of a Full form.
fn take_names(form: &mut Value, kind: ResourceType) -> Vec<String> {
    let Value::Object(map) = form else {
        return Vec::new();
    };
    let Some(Value::Array(ids)) = map.shift_remove(naming(kind)) else {
        return Vec::new();
    };
    ids.iter()
        .filter_map(|id| id.as_str().map(str::to_owned))
        .collect()
}
