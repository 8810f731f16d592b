//! Documents within their bytes that are wide where nobody expects it: judged, and told of in bounds.

use crate::support::{Fake, Reply, code, document, with_offering};
use serde_json::json;

/// `count` times the same, with commas between, in a page of Offerings.
fn page_of(item: &str, count: usize) -> Reply {
    let items = vec![item; count].join(",");
    let body = format!(r#"{{"odp_version":"1.0","items":[{items}]}}"#);
    assert!(body.len() <= 524_288, "{}", body.len());
    Reply::new(200, body)
}

#[tokio::test]
async fn wide_pages_are_refused_in_few_words() {
    let members = |n: usize| {
        (0..n)
            .map(|i| format!(r#""{i}":0"#))
            .collect::<Vec<_>>()
            .join(",")
    };
    let repeated = r#"{"id":"a","name":"a"}"#;
    let long = format!(r#"{{"id":"a","name":"{}"}}"#, "n".repeat(5_000));
    for (name, reply) in [
        ("empty objects", page_of("{}", 170_000)),
        ("empty arrays", page_of("[]", 170_000)),
        ("numbers", page_of("0", 260_000)),
        ("nulls", page_of("null", 100_000)),
        ("the same item", page_of(repeated, 20_000)),
        ("101 items", page_of(repeated, 101)),
        ("long names", page_of(&long, 100)),
        (
            "one item of members",
            page_of(&format!("{{{}}}", members(40_000)), 1),
        ),
        (
            "a hundred of members",
            page_of(&format!("{{{}}}", members(500)), 100),
        ),
        (
            "members beside",
            Reply::new(200, format!("{{{}}}", members(40_000))),
        ),
        (
            "a wide next",
            Reply::new(
                200,
                format!(
                    r#"{{"odp_version":"1.0","items":[],"next":"/{}"}}"#,
                    "n".repeat(500_000)
                ),
            ),
        ),
        (
            "wide odp_version",
            Reply::new(
                200,
                format!(
                    r#"{{"odp_version":[{}],"items":[]}}"#,
                    vec!["1"; 200_000].join(",")
                ),
            ),
        ),
    ] {
        let fake = Fake::serving(&document());
        fake.reply("GET /odp/offerings?limit=50", reply);
        let error = fake
            .service()
            .await
            .offerings()
            .collect()
            .await
            .unwrap_err();
        let expected = if name == "a wide next" {
            "INVALID_CONTINUATION"
        } else {
            "INVALID_DOCUMENT"
        };
        assert_eq!(code(&error), expected, "{name}");
        assert!(
            error.message().len() < 32_768,
            "{name}: {} bytes",
            error.message().len()
        );
    }
}

#[tokio::test]
async fn wide_offerings_are_usable() {
    let attributes: serde_json::Map<_, _> =
        (0..20_000).map(|i| (format!("a{i}"), json!([i]))).collect();
    let fake = with_offering(
        &document(),
        &json!({"schema": {"url": "/s.json"}, "attributes": attributes}),
    );
    let dialect = "https://json-schema.org/draft/2020-12/schema";
    fake.on(
        "GET /s.json",
        &json!({"$schema": dialect, "type": "object"}),
    );
    let found = fake.service().await.get_offering("item").await.unwrap();
    assert!(found.issues.is_empty(), "{:?}", found.issues);
    assert_eq!(found.offering.attributes().len(), 20_000);

    // What is wide where the protocol counts is an error that names the place.
    for (member, value) in [
        ("images", json!(vec![json!({"src": "/i.svg"}); 10_000])),
        ("collection_ids", json!(vec!["c"; 50_000])),
        ("localizations", json!(vec!["en"; 50_000])),
        ("description", json!("d".repeat(400_000))),
    ] {
        let fake = with_offering(&document(), &json!({member: value}));
        let error = fake.service().await.get_offering("item").await.unwrap_err();
        assert_eq!(code(&error), "INVALID_DOCUMENT", "{member}");
        assert!(error.message().contains(&format!("/{member}")), "{error}");
        assert!(
            error.message().len() < 32_768,
            "{member}: {} bytes",
            error.message().len()
        );
    }
    // Actions hurt only themselves, and one id that is there twice hurts every one that has it.
    let action = json!({"authentication": "not-required", "id": "a", "rel": "invoke", "http": {"href": "/a", "method": "POST"}});
    let fake = with_offering(&document(), &json!({"actions": vec![action; 3_000]}));
    let answer = fake.service().await.get_offering("item").await;
    match answer {
        Ok(found) => assert!(found.actions.is_empty() && !found.issues.is_empty()),
        Err(error) => assert_eq!(code(&error), "INVALID_DOCUMENT"),
    }
}
