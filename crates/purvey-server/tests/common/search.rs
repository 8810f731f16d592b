//! Searches over HTTP, in short.

use super::{Answer, Service, config};
use serde_json::{Value, json};

pub const OFFERINGS: &str = "/odp/offerings/search";
pub const COLLECTIONS: &str = "/odp/collections/search";

pub fn service() -> Service {
    Service::searchable(config())
}

/// A request with these members beside the version.
pub fn body(mut members: Value) -> String {
    members["odp_version"] = json!("1.0");
    members.to_string()
}

pub async fn search(service: &Service, members: Value) -> Answer {
    service.search(OFFERINGS, body(members)).await
}

pub fn ids(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap()).collect()
}

/// Where the faults of a refused request are.
#[track_caller]
pub fn faults(answer: &Answer) -> Vec<String> {
    answer.assert_problem(400, "INVALID_REQUEST");
    let problem = answer.json();
    let params = problem["invalid_params"].as_array().unwrap();
    assert!((1..=32).contains(&params.len()), "{problem}");
    params
        .iter()
        .map(|param| {
            assert!(!param["reason"].as_str().unwrap().is_empty(), "{problem}");
            format!(
                "{}:{}",
                param["in"].as_str().unwrap(),
                param["name"].as_str().unwrap()
            )
        })
        .collect()
}

pub fn at_least(watts: u32) -> Value {
    json!([{"id": "watts", "operator": "gte", "value": watts}])
}
