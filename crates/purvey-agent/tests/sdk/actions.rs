//! Actions: made ready, never invoked by being read.

use crate::support::{Fake, Reply, code, document, with, with_offering};
use purvey_agent::transport::Class;
use purvey_agent::{EnrichedOffering, Scope};
use purvey_odp::action::CoreRelation;
use serde_json::{Value, json};

fn openapi(operations: Value) -> Value {
    let mut document = json!({"openapi": "3.1.1", "info": {"title": "Shop", "version": "1"}});
    document["paths"] = operations;
    document
}

fn action(id: &str, target: &Value) -> Value {
    let mut action = json!({"authentication": "not-required", "id": id, "rel": "purchase"});
    for (name, value) in target.as_object().unwrap() {
        action[name] = value.clone();
    }
    action
}

fn of(actions: &[Value]) -> Fake {
    with_offering(&document(), &json!({"actions": actions}))
}

async fn get(fake: &Fake) -> EnrichedOffering {
    fake.service().await.get_offering("item").await.unwrap()
}

fn usable(found: &EnrichedOffering) -> Vec<&str> {
    found
        .actions
        .iter()
        .map(|a| a.action().id.as_str())
        .collect()
}

/// Pointer and code of each issue.
fn told(found: &EnrichedOffering) -> Vec<(&str, &str)> {
    assert!(
        found
            .issues
            .iter()
            .all(|issue| issue.scope == Scope::Action)
    );
    found
        .issues
        .iter()
        .map(|issue| (issue.pointer.as_str(), issue.code.as_str()))
        .collect()
}

#[tokio::test]
async fn compact_targets_are_resolved_at_the_service_origin() {
    let fake = of(&[
        action(
            "file",
            &json!({"http": {"href": "/files/a%20b.pdf?x=1", "method": "GET", "response_content_types": ["application/pdf"]}}),
        ),
        action(
            "quote",
            &json!({"http": {"href": "https://quotes.example/new", "method": "POST", "request": {"content_type": "application/vnd.quote+json"}}}),
        ),
    ]);
    let found = get(&fake).await;
    assert!(found.issues.is_empty());
    let seen: Vec<_> = found
        .actions
        .iter()
        .map(|a| (a.method().as_str(), a.url(), a.content_types()))
        .collect();
    assert_eq!(
        seen,
        [
            ("GET", "https://market.example/files/a%20b.pdf?x=1", vec![]),
            (
                "POST",
                "https://quotes.example/new",
                vec!["application/vnd.quote+json"]
            ),
        ]
    );
    assert_eq!(fake.log(), ["GET /odp/offerings/item"]);
}

#[tokio::test]
async fn a_broken_action_hurts_only_itself() {
    let good = action("good", &json!({"http": {"href": "/a", "method": "GET"}}));
    let same = action("same", &json!({"http": {"href": "/a", "method": "GET"}}));
    let mut strange = action("strange", &json!({"http": {"href": "/a", "method": "GET"}}));
    strange["authentication"] = json!("telepathy");
    let mut future = action("future", &json!({"http": {"href": "/a", "method": "POST"}}));
    future["rel"] = json!("teleport");
    let fake = of(&[
        action(
            "method",
            &json!({"http": {"href": "/a", "method": "DELETE"}}),
        ),
        same.clone(),
        strange,
        action(
            "both",
            &json!({"http": {"href": "/a", "method": "GET"}, "openapi": {"operation_id": "x"}}),
        ),
        json!("no object"),
        good,
        same,
        action("openapi", &json!({"openapi": {"operation_id": "x"}})),
        future,
    ]);
    let found = get(&fake).await;
    assert_eq!(usable(&found), ["good", "future"]);
    assert_eq!(
        told(&found),
        [
            ("/actions/0", "UNSUPPORTED"),
            ("/actions/1", "UNSUPPORTED"),
            ("/actions/2", "UNSUPPORTED"),
            ("/actions/3", "UNSUPPORTED"),
            ("/actions/4", "UNSUPPORTED"),
            ("/actions/6", "UNSUPPORTED"),
            ("/actions/7", "OPERATION_MISSING"),
        ]
    );
    // What it does is not known: it can be chosen, and is never selected.
    assert!(found.action("future").is_some());
    let purchases: Vec<_> = found
        .actions_for(CoreRelation::Purchase)
        .map(|a| a.action().id.as_str())
        .collect();
    assert_eq!(purchases, ["good"]);
    assert!(found.actions_for(CoreRelation::Invoke).next().is_none());
    assert!(
        fake.fetches()
            .iter()
            .all(|fetch| fetch.class != Class::Invoke)
    );
}

#[tokio::test]
async fn an_operation_is_found_in_its_own_document_or_the_services() {
    let document = with(
        document(),
        "http",
        json!({"endpoint_base": "/odp", "openapi": {"url": "/service.json"}}),
    );
    let fake = with_offering(
        &document,
        &json!({"actions": [
            action("own", &json!({"openapi": {"url": "https://api.example/v1/openapi.json", "operation_id": "buy"}})),
            action("inherited", &json!({"openapi": {"operation_id": "buy"}})),
            action("again", &json!({"openapi": {"operation_id": "Buy"}})),
            action("shared", &json!({"openapi": {"operation_id": "quote"}})),
        ]}),
    );
    let mut own = openapi(json!({"/buy/{sku}": {
        "parameters": [{"name": "sku", "in": "path", "required": true, "schema": {"type": "string"}}],
        "put": {"operationId": "buy", "responses": {}, "requestBody": {"content": {"application/json": {}, "text/plain": {}}}},
    }}));
    own["servers"] = json!([{"url": "https://{region}.api.example/base/", "variables": {"region": {"default": "eu"}}}]);
    fake.on("GET https://api.example/v1/openapi.json", &own);
    fake.on("GET /service.json", &openapi(json!({
        "/buy": {"post": {"operationId": "buy"}},
        "/quote": {"$ref": "#/components/pathItems/quote"},
    })).as_object().map(|map| {
        let mut map = map.clone();
        map.insert("components".into(), json!({"pathItems": {"quote": {"get": {"operationId": "quote", "servers": [{"url": "./api"}]}}}}));
        Value::Object(map)
    }).unwrap());
    let found = get(&fake).await;
    let seen: Vec<_> = found
        .actions
        .iter()
        .map(|a| (a.method().as_str(), a.url()))
        .collect();
    assert_eq!(
        seen,
        [
            ("PUT", "https://eu.api.example/base/buy/{sku}"),
            ("POST", "https://market.example/buy"),
            ("GET", "https://market.example/api/quote"),
        ]
    );
    assert_eq!(
        found.actions[0].content_types(),
        ["application/json", "text/plain"]
    );
    // Identifiers are compared as they are.
    assert_eq!(told(&found), [("/actions/2", "OPERATION_MISSING")]);
    // A document that Actions share is read once.
    assert_eq!(
        fake.log(),
        [
            "GET /odp/offerings/item",
            "GET https://api.example/v1/openapi.json",
            "GET /service.json"
        ]
    );
}

#[tokio::test]
async fn a_document_of_no_use_costs_its_action() {
    let once = json!({"post": {"operationId": "buy"}});
    let nested = |depth: usize| {
        let mut text = openapi(json!({"/buy": once})).to_string();
        text.pop();
        format!(
            "{text},\"x\":{}1{}}}",
            "[".repeat(depth - 1),
            "]".repeat(depth - 1)
        )
    };
    let json = |value: &Value| Reply::json(value);
    let with_version = |version: &str| {
        json(&with(
            openapi(json!({"/buy": once})),
            "openapi",
            json!(version),
        ))
    };
    for (name, reply, expected, cause) in [
        ("ok", json(&openapi(json!({"/buy": once}))), None, None),
        (
            "ok, as OpenAPI",
            json(&openapi(json!({"/buy": once}))).with(
                "content-type",
                "application/vnd.oai.openapi+json; version=3.1",
            ),
            None,
            None,
        ),
        ("ok, deep", Reply::new(200, nested(32)), None, None),
        (
            "missing",
            json(&openapi(
                json!({"/quote": {"post": {"operationId": "quote"}}}),
            )),
            Some("OPERATION_MISSING"),
            None,
        ),
        (
            "no paths",
            json(&json!({"openapi": "3.1.0"})),
            Some("OPERATION_MISSING"),
            None,
        ),
        (
            "a webhook",
            json(&json!({"openapi": "3.1.0", "webhooks": {"x": once}})),
            Some("OPERATION_MISSING"),
            None,
        ),
        (
            "twice",
            json(&openapi(json!({"/a": once, "/b": once}))),
            Some("OPERATION_AMBIGUOUS"),
            None,
        ),
        (
            "twice in one",
            json(&openapi(
                json!({"/a": {"get": {"operationId": "buy"}, "post": {"operationId": "buy"}}}),
            )),
            Some("OPERATION_AMBIGUOUS"),
            None,
        ),
        (
            "twice by webhook",
            json(&with(
                openapi(json!({"/a": once})),
                "webhooks",
                json!({"b": once}),
            )),
            Some("OPERATION_AMBIGUOUS"),
            None,
        ),
        ("3.0", with_version("3.0.3"), Some("UNSUPPORTED"), None),
        ("3.2", with_version("3.2.0"), Some("UNSUPPORTED"), None),
        ("3.10", with_version("3.10.0"), Some("UNSUPPORTED"), None),
        (
            "no version",
            json(&json!({"paths": {"/buy": once}})),
            Some("UNSUPPORTED"),
            None,
        ),
        (
            "trace",
            json(&openapi(json!({"/a": {"trace": {"operationId": "buy"}}}))),
            Some("UNSUPPORTED"),
            None,
        ),
        (
            "a cookie is needed",
            json(&openapi(
                json!({"/a": {"get": {"operationId": "buy", "parameters": [{"name": "c", "in": "cookie", "required": true}]}}}),
            )),
            Some("UNSUPPORTED"),
            None,
        ),
        (
            "a path that does not fit",
            json(&openapi(json!({"/a/{b}": once}))),
            Some("INVALID"),
            None,
        ),
        (
            "an open brace",
            json(&openapi(json!({"/a/{b": once}))),
            Some("INVALID"),
            None,
        ),
        (
            "a circle",
            json(&openapi(
                json!({"/a": {"get": {"operationId": "buy", "parameters": [{"$ref": "#/paths/~1a/get/parameters/0"}]}}}),
            )),
            Some("INVALID"),
            None,
        ),
        (
            "elsewhere",
            json(&openapi(
                json!({"/a": {"get": {"operationId": "buy", "parameters": [{"$ref": "other.json"}]}}}),
            )),
            Some("UNSUPPORTED"),
            None,
        ),
        (
            "a server without url",
            json(&with(openapi(json!({"/a": once})), "servers", json!([{}]))),
            Some("INVALID"),
            None,
        ),
        (
            "a server with a gap",
            json(&with(
                openapi(json!({"/a": once})),
                "servers",
                json!([{"url": "https://{x}.example"}]),
            )),
            Some("INVALID"),
            None,
        ),
        (
            "not json",
            Reply::new(200, "openapi: 3.1.0"),
            Some("INVALID"),
            None,
        ),
        (
            "one member twice",
            Reply::new(200, r#"{"openapi":"3.1.0","openapi":"3.1.0"}"#),
            Some("INVALID"),
            None,
        ),
        (
            "too deep",
            Reply::new(200, nested(33)),
            Some("RESPONSE_LIMIT_EXCEEDED"),
            None,
        ),
        (
            "too large",
            Reply::new(200, vec![b' '; 1_048_577]),
            Some("RESPONSE_LIMIT_EXCEEDED"),
            Some("RESPONSE_LIMIT_EXCEEDED"),
        ),
        (
            "other media type",
            json(&openapi(json!({"/buy": once}))).with("content-type", "application/yaml"),
            Some("UNAVAILABLE"),
            Some("UNEXPECTED_MEDIA_TYPE"),
        ),
        (
            "other version in it",
            json(&openapi(json!({"/buy": once}))).with(
                "content-type",
                "application/vnd.oai.openapi+json;version=3.0",
            ),
            Some("UNAVAILABLE"),
            Some("UNEXPECTED_MEDIA_TYPE"),
        ),
        (
            "not there",
            Reply::problem(404, "NOT_FOUND"),
            Some("UNAVAILABLE"),
            Some("NOT_FOUND"),
        ),
    ] {
        let fake = of(&[
            action("other", &json!({"http": {"href": "/a", "method": "GET"}})),
            action(
                "buy",
                &json!({"openapi": {"url": "/openapi.json", "operation_id": "buy"}}),
            ),
        ]);
        fake.reply("GET /openapi.json", reply);
        let found = get(&fake).await;
        match expected {
            None => assert_eq!(
                usable(&found),
                ["other", "buy"],
                "{name}: {:?}",
                found.issues
            ),
            Some(expected) => {
                assert_eq!(usable(&found), ["other"], "{name}");
                assert_eq!(told(&found), [("/actions/1", expected)], "{name}");
                assert_eq!(found.issues[0].cause.as_ref().map(code), cause, "{name}");
            }
        }
    }
}
