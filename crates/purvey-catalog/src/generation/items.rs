//! Documents in an order that the caller gives, for pages of a search.

use super::list::Lookup;
use super::{Generation, slot};
use crate::Error;
use crate::segment::Region;
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use purvey_odp::offering::Representation;

/// Documents to deliver, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Their kind.
    pub(crate) kind: ResourceType,
    /// The place of the segment of each, and its ordinal there.
    pub(crate) documents: &'a [(usize, u32)],
    /// Which representation.
    pub(crate) representation: Representation,
    /// Languages in order of preference; each item comes in the first that it has, else in its own.
    pub(crate) preferred: &'a [LanguageTag],
    /// Most bytes of all items with the commas between them. The first item is delivered in any case.
    pub(crate) max_bytes: usize,
}

impl Generation {
    /// Appends items to `out` as `item,item` while they fit. Returns how many, and adds their languages to `languages`, each once.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a document that is not there; [`Error::Corrupt`]; [`Error::Io`]. `out` is then undefined.
    pub(crate) fn append_items(
        &self,
        wanted: &Wanted<'_>,
        out: &mut Vec<u8>,
        languages: &mut Vec<LanguageTag>,
    ) -> Result<usize, Error> {
        let parts = &self.parts[slot(wanted.kind)];
        let lookups: Vec<Lookup<'_>> = parts
            .iter()
            .map(|part| Lookup::new(&part.segment, wanted.preferred))
            .collect();
        let region = Region::from(wanted.representation);
        let start = out.len();
        for (count, (place, ordinal)) in wanted.documents.iter().enumerate() {
            let (Some(part), Some(lookup)) = (parts.get(*place), lookups.get(*place)) else {
                return Err(Error::NotFound);
            };
            let segment = &part.segment;
            let choice = lookup.choose(*ordinal);
            let stored = segment.place(region, *ordinal, choice.variant)?;
            let redacted = part.redacted(
                self.sight.as_ref(),
                wanted.kind,
                wanted.representation,
                *ordinal,
                choice.variant,
            )?;
            let splice = if choice.splice { lookup.splice() } else { "" };
            let item = redacted.as_ref().map_or(stored.len(), Vec::len);
            let len = item + splice.len() + usize::from(count > 0);
            if count > 0 && out.len() - start + len > wanted.max_bytes {
                return Ok(count);
            }
            if count > 0 {
                out.push(b',');
            }
            out.push(b'{');
            out.extend(splice.as_bytes());
            match &redacted {
                Some(item) => out.extend(item.get(1..).unwrap_or_default()),
                None => segment.append_without_brace(&stored, out)?,
            }
            let language = segment.languages().get(usize::from(choice.language));
            languages.extend(language.filter(|tag| !languages.contains(tag)).cloned());
        }
        Ok(wanted.documents.len())
    }
}
