//! Searches: what is found, by Collection and by parent; the rest has files of its own.

use super::capabilities::Advertised;
use super::documents::Refusal;
use super::list::Lists;
use super::pages::{Kind, PageSeen, id_of};
use super::probe::{Ask, Exhausted, Probe};
use super::retrieve::samples;
use super::traversal::{Sequence, Traversal};
use super::{collections, filters, refinements, refusals, rules, sorts};
use http::header;
use purvey_odp::capability::EffectiveCapabilities;
use purvey_odp::filter::FilterDefinition;
use purvey_odp::identity::LocalId;
use purvey_odp::limits;
use purvey_odp::offering::Representation::{Full, Terse};
use purvey_odp::service::{Operation, ServiceDocument};
use purvey_odp::sort::SortDefinition;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use url::Url;

pub(super) async fn check(
    probe: &mut Probe<'_>,
    document: &ServiceDocument,
    lists: &Lists,
    capabilities: &Advertised,
) -> Result<(), Exhausted> {
    offerings(probe, document, lists, capabilities).await?;
    of_collections(probe, document, lists).await
}

async fn offerings(
    probe: &mut Probe<'_>,
    document: &ServiceDocument,
    lists: &Lists,
    capabilities: &Advertised,
) -> Result<(), Exhausted> {
    probe.step("searches for Offerings");
    let operation = Operation::SearchOfferings;
    let word = word(&lists.offerings);
    let Some(url) = admitted(probe, document, operation, &json!({"query": word})).await? else {
        return Ok(());
    };
    let kind = Kind::Offerings(Terse);
    let target = Target {
        url,
        collection: None,
    };
    plain(probe, &target, kind, &word).await?;
    probe.step("what a search for Offerings has to refuse");
    let whole = &capabilities.whole;
    refusals::offerings(probe, &target, &word, whole.filters()).await?;
    probe.step("searches within Collections");
    within(probe, &target, lists, &word).await?;
    let all = lists.offerings.complete.then(|| lists.offerings.set());
    let (own, sorts) = (whole.filters(), whole.sorts());
    advertised(probe, &target, &word, whole, (own, sorts), all.as_ref()).await?;
    for (id, effective) in capabilities.collections.iter().take(COLLECTIONS) {
        of_collection(probe, &target, &word, id, effective, whole).await?;
    }
    Ok(())
}

/// Collections whose own filters and sorts are used.
const COLLECTIONS: usize = 3;

/// What one Collection advertises: usable when it is named, and only then.
async fn of_collection(
    probe: &mut Probe<'_>,
    target: &Target,
    word: &str,
    id: &LocalId,
    effective: &EffectiveCapabilities,
    whole: &EffectiveCapabilities,
) -> Result<(), Exhausted> {
    let filters = effective.filters().iter();
    let own = filters.filter(|filter| whole.filter(filter.id().as_str()).is_none());
    let own: Vec<_> = own.cloned().collect();
    let sorts = effective.sorts().iter();
    let sorts = sorts.filter(|sort| whole.sort(sort.id().as_str()).is_none());
    let sorts: Vec<_> = sorts.cloned().collect();
    probe.step("what a search has to refuse");
    refusals::unnamed(probe, target, word, &own, &sorts).await?;
    let target = Target {
        url: target.url.clone(),
        collection: Some(id.as_str().to_owned()),
    };
    refusals::of_filters(probe, &target, word, &own).await?;
    advertised(probe, &target, word, effective, (&own, &sorts), None).await
}

/// Uses filters and sorts, which are among the effective ones of a target. `all` is all that the target can find.
async fn advertised(
    probe: &mut Probe<'_>,
    target: &Target,
    word: &str,
    effective: &EffectiveCapabilities,
    (filters, sorts): (&[FilterDefinition], &[SortDefinition]),
    all: Option<&BTreeSet<String>>,
) -> Result<(), Exhausted> {
    probe.step("refinements");
    let known = refinements::check(probe, target, word, filters).await?;
    probe.step("filters");
    filters::check(probe, target, all, filters, &known).await?;
    probe.step("sorts");
    sorts::check(probe, target, effective, sorts, &known).await
}

/// Where searches go, and the Collection that they name.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) url: Url,
    pub(super) collection: Option<String>,
}

impl Target {
    /// A request document with these members.
    pub(super) fn body(&self, members: &Value) -> Value {
        let mut request = body(members);
        if let (Some(id), Value::Object(map)) = (&self.collection, &mut request) {
            map.insert("collection_id".to_owned(), json!(id));
        }
        request
    }

    /// A search with these members.
    pub(super) fn ask(&self, members: &Value) -> Ask {
        Ask::search(self.url.clone(), &self.body(members))
    }
}

/// The URL of a search that is advertised and to be had.
async fn admitted(
    probe: &mut Probe<'_>,
    document: &ServiceDocument,
    operation: Operation,
    members: &Value,
) -> Result<Option<Url>, Exhausted> {
    let Some(url) = probe.operation(document, operation, None) else {
        return Ok(None);
    };
    let ask = Ask::search(url.clone(), &body(members));
    let admitted = probe.admit(document, operation, ask).await?;
    Ok(admitted.map(|_| url))
}

fn body(members: &Value) -> Value {
    let mut map = Map::new();
    map.insert("odp_version".to_owned(), json!("1.0"));
    map.extend(members.as_object().cloned().unwrap_or_default());
    Value::Object(map)
}

/// A word that stands in the name of something.
fn word(list: &Traversal) -> String {
    let names = list.items().filter_map(|item| item.get("name")?.as_str());
    let mut words = names.flat_map(|name| name.split(|c: char| !c.is_alphanumeric()));
    let word = words.find(|word| word.chars().count() > 3);
    word.unwrap_or("something").to_owned()
}

impl Probe<'_> {
    /// Everything that a search for Offerings finds, as far as a traversal goes.
    pub(super) async fn found(
        &mut self,
        target: &Target,
        members: &Value,
    ) -> Result<Traversal, Exhausted> {
        let pages = self.extent.pages;
        self.found_on(
            target,
            members,
            Kind::Offerings(Terse),
            limits::PAGE_ITEMS,
            pages,
        )
        .await
    }

    async fn found_on(
        &mut self,
        target: &Target,
        members: &Value,
        kind: Kind,
        limit: usize,
        pages: usize,
    ) -> Result<Traversal, Exhausted> {
        let mut members = members.clone();
        if let Value::Object(map) = &mut members {
            map.insert("limit".to_owned(), json!(limit));
        }
        let mut ask = target.ask(&members);
        if matches!(kind, Kind::Offerings(Full) | Kind::Collections(Full)) {
            ask = ask.query("representation=full");
        }
        let sequence = Sequence {
            ask,
            kind,
            limit,
            pages,
            status: &rules::SEARCH_STATUS,
        };
        self.traverse(sequence).await
    }
}

/// What holds for every search: its pages, its continuation, its representations, what it accepts.
async fn plain(
    probe: &mut Probe<'_>,
    target: &Target,
    kind: Kind,
    word: &str,
) -> Result<(), Exhausted> {
    let members = json!({"query": word});
    let small = probe.found_on(target, &members, kind, 1, 3).await?;
    probe.continuation(&small, kind).await?;
    for page in small.pages.iter().take(1) {
        unasked(probe, page);
    }
    let full = match kind {
        Kind::Collections(_) => Kind::Collections(Full),
        _ => Kind::Offerings(Full),
    };
    probe.found_on(target, &members, full, 5, 1).await?;
    let ask = target.ask(&members);
    let html = ask.clone().header(header::ACCEPT, "text/html");
    let refusal = Refusal::new(&rules::HTTP_NOT_ACCEPTABLE, &[406]);
    probe.refused(html, refusal).await?;
    probe.method_refused(&ask).await
}

fn unasked(probe: &mut Probe<'_>, page: &PageSeen) {
    let absent = page.refinements.is_none();
    let rule = &rules::REFINEMENT_CONTINUATION;
    probe.hold_at(rule, &page.request, "/refinements", absent, || {
        "Refinements came that nobody asked for.".to_owned()
    });
}

/// Searches that name a Collection.
async fn within(
    probe: &mut Probe<'_>,
    target: &Target,
    lists: &Lists,
    word: &str,
) -> Result<(), Exhausted> {
    for id in samples(&lists.collections.ids(), 3) {
        let mut members = json!({"query": word, "collection_id": id.as_str()});
        let direct = probe.found(target, &members).await?;
        let narrow = direct.set();
        for page in &direct.pages {
            for (i, item) in page.items.iter().enumerate() {
                // What Terse leaves out, the list may have.
                let named = collections::ids(item, "collection_ids");
                if named.is_empty() {
                    continue;
                }
                let at = format!("/items/{i}");
                let kept = named.contains(&id);
                let rule = &rules::SEARCH_COLLECTION_SCOPE;
                probe.hold_at(rule, &page.request, &at, kept, || {
                    format!("{} is not in {id}.", id_of(item).unwrap_or_default())
                });
            }
        }
        if let Value::Object(map) = &mut members {
            map.insert("include_descendants".to_owned(), json!(true));
        }
        let wide = probe.found(target, &members).await?;
        if !wide.complete || !direct.complete {
            continue;
        }
        let lost: Vec<_> = narrow.difference(&wide.set()).cloned().collect();
        let rule = &rules::SEARCH_COLLECTION_SCOPE;
        probe.hold_at(rule, wide.request(), "/items", lost.is_empty(), || {
            format!("Without descendants {lost:?} were found.")
        });
    }
    Ok(())
}

async fn of_collections(
    probe: &mut Probe<'_>,
    document: &ServiceDocument,
    lists: &Lists,
) -> Result<(), Exhausted> {
    probe.step("searches for Collections");
    let operation = Operation::SearchCollections;
    let word = word(&lists.collections);
    let Some(url) = admitted(probe, document, operation, &json!({"query": word})).await? else {
        return Ok(());
    };
    let target = Target {
        url,
        collection: None,
    };
    plain(probe, &target, Kind::Collections(Terse), &word).await?;
    refusals::shared(probe, &target, &word).await?;
    let kind = Kind::Collections(Full);
    let pages = probe.extent.pages;
    let members = json!({"parent_id": null});
    let roots = probe
        .found_on(&target, &members, kind, limits::PAGE_ITEMS, pages)
        .await?;
    parents(probe, &roots, |item| item.get("parent_ids").is_none());
    for id in samples(&roots.ids(), 3) {
        let members = json!({"parent_id": id.as_str()});
        let children = probe
            .found_on(&target, &members, kind, limits::PAGE_ITEMS, pages)
            .await?;
        parents(probe, &children, |item| {
            collections::ids(item, "parent_ids").contains(&id)
        });
    }
    Ok(())
}

fn parents(probe: &mut Probe<'_>, found: &Traversal, belongs: impl Fn(&Value) -> bool) {
    for page in &found.pages {
        probe.outcome.exercise(&rules::SEARCH_PARENT);
        for (i, item) in page
            .items
            .iter()
            .enumerate()
            .filter(|(_, item)| !belongs(item))
        {
            let at = format!("/items/{i}");
            let seen = format!("{} does not belong there.", id_of(item).unwrap_or_default());
            probe
                .outcome
                .find(&rules::SEARCH_PARENT, &page.request, &at, seen);
        }
    }
}
