//! Searches of the 1.1 million entries, held to what the table says when it is read line by line.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;

use e2e::binary;
use e2e::client::{Answer, Client, page_of};
use e2e::python::python;
use e2e::server::Server;
use e2e::shared::project;
use serde_json::{Value, json};

/// A line of the table.
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) registry: String,
    pub(crate) name: String,
    summary: String,
    pub(crate) major: Option<u64>,
    pub(crate) updated: String,
    pub(crate) downloads: Option<u64>,
}

/// The table's entries but the bad one.
pub(crate) fn packages(table: &Path, bad: usize) -> Vec<Package> {
    let file = std::fs::File::open(table).unwrap();
    let lines = BufReader::new(zstd::Decoder::new(file).unwrap()).lines();
    let lines = lines.enumerate();
    lines
        .filter(|(index, _)| *index != 0 && index + 1 != bad)
        .map(|(_, line)| package(&line.unwrap()))
        .collect()
}

fn package(line: &str) -> Package {
    let cells: Vec<&str> = line.split('\t').collect();
    let version = cells[3].strip_prefix('v').unwrap_or(cells[3]);
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    Package {
        id: cells[0].to_owned(),
        registry: cells[1].to_owned(),
        name: cells[2].to_owned(),
        summary: cells[7].to_owned(),
        major: digits.parse().ok(),
        updated: cells[4].to_owned(),
        downloads: cells[5].parse().ok(),
    }
}

/// The most frequent values with their counts, by count, then value; 32 at most.
pub(crate) fn counts<T: Ord + Into<Value>>(values: impl Iterator<Item = T>) -> Vec<(Value, u64)> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_insert(0_u64) += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    // Values ascend already, and the sort is stable.
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let first = counts.into_iter().take(32);
    first.map(|(value, count)| (value.into(), count)).collect()
}

fn groups(page: &Value) -> BTreeMap<String, Vec<(Value, u64)>> {
    let groups = page["refinements"].as_array().into_iter().flatten();
    groups
        .map(|group| {
            let buckets = group["values"].as_array().unwrap().iter();
            let buckets = buckets.map(|bucket| {
                assert_eq!(bucket.get("count_relation"), None, "counts are exact");
                (bucket["value"].clone(), bucket["count"].as_u64().unwrap())
            });
            (
                group["filter_id"].as_str().unwrap().to_owned(),
                buckets.collect(),
            )
        })
        .collect()
}

fn ids(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap()).collect()
}

/// Packages in the order of the sort `most-downloaded`.
pub(crate) fn most_downloaded(mut found: Vec<&Package>) -> Vec<&str> {
    // Those without downloads come last; the id decides between equals.
    found.sort_by(|a, b| b.downloads.cmp(&a.downloads).then_with(|| a.id.cmp(&b.id)));
    found.iter().map(|package| package.id.as_str()).collect()
}

pub(crate) fn first_pages_are_exact(server: &Server, packages: &[Package]) {
    let client = Client::new(&server.url);
    let target = client.operation("/offerings/search");
    let search = |request: &Value| {
        client
            .search(&target, request, &[])
            .expect_status(200)
            .json()
    };

    // Each refinement leaves out the filter of its own id.
    let page = search(&json!({
        "odp_version": "1.0", "limit": 100, "sort": "most-downloaded",
        "filters": [
            {"id": "registry", "operator": "eq", "value": "node"},
            {"id": "downloads", "operator": "gte", "value": 100_000},
            {"id": "major", "operator": "in", "value": [1, 2, 3]},
        ],
        "refinements": ["registry", "major"],
    }));
    let enough = |package: &&Package| package.downloads.is_some_and(|n| n >= 100_000);
    let is_major = |package: &&Package| matches!(package.major, Some(1..=3));
    let is_node = |package: &&Package| package.registry == "node";
    let popular: Vec<&Package> = packages.iter().filter(enough).collect();
    let found = popular.iter().copied().filter(is_major).filter(is_node);
    let expected = most_downloaded(found.collect());
    assert!(expected.len() > 100);
    assert_eq!(ids(&page), expected[..100]);
    let groups_found = groups(&page);
    let registries = popular.iter().copied().filter(is_major);
    assert_eq!(
        groups_found["registry"],
        counts(registries.map(|package| package.registry.clone()))
    );
    let majors = popular.iter().copied().filter(is_node);
    assert_eq!(
        groups_found["major"],
        counts(majors.filter_map(|package| package.major))
    );

    // Dates; nothing sorts, so ids do.
    let page = search(&json!({
        "odp_version": "1.0", "limit": 100,
        "filters": [
            {"id": "updated", "operator": "gte", "value": "2024-03-01"},
            {"id": "updated", "operator": "lt", "value": "2024-05-01"},
        ],
        "refinements": ["major"],
    }));
    let spring =
        |package: &&Package| ("2024-03-01".."2024-05-01").contains(&package.updated.as_str());
    let mut expected: Vec<&Package> = packages.iter().filter(spring).collect();
    expected.sort_by(|a, b| a.id.cmp(&b.id));
    let expected_ids: Vec<&str> = expected.iter().map(|package| package.id.as_str()).collect();
    assert_eq!(ids(&page), expected_ids[..100]);
    let majors = expected.iter().filter_map(|package| package.major);
    assert_eq!(groups(&page)["major"], counts(majors));

    // Text: the package of that name comes first, and everything found has both words.
    let page = search(&json!({"odp_version": "1.0", "query": "left-pad", "limit": 20}));
    assert_eq!(ids(&page)[0], "node.left-pad");
    let page = search(&json!({
        "odp_version": "1.0", "query": "wavelet transform", "limit": 100,
        "filters": [{"id": "registry", "operator": "eq", "value": "python"}],
    }));
    let found = ids(&page);
    assert!(!found.is_empty());
    let by_id: BTreeMap<&str, &Package> = packages.iter().map(|p| (p.id.as_str(), p)).collect();
    for id in found {
        let package = by_id[id];
        let text = format!("{} {}", package.name, package.summary).to_lowercase();
        assert!(
            text.contains("wavelet") && text.contains("transform"),
            "{id}: {text}"
        );
        assert_eq!(package.registry, "python");
    }
}

/// The request that the SDKs make, the ids of its answer, and the counts by major version.
fn popular(packages: &[Package]) -> (Value, Vec<String>, BTreeMap<String, u64>) {
    let request = json!({
        "odp_version": "1.0", "limit": 40, "sort": "most-downloaded",
        "filters": [{"id": "downloads", "operator": "gte", "value": 50_000_000}],
        "refinements": ["major"],
    });
    let found = packages
        .iter()
        .filter(|package| package.downloads.is_some_and(|n| n >= 50_000_000));
    let found: Vec<&Package> = found.collect();
    let majors = counts(found.iter().filter_map(|package| package.major));
    let majors = majors
        .iter()
        .map(|(value, count)| (value.to_string(), *count));
    let majors = majors.collect();
    let ids = most_downloaded(found);
    assert!(ids.len() > 40, "several pages");
    (
        request,
        ids.into_iter().map(str::to_owned).collect(),
        majors,
    )
}

pub(crate) fn official_sdks_search(server: &Server, packages: &[Package]) {
    let (request, ids, majors) = popular(packages);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let seen = runtime.block_on(interop::walk::search(&server.url, &request));
    assert_eq!(seen, Ok((ids.clone(), majors.clone())));

    let directory = project().join("crates/interop/python");
    let Some(python) = python(&directory.join("requirements.txt")) else {
        return;
    };
    let mut walk = Command::new(python);
    walk.arg(directory.join("walk.py"))
        .args([&server.url, "0", &request.to_string()]);
    let seen: Value = serde_json::from_slice(&binary::succeed(walk).stdout).unwrap();
    assert_eq!(seen, json!({"found": ids, "counts": majors}));
}

/// A search with thousands of pages.
pub(crate) struct Search<'a> {
    expected: Vec<&'a str>,
    page: Answer,
}

/// Its first page, of what was imported.
pub(crate) fn begin<'a>(client: &Client, packages: &'a [Package]) -> Search<'a> {
    let request = json!({
        "odp_version": "1.0", "limit": 100, "sort": "recently-updated",
        "filters": [
            {"id": "registry", "operator": "eq", "value": "python"},
            {"id": "updated", "operator": "gte", "value": "2025-06-01"},
        ],
    });
    let found = packages
        .iter()
        .filter(|p| p.registry == "python" && p.updated.as_str() >= "2025-06-01");
    let mut expected: Vec<&Package> = found.collect();
    expected.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.id.cmp(&b.id)));
    assert!(expected.len() > 10_000, "{}", expected.len());
    let target = client.operation("/offerings/search");
    Search {
        expected: expected.iter().map(|package| package.id.as_str()).collect(),
        page: client.search(&target, &request, &[]).expect_status(200),
    }
}

impl Search<'_> {
    /// Follows it to its end: everything once, in the order of the sort.
    pub(crate) fn follow(self, client: &Client) {
        let mut page = self.page;
        let mut seen = 0;
        loop {
            let (items, next) = page_of(&page);
            for item in &items {
                let expected = self.expected.get(seen).copied();
                assert_eq!(item["id"].as_str(), expected, "item {seen}");
                seen += 1;
            }
            match next {
                Some(next) => page = client.get(&next).expect_status(200),
                None => break,
            }
        }
        assert_eq!(seen, self.expected.len());
    }
}
