//! The official Agent SDK reads a Service: inspect, list every page, retrieve.

use odp_agent::ServiceClient;
use odp_core::Representation;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;

/// What the SDK saw.
#[derive(Debug)]
pub struct Seen {
    /// The Service's name.
    pub name: String,
    /// Collection ids, in the order they came.
    pub collections: Vec<String>,
    /// Offering ids, in the order they came.
    pub offerings: Vec<String>,
    /// Offerings retrieved by id.
    pub retrieved: usize,
    /// Members over all Collections, as `list-collection-offerings` counts them.
    pub memberships: usize,
    /// Offering ids that [`search`] found, in the order they came.
    pub found: Vec<String>,
    /// Counts of its refinement, by value.
    pub counts: BTreeMap<String, u64>,
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// Reads the Service at `origin`; retrieves every `stride`-th Offering by id, and runs the `search-offerings` request `search`.
///
/// # Errors
/// The SDK's own words when it refuses anything, or ours when an id repeats.
pub async fn walk(origin: &str, stride: usize, search: Option<&Value>) -> Result<Seen, String> {
    let client = ServiceClient::for_local_development(origin).map_err(text)?;
    let inspection = client.inspect().await.map_err(text)?;

    let mut offerings = Vec::new();
    let mut page = client
        .list_offerings(Representation::Terse, 100)
        .await
        .map_err(text)?;
    loop {
        offerings.extend(page.items.iter().map(|offering| offering.id.clone()));
        if page.next.is_empty() {
            break;
        }
        page = client.continue_offerings(&page.next).await.map_err(text)?;
    }
    distinct(&offerings)?;

    let mut collections = Vec::new();
    let mut page = client
        .list_collections(Representation::Full, 7)
        .await
        .map_err(text)?;
    loop {
        collections.extend(page.items.iter().map(|collection| collection.id.clone()));
        if page.next.is_empty() {
            break;
        }
        page = client
            .continue_collections(&page.next)
            .await
            .map_err(text)?;
    }
    distinct(&collections)?;

    let mut memberships = 0;
    for id in &collections {
        client.get_collection(id).await.map_err(text)?;
        let mut page = client
            .list_collection_offerings(id, Representation::Full, 100)
            .await
            .map_err(text)?;
        loop {
            memberships += page.items.len();
            if page.next.is_empty() {
                break;
            }
            page = client.continue_offerings(&page.next).await.map_err(text)?;
        }
    }

    let mut retrieved = 0;
    for id in offerings.iter().step_by(stride.max(1)) {
        let offering = client.get_offering(id).await.map_err(text)?;
        if offering.id != *id {
            return Err(format!("asked for {id}, got {}", offering.id));
        }
        retrieved += 1;
    }
    let (found, counts) = match search {
        Some(request) => read_search(&client, request).await?,
        None => Default::default(),
    };
    Ok(Seen {
        name: inspection.document.name,
        collections,
        offerings,
        retrieved,
        memberships,
        found,
        counts,
    })
}

/// Ids in the order they came, and counts by value.
pub type Answer = (Vec<String>, BTreeMap<String, u64>);

/// Runs the `search-offerings` request at `origin` to its last page.
///
/// # Errors
/// As [`walk`].
pub async fn search(origin: &str, request: &Value) -> Result<Answer, String> {
    let client = ServiceClient::for_local_development(origin).map_err(text)?;
    read_search(&client, request).await
}

async fn read_search(client: &ServiceClient, request: &Value) -> Result<Answer, String> {
    let request = serde_json::from_value(request.clone()).map_err(text)?;
    let mut page = client
        .search_offerings(&request, Representation::Terse)
        .await
        .map_err(text)?;
    let buckets = page.refinements.iter().flat_map(|group| &group.values);
    let counts = buckets
        .map(|bucket| (bucket.value.to_string(), bucket.count))
        .collect();
    let mut ids = Vec::new();
    loop {
        ids.extend(page.items.iter().map(|offering| offering.id.clone()));
        if page.next.is_empty() {
            break;
        }
        page = client.continue_offerings(&page.next).await.map_err(text)?;
    }
    distinct(&ids)?;
    Ok((ids, counts))
}

fn distinct(ids: &[String]) -> Result<(), String> {
    let mut seen = HashSet::new();
    match ids.iter().find(|id| !seen.insert(id.as_str())) {
        Some(twice) => Err(format!("{twice} came twice")),
        None => Ok(()),
    }
}
