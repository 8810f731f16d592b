//! The official Agent SDK reads a Service: inspect, list every page, retrieve.

use odp_agent::ServiceClient;
use odp_core::Representation;
use std::collections::HashSet;
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
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// Reads the Service at `origin`; retrieves every `stride`-th Offering by id.
///
/// # Errors
/// The SDK's own words when it refuses anything, or ours when an id repeats.
pub async fn walk(origin: &str, stride: usize) -> Result<Seen, String> {
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
    Ok(Seen {
        name: inspection.document.name,
        collections,
        offerings,
        retrieved,
        memberships,
    })
}

fn distinct(ids: &[String]) -> Result<(), String> {
    let mut seen = HashSet::new();
    match ids.iter().find(|id| !seen.insert(id.as_str())) {
        Some(twice) => Err(format!("{twice} came twice")),
        None => Ok(()),
    }
}
