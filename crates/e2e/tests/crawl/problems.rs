//! What cannot be answered.

use e2e::client::{Answer, page_of};
use serde_json::{Value, json};

use crate::published::Published;
use crate::support::*;

#[test]
fn what_cannot_be_answered_is_a_valid_problem() {
    let Some(published) = Published::load() else {
        return;
    };
    let (_server, client) = demo();
    let cursor = |target: &str| {
        let answer = client.get(&client.operation(target)).expect_status(200);
        let next = page_of(&answer).1.unwrap();
        next.split_once("cursor=").unwrap().1.to_owned()
    };
    let of_offerings = cursor("/offerings?limit=10");
    let of_collections = cursor("/collections?limit=10");
    let mut tampered = of_offerings.clone().into_bytes();
    let middle = tampered.len() / 2;
    tampered[middle] = if tampered[middle] == b'A' { b'B' } else { b'A' };
    let tampered = String::from_utf8(tampered).unwrap();
    let invalid =
        |target: String, names: &'static [&'static str]| (target, 400, "INVALID_REQUEST", names);
    let mut cases = vec![
        invalid("/offerings?limit=0".into(), &["limit"]),
        invalid("/offerings?limit=101".into(), &["limit"]),
        invalid("/offerings?limit=ten".into(), &["limit"]),
        invalid("/offerings?limit=5&limit=5".into(), &["limit"]),
        invalid(
            "/offerings?representation=medium".into(),
            &["representation"],
        ),
        invalid(
            "/offerings?representation=full&representation=full".into(),
            &["representation"],
        ),
        invalid(
            "/collections?representation=x&limit=-1".into(),
            &["representation", "limit"],
        ),
        invalid(
            "/collections/courses?representation=".into(),
            &["representation"],
        ),
        invalid(
            "/offerings/course-bag-leather?representation=TERSE".into(),
            &["representation"],
        ),
        invalid("/offerings?cursor=".into(), &["cursor"]),
        invalid("/offerings?cursor=AAAA".into(), &["cursor"]),
        invalid(format!("/offerings?cursor={tampered}"), &["cursor"]),
        invalid(format!("/offerings?cursor={of_collections}"), &["cursor"]),
        invalid(format!("/collections?cursor={of_offerings}"), &["cursor"]),
        invalid(
            format!("/collections/courses/offerings?cursor={of_offerings}"),
            &["cursor"],
        ),
        invalid(
            format!("/offerings?cursor={of_offerings}&cursor={of_offerings}"),
            &["cursor"],
        ),
    ];
    for path in [
        "/offerings/absent",
        "/offerings/Course-bag-leather",
        "/offerings/course%2Dbag-leather",
        "/offerings/",
        "/offerings/courses",
        "/offerings/..%2Fcollections",
        "/collections/absent",
        "/collections/absent/offerings",
        "/collections/courses/offerings/",
        "/collections/courses/nothing",
        "/nothing",
        "/",
        "",
    ] {
        cases.push((path.to_owned(), 404, "NOT_FOUND", &[]));
    }
    for (path, status, code, names) in cases {
        let target = client.operation(&path);
        let answer = client.get(&target);
        check_problem(&published, &answer, &target, status, code);
        let problem = answer.json();
        let said: Vec<&str> = problem
            .get("invalid_params")
            .map_or_else(Vec::new, |params| {
                let params = params.as_array().unwrap();
                assert!(
                    params.iter().all(|param| param["in"] == "query"),
                    "{target}: {problem}"
                );
                params
                    .iter()
                    .map(|param| param["name"].as_str().unwrap())
                    .collect()
            });
        assert_eq!(said, names, "{target}");
        let head = client.ask("HEAD", &target, &[]);
        assert_eq!((head.status, head.body.len()), (status, 0), "HEAD {target}");
    }

    for path in [
        "/offerings",
        "/offerings/course-bag-leather",
        "/collections",
        "/collections/courses",
        "/collections/courses/offerings",
    ] {
        let target = client.operation(path);
        for method in ["PUT", "DELETE", "PATCH", "POST"] {
            let answer = client.ask(method, &target, &[]);
            check_problem(&published, &answer, &target, 405, "METHOD_NOT_ALLOWED");
            assert_eq!(
                answer.header("allow"),
                Some("GET, HEAD, OPTIONS"),
                "{method} {target}"
            );
        }
        for accept in [
            "text/html",
            "application/odp+json;q=0",
            "application/json, */*;q=0",
        ] {
            let answer = client.ask("GET", &target, &[("accept", accept)]);
            check_problem(&published, &answer, &target, 406, "NOT_ACCEPTABLE");
        }
        for accept in [
            "application/odp+json",
            "application/*;q=0.1",
            "text/html, */*;q=0.5",
            "application/odp+json;v=1",
        ] {
            client
                .ask("GET", &target, &[("accept", accept)])
                .expect_status(200);
        }
    }
}

#[test]
fn a_search_that_cannot_be_answered_is_a_valid_problem() {
    let Some(published) = Published::load() else {
        return;
    };
    let (_server, client) = demo();
    let target = client.operation("/offerings/search");
    let filter = |id: &str, operator: &str, value: Value| json!([{"id": id, "operator": operator, "value": value}]);
    for (members, places) in [
        (json!({}), vec![""]),
        (json!({"query": "", "limit": 0}), vec!["/query", "/limit"]),
        (
            json!({"filters": filter("price", "gte", json!(12))}),
            vec!["/filters/0/value"],
        ),
        (
            json!({"filters": filter("price", "gte", json!("012"))}),
            vec!["/filters/0/value"],
        ),
        (
            json!({"filters": filter("price-type", "in", json!(["free", 7]))}),
            vec!["/filters/0/value/1"],
        ),
        (
            json!({"filters": filter("level", "exists", json!(true))}),
            vec!["/filters/0/operator"],
        ),
        (
            json!({"filters": filter("seats", "gte", json!(5))}),
            vec!["/filters/0/id"],
        ),
        (json!({"query": "oak", "sort": "soonest"}), vec!["/sort"]),
        (
            json!({"query": "oak", "refinements": ["kind", "price"]}),
            vec!["/refinements/1"],
        ),
    ] {
        let mut request = members;
        request["odp_version"] = "1.0".into();
        let answer = client.search(&target, &request, &[]);
        check_problem(&published, &answer, &target, 400, "INVALID_REQUEST");
        let problem = answer.json();
        let params = problem["invalid_params"].as_array().unwrap().iter();
        let said: Vec<&str> = params
            .map(|param| param["name"].as_str().unwrap())
            .collect();
        assert_eq!(said, places, "{request}");
    }
    let mut nowhere = json!({"odp_version": "1.0", "query": "oak", "collection_id": "nowhere"});
    let answer = client.search(&target, &nowhere, &[]);
    check_problem(&published, &answer, &target, 404, "NOT_FOUND");
    nowhere["padding"] = "x".repeat(65_536).into();
    let answer = client.search(&target, &nowhere, &[]);
    check_problem(&published, &answer, &target, 413, "REQUEST_TOO_LARGE");
    let answer = client.ask("POST", &target, &[("content-type", "application/json")]);
    check_problem(&published, &answer, &target, 415, "UNSUPPORTED_MEDIA_TYPE");
    let answer = client.search(&target, &nowhere, &[("accept", "text/html")]);
    check_problem(&published, &answer, &target, 406, "NOT_ACCEPTABLE");
}

fn check_problem(published: &Published, answer: &Answer, target: &str, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{target}: {}", answer.text());
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json"),
        "{target}"
    );
    assert!(answer.header("x-request-id").is_some(), "{target}");
    assert!(answer.body.len() <= PROBLEM_BYTES);
    let problem = answer.json();
    published.check("problem-details", &problem);
    assert_eq!(problem["code"], code, "{target}: {problem}");
    assert_eq!(problem["status"], status);
    let kind = code.to_ascii_lowercase().replace('_', "-");
    assert_eq!(
        problem["type"],
        format!("https://offeringprotocol.org/problems/{kind}")
    );
}
