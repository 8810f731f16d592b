//! What was learnt of the postings of a field, which never change.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use tantivy::InvertedIndexReader;
use tantivy::postings::TermInfo;
use tantivy::schema::IndexRecordOption;

/// Facts of a field that are remembered at a time.
const KNOWN: usize = 16_384;

/// Documents from which on it is worth knowing whether a form is another form too.
const MANY: u32 = 128;

/// Facts about forms, by where their postings begin.
#[derive(Default)]
pub(super) struct Facts {
    known: Mutex<HashMap<(usize, Option<usize>), u32>>,
}

impl Facts {
    /// How often a form occurs in the document where it occurs most.
    pub(super) fn most_frequent(
        &self,
        inverted: &InvertedIndexReader,
        form: &TermInfo,
    ) -> io::Result<u32> {
        self.recall((form.postings_range.start, None), || {
            let option = IndexRecordOption::WithFreqs;
            let mut block = inverted.read_block_postings_from_terminfo(form, option)?;
            let mut most = 0;
            while block.block_len() > 0 {
                most = block.freqs().iter().copied().fold(most, u32::max);
                block.advance();
            }
            Ok(most)
        })
    }

    /// Whether all documents of a form are known to have `other` too, and as often at least; not looked into where it does not matter.
    pub(super) fn is_within(
        &self,
        inverted: &InvertedIndexReader,
        form: &TermInfo,
        other: &TermInfo,
    ) -> io::Result<bool> {
        if form.doc_freq < MANY || other.doc_freq < form.doc_freq {
            return Ok(false);
        }
        let key = (form.postings_range.start, Some(other.postings_range.start));
        let is_within = self.recall(key, || {
            let option = IndexRecordOption::WithFreqs;
            let mut others = inverted.read_block_postings_from_terminfo(other, option)?;
            let mut block = inverted.read_block_postings_from_terminfo(form, option)?;
            let mut is_within = true;
            while is_within && block.block_len() > 0 {
                let mut postings = block.docs().iter().zip(block.freqs());
                is_within = postings.all(|(doc, frequency)| {
                    let at = others.seek(*doc);
                    others.doc(at) == *doc && others.freq(at) >= *frequency
                });
                block.advance();
            }
            Ok(u32::from(is_within))
        })?;
        Ok(is_within == 1)
    }

    fn recall(
        &self,
        key: (usize, Option<usize>),
        learn: impl FnOnce() -> io::Result<u32>,
    ) -> io::Result<u32> {
        if let Some(fact) = self.known.lock().get(&key) {
            return Ok(*fact);
        }
        let fact = learn()?;
        let mut known = self.known.lock();
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(key, fact);
        Ok(fact)
    }
}
