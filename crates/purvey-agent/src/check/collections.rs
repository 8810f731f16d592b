//! How Collections lie under each other, and what is in them.

use super::documents::Refusal;
use super::list::Lists;
use super::pages::{Kind, id_of};
use super::probe::{Ask, Exhausted, Probe};
use super::retrieve::{UNKNOWN, samples};
use super::rules;
use super::traversal::Traversal;
use purvey_odp::hierarchy::Hierarchy;
use purvey_odp::identity::LocalId;
use purvey_odp::limits;
use purvey_odp::offering::Representation;
use purvey_odp::service::{Operation, ServiceDocument};
use serde_json::Value;

pub(super) async fn check(
    probe: &mut Probe<'_>,
    document: &ServiceDocument,
    lists: &Lists,
) -> Result<(), Exhausted> {
    probe.step("the hierarchy of Collections");
    if !lists.collections.pages.is_empty() {
        hierarchy(probe, document).await?;
    }
    probe.step("the Offerings of Collections");
    members(probe, document, lists).await
}

async fn hierarchy(probe: &mut Probe<'_>, document: &ServiceDocument) -> Result<(), Exhausted> {
    let Some(url) = probe.operation(document, Operation::ListCollections, None) else {
        return Ok(());
    };
    let kind = Kind::Collections(Representation::Full);
    let pages = probe.extent.pages;
    let all = probe
        .read_list(&Ask::get(url), kind, limits::PAGE_ITEMS, pages)
        .await?;
    if !all.complete {
        probe.skip("The hierarchy: the list of Collections was not read to its end.");
        return Ok(());
    }
    let edges = all.items().filter_map(|item| {
        let id = LocalId::parse(id_of(item)?).ok()?;
        Some((id, ids(item, "parent_ids")))
    });
    let hierarchy = Hierarchy::new(edges);
    probe.outcome.exercise(&rules::HIERARCHY_EDGE);
    for broken in hierarchy.broken() {
        let at = format!("/items/{}/parent_ids/{}", broken.collection, broken.edge);
        let seen = format!("{}: {}", broken.parent.as_str(), broken.fault);
        probe
            .outcome
            .find(&rules::HIERARCHY_EDGE, all.request(), &at, seen);
    }
    Ok(())
}

/// The identifiers in a member of an item.
pub(super) fn ids(item: &Value, member: &str) -> Vec<LocalId> {
    let ids = item.get(member).and_then(Value::as_array);
    ids.into_iter()
        .flatten()
        .filter_map(|id| LocalId::parse(id.as_str()?).ok())
        .collect()
}

async fn members(
    probe: &mut Probe<'_>,
    document: &ServiceDocument,
    lists: &Lists,
) -> Result<(), Exhausted> {
    let operation = Operation::ListCollectionOfferings;
    let kind = Kind::Offerings(Representation::Terse);
    for (i, id) in samples(&lists.collections.ids(), probe.extent.samples)
        .iter()
        .enumerate()
    {
        let Some(url) = probe.operation(document, operation, Some(id)) else {
            return Ok(());
        };
        let ask = Ask::get(url);
        let found = if i > 0 {
            let pages = probe.extent.pages;
            probe
                .read_list(&ask, kind, limits::PAGE_ITEMS, pages)
                .await?
        } else {
            match probe.admitted(document, operation, Some(id)).await? {
                Some(ask) => probe.list(&ask, kind, document).await?,
                None => return Ok(()),
            }
        };
        agree(probe, id, &found, &lists.offerings);
    }
    let unknown = LocalId::parse(UNKNOWN).ok();
    if let Some(url) = unknown.and_then(|id| probe.operation(document, operation, Some(&id))) {
        let refusal = Refusal::new(&rules::COLLECTION_UNKNOWN, &[404]);
        probe.refused(Ask::get(url), refusal).await?;
    }
    Ok(())
}

/// Holds the members of one Collection against what the Offerings say of themselves. A Terse Representation may say nothing.
fn agree(probe: &mut Probe<'_>, id: &LocalId, found: &Traversal, all: &Traversal) {
    if found.pages.is_empty() {
        return;
    }
    for page in &found.pages {
        for (i, item) in page.items.iter().enumerate() {
            if item.get("collection_ids").is_none() {
                continue;
            }
            let named = ids(item, "collection_ids").contains(id);
            let at = format!("/items/{i}/collection_ids");
            probe.hold_at(&rules::MEMBERSHIP_LISTED, &page.request, &at, named, || {
                format!("{} does not name {id}.", id_of(item).unwrap_or_default())
            });
        }
    }
    if !found.complete {
        return;
    }
    let listed = found.set();
    for item in all.items() {
        let (Some(offering), true) = (id_of(item), ids(item, "collection_ids").contains(id)) else {
            continue;
        };
        let kept = listed.contains(offering);
        let (rule, request) = (&rules::MEMBERSHIP_COMPLETE, found.request());
        probe.hold_at(rule, request, "/items", kept, || {
            format!("{offering} names {id} and is not listed.")
        });
    }
}
