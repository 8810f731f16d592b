//! Lists and their traversal.

use crate::support::{Fake, ORIGIN, Reply, code, document, page, with};
use futures_util::StreamExt;
use purvey_agent::{Agent, Error, Items};
use purvey_odp::offering::TerseOffering;
use serde_json::{Value, json};

/// The ids that come, and the error at the end.
async fn drain(mut items: Items<TerseOffering>) -> (Vec<String>, Option<Error>) {
    let mut ids = Vec::new();
    while let Some(item) = items.next().await {
        match item {
            Ok(item) => ids.push(item.id().to_string()),
            Err(error) => {
                assert!(items.next().await.is_none(), "nothing follows an error");
                return (ids, Some(error));
            }
        }
    }
    (ids, None)
}

/// Three pages of two items.
fn three_pages(limit: usize) -> Fake {
    let fake = Fake::serving(&document());
    let first = format!("GET /odp/offerings?limit={limit}");
    fake.on(&first, &page(&["a", "b"], Some("/next/2?x=%2F")));
    fake.on("GET /next/2?x=%2F", &page(&["c", "d"], Some("/next/3")));
    fake.on("GET /next/3", &page(&["e", "f"], None));
    fake
}

#[tokio::test]
async fn fifty_results_unless_said_otherwise() {
    let fake = three_pages(50);
    let service = fake.service().await;
    let (ids, error) = drain(service.offerings().stream()).await;
    assert_eq!(ids, ["a", "b", "c", "d", "e", "f"]);
    assert!(error.is_none());
    let expected = [
        "GET /odp/offerings?limit=50",
        "GET /next/2?x=%2F",
        "GET /next/3",
    ];
    assert_eq!(fake.log(), expected);
}

#[tokio::test]
async fn a_limit_is_over_all_pages_and_asks_for_no_more() {
    for (wanted, ids, pages) in [
        (1, vec!["a"], 1),
        (2, vec!["a", "b"], 1),
        (3, vec!["a", "b", "c"], 2),
        (4, vec!["a", "b", "c", "d"], 2),
        (5, vec!["a", "b", "c", "d", "e"], 3),
        (100, vec!["a", "b", "c", "d", "e", "f"], 3),
    ] {
        let fake = three_pages(wanted);
        let service = fake.service().await;
        let found = drain(service.offerings().limit(wanted).stream()).await;
        assert_eq!(found.0, ids);
        assert!(found.1.is_none());
        assert_eq!(fake.log().len(), pages, "{wanted}");
    }
    let fake = three_pages(50);
    let service = fake.service().await;
    let (ids, _) = drain(service.offerings().limit(0).stream()).await;
    assert!(ids.is_empty() && fake.log().is_empty());
}

#[tokio::test]
async fn page_size_is_apart_from_the_limit() {
    for (list, asked) in [
        ((Some(1000), None), 100),
        ((None, None), 100),
        ((None, Some(20)), 20),
        ((Some(5), Some(20)), 5),
        ((Some(150), None), 75),
        ((Some(201), None), 67),
        ((Some(50), Some(20)), 17),
        ((Some(1000), Some(500)), 100),
        ((None, Some(0)), 1),
    ] {
        let fake = three_pages(asked);
        let service = fake.service().await;
        let mut offerings = match list.0 {
            Some(limit) => service.offerings().limit(limit),
            None => service.offerings().all(),
        };
        if let Some(size) = list.1 {
            offerings = offerings.page_size(size);
        }
        drain(offerings.stream()).await;
        assert_eq!(fake.log()[0], format!("GET /odp/offerings?limit={asked}"));
    }
}

#[tokio::test]
async fn nothing_is_fetched_before_it_is_awaited() {
    let fake = three_pages(50);
    let service = fake.service().await;
    let mut items = service.offerings().stream();
    assert!(fake.log().is_empty());
    for _ in 0..2 {
        items.next().await.unwrap().unwrap();
        assert_eq!(fake.log().len(), 1);
    }
    items.next().await.unwrap().unwrap();
    assert_eq!(fake.log().len(), 2);
}

#[tokio::test]
async fn pages_come_one_by_one() {
    let fake = three_pages(5);
    let service = fake.service().await;
    let mut pages = service.offerings().limit(5).pages();
    for (count, has_more) in [(2, true), (2, true), (1, true)] {
        let page = pages.next_page().await.unwrap().unwrap();
        assert_eq!((page.items.len(), page.has_more), (count, has_more));
    }
    assert!(pages.next_page().await.unwrap().is_none());
    let all = three_pages(100);
    let mut pages = all.service().await.offerings().all().pages();
    for has_more in [true, true, false] {
        assert_eq!(pages.next_page().await.unwrap().unwrap().has_more, has_more);
    }
    assert!(pages.next_page().await.unwrap().is_none());
    assert_eq!(all.log().len(), 3);
}

#[tokio::test]
async fn a_later_page_that_fails_keeps_the_earlier_ones() {
    for (reply, expected) in [
        (
            Reply::problem(410, "CONTINUATION_EXPIRED"),
            "CONTINUATION_EXPIRED",
        ),
        (Reply::problem(500, "INTERNAL"), "INTERNAL"),
        (Reply::new(502, "<html>"), "HTTP_STATUS"),
        (Reply::new(200, "{"), "INVALID_DOCUMENT"),
        (
            Reply::json(&json!({"odp_version": "1.0"})),
            "INVALID_DOCUMENT",
        ),
        (
            Reply::new(200, vec![b' '; 524_289]),
            "RESPONSE_LIMIT_EXCEEDED",
        ),
        (
            Reply::json(&page(&["c"], None)).with("content-type", "application/json"),
            "UNEXPECTED_MEDIA_TYPE",
        ),
    ] {
        let fake = Fake::serving(&document());
        fake.on(
            "GET /odp/offerings?limit=100",
            &page(&["a", "b"], Some("/next")),
        );
        fake.reply("GET /next", reply);
        let service = fake.service().await;
        let (ids, error) = drain(service.offerings().all().stream()).await;
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(code(&error.unwrap()), expected);
    }
}

#[tokio::test]
async fn a_page_is_valid_as_a_whole_before_any_of_it_comes() {
    let item = json!({"id": "a", "name": "A"});
    let many: Vec<Value> = (0..101)
        .map(|i| json!({"id": format!("i{i}"), "name": "x"}))
        .collect();
    let deep = format!(
        r#"{{"odp_version":"1.0","items":[{{"id":"a","name":"A","x":{}1{}}}]}}"#,
        "[".repeat(14),
        "]".repeat(14)
    );
    let whole = |value: Value| value.to_string().into_bytes();
    for (body, expected) in [
        (
            whole(json!({"odp_version": "1.0", "items": [item, {"id": "b"}]})),
            "INVALID_DOCUMENT",
        ),
        (
            whole(json!({"odp_version": "1.0", "items": [item, {"id": "..", "name": "x"}]})),
            "INVALID_DOCUMENT",
        ),
        (
            whole(
                json!({"odp_version": "1.0", "items": [item, {"id": "b", "name": "x", "actions": []}]}),
            ),
            "INVALID_DOCUMENT",
        ),
        (
            whole(
                json!({"odp_version": "1.0", "items": [item, {"odp_version": "1.0", "id": "b", "name": "x"}]}),
            ),
            "INVALID_DOCUMENT",
        ),
        (
            whole(json!({"odp_version": "1.0", "items": many})),
            "INVALID_DOCUMENT",
        ),
        (
            whole(json!({"odp_version": "1.1", "items": [item]})),
            "UNSUPPORTED_VERSION",
        ),
        (
            whole(json!({"odp_version": "1", "items": [item]})),
            "INVALID_DOCUMENT",
        ),
        (whole(json!({"items": [item]})), "INVALID_DOCUMENT"),
        (whole(json!([item])), "INVALID_DOCUMENT"),
        (
            whole(json!({"odp_version": "1.0", "items": [item], "auth_expands": false})),
            "INVALID_DOCUMENT",
        ),
        (deep.into_bytes(), "RESPONSE_LIMIT_EXCEEDED"),
        (
            br#"{"odp_version":"1.0","items":[],"items":[]}"#.to_vec(),
            "INVALID_DOCUMENT",
        ),
        (
            br#"{"odp_version":"1.0","items":[{"id":"a","id":"a","name":"A"}]}"#.to_vec(),
            "INVALID_DOCUMENT",
        ),
        (
            b"{\"odp_version\":\"1.0\",\"items\":[{\"id\":\"a\",\"name\":\"\xff\"}]}".to_vec(),
            "INVALID_DOCUMENT",
        ),
        (
            br#"{"odp_version":"1.0","items":[{"id":"a","name":"\ud800"}]}"#.to_vec(),
            "INVALID_DOCUMENT",
        ),
        (
            br#"{"odp_version":"1.0","items":[]} {}"#.to_vec(),
            "INVALID_DOCUMENT",
        ),
        (
            b"\xef\xbb\xbf{\"odp_version\":\"1.0\",\"items\":[]}".to_vec(),
            "INVALID_DOCUMENT",
        ),
        (
            br#"{"odp_version":"1.0","items":[NaN]}"#.to_vec(),
            "INVALID_DOCUMENT",
        ),
        (Vec::new(), "INVALID_DOCUMENT"),
        (b"[".repeat(100_000), "RESPONSE_LIMIT_EXCEEDED"),
    ] {
        let fake = Fake::serving(&document());
        let shown = String::from_utf8_lossy(&body)
            .chars()
            .take(80)
            .collect::<String>();
        fake.reply("GET /odp/offerings?limit=50", Reply::new(200, body));
        let service = fake.service().await;
        let (ids, error) = drain(service.offerings().stream()).await;
        assert!(ids.is_empty(), "{shown}");
        assert_eq!(code(&error.unwrap()), expected, "{shown}");
    }
}

#[tokio::test]
async fn a_next_leads_on_or_nowhere() {
    let own = "/odp/offerings?limit=100";
    for (first, second, yielded, expected) in [
        (own, None, 0, "INVALID_CONTINUATION"),
        (
            "https://market.example/odp/offerings?limit=100",
            None,
            0,
            "INVALID_CONTINUATION",
        ),
        (
            "https://market.example:443/odp/./offerings?limit=100",
            None,
            0,
            "INVALID_CONTINUATION",
        ),
        (
            "https://other.example/next",
            None,
            0,
            "INVALID_CONTINUATION",
        ),
        (
            "http://market.example/next",
            None,
            0,
            "INVALID_CONTINUATION",
        ),
        (
            "https://market.example:8443/next",
            None,
            0,
            "INVALID_CONTINUATION",
        ),
        (
            "https://user@market.example/next",
            None,
            0,
            "INVALID_CONTINUATION",
        ),
        ("//other.example/next", None, 0, "INVALID_CONTINUATION"),
        ("next", None, 0, "INVALID_CONTINUATION"),
        ("", None, 0, "INVALID_CONTINUATION"),
        ("/next#fragment", None, 0, "INVALID_CONTINUATION"),
        ("javascript:alert(1)", None, 0, "INVALID_CONTINUATION"),
        ("/next", Some("/next"), 1, "INVALID_CONTINUATION"),
        ("/next", Some(own), 1, "INVALID_CONTINUATION"),
        ("/next", Some("/a/../next"), 1, "INVALID_CONTINUATION"),
    ] {
        let fake = Fake::serving(&document());
        fake.on("GET /odp/offerings?limit=100", &page(&["a"], Some(first)));
        fake.on("GET /next", &page(&["b"], second));
        let service = fake.service().await;
        let (ids, error) = drain(service.offerings().all().stream()).await;
        assert_eq!(ids.len(), yielded, "{first}");
        assert_eq!(code(&error.unwrap()), expected, "{first}");
        assert_eq!(fake.log().len(), 1 + yielded, "{first}");
    }
    let long = format!("/{}", "a".repeat(2048));
    let fake = Fake::serving(&document());
    fake.on("GET /odp/offerings?limit=50", &page(&["a"], Some(&long)));
    let (_, error) = drain(fake.service().await.offerings().stream()).await;
    assert_eq!(code(&error.unwrap()), "INVALID_CONTINUATION");
}

#[tokio::test]
async fn a_circle_of_pages_is_noticed() {
    let fake = Fake::serving(&document());
    fake.on("GET /odp/offerings?limit=100", &page(&["a"], Some("/2")));
    fake.on("GET /2", &page(&["b"], Some("/3")));
    fake.on("GET /3", &page(&["c"], Some("/2")));
    let (ids, error) = drain(fake.service().await.offerings().all().stream()).await;
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(code(&error.unwrap()), "INVALID_CONTINUATION");
    assert_eq!(fake.log().len(), 3);
}

#[tokio::test]
async fn no_identity_comes_twice() {
    for (second, expected) in [
        (vec!["c", "a"], vec!["a", "b"]),
        (vec!["c", "c"], vec!["a", "b"]),
        (vec!["A"], vec!["a", "b", "A"]),
    ] {
        let fake = Fake::serving(&document());
        fake.on(
            "GET /odp/offerings?limit=100",
            &page(&["a", "b"], Some("/2")),
        );
        fake.on("GET /2", &page(&second, None));
        let (ids, error) = drain(fake.service().await.offerings().all().stream()).await;
        assert_eq!(ids, expected);
        let failed = error.map(|error| code(&error).to_owned());
        let twice = expected.len() == 2;
        assert_eq!(failed, twice.then(|| "INVALID_CONTINUATION".to_owned()));
    }
}

#[tokio::test]
async fn a_traversal_never_ends_as_if_it_were_complete() {
    let fake = Fake::serving(&document());
    fake.on("GET /odp/offerings?limit=100", &page(&["i0"], Some("/1")));
    for i in 1..40 {
        let next = format!("/{}", i + 1);
        fake.on(
            &format!("GET /{i}"),
            &page(&[&format!("i{i}")], Some(&next)),
        );
    }
    let agent = Agent::builder()
        .transport(fake.clone())
        .max_pages(16)
        .build()
        .unwrap();
    let service = agent.service(ORIGIN).await.unwrap();
    let (ids, error) = drain(service.offerings().all().stream()).await;
    assert_eq!(ids.len(), 16);
    assert_eq!(code(&error.unwrap()), "RESPONSE_LIMIT_EXCEEDED");
    assert_eq!(fake.log().len(), 16);
    // Page 17 is a page like any other when nothing bounds them.
    fake.on("GET /odp/offerings?limit=17", &page(&["i0"], Some("/1")));
    let (ids, _) = drain(fake.service().await.offerings().limit(17).stream()).await;
    assert_eq!(ids.len(), 17);
}

#[tokio::test]
async fn an_empty_page_need_not_be_the_last() {
    let fake = Fake::serving(&document());
    fake.on("GET /odp/offerings?limit=50", &page(&[], Some("/2")));
    fake.on("GET /2", &page(&["a"], None));
    let (ids, error) = drain(fake.service().await.offerings().stream()).await;
    assert_eq!(ids, ["a"]);
    assert!(error.is_none());
}

#[tokio::test]
async fn a_page_that_did_not_come_can_be_asked_for_again() {
    let fake = Fake::serving(&document());
    fake.on("GET /odp/offerings?limit=50", &page(&["a"], Some("/2")));
    fake.reply(
        "GET /2",
        Reply::problem(503, "SERVICE_UNAVAILABLE").with("retry-after", "40"),
    );
    fake.on("GET /2", &page(&["b"], None));
    let mut pages = fake.service().await.offerings().pages();
    pages.next_page().await.unwrap();
    let error = pages.next_page().await.unwrap_err();
    assert!(error.retryable());
    assert_eq!(error.retry_after().unwrap().as_secs(), 40);
    let page = pages.next_page().await.unwrap().unwrap();
    assert_eq!(page.items[0].id().as_str(), "b");
    assert!(pages.next_page().await.unwrap().is_none());
}

#[tokio::test]
async fn every_list_asks_where_and_as_what_it_should() {
    let fake = Fake::serving(&document());
    fake.on(
        "GET /odp/offerings?limit=50&representation=full",
        &page(&["a"], None),
    );
    fake.on("GET /odp/collections?limit=50", &page(&["c"], None));
    fake.on(
        "GET /odp/collections?limit=50&representation=full",
        &page(&["c"], None),
    );
    fake.on(
        "GET /odp/collections/c.1~/offerings?limit=50",
        &page(&["d"], None),
    );
    let service = fake.service().await;
    assert_eq!(service.offerings().full().collect().await.unwrap().len(), 1);
    assert_eq!(service.collections().collect().await.unwrap().len(), 1);
    assert_eq!(
        service.collections().full().collect().await.unwrap().len(),
        1
    );
    let members = service
        .collection_offerings("c.1~")
        .first_page()
        .await
        .unwrap();
    assert_eq!(members.items[0].id().as_str(), "d");
    for id in ["..", "a/b", "", "a?b", "%61"] {
        let error = service
            .collection_offerings(id)
            .collect()
            .await
            .unwrap_err();
        assert_eq!(code(&error), "INVALID_REQUEST", "{id}");
    }
    assert_eq!(fake.log().len(), 4);
}

#[tokio::test]
async fn what_is_not_advertised_is_not_asked_for() {
    let operations = json!([
        {"name": "list-offerings", "authentication": "not-required"},
        {"name": "get-offering", "authentication": "not-required"},
    ]);
    let fake = Fake::serving(&with(document(), "operations", operations));
    let service = fake.service().await;
    let errors = [
        service.collections().collect().await.unwrap_err(),
        service
            .collection_offerings("c")
            .collect()
            .await
            .unwrap_err(),
        service.get_collection("c").await.unwrap_err(),
        service.search().query("x").collect().await.unwrap_err(),
        service.search().query("x").check().await.unwrap_err(),
        service
            .search_collections()
            .query("x")
            .collect()
            .await
            .unwrap_err(),
        service.hierarchy().await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(code(&error), "NOT_ADVERTISED");
    }
    assert!(fake.log().is_empty());
}

#[tokio::test]
async fn languages_and_what_authentication_adds_come_through() {
    let fake = Fake::serving(&document());
    let first = with(page(&["a"], None), "auth_expands", json!(true));
    fake.reply(
        "GET /odp/offerings?limit=50",
        Reply::json(&first).with("content-language", "de"),
    );
    let agent = Agent::builder()
        .transport(fake.clone())
        .languages(["de-AT", "en", "fr"])
        .build()
        .unwrap();
    let page = agent
        .service(ORIGIN)
        .await
        .unwrap()
        .offerings()
        .first_page()
        .await
        .unwrap();
    assert!(page.auth_expands);
    assert_eq!(page.content_language.as_deref(), Some("de"));
    let field = fake.fetches()[0].accept_language.clone();
    assert_eq!(field.as_deref(), Some("de-AT, en;q=0.9, fr;q=0.8"));
    let error = Agent::builder()
        .transport(fake)
        .languages(["de_AT, *"])
        .build()
        .unwrap_err();
    assert_eq!(code(&error), "INVALID_CONFIGURATION");
}

#[tokio::test]
async fn what_is_not_known_is_dropped_from_a_page_and_told() {
    let fake = Fake::serving(&document());
    let items = json!([
        {"id": "a", "name": "A", "price": {"type": "auction", "reserve": "1"}},
        {"id": "b", "name": "B", "images": [{"src": "/b", "type": "image/heic"}, {"src": "/c", "blur": "x"}]},
        {"id": "c", "name": "C", "later": {"more": [1]}},
    ]);
    let body = json!({"odp_version": "1.0", "items": items, "refinements": "not of a list"});
    fake.on("GET /odp/offerings?limit=50", &body);
    let page = fake.service().await.offerings().first_page().await.unwrap();
    assert!(page.items[0].price().is_none());
    assert_eq!(page.items[1].images().len(), 1);
    assert_eq!(page.items[2].extra()["later"], json!({"more": [1]}));
    let pointers: Vec<_> = page
        .issues
        .iter()
        .map(|issue| issue.pointer.as_str())
        .collect();
    assert_eq!(
        pointers,
        [
            "/items/0/price",
            "/items/1/images/0",
            "/items/1/images/1/blur"
        ]
    );
    assert!(
        page.issues
            .iter()
            .all(|issue| issue.code.as_str() == "UNSUPPORTED")
    );
}

#[tokio::test]
async fn a_page_that_is_too_large_is_the_end() {
    let mut large = page(&["c"], Some("/next/3"));
    large["padding"] = "x".repeat(524_288).into();
    let fake = Fake::serving(&document());
    fake.on(
        "GET /odp/offerings?limit=50",
        &page(&["a", "b"], Some("/next/2")),
    );
    fake.on("GET /next/2", &large);
    let mut pages = fake.service().await.offerings().pages();
    assert_eq!(pages.next_page().await.unwrap().unwrap().items.len(), 2);
    let error = pages.next_page().await.unwrap_err();
    assert_eq!(code(&error), "RESPONSE_LIMIT_EXCEEDED");
    assert!(pages.next_page().await.unwrap().is_none());
    assert_eq!(fake.log(), ["GET /odp/offerings?limit=50", "GET /next/2"]);
}
