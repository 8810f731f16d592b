//! The ODP paths, rule by rule, without sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use axum::body::Body;
use common::{Service, request};
use http::Method;
use serde_json::json;
use std::io::Read;

const DOCUMENT: &str = "application/odp+json";
const VARY: &str = "Accept, Accept-Encoding, Accept-Language, Authorization";

#[tokio::test]
async fn the_service_document_advertises_what_works() {
    let answer = Service::new().get("/.well-known/odp").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), DOCUMENT);
    assert_eq!(answer.header("content-language"), "en");
    // The same for everybody, whatever they present.
    assert_eq!(
        answer.header("vary"),
        "Accept, Accept-Encoding, Accept-Language"
    );
    let body = answer.json();
    assert_eq!(body["odp_version"], "1.0");
    assert_eq!(body["http"]["endpoint_base"], "/odp");
    let mut names: Vec<&str> = body["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|operation| operation["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "get-collection",
            "get-offering",
            "list-collection-offerings",
            "list-collections",
            "list-offerings",
            "search-collections",
            "search-offerings"
        ]
    );
}

#[tokio::test]
async fn an_offering_is_full_by_default_and_terse_on_demand() {
    let service = Service::new();
    let full = service.get("/odp/offerings/lamp-07").await;
    assert_eq!(full.status, 200);
    assert_eq!(full.json()["odp_version"], "1.0");
    assert_eq!(full.json()["attributes"], json!({"watts": 7}));
    let terse = service
        .get("/odp/offerings/lamp-07?representation=terse&x=y")
        .await;
    assert_eq!(terse.json()["id"], "lamp-07");
    assert!(terse.json().get("attributes").is_none());
    assert_ne!(full.header("etag"), terse.header("etag"));
    let same = service
        .get("/odp/offerings/lamp-07?representation=full")
        .await;
    assert_eq!(same.header("etag"), full.header("etag"));
    assert_eq!(same.body, full.body);
}

#[tokio::test]
async fn lists_page_through_everything_once() {
    let service = Service::new();
    for path in ["/odp/offerings", "/odp/collections/lamps/offerings"] {
        let mut url = format!("{path}?limit=7");
        let mut ids = Vec::new();
        let mut pages = 0;
        loop {
            let page = service.get(&url).await;
            assert_eq!(page.status, 200, "{url}");
            assert_eq!(page.header("content-type"), DOCUMENT);
            let body = page.json();
            assert_eq!(body["odp_version"], "1.0");
            for item in body["items"].as_array().unwrap() {
                assert!(item.get("odp_version").is_none());
                assert!(item.get("attributes").is_none(), "lists are terse");
                ids.push(item["id"].as_str().unwrap().to_owned());
            }
            pages += 1;
            match body.get("next") {
                None => break,
                Some(next) => url = next.as_str().unwrap().to_owned(),
            }
        }
        let expected: Vec<String> = (0..30).map(|number| format!("lamp-{number:02}")).collect();
        assert_eq!(ids, expected);
        assert_eq!(pages, 5);
    }
    let collections = service
        .get("/odp/collections?representation=full")
        .await
        .json();
    let ids: Vec<&str> = collections["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["desk", "lamps"]);
    let desk = service.get("/odp/collections/desk").await;
    assert_eq!(desk.json()["parent_ids"], json!(["lamps"]));
    let empty = service.get("/odp/collections/desk/offerings").await;
    assert_eq!(empty.json(), json!({"odp_version": "1.0", "items": []}));
}

#[tokio::test]
async fn bad_parameters_are_named() {
    let service = Service::new();
    let answer = service
        .get("/odp/offerings?limit=0&representation=none")
        .await;
    answer.assert_problem(400, "INVALID_REQUEST");
    assert_eq!(
        answer.json()["invalid_params"],
        json!([
            {"in": "query", "name": "representation", "reason": "Must be terse or full."},
            {"in": "query", "name": "limit", "reason": "Must be an integer from 1 through 100."},
        ])
    );
    for path in [
        "/odp/offerings?limit=101",
        "/odp/offerings?limit=5&limit=5",
        "/odp/offerings?representation=full&representation=full",
        "/odp/offerings/lamp-01?representation=FULL",
        "/odp/offerings?cursor=abc&limit=5",
        "/odp/offerings?cursor=abc",
        "/odp/collections/lamps/offerings?cursor=",
    ] {
        service
            .get(path)
            .await
            .assert_problem(400, "INVALID_REQUEST");
    }
    assert_eq!(
        service.get("/odp/offerings/lamp-01?limit=0").await.status,
        200
    );
}

#[tokio::test]
async fn a_cursor_belongs_to_its_operation() {
    let service = Service::new();
    let next = service.get("/odp/offerings?limit=7").await.json()["next"].clone();
    let cursor = next
        .as_str()
        .unwrap()
        .split_once("cursor=")
        .unwrap()
        .1
        .to_owned();
    let other = service
        .get(&format!("/odp/collections/lamps/offerings?cursor={cursor}"))
        .await;
    other.assert_problem(400, "INVALID_REQUEST");
    assert_eq!(other.json()["invalid_params"][0]["name"], "cursor");
}

#[tokio::test]
async fn what_is_not_there_is_a_problem_wherever_it_is() {
    let service = Service::new();
    for path in [
        "/odp/offerings/none",
        "/odp/offerings/%6camp-01",
        "/odp/offerings/a/b",
        "/odp/offerings/",
        "/odp/collections/none",
        "/odp/collections/none/offerings",
        "/odp/collections//offerings",
        "/odp/nothing",
        "/odp",
        "/odp/",
        "/elsewhere",
        "/.well-known/odp/",
    ] {
        service.get(path).await.assert_problem(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn accept_is_negotiated_with_weights() {
    let service = Service::new();
    for accept in [
        "application/odp+json",
        "*/*",
        "application/*;q=0.1",
        "text/html, application/odp+json;q=0.2",
        "APPLICATION/ODP+JSON; charset=utf-8",
    ] {
        let answer = service
            .get_with("/odp/offerings/lamp-01", &[("accept", accept)])
            .await;
        assert_eq!(answer.status, 200, "{accept}");
    }
    for accept in [
        "text/html",
        "application/json",
        "application/odp+json;q=0",
        "*/*, application/odp+json;q=0",
    ] {
        for path in [
            "/odp/offerings/lamp-01",
            "/odp/offerings",
            "/.well-known/odp",
        ] {
            let answer = service.get_with(path, &[("accept", accept)]).await;
            answer.assert_problem(406, "NOT_ACCEPTABLE");
        }
    }
    let two = [("accept", "text/html"), ("accept", "application/odp+json")];
    assert_eq!(service.get_with("/odp/offerings", &two).await.status, 200);
}

#[tokio::test]
async fn languages_are_looked_up_and_have_tags_of_their_own() {
    let service = Service::new();
    let path = "/odp/offerings/lamp-01";
    let english = service.get(path).await;
    let german = service
        .get_with(path, &[("accept-language", "de-AT, en;q=0.5")])
        .await;
    assert_eq!(english.header("content-language"), "en");
    assert_eq!(german.header("content-language"), "de");
    assert_eq!(german.json()["name"], "Lampe 1");
    assert_ne!(english.header("etag"), german.header("etag"));
    let unknown = service.get_with(path, &[("accept-language", "fr")]).await;
    assert_eq!(unknown.status, 200);
    assert_eq!(unknown.header("content-language"), "en");
    let document = service
        .get_with("/.well-known/odp", &[("accept-language", "de")])
        .await;
    assert_eq!(document.header("content-language"), "de");
    assert_eq!(document.json()["description"], "Lampen.");
}

#[tokio::test]
async fn a_tag_that_the_caller_has_saves_the_body() {
    let service = Service::new();
    for path in [
        "/odp/offerings/lamp-01",
        "/odp/offerings",
        "/.well-known/odp",
        "/schemas/lamp.json",
    ] {
        let first = service.get(path).await;
        let tag = first.header("etag").to_owned();
        assert!(tag.starts_with('"'), "a strong tag: {tag}");
        for condition in [
            tag.clone(),
            format!("W/{tag}"),
            format!("\"x\", {tag}"),
            "*".to_owned(),
        ] {
            let again = service
                .get_with(path, &[("if-none-match", &condition)])
                .await;
            assert_eq!(again.status, 304, "{condition}");
            assert!(again.body.is_empty());
            assert_eq!(again.header("etag"), tag);
            assert_eq!(again.header("vary"), first.header("vary"));
            assert_eq!(again.header("access-control-allow-origin"), "*");
            assert!(!again.headers.contains_key("content-type"));
        }
        let changed = service.get_with(path, &[("if-none-match", "\"x\"")]).await;
        assert_eq!(changed.status, 200);
    }
}

#[tokio::test]
async fn large_bodies_are_coded_and_small_ones_are_not() {
    let service = Service::new();
    let plain = service.get("/odp/offerings?representation=full").await;
    assert!(plain.body.len() > 1_024);
    for (accept, coding) in [
        ("gzip", "gzip"),
        ("br;q=0.9, gzip;q=0.1", "br"),
        ("zstd", "zstd"),
    ] {
        let fields = [("accept-encoding", accept)];
        let coded = service
            .get_with("/odp/offerings?representation=full", &fields)
            .await;
        assert_eq!(coded.header("content-encoding"), coding);
        assert_eq!(coded.header("content-length"), coded.body.len().to_string());
        assert_eq!(coded.header("vary"), VARY);
        let tag = plain.header("etag").trim_end_matches('"').to_owned();
        assert_eq!(coded.header("etag"), format!("{tag}-{coding}\""));
        let mut decoded = Vec::new();
        match coding {
            "gzip" => flate2::read::GzDecoder::new(&coded.body[..])
                .read_to_end(&mut decoded)
                .unwrap(),
            "br" => brotli::Decompressor::new(&coded.body[..], 4_096)
                .read_to_end(&mut decoded)
                .unwrap(),
            _ => zstd::Decoder::new(&coded.body[..])
                .unwrap()
                .read_to_end(&mut decoded)
                .unwrap(),
        };
        assert_eq!(decoded, plain.body);
        let tag = coded.header("etag").to_owned();
        let fields = [("accept-encoding", accept), ("if-none-match", &tag)];
        let again = service
            .get_with("/odp/offerings?representation=full", &fields)
            .await;
        assert_eq!(again.status, 304);
    }
    let small = service
        .get_with("/odp/offerings/lamp-01", &[("accept-encoding", "gzip")])
        .await;
    assert!(!small.headers.contains_key("content-encoding"));
    let refused = service
        .get_with(
            "/odp/offerings",
            &[("accept-encoding", "gzip;q=0, identity")],
        )
        .await;
    assert!(!refused.headers.contains_key("content-encoding"));
}

#[tokio::test]
async fn head_says_what_get_would() {
    let service = Service::new();
    for (path, fields) in [
        ("/odp/offerings/lamp-01", &[][..]),
        ("/odp/offerings", &[("accept-encoding", "gzip")]),
        ("/.well-known/odp", &[]),
        ("/schemas/lamp.json", &[]),
        ("/odp/offerings/none", &[]),
        ("/odp/offerings?limit=0", &[]),
        ("/odp/offerings", &[("accept", "text/html")]),
    ] {
        let fields = [fields, &[("x-request-id", "same")]].concat();
        let get = service.get_with(path, &fields).await;
        let head = service
            .send(request(Method::HEAD, path, &fields, Body::empty()))
            .await;
        assert_eq!(head.status, get.status, "{path}");
        assert_eq!(head.headers, get.headers, "{path}");
        assert_eq!(head.header("content-length"), get.body.len().to_string());
        assert!(head.body.is_empty(), "{path}");
    }
}

#[tokio::test]
async fn other_methods_are_refused_with_those_allowed() {
    let service = Service::new();
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        for path in [
            "/.well-known/odp",
            "/odp/offerings",
            "/odp/offerings/lamp-01",
            "/schemas/lamp.json",
        ] {
            let answer = service
                .send(request(method.clone(), path, &[], Body::empty()))
                .await;
            answer.assert_problem(405, "METHOD_NOT_ALLOWED");
            assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS");
        }
    }
}

#[tokio::test]
async fn browsers_may_read() {
    let service = Service::new();
    let fields = [
        ("origin", "https://agent.example"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "if-none-match"),
    ];
    let preflight = service
        .send(request(
            Method::OPTIONS,
            "/odp/offerings",
            &fields,
            Body::empty(),
        ))
        .await;
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), "*");
    assert!(
        preflight
            .header("access-control-allow-methods")
            .contains("GET")
    );
    assert!(
        preflight
            .header("access-control-allow-headers")
            .contains("If-None-Match")
    );
    let get = service.get_with("/odp/offerings", &fields[..1]).await;
    assert_eq!(get.header("access-control-allow-origin"), "*");
    for name in ["ETag", "Content-Language", "X-Request-Id", "Retry-After"] {
        assert!(
            get.header("access-control-expose-headers").contains(name),
            "{name}"
        );
    }
}

#[tokio::test]
async fn schemas_are_served_where_the_manifest_says() {
    let answer = Service::new().get("/schemas/lamp.json").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "application/schema+json");
    assert_eq!(answer.json()["properties"]["watts"]["type"], "integer");
}

#[tokio::test]
async fn the_openapi_document_is_served_where_the_manifest_says() {
    let service = Service::new();
    let answer = service.get("/openapi.json").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        "application/vnd.oai.openapi+json;version=3.1"
    );
    assert_eq!(answer.json(), json!({"openapi": "3.1.1", "paths": {}}));
    let document = service.get("/.well-known/odp").await.json();
    assert_eq!(document["http"]["openapi"], json!({"url": "/openapi.json"}));
    let accept = [(
        "accept",
        "application/vnd.oai.openapi+json;version=3.1, application/json;q=0.9",
    )];
    let agents = service.get_with("/openapi.json", &accept).await;
    assert_eq!(agents.status, 200);
    service
        .get_with("/openapi.json", &[("accept", "text/html")])
        .await
        .assert_problem(406, "NOT_ACCEPTABLE");
}

#[tokio::test]
async fn request_ids_are_echoed_or_made() {
    let service = Service::new();
    let echoed = service
        .get_with("/odp/offerings", &[("x-request-id", "abc-123")])
        .await;
    assert_eq!(echoed.header("x-request-id"), "abc-123");
    let made = service
        .get_with("/odp/none", &[("x-request-id", "a b")])
        .await;
    assert_eq!(made.header("x-request-id").len(), 36);
}

#[tokio::test]
async fn health_and_start_page_answer() {
    let service = Service::new();
    for (path, text) in [("/livez", "live"), ("/readyz", "ready")] {
        let answer = service.get(path).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body[..]),
            (200, text.as_bytes())
        );
    }
    let start = service.get("/").await;
    assert_eq!(start.status, 200);
    assert!(String::from_utf8_lossy(&start.body).contains("/.well-known/odp"));
}

#[tokio::test]
async fn an_empty_catalog_is_a_valid_service() {
    let directory = tempfile::tempdir().unwrap();
    let options = purvey_catalog::catalog::Options::default();
    let catalog = purvey_catalog::catalog::Catalog::open(directory.path(), options).unwrap();
    let service = Service {
        router: purvey_server::router(catalog.clone(), common::config()),
        catalog,
        directory,
    };
    let document = service.get("/.well-known/odp").await;
    assert_eq!(document.status, 200);
    let base = document.json()["http"]["endpoint_base"]
        .as_str()
        .unwrap()
        .to_owned();
    let page = service.get(&format!("{base}/offerings")).await;
    assert_eq!(page.json(), json!({"odp_version": "1.0", "items": []}));
}
