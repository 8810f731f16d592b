//! What a search can use.

use crate::support::{Fake, Reply, code, document, with};
use purvey_agent::{Capabilities, Scope};
use serde_json::{Value, json};

fn filter(id: &str) -> Value {
    json!({"id": id, "title": id, "description": id, "type": "integer", "operators": ["eq", "gte"]})
}

fn sort(id: &str, filter: &str) -> Value {
    json!({"id": id, "title": id, "description": id, "keys": [{"filter_id": filter, "direction": "ascending", "missing": "last"}]})
}

fn definitions(items: &[Value], next: Option<&str>) -> Value {
    let mut page = json!({"odp_version": "1.0", "items": items});
    if let Some(next) = next {
        page["next"] = next.into();
    }
    page
}

fn advertising(capabilities: Value) -> Value {
    with(document(), "search_capabilities", capabilities)
}

fn ids(found: &Capabilities) -> (Vec<&str>, Vec<&str>) {
    (
        found
            .effective
            .filters()
            .iter()
            .map(|f| f.id().as_str())
            .collect(),
        found
            .effective
            .sorts()
            .iter()
            .map(|s| s.id().as_str())
            .collect(),
    )
}

/// Scope and code of each issue.
fn told(found: &Capabilities) -> Vec<(Scope, &str)> {
    found
        .issues
        .iter()
        .map(|issue| (issue.scope, issue.code.as_str()))
        .collect()
}

#[tokio::test]
async fn inline_sources_need_no_request() {
    let fake = Fake::serving(&advertising(json!({
        "filters": {"inline": [filter("a"), filter("b")]},
        "sorts": {"inline": [sort("s", "a"), sort("t", "none")]},
    })));
    let found = fake.service().await.capabilities(None).await.unwrap();
    assert_eq!(ids(&found), (vec!["a", "b"], vec!["s"]));
    assert_eq!(told(&found), [(Scope::Sorts, "SORT_REFERENCE")]);
    assert!(fake.log().is_empty());
}

#[tokio::test]
async fn linked_sources_come_whole() {
    let fake = Fake::serving(&advertising(json!({
        "filters": {"linked": {"href": "/filters"}}, "sorts": {"linked": {"href": "/sorts"}},
    })));
    fake.on(
        "GET /filters",
        &definitions(&[filter("a"), filter("b")], Some("/filters?2")),
    );
    fake.on("GET /filters?2", &definitions(&[filter("c")], None));
    fake.on("GET /sorts", &definitions(&[sort("s", "c")], None));
    let found = fake.service().await.capabilities(None).await.unwrap();
    assert_eq!(ids(&found), (vec!["a", "b", "c"], vec!["s"]));
    assert!(found.issues.is_empty());
    assert_eq!(fake.log(), ["GET /filters", "GET /filters?2", "GET /sorts"]);
}

#[tokio::test]
async fn a_definition_that_is_not_known_costs_only_itself() {
    let mut strange = filter("c");
    strange["type"] = json!("colour");
    let mut operator = filter("d");
    operator["operators"] = json!(["eq", "near"]);
    let mut direction = sort("t", "a");
    direction["keys"][0]["direction"] = json!("random");
    let inline = Fake::serving(&advertising(json!({
        "filters": {"inline": [filter("a"), strange, operator]}, "sorts": {"inline": [sort("s", "a"), direction]},
    })));
    let linked = Fake::serving(&advertising(json!({
        "filters": {"linked": {"href": "/filters"}}, "sorts": {"linked": {"href": "/sorts"}},
    })));
    linked.on(
        "GET /filters",
        &definitions(&[filter("a"), strange, operator], None),
    );
    linked.on(
        "GET /sorts",
        &definitions(&[sort("s", "a"), direction], None),
    );
    for fake in [inline, linked] {
        let found = fake.service().await.capabilities(None).await.unwrap();
        assert_eq!(ids(&found), (vec!["a"], vec!["s"]));
        let unsupported = "UNSUPPORTED";
        assert_eq!(
            told(&found),
            [
                (Scope::Filters, unsupported),
                (Scope::Filters, unsupported),
                (Scope::Sorts, unsupported)
            ]
        );
    }
}

#[tokio::test]
async fn a_linked_source_that_fails_is_not_there_and_text_search_works() {
    let sixteen = |fake: &Fake, last: Option<&str>| {
        for i in 1..=16 {
            let next = format!("/filters?{}", i + 1);
            let next = if i < 16 { Some(next.as_str()) } else { last };
            let route = if i == 1 {
                "GET /filters".to_owned()
            } else {
                format!("GET /filters?{i}")
            };
            fake.on(&route, &definitions(&[filter(&format!("f{i}"))], next));
        }
    };
    type Script<'a> = Box<dyn Fn(&Fake) + 'a>;
    let cases: Vec<(&str, Script<'_>, usize, &str, Option<&str>)> = vec![
        (
            "absent",
            Box::new(|_| {}),
            1,
            "UNAVAILABLE",
            Some("NOT_FOUND"),
        ),
        (
            "refused",
            Box::new(|f| f.reply("GET /filters", Reply::problem(403, "NOT_AUTHORIZED"))),
            1,
            "UNAVAILABLE",
            Some("NOT_AUTHORIZED"),
        ),
        (
            "no json",
            Box::new(|f| f.reply("GET /filters", Reply::new(200, "<"))),
            1,
            "UNAVAILABLE",
            Some("INVALID_DOCUMENT"),
        ),
        (
            "too large",
            Box::new(|f| f.reply("GET /filters", Reply::new(200, vec![b' '; 524_289]))),
            1,
            "RESPONSE_LIMIT_EXCEEDED",
            Some("RESPONSE_LIMIT_EXCEEDED"),
        ),
        (
            "a bad definition",
            Box::new(|f| {
                f.on(
                    "GET /filters",
                    &definitions(&[filter("a"), json!({"id": "b"})], None),
                );
            }),
            1,
            "INVALID",
            None,
        ),
        (
            "one id twice",
            Box::new(|f| {
                f.on(
                    "GET /filters",
                    &definitions(&[filter("a"), filter("a")], Some("/filters?2")),
                );
            }),
            1,
            "INVALID",
            None,
        ),
        (
            "one id on two pages",
            Box::new(|f| {
                f.on(
                    "GET /filters",
                    &definitions(&[filter("a")], Some("/filters?2")),
                );
                f.on(
                    "GET /filters?2",
                    &definitions(&[filter("a")], Some("/filters?3")),
                );
            }),
            2,
            "INVALID",
            None,
        ),
        (
            "second page fails",
            Box::new(|f| {
                f.on(
                    "GET /filters",
                    &definitions(&[filter("a")], Some("/filters?2")),
                );
            }),
            2,
            "UNAVAILABLE",
            Some("NOT_FOUND"),
        ),
        (
            "itself",
            Box::new(|f| {
                f.on(
                    "GET /filters",
                    &definitions(&[filter("a")], Some("/filters")),
                );
            }),
            1,
            "UNAVAILABLE",
            Some("INVALID_CONTINUATION"),
        ),
        (
            "another origin",
            Box::new(|f| {
                f.on(
                    "GET /filters",
                    &definitions(&[filter("a")], Some("https://other.example/2")),
                );
            }),
            1,
            "INVALID",
            None,
        ),
        (
            "page 17",
            Box::new(move |f| sixteen(f, Some("/filters?17"))),
            16,
            "INVALID",
            None,
        ),
        (
            "101 on a page",
            Box::new(|f| {
                let many: Vec<Value> = (0..101).map(|i| filter(&format!("f{i}"))).collect();
                f.on("GET /filters", &definitions(&many, None));
            }),
            1,
            "INVALID",
            None,
        ),
        (
            "more than 1,024",
            Box::new(|f| {
                for page in 0..11 {
                    let many: Vec<Value> =
                        (0..100).map(|i| filter(&format!("f{page}-{i}"))).collect();
                    let route = if page == 0 {
                        "GET /filters".to_owned()
                    } else {
                        format!("GET /filters?{page}")
                    };
                    f.on(
                        &route,
                        &definitions(&many, Some(&format!("/filters?{}", page + 1))),
                    );
                }
            }),
            11,
            "INVALID",
            None,
        ),
    ];
    for (name, script, fetches, expected, cause) in cases {
        let fake = Fake::serving(&advertising(json!({
            "filters": {"linked": {"href": "/filters"}}, "sorts": {"inline": [sort("s", "a")]},
        })));
        script(&fake);
        fake.on(
            "POST /odp/offerings/search",
            &crate::support::page(&["hit"], None),
        );
        let service = fake.service().await;
        let found = service.capabilities(None).await.unwrap();
        assert_eq!(ids(&found), (vec![], vec![]), "{name}");
        assert_eq!(
            told(&found),
            [(Scope::Filters, expected), (Scope::Sorts, "SORT_REFERENCE")],
            "{name}"
        );
        assert_eq!(found.issues[0].cause.as_ref().map(code), cause, "{name}");
        assert_eq!(found.issues[0].pointer, "/search_capabilities/filters");
        assert_eq!(fake.log().len(), fetches, "{name}");
        let hits = service.search().query("text").collect().await.unwrap();
        assert_eq!(hits.len(), 1);
        assert_eq!(fake.log().len(), fetches + 1, "{name}");
    }
    // Sixteen pages are fine.
    let fake = Fake::serving(&advertising(
        json!({"filters": {"linked": {"href": "/filters"}}}),
    ));
    sixteen(&fake, None);
    assert_eq!(
        ids(&fake.service().await.capabilities(None).await.unwrap())
            .0
            .len(),
        16
    );
}

#[tokio::test]
async fn a_link_to_another_origin_is_not_followed() {
    let fake = Fake::serving(&advertising(
        json!({"filters": {"linked": {"href": "https://other.example/filters"}}}),
    ));
    fake.on(
        "GET https://other.example/filters",
        &definitions(&[filter("a")], None),
    );
    let found = fake.service().await.capabilities(None).await.unwrap();
    assert_eq!(ids(&found), (vec![], vec![]));
    assert_eq!(told(&found), [(Scope::Filters, "INVALID")]);
    assert!(fake.log().is_empty());
}

#[tokio::test]
async fn a_collection_adds_to_the_service_and_overrides_nothing() {
    let fake = Fake::serving(&advertising(json!({
        "filters": {"inline": [filter("a"), filter("b")]}, "sorts": {"inline": [sort("s", "a"), sort("t", "b")]},
    })));
    fake.on("GET /odp/collections/home", &json!({
        "odp_version": "1.0", "id": "home", "name": "Home",
        "search_capabilities": {"filters": {"linked": {"href": "/home-filters"}}, "sorts": {"inline": [sort("u", "c"), sort("s", "c")]}},
    }));
    fake.on(
        "GET /home-filters",
        &definitions(&[filter("b"), filter("c")], None),
    );
    let service = fake.service().await;
    let found = service.capabilities(Some("home")).await.unwrap();
    assert_eq!(ids(&found), (vec!["a", "c"], vec!["u"]));
    assert_eq!(
        told(&found),
        [
            (Scope::Filters, "CONFLICT"),
            (Scope::Sorts, "CONFLICT"),
            (Scope::Sorts, "SORT_REFERENCE"),
        ]
    );
    // Without the Collection nothing of it is there.
    assert_eq!(
        ids(&service.capabilities(None).await.unwrap()),
        (vec!["a", "b"], vec!["s", "t"])
    );
    assert_eq!(
        code(&service.capabilities(Some("none")).await.unwrap_err()),
        "NOT_FOUND"
    );
}
