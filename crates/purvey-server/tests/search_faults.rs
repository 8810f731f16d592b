//! Illegal searches, made of legal ones by mutations that know what they break: each answer is 400 and names exactly these places.
//!
//! `SEARCH_FAULT_CASES` sets how many there are, `SEARCH_FAULT_SEED` which.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;
mod faults_common;

use common::{Answer, Service, config};
use faults_common::{Case, Random, capability, continuation, legal, raw, syntax};
use purvey_catalog::manifest::Manifest;
use serde_json::Value;

const PATH: &str = "/odp/offerings/search";

fn number(variable: &str, usual: u64) -> u64 {
    let set = std::env::var(variable).ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn service() -> Service {
    let service = Service::with(config());
    let schema = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}"#;
    let manifest = Manifest::parse_embedded(&faults_common::manifest(), &[("lamp.json", schema)]);
    service.catalog.set_manifest(&manifest.unwrap()).unwrap();
    service.catalog.publish().unwrap();
    service
}

/// Where the faults of a refused request are, sorted.
#[track_caller]
fn places(answer: &Answer, sent: &str) -> Vec<String> {
    assert_eq!(answer.status, 400, "{sent}\n{answer:?}");
    answer.assert_problem(400, "INVALID_REQUEST");
    let problem = answer.json();
    let params = problem["invalid_params"].as_array().unwrap().iter();
    let place = |param: &Value| {
        format!(
            "{}:{}",
            param["in"].as_str().unwrap(),
            param["name"].as_str().unwrap()
        )
    };
    let mut places: Vec<String> = params.map(place).collect();
    places.sort();
    places
}

#[tokio::test]
async fn each_fault_is_named_at_its_place_and_nothing_else_is() {
    let service = service();
    let seed = number("SEARCH_FAULT_SEED", 1);
    let mut kinds = std::collections::BTreeMap::<&str, u32>::new();
    for n in 0..number("SEARCH_FAULT_CASES", 800) {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(n));
        let body = legal(&mut random);
        let answer = service.search(PATH, body.to_string()).await;
        assert_eq!(answer.status, 200, "case {n}: {body}\n{answer:?}");

        // What is no request, then what its syntax forbids, then what the Service does not offer: each hides the next.
        let mut case = Case::new(body);
        let count = 1 + random.below(4);
        let mut of_capabilities = false;
        match random.below(5) {
            0 => {
                capability(&mut case, &mut random, count);
                of_capabilities = true;
            }
            1 => {
                capability(&mut case, &mut random, count);
                case.forget();
                syntax(&mut case, &mut random, count);
            }
            _ => syntax(&mut case, &mut random, count),
        }
        let mut sent = case.body.to_string().into_bytes();
        if random.below(6) == 0 {
            case.forget();
            sent = raw(&mut case, &mut random);
            of_capabilities = false;
        }
        let mut path = PATH.to_owned();
        if random.below(8) == 0 {
            path += "?representation=medium";
            if of_capabilities {
                case.forget();
            }
            case.expected.push("query:representation".to_owned());
            case.kinds.push("representation");
        }
        let text = format!("case {n}: {}", String::from_utf8_lossy(&sent));
        let answer = service.search(&path, sent).await;
        case.expected.sort();
        assert_eq!(
            places(&answer, &text),
            case.expected,
            "{:?} {text}",
            case.kinds
        );
        for kind in case.kinds {
            *kinds.entry(kind).or_default() += 1;
        }
    }
    // With as many cases as usual, each mutation was tried.
    if number("SEARCH_FAULT_CASES", 800) >= 800 {
        let missing = faults_common::KINDS
            .iter()
            .filter(|kind| !kinds.contains_key(*kind));
        assert_eq!(missing.collect::<Vec<_>>(), [&""; 0], "{kinds:?}");
    }
}

#[tokio::test]
async fn nothing_stands_beside_a_cursor() {
    let service = service();
    let first = service
        .search(PATH, r#"{"odp_version":"1.0","query":"lamp","limit":3}"#)
        .await
        .json();
    let next = first["next"].as_str().unwrap();
    let mut random = Random::new(number("SEARCH_FAULT_SEED", 1));
    for _ in 0..100 {
        let (target, mut expected) = continuation(next, &mut random);
        expected.sort();
        let answer = service.get(&target).await;
        assert_eq!(places(&answer, &target), expected, "{target}");
    }
    assert_eq!(service.get(next).await.status, 200);
}
