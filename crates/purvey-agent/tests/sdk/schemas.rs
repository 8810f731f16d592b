//! Attributes and their schemas: fetched whole, or told why not.

use crate::support::{Fake, Reply, code, document, page, with_offering};
use purvey_agent::{EnrichedOffering, Issue, Scope};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A schema document with these members.
pub(crate) fn schema(mut members: Value) -> Value {
    members["$schema"] = DIALECT.into();
    members
}

/// A fake whose Offering has these attributes under `/schema.json`.
pub(crate) fn item(attributes: &Value) -> Fake {
    let more = json!({"schema": {"url": "/schema.json"}, "attributes": attributes});
    with_offering(&document(), &more)
}

pub(crate) async fn get(fake: &Fake) -> EnrichedOffering {
    fake.service().await.get_offering("item").await.unwrap()
}

/// The one issue of an Offering whose attributes cannot be used; everything else can.
pub(crate) async fn lost(fake: &Fake) -> Issue {
    let found = get(fake).await;
    assert!(found.offering.attributes().is_empty() && found.offering.schema().is_none());
    assert!(found.schema.is_none());
    assert_eq!(found.offering.name().as_str(), "item");
    let [issue] = found.issues.as_slice() else {
        panic!("{:?}", found.issues);
    };
    assert_eq!(issue.scope, Scope::Attributes);
    issue.clone()
}

/// The issue that one schema document leads to, in little time.
pub(crate) async fn hostile(schema: &Value, attributes: &Value) -> String {
    let fake = item(attributes);
    fake.on("GET /schema.json", schema);
    // Generous: what is not bounded would take longer than the test machine lasts.
    let begun = Instant::now();
    let issue = lost(&fake).await;
    assert!(begun.elapsed() < Duration::from_secs(30));
    issue.code.as_str().to_owned()
}

#[tokio::test]
async fn attributes_fit_or_are_left_out() {
    let rules = schema(json!({
        "type": "object", "required": ["memory"], "additionalProperties": false,
        "properties": {"memory": {"type": "integer", "minimum": 1}, "tags": {"type": "array", "items": {"type": "string"}}},
    }));
    for (attributes, place) in [
        (json!({"memory": 80, "tags": ["a"]}), None),
        (json!({"memory": 80.0}), None),
        (json!({"memory": 0}), Some("/attributes/memory")),
        (json!({"memory": "80"}), Some("/attributes/memory")),
        (
            json!({"memory": 1, "tags": ["a", 2]}),
            Some("/attributes/tags/1"),
        ),
        (json!({"tags": ["a"]}), Some("/attributes")),
        (json!({"memory": 1, "more": 1}), Some("/attributes")),
    ] {
        let fake = item(&attributes);
        fake.on("GET /schema.json", &rules);
        match place {
            None => {
                let found = get(&fake).await;
                assert!(found.issues.is_empty());
                assert_eq!(Value::from(found.offering.attributes().clone()), attributes);
                assert!(found.schema.is_some());
            }
            Some(place) => {
                let issue = lost(&fake).await;
                assert_eq!(
                    (issue.code.as_str(), issue.pointer.as_str()),
                    ("MISMATCH", place)
                );
                assert!(issue.cause.is_none());
            }
        }
        assert_eq!(fake.log(), ["GET /odp/offerings/item", "GET /schema.json"]);
    }
}

#[tokio::test]
async fn a_terse_representation_is_never_held_to_its_schema() {
    let fake = Fake::serving(&document());
    let mut terse = page(&["item"], None);
    terse["items"][0]["schema"] = json!({"url": "/schema.json"});
    terse["items"][0]["attributes"] = json!({"part": 1});
    fake.on("GET /odp/offerings?limit=50", &terse);
    let items = fake.service().await.offerings().collect().await.unwrap();
    assert_eq!(items[0].attributes()["part"], json!(1));
    assert_eq!(fake.log().len(), 1);
}

#[tokio::test]
async fn a_full_item_of_a_list_can_be_enriched() {
    let fake = Fake::serving(&document());
    let mut full = page(&["item"], None);
    full["items"][0]["schema"] = json!({"url": "/schema.json"});
    full["items"][0]["attributes"] = json!({"part": 1});
    fake.on("GET /odp/offerings?limit=50&representation=full", &full);
    fake.on(
        "GET /schema.json",
        &schema(json!({"properties": {"part": false}})),
    );
    let service = fake.service().await;
    let mut items = service.offerings().full().collect().await.unwrap();
    assert_eq!(items[0].attributes().len(), 1);
    let found = service.enrich(items.remove(0)).await;
    assert!(found.offering.attributes().is_empty());
    assert_eq!(found.issues[0].pointer, "/attributes/part");
}

#[tokio::test]
async fn a_graph_is_fetched_whole_and_handed_out_complete() {
    let fake =
        item(&json!({"tree": {"children": [{"children": [], "size": "small"}]}, "unit": "kg"}));
    fake.on("GET /schema.json", &schema(json!({
        "properties": {
            "tree": {"$ref": "parts/tree.json"},
            "unit": {"$ref": "https://schemas.example/units.json#/$defs/unit"},
        },
        "$defs": {"unused": {"$ref": "unused.json#anchor"}},
        // Data that looks like references is data.
        "default": {"$ref": "https://nowhere.example/a.json"}, "enum": [{"$ref": "https://nowhere.example/b.json"}, {"tree": {"children": [{"children": [], "size": "small"}]}, "unit": "kg"}],
    })));
    fake.on("GET /parts/tree.json", &schema(json!({
        "$dynamicAnchor": "node", "type": "object", "unevaluatedProperties": false,
        "properties": {"children": {"type": "array", "items": {"$dynamicRef": "#node"}}, "size": {"$ref": "size.json"}},
    })));
    // Known under another name than that of where it was found.
    fake.on(
        "GET /parts/size.json",
        &schema(json!({"$id": "/names/size", "enum": ["small"], "$comment": "…"})),
    );
    fake.on("GET https://schemas.example/units.json", &schema(json!({
        "$defs": {"unit": {"anyOf": [{"const": "g"}, {"$ref": "#/$defs/kilo"}]}, "kilo": {"const": "kg"},
            "back": {"$ref": "https://market.example/schema.json"}, "size": {"$ref": "https://market.example/names/size"}},
    })));
    fake.on(
        "GET /unused.json",
        &schema(json!({"$defs": {"x": {"$anchor": "anchor"}}})),
    );
    let found = get(&fake).await;
    assert!(found.issues.is_empty(), "{:?}", found.issues);
    assert_eq!(
        fake.log(),
        [
            "GET /odp/offerings/item",
            "GET /schema.json",
            "GET /parts/tree.json",
            "GET https://schemas.example/units.json",
            "GET /unused.json",
            "GET /parts/size.json",
        ]
    );
    // Another validator, without a network, agrees about what fits.
    let complete = found.schema.unwrap();
    let validator = jsonschema::draft202012::options()
        .offline()
        .build(complete.document())
        .unwrap();
    let good = json!({"tree": {"children": [{"children": [], "size": "small"}]}, "unit": "kg"});
    assert!(validator.is_valid(&good));
    for bad in [
        json!({"tree": {"children": [{"children": [], "size": "large"}]}, "unit": "kg"}),
        json!({"tree": {"children": [], "colour": "red"}, "unit": "kg"}),
        json!({"tree": {"children": []}, "unit": "lb"}),
    ] {
        let part = json!({"tree": bad["tree"], "unit": bad["unit"]});
        assert!(!validator.is_valid(&part));
    }
    let held = |value: Value| {
        let complete = complete.clone();
        async move {
            complete
                .check(Scope::Attributes, "/attributes", value)
                .await
        }
    };
    assert!(held(good).await.is_ok());
    assert!(held(json!({"unit": "lb"})).await.is_err());
}

#[tokio::test]
async fn a_graph_has_bounds() {
    // A chain of documents: the ninth is eight references away, the tenth one too many.
    for (documents, expected) in [(9, None), (10, Some("RESPONSE_LIMIT_EXCEEDED"))] {
        let fake = item(&json!({"a": 1}));
        fake.on("GET /schema.json", &schema(json!({"$ref": "1.json"})));
        for i in 1..documents {
            let next = format!("{}.json", i + 1);
            let members = if i + 1 < documents {
                json!({"$ref": next})
            } else {
                json!({})
            };
            fake.on(&format!("GET /{i}.json"), &schema(members));
        }
        match expected {
            None => assert!(get(&fake).await.schema.is_some()),
            Some(expected) => assert_eq!(lost(&fake).await.code.as_str(), expected),
        }
        assert_eq!(fake.log().len(), 1 + documents.min(9));
    }
    // Many documents side by side: sixteen in all.
    for (others, expected) in [
        (15, None),
        (16, Some("RESPONSE_LIMIT_EXCEEDED")),
        (1000, Some("RESPONSE_LIMIT_EXCEEDED")),
    ] {
        let fake = item(&json!({"a": 1}));
        let all: Vec<Value> = (0..others)
            .map(|i| json!({"$ref": format!("{i}.json")}))
            .collect();
        fake.on("GET /schema.json", &schema(json!({"allOf": all})));
        for i in 0..others {
            fake.on(&format!("GET /{i}.json"), &schema(json!({})));
        }
        match expected {
            None => assert!(get(&fake).await.schema.is_some()),
            Some(expected) => assert_eq!(lost(&fake).await.code.as_str(), expected),
        }
        assert_eq!(fake.log().len(), 1 + 16);
    }
    // Large documents: four of them fit, five do not.
    for (others, expected) in [(3, None), (4, Some("RESPONSE_LIMIT_EXCEEDED"))] {
        let fake = item(&json!({"a": 1}));
        let all: Vec<Value> = (0..others)
            .map(|i| json!({"$ref": format!("{i}.json")}))
            .collect();
        fake.on(
            "GET /schema.json",
            &schema(json!({"allOf": all, "$comment": "x".repeat(260_000)})),
        );
        for i in 0..others {
            fake.on(
                &format!("GET /{i}.json"),
                &schema(json!({"$comment": "x".repeat(262_000)})),
            );
        }
        match expected {
            None => assert!(get(&fake).await.schema.is_some()),
            Some(expected) => assert_eq!(lost(&fake).await.code.as_str(), expected),
        }
    }
}

#[tokio::test]
async fn a_document_that_cannot_be_had_costs_only_the_attributes() {
    for (reply, expected, cause) in [
        (
            Reply::problem(404, "NOT_FOUND"),
            "UNAVAILABLE",
            Some("NOT_FOUND"),
        ),
        (
            Reply::problem(401, "NOT_AUTHENTICATED"),
            "UNAVAILABLE",
            Some("NOT_AUTHENTICATED"),
        ),
        (Reply::new(500, ""), "UNAVAILABLE", Some("HTTP_STATUS")),
        (
            Reply::json(&schema(json!({}))).with("content-type", "application/json"),
            "UNAVAILABLE",
            Some("UNEXPECTED_MEDIA_TYPE"),
        ),
        (
            Reply::new(200, vec![b' '; 262_145]),
            "RESPONSE_LIMIT_EXCEEDED",
            Some("RESPONSE_LIMIT_EXCEEDED"),
        ),
        (
            Reply::new(
                200,
                format!(
                    r#"{{"$schema":"{DIALECT}","x":{}1{}}}"#,
                    "[".repeat(16),
                    "]".repeat(16)
                ),
            ),
            "RESPONSE_LIMIT_EXCEEDED",
            None,
        ),
        (Reply::new(200, "{"), "INVALID", None),
        (
            Reply::new(
                200,
                format!(r#"{{"$schema":"{DIALECT}","$schema":"{DIALECT}"}}"#),
            ),
            "INVALID",
            None,
        ),
        (Reply::new(200, "true"), "INVALID", None),
        (Reply::new(200, "[]"), "INVALID", None),
    ] {
        for at in ["/schema.json", "/other.json"] {
            let fake = item(&json!({"a": 1}));
            if at == "/other.json" {
                fake.on(
                    "GET /schema.json",
                    &schema(json!({"$defs": {"never used": {"$ref": "other.json"}}})),
                );
            }
            fake.reply(&format!("GET {at}"), reply.clone());
            let issue = lost(&fake).await;
            assert_eq!(
                (issue.code.as_str(), issue.pointer.as_str()),
                (expected, "/schema")
            );
            assert_eq!(issue.cause.as_ref().map(code), cause);
        }
    }
}

#[tokio::test]
async fn what_is_not_supported_is_said_to_be() {
    let vocabulary = |name: &str, required: bool| json!({"$vocabulary": {name: required}});
    let nothing = json!({"a": 1});
    for (schema, expected) in [
        (json!({}), "UNSUPPORTED"),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
            "UNSUPPORTED",
        ),
        (json!({"$schema": 1}), "UNSUPPORTED"),
        (
            schema(vocabulary("https://vocab.example/units", true)),
            "UNSUPPORTED",
        ),
        (
            schema(json!({"$dynamicRef": "https://schemas.example/common.json#node"})),
            "UNSUPPORTED",
        ),
        (
            schema(json!({"$dynamicRef": "common.json#node"})),
            "UNSUPPORTED",
        ),
        (schema(json!({"$dynamicRef": null})), "UNSUPPORTED"),
        (
            schema(json!({"$defs": {"x": {"$schema": "http://json-schema.org/draft-07/schema#"}}})),
            "UNSUPPORTED",
        ),
        (
            schema(json!({"properties": {"a": {"$ref": DIALECT}}})),
            "UNSUPPORTED",
        ),
        (schema(json!({"$ref": 1})), "INVALID"),
        (schema(json!({"$ref": "#/$defs/none"})), "INVALID"),
        (schema(json!({"$ref": "#none"})), "INVALID"),
        (schema(json!({"$ref": "http://[x"})), "INVALID"),
        (schema(json!({"$id": "x#y"})), "INVALID"),
        (schema(json!({"$id": DIALECT})), "INVALID"),
        (
            schema(json!({"$defs": {"a": {"$id": "x"}, "b": {"$id": "x"}}})),
            "INVALID",
        ),
        (schema(json!({"type": "whatever"})), "INVALID"),
        (
            schema(json!({"properties": {"a": {"pattern": "("}}})),
            "INVALID",
        ),
        (schema(json!({"items": [{}]})), "INVALID"),
    ] {
        let found = hostile(&schema, &nothing).await;
        assert_eq!(found, expected, "{schema}");
    }
    for good in [
        vocabulary("https://vocab.example/units", false),
        vocabulary(
            "https://json-schema.org/draft/2020-12/vocab/unevaluated",
            true,
        ),
        json!({"format": "email", "contentEncoding": "base64"}),
        json!({"unknown": {"$ref": "nowhere.json"}}),
    ] {
        let fake = item(&nothing);
        fake.on("GET /schema.json", &schema(good));
        assert!(get(&fake).await.issues.is_empty());
    }
}
