//! The protocol's published examples, read as from a Service. They lie beside the project; see `docs/testing.md`.

use crate::support::{Fake, document};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The examples beside the project's root, or beside a directory around it; nothing when they are absent, which CI refuses.
fn examples() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let found = root
        .ancestors()
        .skip(1)
        .map(|directory| directory.join("shared/odp/examples"))
        .find(|path| path.is_dir());
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci != "true"),
            "../shared is absent"
        );
        eprintln!("skipped: ../shared is absent (odp/examples)");
    }
    found
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Every JSON file below `directory`.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn every_published_offering_is_usable_whole() {
    let Some(examples) = examples() else {
        return;
    };
    let mut offerings = 0;
    for path in files(&examples) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.ends_with("-offering.json") {
            continue;
        }
        let offering = read(&path);
        // Some name an OpenAPI document in their Service Document.
        let service = files(path.parent().unwrap())
            .into_iter()
            .find(|path| path.to_str().unwrap().ends_with("-service.json"));
        let fake = Fake::serving(&service.map_or_else(document, |path| read(&path)));
        let base = fake.service().await.document().http().endpoint_base.clone();
        let base = base.as_str().trim_end_matches('/');
        let id = offering["id"].as_str().unwrap();
        fake.on(&format!("GET {base}/offerings/{id}"), &offering);
        if let Some(url) = offering["schema"]["url"].as_str() {
            let schema = files(path.parent().unwrap())
                .into_iter()
                .find(|path| path.to_str().unwrap().ends_with(".schema.json"))
                .unwrap();
            fake.on(&format!("GET {url}"), &read(&schema));
        }
        let found = fake.service().await.get_offering(id).await.unwrap();
        let unusable: Vec<_> = found
            .issues
            .iter()
            .filter(|issue| issue.code.as_str() != "UNAVAILABLE")
            .collect();
        assert!(unusable.is_empty(), "{name}: {unusable:?}");
        assert_eq!(
            found.schema.is_some(),
            offering.get("schema").is_some(),
            "{name}: {:?}",
            found.issues
        );
        offerings += 1;
    }
    assert_eq!(offerings, 7);
}

#[tokio::test]
async fn every_published_service_document_opens() {
    let Some(examples) = examples() else {
        return;
    };
    let mut services = 0;
    for path in files(&examples) {
        if path.to_str().unwrap().ends_with("-service.json") {
            let service = Fake::serving(&read(&path)).service().await;
            assert!(service.issues().is_empty(), "{path:?}");
            services += 1;
        }
    }
    assert_eq!(services, 3);
}

#[tokio::test]
async fn the_published_marketplace_is_searched() {
    use purvey_odp::filter::Operator;
    let Some(examples) = examples() else {
        return;
    };
    let file = |name: &str| read(&examples.join("marketplace").join(name));
    let fake = Fake::serving(&file("marketplace-service.json"));
    let service = fake.service().await;
    let base = service
        .document()
        .http()
        .endpoint_base
        .as_str()
        .trim_end_matches('/')
        .to_owned();
    let collection = file("home-office-collection.json");
    fake.on(
        &format!(
            "GET {base}/collections/{}",
            collection["id"].as_str().unwrap()
        ),
        &collection,
    );
    let href = collection["search_capabilities"]["filters"]["linked"]["href"]
        .as_str()
        .unwrap();
    let first = file("home-office-filters-page-1.json");
    fake.on(&format!("GET {href}"), &first);
    fake.on(
        &format!("GET {}", first["next"].as_str().unwrap()),
        &file("home-office-filters-page-2.json"),
    );
    let request = file("home-office-offering-search-request.json");
    fake.on(
        &format!("POST {base}/offerings/search"),
        &file("home-office-search-response.json"),
    );
    // The published request, made by the builder, is the published request.
    let mut search = service
        .search()
        .in_collection(request["collection_id"].as_str().unwrap())
        .limit(usize::try_from(request["limit"].as_u64().unwrap()).unwrap());
    if let Some(query) = request["query"].as_str() {
        search = search.query(query);
    }
    for filter in request["filters"].as_array().unwrap() {
        let operator = Operator::parse(filter["operator"].as_str().unwrap()).unwrap();
        search = search.filter(
            filter["id"].as_str().unwrap(),
            operator,
            filter["value"].clone(),
        );
    }
    if let Some(sort) = request["sort"].as_str() {
        search = search.sort(sort);
    }
    for id in request["refinements"].as_array().into_iter().flatten() {
        search = search.refine(id.as_str().unwrap());
    }
    if request["include_descendants"] == true {
        search = search.descendants();
    }
    let page = search.first_page().await.unwrap();
    assert!(!page.items.is_empty());
    let sent = fake
        .fetches()
        .into_iter()
        .find_map(|fetch| fetch.body)
        .unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), request);
}
