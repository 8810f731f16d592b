//! Searches: said as the Service understands them, or refused as it would.

use crate::support::{Fake, code, document, page, with};
use purvey_agent::{Error, OfferingSearch, Service};
use purvey_odp::filter::Operator;
use purvey_odp::problem::In;
use serde_json::{Value, json};

/// A Service with filters `size` (refinable), `colour`, `made`, and a sort `largest`; a Collection `home` adds `wood`.
fn fake() -> Fake {
    let fake = Fake::serving(&with(
        document(),
        "search_capabilities",
        json!({
            "filters": {"inline": [
                {"id": "size", "title": "Size", "description": "How large.", "type": "integer", "operators": ["eq", "in", "gte", "lte"], "refinable": true},
                {"id": "colour", "title": "Colour", "description": "Which.", "type": "string", "operators": ["eq", "exists"]},
                {"id": "made", "title": "Made", "description": "When.", "type": "date", "operators": ["lt"]},
            ]},
            "sorts": {"inline": [{"id": "largest", "title": "Largest", "description": "Large ones first.",
                "keys": [{"filter_id": "size", "direction": "descending", "missing": "last"}]}]},
        }),
    ));
    fake.on("GET /odp/collections/home", &json!({
        "odp_version": "1.0", "id": "home", "name": "Home",
        "search_capabilities": {"filters": {"inline": [
            {"id": "wood", "title": "Wood", "description": "Which wood.", "type": "string", "operators": ["in"], "refinable": true}]}},
    }));
    fake
}

fn sent(fake: &Fake) -> Value {
    let fetches = fake.fetches();
    let body = fetches
        .iter()
        .find_map(|fetch| fetch.body.as_ref())
        .unwrap();
    serde_json::from_slice(body).unwrap()
}

#[tokio::test]
async fn everything_at_once() {
    let fake = fake();
    fake.on(
        "POST /odp/offerings/search",
        &page(&["a", "b"], Some("/next")),
    );
    fake.on("GET /next", &page(&["c", "d"], None));
    let search = fake
        .service()
        .await
        .search()
        .query("oak desk")
        .filter("size", Operator::Gte, 20)
        .filter("size", Operator::Lte, 40)
        .filter("colour", Operator::Exists, true)
        .filter("wood", Operator::In, json!(["oak", "ash"]))
        .sort("largest")
        .refine("size")
        .refine("wood")
        .in_collection("home")
        .descendants()
        .limit(3);
    let hits = search.collect().await.unwrap();
    assert_eq!(
        hits.iter().map(|hit| hit.id().as_str()).collect::<Vec<_>>(),
        ["a", "b", "c"]
    );
    assert_eq!(
        sent(&fake),
        json!({
            "odp_version": "1.0", "query": "oak desk",
            "filters": [
                {"id": "size", "operator": "gte", "value": 20},
                {"id": "size", "operator": "lte", "value": 40},
                {"id": "colour", "operator": "exists", "value": true},
                {"id": "wood", "operator": "in", "value": ["oak", "ash"]},
            ],
            "collection_id": "home", "include_descendants": true, "sort": "largest",
            "refinements": ["size", "wood"], "limit": 3,
        })
    );
    assert_eq!(
        fake.log(),
        [
            "GET /odp/collections/home",
            "POST /odp/offerings/search",
            "GET /next"
        ]
    );
}

#[tokio::test]
async fn text_alone_asks_nothing_else() {
    let fake = fake();
    fake.on("POST /odp/offerings/search", &page(&[], None));
    fake.on(
        "POST /odp/offerings/search?representation=full",
        &page(&["a"], None),
    );
    let service = fake.service().await;
    assert!(
        service
            .search()
            .query("x")
            .in_collection("home")
            .collect()
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        sent(&fake),
        json!({"odp_version": "1.0", "query": "x", "collection_id": "home", "limit": 50})
    );
    assert_eq!(
        service
            .search()
            .query("x")
            .full()
            .collect()
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        fake.log(),
        [
            "POST /odp/offerings/search",
            "POST /odp/offerings/search?representation=full"
        ]
    );
}

#[tokio::test]
async fn what_the_service_would_refuse_is_refused_here() {
    type Plan = fn(OfferingSearch) -> OfferingSearch;
    let neither = "Must have at least one of the members query and filters.";
    let no_filter = "Is not a filter that this search offers.";
    let cases: [(Plan, &str, Option<&str>); 18] = [
        (|s| s, "", Some(neither)),
        (|s| s.sort("largest"), "", Some(neither)),
        (|s| s.query("   "), "/query", None),
        (|s| s.query("x".repeat(257)), "/query", None),
        (
            |s| s.query("x").descendants(),
            "/include_descendants",
            Some("Must be absent without the member collection_id."),
        ),
        (|s| s.query("x").in_collection(".."), "/collection_id", None),
        (
            |s| s.filter("weight", Operator::Eq, 1),
            "/filters/0/id",
            Some(no_filter),
        ),
        (
            |s| {
                s.filter("size", Operator::Gte, 1)
                    .filter("wood", Operator::In, json!(["oak"]))
            },
            "/filters/1/id",
            Some(no_filter),
        ),
        (
            |s| s.filter("size", Operator::Lt, 1),
            "/filters/0/operator",
            None,
        ),
        (
            |s| s.filter_named("size", "near", 1),
            "/filters/0/operator",
            None,
        ),
        (
            |s| s.filter("size", Operator::Gte, "1"),
            "/filters/0/value",
            None,
        ),
        (
            |s| s.filter("size", Operator::In, json!([1, 1.0])),
            "/filters/0/value/1",
            None,
        ),
        (
            |s| s.filter("made", Operator::Lt, "2026-02-30"),
            "/filters/0/value",
            None,
        ),
        (
            |s| s.filter("colour", Operator::Exists, "yes"),
            "/filters/0/value",
            None,
        ),
        (
            |s| s.query("x").sort("smallest"),
            "/sort",
            Some("Is not a sort that this search offers."),
        ),
        (
            |s| s.query("x").refine("colour"),
            "/refinements/0",
            Some("Is not a refinable filter."),
        ),
        (
            |s| s.query("x").refine("size").refine("size"),
            "/refinements/1",
            Some("Must not be listed twice."),
        ),
        (
            |s| s.query("x").refine("wood"),
            "/refinements/0",
            Some(no_filter),
        ),
    ];
    let fake = fake();
    let service = fake.service().await;
    for (i, (plan, pointer, reason)) in cases.into_iter().enumerate() {
        for error in [
            plan(service.search()).collect().await.unwrap_err(),
            plan(service.search()).check().await.unwrap_err(),
        ] {
            assert_eq!(code(&error), "INVALID_REQUEST", "{i}");
            assert_eq!(error.status(), None);
            let [param] = error.invalid_params() else {
                panic!("{i}: {error}");
            };
            assert_eq!((param.location(), param.name()), (In::Body, pointer), "{i}");
            if let Some(reason) = reason {
                assert_eq!(param.reason(), reason, "{i}");
            }
        }
    }
    let many = (0..33).fold(service.search(), |s, _| s.filter("size", Operator::Eq, 1));
    assert_eq!(
        many.check().await.unwrap_err().invalid_params()[0].name(),
        "/filters"
    );
    assert!(fake.log().is_empty());
    // With its Collection the filter is there; a Collection that is not there is the Service's to name.
    let named = |id| {
        service
            .search()
            .filter("wood", Operator::In, json!(["oak"]))
            .in_collection(id)
    };
    assert_eq!(named("home").check().await.unwrap().filters().len(), 1);
    assert_eq!(code(&named("none").check().await.unwrap_err()), "NOT_FOUND");
}

/// The first page of a search that asks for the sizes, with these refinements.
async fn refined(
    service: &Service,
) -> Result<purvey_agent::Page<purvey_odp::offering::TerseOffering>, Error> {
    service
        .search()
        .query("x")
        .refine("size")
        .first_page()
        .await
}

#[tokio::test]
async fn refinements_come_with_their_definitions() {
    let fake = fake();
    let groups = json!([{"filter_id": "size", "values": [{"value": 20, "count": 4}, {"value": 50, "count": 2, "count_relation": "lower_bound"}]}]);
    fake.on(
        "POST /odp/offerings/search",
        &with(page(&["a"], Some("/next")), "refinements", groups.clone()),
    );
    fake.on(
        "GET /next",
        &with(page(&["b"], None), "refinements", groups),
    );
    let service = fake.service().await;
    let first = refined(&service).await.unwrap();
    let [refinement] = first.refinements.as_slice() else {
        panic!("{:?}", first.refinements);
    };
    assert_eq!(refinement.definition.title().as_str(), "Size");
    let [twenty, fifty] = refinement.values.as_slice() else {
        panic!("{refinement:?}");
    };
    assert_eq!(twenty.value.to_value(), json!(20));
    assert_eq!((twenty.count, twenty.lower_bound), (4, false));
    assert_eq!((fifty.count, fifty.lower_bound), (2, true));
    // Only the first page can have them.
    let mut pages = service.search().query("x").refine("size").pages();
    pages.next_page().await.unwrap();
    assert_eq!(
        code(&pages.next_page().await.unwrap_err()),
        "INVALID_DOCUMENT"
    );
}

#[tokio::test]
async fn refinements_that_were_not_asked_for_or_are_broken_make_the_page_invalid() {
    let bucket = json!({"value": 1, "count": 1});
    for groups in [
        json!([{"filter_id": "colour", "values": [{"value": "red", "count": 1}]}]),
        json!([{"filter_id": "size", "values": [{"value": "1", "count": 1}]}]),
        json!([{"filter_id": "size", "values": [bucket, {"value": 1.0, "count": 2}]}]),
        json!([{"filter_id": "size", "values": [bucket]}, {"filter_id": "size", "values": [bucket]}]),
        json!([{"filter_id": "size", "values": [{"value": 1, "count": -1}]}]),
        json!([]),
        json!({}),
    ] {
        let fake = fake();
        fake.on(
            "POST /odp/offerings/search",
            &with(page(&["a"], None), "refinements", groups.clone()),
        );
        let error = refined(&fake.service().await).await.unwrap_err();
        assert_eq!(code(&error), "INVALID_DOCUMENT", "{groups}");
    }
    let fake = fake();
    let groups = json!([{"filter_id": "size", "values": [bucket]}]);
    fake.on(
        "POST /odp/offerings/search",
        &with(page(&["a"], None), "refinements", groups),
    );
    let error = fake
        .service()
        .await
        .search()
        .query("x")
        .collect()
        .await
        .unwrap_err();
    assert_eq!(code(&error), "INVALID_DOCUMENT");
}

#[tokio::test]
async fn collections_are_searched_by_text_and_place() {
    let fake = fake();
    fake.on("POST /odp/collections/search", &page(&["c"], None));
    fake.on(
        "POST /odp/collections/search?representation=full",
        &page(&["c"], None),
    );
    let service = fake.service().await;
    let search = || service.search_collections();
    for (search, body) in [
        (
            search().query("desk"),
            json!({"odp_version": "1.0", "query": "desk", "limit": 50}),
        ),
        (
            search().roots(),
            json!({"odp_version": "1.0", "parent_id": null, "limit": 50}),
        ),
        (
            search().query("x").children_of("home").limit(7),
            json!({"odp_version": "1.0", "query": "x", "parent_id": "home", "limit": 7}),
        ),
    ] {
        assert_eq!(search.collect().await.unwrap().len(), 1);
        let last = fake.fetches().pop().unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&last.body.unwrap()).unwrap(),
            body
        );
    }
    assert_eq!(search().roots().full().collect().await.unwrap().len(), 1);
    let before = fake.log().len();
    for (search, pointer) in [
        (search(), ""),
        (search().query(" "), "/query"),
        (search().children_of(""), "/parent_id"),
    ] {
        let error = search.collect().await.unwrap_err();
        assert_eq!(
            (code(&error), error.invalid_params()[0].name()),
            ("INVALID_REQUEST", pointer)
        );
    }
    assert_eq!(fake.log().len(), before);
}

#[tokio::test]
async fn what_the_service_refuses_comes_as_it_said() {
    let fake = fake();
    let body = json!({
        "type": "https://offeringprotocol.org/problems/invalid-request", "title": "Invalid request", "status": 400, "code": "INVALID_REQUEST",
        "invalid_params": [{"in": "body", "name": "/query", "reason": "No."}, {"in": "trailer", "name": "x", "reason": "y"}],
    });
    let reply = crate::support::Reply::new(400, body.to_string())
        .with("content-type", "application/problem+json");
    fake.reply("POST /odp/offerings/search", reply);
    let error = fake
        .service()
        .await
        .search()
        .query("x")
        .collect()
        .await
        .unwrap_err();
    assert_eq!(
        (code(&error), error.status()),
        ("INVALID_REQUEST", Some(400))
    );
    assert_eq!(error.invalid_params().len(), 1);
    assert!(!error.retryable());
}
