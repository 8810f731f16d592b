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

/// The most frequent forms that begin with `prefix` and are longer, in all indexes and fields together; of equally frequent ones the first by bytes.
pub(super) fn expand(indexes: &[Arc<TextIndex>], prefix: &str) -> Result<Vec<String>, Error> {
    let mut streams = Vec::new();
    for index in indexes {
        for field in index.parts.iter().flat_map(|part| &part.fields) {
            let range = field.inverted.terms().range().gt(prefix);
            let stream = range.into_stream().map_err(|e| index.failed(e))?;
            streams.extend(Source::next(stream, prefix));
        }
    }
    // The least frequent of the best is on top.
    let mut best = BinaryHeap::new();
    let mut form = Vec::new();
    for _ in 0..LOOKED_AT {
        let Some(first) = streams.iter().map(|source| source.0.key()).min() else {
            break;
        };
        form.clear();
        form.extend_from_slice(first);
        let mut documents = 0_u64;
        let mut at = 0;
        while let Some(source) = streams.get(at) {
            if source.0.key() != form {
                at += 1;
                continue;
            }
            documents += u64::from(source.0.value().doc_freq);
            let Source(stream) = streams.swap_remove(at);
            if let Some(source) = Source::next(stream, prefix) {
                let last = streams.len();
                streams.push(source);
                streams.swap(at, last);
                at += 1;
            }
        }
        let worst = best.peek();
        let is_full = best.len() == COMPLETIONS;
        if worst.is_none_or(|Reverse((least, _))| !is_full || documents > *least) {
            best.push(Reverse((documents, Reverse(form.clone()))));
            if is_full {
                best.pop();
            }
        }
    }
    let forms = best.into_iter().map(|Reverse((_, Reverse(form)))| form);
    let mut forms: Vec<String> = forms.filter_map(|f| String::from_utf8(f).ok()).collect();
    forms.sort_unstable();
    Ok(forms)
}

/// A stream that stands at a form with the prefix.
struct Source<'a>(TermStreamer<'a>);

impl<'a> Source<'a> {
    fn next(mut stream: TermStreamer<'a>, prefix: &str) -> Option<Self> {
        let found = stream.advance() && stream.key().starts_with(prefix.as_bytes());
        found.then_some(Self(stream))
    }
}
