//! Sequences of pages.

use super::documents::Refusal;
use super::pages::{Kind, PageSeen};
use super::probe::{Ask, Exhausted, Probe, Reply};
use super::{Rule, rules};
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use url::Url;

/// A sequence to read.
pub(super) struct Sequence {
    /// The first request.
    pub(super) ask: Ask,
    pub(super) kind: Kind,
    /// The limit that it names.
    pub(super) limit: usize,
    /// Most pages to read.
    pub(super) pages: usize,
    /// The rule that says that the first request is answered with 200.
    pub(super) status: &'static Rule,
}

/// What was read of a sequence.
#[derive(Clone, Debug, Default)]
pub(super) struct Traversal {
    pub(super) pages: Vec<PageSeen>,
    /// Whether it was read to its end.
    pub(super) complete: bool,
}

impl Traversal {
    pub(super) fn items(&self) -> impl Iterator<Item = &Value> {
        self.pages.iter().flat_map(|page| &page.items)
    }

    pub(super) fn ids(&self) -> Vec<&str> {
        self.pages.iter().flat_map(PageSeen::ids).collect()
    }

    pub(super) fn set(&self) -> BTreeSet<String> {
        self.ids().into_iter().map(str::to_owned).collect()
    }

    /// The request that it began with, for people.
    pub(super) fn request(&self) -> &str {
        self.pages.first().map_or("", |page| &page.request)
    }
}

impl Probe<'_> {
    /// Reads a sequence as far as it is wanted.
    pub(super) async fn traverse(&mut self, sequence: Sequence) -> Result<Traversal, Exhausted> {
        let mut traversal = Traversal::default();
        let mut ids = HashSet::new();
        let mut urls = HashSet::new();
        let (mut ask, mut status) = (sequence.ask, sequence.status);
        while traversal.pages.len() < sequence.pages {
            let Some(reply) = self.ask(ask.clone()).await? else {
                break;
            };
            if !self.is_answered(&reply, status) {
                break;
            }
            let first = traversal.pages.is_empty();
            let Some(page) = self.page(&reply, sequence.kind, Some(sequence.limit)) else {
                break;
            };
            urls.insert(page.url.clone());
            if !first {
                let absent = page.refinements.is_none();
                let (rule, at) = (&rules::REFINEMENT_CONTINUATION, "/refinements");
                self.hold_at(rule, &page.request, at, absent, || {
                    "A continuation page has refinements.".to_owned()
                });
            }
            for (i, id) in page.ids().enumerate() {
                let fresh = ids.insert(id.to_owned());
                let at = format!("/items/{i}/id");
                self.hold_at(&rules::PAGE_REPEATED, &page.request, &at, fresh, || {
                    format!("{id} was there before.")
                });
            }
            let next = page.next.clone();
            // A next that may not be followed is no end.
            traversal.complete = next.is_none() && !self.has_next(&reply);
            let request = page.request.clone();
            traversal.pages.push(page);
            let Some(url) = next else {
                break;
            };
            let new = !urls.contains(&url);
            self.hold_at(&rules::PAGE_NEXT_LOOP, &request, "/next", new, || {
                format!("next leads back to {url}.")
            });
            if !new {
                break;
            }
            ask = Ask::get(url);
            status = &rules::PAGE_NEXT_STATUS;
        }
        Ok(traversal)
    }

    fn has_next(&self, reply: &Reply) -> bool {
        serde_json::from_slice::<Value>(&reply.body).is_ok_and(|page| page.get("next").is_some())
    }

    /// Whether a request that fits the contract was answered; if not, the refusal has to be a problem at least.
    pub(super) fn is_answered(&mut self, reply: &Reply, rule: &'static Rule) -> bool {
        let kept = reply.status.as_u16() == 200;
        self.hold(rule, reply, kept, || {
            format!("The status is {}, not 200.", reply.status)
        });
        if reply.status.is_client_error() {
            self.problem(reply, None);
        }
        kept
    }

    /// What holds for the continuation of a sequence: it can be repeated, and it cannot be forged.
    pub(super) async fn continuation(
        &mut self,
        traversal: &Traversal,
        kind: Kind,
    ) -> Result<(), Exhausted> {
        let mut pages = traversal.pages.iter();
        let (Some(first), Some(second)) = (pages.next(), pages.next()) else {
            return Ok(());
        };
        let Some(url) = &first.next else {
            return Ok(());
        };
        if let Some(reply) = self.ask(Ask::get(url.clone())).await?
            && self.is_answered(&reply, &rules::PAGE_NEXT_STATUS)
            && let Some(page) = self.page(&reply, kind, None)
        {
            let (before, now): (Vec<_>, Vec<_>) = (second.ids().collect(), page.ids().collect());
            self.hold(&rules::PAGE_NEXT_REPEATABLE, &reply, before == now, || {
                format!("The identifiers were {before:?} and are {now:?}.")
            });
        }
        match tampered(url) {
            Some(url) => {
                let rule = &rules::PAGE_NEXT_TAMPERED;
                let refusal = Refusal::new(rule, &[400, 404, 410]);
                self.refused(Ask::get(url), refusal).await?;
            }
            None => self.skip("A changed continuation: next holds nothing that could be changed."),
        }
        Ok(())
    }
}

/// The continuation with one character changed: in the middle of its longest parameter, else of its last segment.
fn tampered(url: &Url) -> Option<Url> {
    let text = url.as_str();
    let longest = match url.query() {
        Some(query) => query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(_, value)| value)
            .max_by_key(|value| value.len())?,
        None => url.path().rsplit('/').next()?,
    };
    if longest.len() < 8 {
        return None;
    }
    // Both are parts of the same text.
    let start = text.rfind(longest)?;
    let at = start + longest.len() / 2;
    let swapped = match text.as_bytes().get(at)? {
        b'A' => 'B',
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => 'A',
        _ => return None,
    };
    let (before, after) = text.split_at_checked(at)?;
    let rest = after.get(1..)?;
    Url::parse(&format!("{before}{swapped}{rest}")).ok()
}
