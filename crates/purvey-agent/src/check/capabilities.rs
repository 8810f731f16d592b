//! What is advertised for searches.

use super::list::Lists;
use super::pages::Kind;
use super::probe::{Ask, Exhausted, Probe};
use super::retrieve::samples;
use super::rules;
use super::traversal::Sequence;
use crate::{Capabilities, IssueCode, Scope};
use purvey_odp::capability::{CapabilitySource, EffectiveCapabilities, SearchCapabilities};
use purvey_odp::identity::LocalId;
use purvey_odp::limits;
use purvey_odp::service::{Operation, ServiceDocument};

/// What searches can use.
#[derive(Default)]
pub(super) struct Advertised {
    /// Over the whole Service.
    pub(super) whole: EffectiveCapabilities,
    /// In Collections that advertise something of their own.
    pub(super) collections: Vec<(LocalId, EffectiveCapabilities)>,
}

pub(super) async fn check(
    probe: &mut Probe<'_>,
    document: &ServiceDocument,
    lists: &Lists,
) -> Result<Advertised, Exhausted> {
    probe.step("search capabilities");
    if document.operation(Operation::SearchOfferings).is_none() {
        return Ok(Advertised::default());
    }
    if let Some(advertised) = document.search_capabilities() {
        linked(probe, advertised).await?;
    }
    let Some(service) = probe.agent().await? else {
        return Ok(Advertised::default());
    };
    let mut all = Advertised::default();
    let request = format!("GET {}/.well-known/odp", probe.origin.as_str());
    if let Ok(capabilities) = service.capabilities(None).await {
        issues(probe, &request, &capabilities);
        all.whole = capabilities.effective;
    }
    if document.operation(Operation::GetCollection).is_none() {
        return Ok(all);
    }
    for id in samples(&lists.collections.ids(), probe.extent.samples) {
        let read = service.get_collection(id.as_str()).await;
        probe.is_left()?;
        // What cannot be read was told when it was retrieved.
        let Ok(read) = read else {
            continue;
        };
        let Some(advertised) = read.collection.search_capabilities() else {
            continue;
        };
        linked(probe, advertised).await?;
        let capabilities = service.capabilities(Some(id.as_str())).await;
        probe.is_left()?;
        if let Ok(capabilities) = capabilities {
            let url = probe.operation(document, Operation::GetCollection, Some(&id));
            let request = url.map(|url| format!("GET {url}")).unwrap_or_default();
            issues(probe, &request, &capabilities);
            all.collections.push((id, capabilities.effective));
        }
    }
    Ok(all)
}

fn issues(probe: &mut Probe<'_>, request: &str, capabilities: &Capabilities) {
    for rule in [
        &rules::CAPABILITY_SOURCE,
        &rules::CAPABILITY_CONFLICT,
        &rules::CAPABILITY_SORT_REFERENCE,
    ] {
        probe.outcome.exercise(rule);
    }
    for issue in &capabilities.issues {
        if !matches!(issue.scope, Scope::Filters | Scope::Sorts) {
            continue;
        }
        let rule = match issue.code {
            IssueCode::Conflict => &rules::CAPABILITY_CONFLICT,
            IssueCode::SortReference => &rules::CAPABILITY_SORT_REFERENCE,
            _ => &rules::CAPABILITY_SOURCE,
        };
        probe
            .outcome
            .find(rule, request, &issue.pointer, issue.to_string());
    }
}

/// Reads the linked sources page by page, for the rules that hold for each page.
async fn linked(probe: &mut Probe<'_>, advertised: &SearchCapabilities) -> Result<(), Exhausted> {
    let filters = match advertised.filters() {
        Some(CapabilitySource::Linked(href)) => Some((href, Kind::Filters)),
        _ => None,
    };
    let sorts = match advertised.sorts() {
        Some(CapabilitySource::Linked(href)) => Some((href, Kind::Sorts)),
        _ => None,
    };
    for (href, kind) in filters.into_iter().chain(sorts) {
        let url = href.resolve(&probe.origin);
        if !probe.origin.is_origin_of(&url) {
            continue;
        }
        let sequence = Sequence {
            ask: Ask::get(url),
            kind,
            limit: limits::PAGE_ITEMS,
            pages: limits::CAPABILITY_PAGES,
            status: &rules::CAPABILITY_SOURCE,
        };
        probe.traverse(sequence).await?;
    }
    Ok(())
}
