//! Searching over HTTP: what answers carry, continuations and capability sources.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use axum::body::Body;
use common::search::{COLLECTIONS, OFFERINGS, at_least, body, faults, ids, search, service};
use common::{Service, config, request};
use http::Method;
use serde_json::json;

const VARY: &str = "Accept, Accept-Encoding, Accept-Language, Authorization";

#[tokio::test]
async fn a_search_answers_with_items_counts_and_a_continuation() {
    let service = service();
    let answer = search(
        &service,
        json!({"filters": at_least(20), "sort": "strongest", "refinements": ["watts"], "limit": 4}),
    )
    .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let page = answer.json();
    assert_eq!(page["odp_version"], "1.0");
    assert_eq!(ids(&page), ["lamp-29", "lamp-28", "lamp-27", "lamp-26"]);
    assert!(
        page["items"][0].get("attributes").is_none(),
        "terse by default"
    );
    // The filter's own expressions do not narrow its counts: 30 lamps of 30 powers, once each.
    let groups = page["refinements"].as_array().unwrap();
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0]["filter_id"], "watts");
    let values = groups[0]["values"].as_array().unwrap();
    assert_eq!(values.len(), 30);
    assert!(values.iter().all(|value| value["count"] == 1));

    let next = page["next"].as_str().unwrap().to_owned();
    assert!(next.starts_with("/odp/offerings/search?cursor="), "{next}");
    let second = service.get(&next).await;
    assert_eq!(second.status, 200);
    let page = second.json();
    assert_eq!(ids(&page), ["lamp-25", "lamp-24", "lamp-23", "lamp-22"]);
    assert!(page.get("refinements").is_none());
    let third = service.get(page["next"].as_str().unwrap()).await.json();
    assert_eq!(ids(&third), ["lamp-21", "lamp-20"]);
    assert!(third.get("next").is_none());

    let none = search(&service, json!({"query": "zeppelin"})).await;
    assert_eq!(none.status, 200);
    assert_eq!(none.json(), json!({"odp_version": "1.0", "items": []}));
}

#[tokio::test]
async fn an_answer_says_what_it_is_and_is_kept_by_nobody() {
    let service = service();
    let text = body(json!({"query": "lamp", "limit": 50}));
    let fields = [
        ("content-type", "application/odp+json"),
        ("accept-language", "de"),
        ("accept-encoding", "gzip"),
        ("x-request-id", "mine"),
        ("if-none-match", "*"),
    ];
    let post = request(Method::POST, OFFERINGS, &fields, Body::from(text));
    let answer = service.send(post).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "application/odp+json");
    assert_eq!(answer.header("content-encoding"), "gzip");
    assert_eq!(
        answer.header("content-length"),
        answer.body.len().to_string()
    );
    // The first lamp has no German text; the second has.
    assert_eq!(answer.header("content-language"), "en, de");
    assert_eq!(answer.header("vary"), VARY);
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("x-request-id"), "mine");
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    assert!(!answer.headers.contains_key("etag"));

    let full = service
        .search(
            &format!("{OFFERINGS}?representation=full&limit=x&unknown=y"),
            body(json!({"query": "lamp", "limit": 2, "new-member": {"a": []}})),
        )
        .await;
    assert_eq!(full.status, 200, "{full:?}");
    let page = full.json();
    assert!(page["items"][0]["attributes"]["watts"].is_number());
    // Continuations are read like lists: with tags, by HEAD, and not at all when they are known.
    let next = page["next"].as_str().unwrap();
    let answer = service.get(next).await;
    assert!(answer.json()["items"][0]["attributes"]["watts"].is_number());
    let tag = answer.header("etag").to_owned();
    assert!(tag.starts_with('"'));
    assert_eq!(answer.header("vary"), VARY);
    let again = service.get_with(next, &[("if-none-match", &tag)]).await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    let head = service
        .send(request(Method::HEAD, next, &[], Body::empty()))
        .await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert_eq!(head.header("etag"), tag);
}

#[tokio::test]
async fn a_continuation_belongs_to_its_operation_and_carries_everything() {
    let service = service();
    let first = search(&service, json!({"query": "lamp", "limit": 3}))
        .await
        .json();
    let next = first["next"].as_str().unwrap();
    let cursor = next.split_once("cursor=").unwrap().1;
    for target in [
        format!("{COLLECTIONS}?cursor={cursor}"),
        format!("/odp/offerings?cursor={cursor}"),
        format!("/odp/filters?cursor={cursor}"),
        format!("{OFFERINGS}?cursor={}", &cursor[1..]),
        format!("{OFFERINGS}?cursor="),
        format!("{OFFERINGS}?cursor"),
        format!("{OFFERINGS}?cursor={cursor}&cursor={cursor}"),
    ] {
        let answer = service.get(&target).await;
        assert_eq!(faults(&answer), ["query:cursor"], "{target}");
    }
    let answer = service
        .get(&format!("{next}&limit=3&representation=full"))
        .await;
    assert_eq!(faults(&answer), ["query:representation", "query:limit"]);
    // Without a cursor the path is that of a resource, which there may be.
    service
        .get(OFFERINGS)
        .await
        .assert_problem(404, "NOT_FOUND");
    let odd = json!({"id": "search", "name": "A lamp called search"});
    let put = service.catalog.put(
        purvey_odp::identity::ResourceType::Offering,
        "search",
        odd,
        purvey_catalog::catalog::Precondition::None,
    );
    put.unwrap();
    service.catalog.publish().unwrap();
    assert_eq!(service.get(OFFERINGS).await.json()["id"], "search");
    // Written since: not in the sequence.
    let mut all: Vec<String> = ids(&first).iter().map(|id| (*id).to_owned()).collect();
    let mut target = Some(next.to_owned());
    while let Some(next) = target {
        let page = service.get(&next).await.json();
        all.extend(ids(&page).iter().map(|id| (*id).to_owned()));
        target = page["next"].as_str().map(str::to_owned);
    }
    all.sort_unstable();
    let lamps: Vec<String> = (0..30).map(|n| format!("lamp-{n:02}")).collect();
    assert_eq!(all, lamps);
}

#[tokio::test]
async fn collections_are_searched_by_text_and_parent() {
    let service = service();
    for (members, expected) in [
        (json!({"query": "desk"}), vec!["desk"]),
        (json!({"query": "shines"}), vec!["lamps"]),
        (json!({"parent_id": null}), vec!["lamps"]),
        (json!({"parent_id": "lamps"}), vec!["desk"]),
        (json!({"parent_id": "desk"}), vec![]),
        (json!({"query": "desk", "parent_id": null}), vec![]),
    ] {
        let answer = service.search(COLLECTIONS, body(members.clone())).await;
        assert_eq!(answer.status, 200, "{members}");
        assert_eq!(ids(&answer.json()), expected, "{members}");
    }
    let page = service
        .search(COLLECTIONS, body(json!({"query": "lamps", "limit": 1})))
        .await
        .json();
    let next = page["next"].as_str().unwrap();
    assert!(next.starts_with("/odp/collections/search?cursor="));
    let second = service.get(next).await.json();
    let mut both = [ids(&page), ids(&second)].concat();
    both.sort_unstable();
    assert_eq!(both, ["desk", "lamps"]);
    for (members, place) in [
        (json!({}), ""),
        (json!({"parent_id": 7}), "/parent_id"),
        (json!({"parent_id": ""}), "/parent_id"),
        (json!({"query": "x", "limit": 1.5}), "/limit"),
    ] {
        let answer = service.search(COLLECTIONS, body(members)).await;
        assert_eq!(faults(&answer), [format!("body:{place}")]);
    }
    let answer = service
        .search(COLLECTIONS, body(json!({"parent_id": "nowhere"})))
        .await;
    answer.assert_problem(404, "NOT_FOUND");
}

#[tokio::test]
async fn capability_sources_are_sequences() {
    let service = service();
    let first = service.get("/odp/filters?limit=1").await;
    assert_eq!(first.status, 200);
    assert_eq!(first.header("content-type"), "application/odp+json");
    assert!(first.header("etag").starts_with('"'));
    let page = first.json();
    assert_eq!(ids(&page), ["watts"]);
    let next = page["next"].as_str().unwrap();
    let second = service.get(next).await.json();
    assert_eq!(ids(&second), ["lamp-name"]);
    assert!(second.get("next").is_none());
    assert_eq!(ids(&service.get("/odp/sorts").await.json()), ["strongest"]);
    let own = service.get("/odp/collections/desk/filters").await;
    assert_eq!(ids(&own.json()), ["reach"]);
    for path in [
        "/odp/collections/desk/sorts",
        "/odp/collections/lamps/filters",
        "/odp/collections/nowhere/filters",
    ] {
        service.get(path).await.assert_problem(404, "NOT_FOUND");
    }
    for (path, fault) in [
        ("/odp/filters?limit=0", "query:limit"),
        ("/odp/filters?cursor=x", "query:cursor"),
        ("/odp/collections/desk/filters?limit=x", "query:limit"),
    ] {
        assert_eq!(faults(&service.get(path).await), [fault]);
    }
    assert_eq!(
        service.get("/odp/filters?representation=x").await.status,
        200
    );
    // Without capabilities there is nothing to read.
    let plain = Service::new();
    for path in ["/odp/filters", "/odp/sorts"] {
        plain.get(path).await.assert_problem(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn the_document_advertises_what_can_be_searched() {
    let service = service();
    let document = service.get("/.well-known/odp").await.json();
    let operations = document["operations"].as_array().unwrap();
    for name in ["search-offerings", "search-collections"] {
        assert!(operations.iter().any(|one| one["name"] == name), "{name}");
    }
    let capabilities = &document["search_capabilities"];
    let filters: Vec<&str> = capabilities["filters"]["inline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|filter| filter["id"].as_str().unwrap())
        .collect();
    assert_eq!(filters, ["watts", "lamp-name"]);
    assert_eq!(capabilities["sorts"]["inline"][0]["id"], "strongest");
}

#[tokio::test]
async fn browsers_and_wrong_methods_are_told_that_search_is_a_post() {
    let service = service();
    for path in [OFFERINGS, COLLECTIONS] {
        let fields = [
            ("origin", "https://example.com"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type"),
        ];
        let answer = service
            .send(request(Method::OPTIONS, path, &fields, Body::empty()))
            .await;
        assert_eq!(answer.status, 204);
        for name in ["allow", "access-control-allow-methods"] {
            assert_eq!(answer.header(name), "GET, HEAD, OPTIONS, POST", "{name}");
        }
        assert!(
            answer
                .header("access-control-allow-headers")
                .contains("Content-Type")
        );
        for method in [Method::PUT, Method::DELETE, Method::PATCH] {
            let answer = service
                .send(request(method, path, &[], Body::empty()))
                .await;
            answer.assert_problem(405, "METHOD_NOT_ALLOWED");
            assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS, POST");
        }
    }
    for path in ["/odp/offerings", "/odp/filters"] {
        let answer = service.search(path, "{}").await;
        answer.assert_problem(405, "METHOD_NOT_ALLOWED");
        assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS");
    }
}

/// Many at once are all answered: with the page, or with when to come back.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_is_answered_whatever_the_bounds() {
    let mut tight = config();
    tight.max_searches = 1;
    tight.search_queue = 2;
    let service = Service::searchable(tight);
    let text = body(json!({"query": "lamp", "refinements": ["watts"]}));
    let crowd = (0..64).map(|_| service.search(OFFERINGS, text.clone()));
    let answers = futures_util::future::join_all(crowd).await;
    let mut served = 0;
    for answer in answers {
        if answer.status == 200 {
            assert_eq!(ids(&answer.json()).len(), 30);
            served += 1;
        } else {
            answer.assert_problem(503, "SERVICE_UNAVAILABLE");
            assert_eq!(answer.header("retry-after"), "1");
        }
    }
    assert!(served > 0);
}
