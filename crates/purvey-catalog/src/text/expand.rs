//! What a prefix may stand for.

use super::index::TextIndex;
use crate::Error;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use tantivy::termdict::TermStreamer;

/// Words that a prefix stands for at most: those that most documents have.
pub(super) const COMPLETIONS: usize = 64;

/// Words with a prefix that are looked at, in the order of their bytes.
const LOOKED_AT: usize = 1 << 16;

/// The forms that begin with `prefix` and are longer, with the documents of all indexes that have them in one field, the field where most do: the most frequent, of
/// equally frequent ones the first by bytes.
pub(super) fn expand(
    indexes: &[Arc<TextIndex>],
    prefix: &str,
) -> Result<Vec<(String, u64)>, Error> {
    let mut streams = Vec::new();
    let mut fields = 0;
    for index in indexes {
        let numbered = index
            .parts
            .iter()
            .flat_map(|part| part.fields.iter().enumerate());
        for (number, field) in numbered {
            fields = fields.max(number + 1);
            let range = field.inverted.terms().range().gt(prefix);
            let stream = range.into_stream().map_err(|e| index.failed(e))?;
            streams.extend(Source::next(number, stream, prefix));
        }
    }
    // The least frequent of the best is on top.
    let mut best = BinaryHeap::new();
    let mut form = Vec::new();
    let mut counts = vec![0_u64; fields];
    for _ in 0..LOOKED_AT {
        let Some(first) = streams.iter().map(|source| source.1.key()).min() else {
            break;
        };
        form.clear();
        form.extend_from_slice(first);
        counts.fill(0);
        let mut at = 0;
        while let Some(source) = streams.get(at) {
            if source.1.key() != form {
                at += 1;
                continue;
            }
            if let Some(count) = counts.get_mut(source.0) {
                *count += u64::from(source.1.value().doc_freq);
            }
            let Source(number, stream) = streams.swap_remove(at);
            if let Some(source) = Source::next(number, stream, prefix) {
                let last = streams.len();
                streams.push(source);
                streams.swap(at, last);
                at += 1;
            }
        }
        let documents = counts.iter().copied().max().unwrap_or_default();
        let worst = best.peek();
        let is_full = best.len() == COMPLETIONS;
        if worst.is_none_or(|Reverse((least, _))| !is_full || documents > *least) {
            best.push(Reverse((documents, Reverse(form.clone()))));
            if is_full {
                best.pop();
            }
        }
    }
    let forms = best.into_iter();
    Ok(forms
        .filter_map(|Reverse((documents, Reverse(form)))| {
            let form = String::from_utf8(form).ok()?;
            Some((form, documents))
        })
        .collect())
}

/// A field's number, and its stream, which stands at a form with the prefix.
struct Source<'a>(usize, TermStreamer<'a>);

impl<'a> Source<'a> {
    fn next(field: usize, mut stream: TermStreamer<'a>, prefix: &str) -> Option<Self> {
        let found = stream.advance() && stream.key().starts_with(prefix.as_bytes());
        found.then_some(Self(field, stream))
    }
}
