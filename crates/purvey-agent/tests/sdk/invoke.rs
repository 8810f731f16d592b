//! Actions, invoked on purpose.

use crate::support::{Fake, Reply, code, document, with_offering};
use http::{HeaderName, HeaderValue};
use purvey_agent::challenge::Demand;
use purvey_agent::transport::{Class, Fetch};
use purvey_agent::{Answer, Error, Input};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use purvey_odp::problem::InvalidParam;
use serde_json::{Value, json};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A fake whose Offering has one Action with this target.
fn of(target: &Value) -> Fake {
    let mut action = json!({"authentication": "optional", "id": "act", "rel": "invoke"});
    for (name, value) in target.as_object().unwrap() {
        action[name] = value.clone();
    }
    with_offering(&document(), &json!({"actions": [action]}))
}

async fn invoke(fake: &Fake, input: Input) -> Result<Answer, Error> {
    let service = fake.service().await;
    let found = service.get_offering("item").await.unwrap();
    assert!(found.issues.is_empty(), "{:?}", found.issues);
    service.invoke(found.action("act").unwrap(), input).await
}

/// The requests that invoked something.
fn sent(fake: &Fake) -> Vec<Fetch> {
    fake.fetches()
        .into_iter()
        .filter(|fetch| fetch.class == Class::Invoke)
        .collect()
}

fn field<'a>(fetch: &'a Fetch, name: &str) -> Option<&'a str> {
    fetch.headers.get(name).map(|value| value.to_str().unwrap())
}

fn name(text: &'static str) -> HeaderName {
    HeaderName::from_static(text)
}

fn value(text: &'static str) -> HeaderValue {
    HeaderValue::from_static(text)
}

fn origin(text: &str) -> ServiceOrigin {
    ServiceOrigin::parse(text, LocalDevelopment::Refused).unwrap()
}

#[tokio::test]
async fn a_compact_download() {
    let fake = of(
        &json!({"http": {"href": "/file", "method": "GET", "response_content_types": ["application/pdf", "text/plain"]}}),
    );
    fake.reply(
        "GET /file",
        Reply::new(200, "%PDF").with("content-type", "application/pdf"),
    );
    let answer = invoke(&fake, Input::new()).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (200, &b"%PDF"[..])
    );
    assert_eq!(answer.headers["content-type"], "application/pdf");
    assert_eq!(answer.url.as_str(), "https://market.example/file");
    let [fetch] = &sent(&fake)[..] else { panic!() };
    assert_eq!(field(fetch, "accept"), Some("application/pdf, text/plain"));
    assert!(fetch.body.is_none() && field(fetch, "content-type").is_none());
    for input in [
        Input::new().json(json!({})),
        Input::new().bytes("text/plain", "x"),
        Input::new().parameter("x", 1),
    ] {
        assert_eq!(
            code(&invoke(&fake, input).await.unwrap_err()),
            "INVALID_REQUEST"
        );
    }
    assert_eq!(sent(&fake).len(), 1);
}

#[tokio::test]
async fn a_body_is_held_to_its_schema_before_it_is_sent() {
    let request =
        json!({"content_type": "application/vnd.order+json", "schema": {"url": "/order.json"}});
    let fake = of(&json!({"http": {"href": "/orders", "method": "POST", "request": request}}));
    fake.on(
        "GET /order.json",
        &json!({"$schema": DIALECT, "$ref": "parts.json#/$defs/order"}),
    );
    fake.on("GET /parts.json", &json!({"$schema": DIALECT, "$defs": {"order": {
        "type": "object", "required": ["count"], "properties": {"count": {"type": "integer", "maximum": 5}}}}}));
    fake.reply("POST /orders", Reply::new(201, "{}"));
    let answer = invoke(&fake, Input::new().json(json!({"count": 5})))
        .await
        .unwrap();
    assert_eq!(answer.status.as_u16(), 201);
    let [fetch] = &sent(&fake)[..] else { panic!() };
    assert_eq!(
        field(fetch, "content-type"),
        Some("application/vnd.order+json")
    );
    assert_eq!(fetch.body.as_deref(), Some(&br#"{"count":5}"#[..]));
    // The schema says more of bytes of the same media type than their media type.
    let bytes = |text: &'static str| Input::new().bytes("Application/vnd.order+json;v=1", text);
    invoke(&fake, bytes(r#" {"count": 1}"#)).await.unwrap();
    assert_eq!(
        sent(&fake)[1].body.as_deref(),
        Some(&br#" {"count": 1}"#[..])
    );
    for (input, place) in [
        (Input::new().json(json!({"count": 6})), Some("/count")),
        (Input::new().json(json!({})), Some("")),
        (bytes(r#"{"count": "1"}"#), Some("/count")),
        (bytes(r#"{"count": 1, "count": 1}"#), None),
        (bytes("{"), None),
        (Input::new().bytes("text/plain", "5"), None),
        (Input::new(), None),
    ] {
        let error = invoke(&fake, input).await.unwrap_err();
        assert_eq!(code(&error), "INVALID_REQUEST");
        assert_eq!(
            error.invalid_params().first().map(InvalidParam::name),
            place
        );
    }
    assert_eq!(sent(&fake).len(), 2);
}

#[tokio::test]
async fn what_cannot_be_checked_is_not_sent() {
    let json_body = || Input::new().json(json!({"a": 1}));
    let doubled = |i: usize| json!({"allOf": [{"$ref": format!("#/$defs/d{}", i + 1)}, {"$ref": format!("#/$defs/d{}", i + 1)}]});
    let mut definitions: serde_json::Map<String, Value> =
        (0..40).map(|i| (format!("d{i}"), doubled(i))).collect();
    definitions.insert("d40".to_owned(), json!(true));
    for (schema, expected) in [
        (Reply::problem(404, "NOT_FOUND"), "NOT_FOUND"),
        (Reply::new(200, "{"), "UNSUPPORTED_SCHEMA"),
        (
            Reply::json(&json!({"$schema": "http://json-schema.org/draft-07/schema#"})),
            "UNSUPPORTED_SCHEMA",
        ),
        (
            Reply::json(&json!({"$schema": DIALECT, "$ref": "#/$defs/d0", "$defs": definitions})),
            "UNSUPPORTED_SCHEMA",
        ),
    ] {
        let fake = of(
            &json!({"http": {"href": "/orders", "method": "POST", "request": {"schema": {"url": "/s.json"}}}}),
        );
        fake.reply("GET /s.json", schema);
        assert_eq!(
            code(&invoke(&fake, json_body()).await.unwrap_err()),
            expected
        );
        assert!(sent(&fake).is_empty());
    }
    let form =
        json!({"content_type": "application/x-www-form-urlencoded", "schema": {"url": "/s.json"}});
    let fake = of(&json!({"http": {"href": "/orders", "method": "POST", "request": form}}));
    let input = Input::new().bytes("application/x-www-form-urlencoded", "a=1");
    assert_eq!(
        code(&invoke(&fake, input).await.unwrap_err()),
        "UNSUPPORTED_SCHEMA"
    );
    assert_eq!(
        code(&invoke(&fake, json_body()).await.unwrap_err()),
        "INVALID_REQUEST"
    );
    assert!(sent(&fake).is_empty());
}

#[tokio::test]
async fn challenges_come_back_with_their_fields() {
    let fake = of(&json!({"http": {"href": "/orders", "method": "POST"}}));
    let challenge = Reply::new(402, "")
        .with("www-authenticate", "Payment id=\"x\"")
        .with("payment-required", "eyJ4IjoxfQ==");
    fake.reply("POST /orders", challenge);
    let error = invoke(&fake, Input::new()).await.unwrap_err();
    assert_eq!(error.status(), Some(402));
    assert_eq!(error.demands(), [Demand::Mpp, Demand::X402]);
    let fields: Vec<_> = error
        .challenges()
        .iter()
        .map(|c| (c.name().as_str(), c.value().to_str().unwrap()))
        .collect();
    assert_eq!(
        fields,
        [
            ("www-authenticate", "Payment id=\"x\""),
            ("payment-required", "eyJ4IjoxfQ==")
        ]
    );
    // Nothing is paid or tried again.
    assert_eq!(sent(&fake).len(), 1);
}

#[tokio::test]
async fn credentials_go_to_their_origin_alone() {
    let market = origin("https://market.example");
    let with_credentials = || {
        Input::new()
            .credential(&market, name("authorization"), value("AEP secret"))
            .credential(&market, name("payment-signature"), value("signed"))
            .header(name("idempotency-key"), value("k1"))
    };
    for (href, own) in [
        ("/orders", true),
        ("https://other.example/orders", false),
        ("https://market.example:8443/orders", false),
    ] {
        let fake = of(&json!({"http": {"href": href, "method": "POST"}}));
        fake.reply(&format!("POST {href}"), Reply::new(200, ""));
        invoke(&fake, with_credentials()).await.unwrap();
        let [fetch] = &sent(&fake)[..] else { panic!() };
        assert_eq!(field(fetch, "authorization"), own.then_some("AEP secret"));
        assert_eq!(field(fetch, "payment-signature"), own.then_some("signed"));
        assert_eq!(field(fetch, "idempotency-key"), Some("k1"));
        // Nor does the transport add those that it has for another Service.
        assert_eq!(fetch.anonymous, !own);
    }
    let fake = of(&json!({"http": {"href": "/orders", "method": "POST"}}));
    for field in [
        "authorization",
        "aep-authorization",
        "cookie",
        "payment-signature",
        "host",
        "content-length",
        "accept",
        "transfer-encoding",
    ] {
        let input = Input::new().header(name(field), value("x"));
        assert_eq!(
            code(&invoke(&fake, input).await.unwrap_err()),
            "INVALID_REQUEST",
            "{field}"
        );
    }
    assert!(sent(&fake).is_empty());
}

/// A fake whose Action is an operation with parameters and a body.
fn operation() -> Fake {
    let fake = of(&json!({"openapi": {"url": "/api/openapi.json", "operation_id": "order"}}));
    fake.on("GET /api/openapi.json", &json!({
        "openapi": "3.1.0", "info": {"title": "Shop", "version": "1"},
        "paths": {"/shops/{shop}/orders": {
            "parameters": [{"$ref": "#/components/parameters/shop"}, {"name": "dry", "in": "query", "schema": {"type": "boolean"}}],
            "post": {
                "operationId": "order",
                "parameters": [
                    {"name": "dry", "in": "query", "required": true},
                    {"name": "tag", "in": "query"},
                    {"name": "ids", "in": "query", "explode": false},
                    {"name": "X-Trace", "in": "header"},
                    {"name": "Authorization", "in": "header"},
                    {"name": "session", "in": "cookie"},
                ],
                "requestBody": {"$ref": "#/components/requestBodies/order"},
                "responses": {"201": {"content": {"application/json": {}}}, "400": {"content": {"application/problem+json": {}}}},
            },
        }},
        "components": {
            "parameters": {"shop": {"name": "shop", "in": "path", "required": true, "schema": {"type": "string"}}},
            "requestBodies": {"order": {"required": true, "content": {
                "application/json": {"schema": {"type": "object", "required": ["lines"], "properties": {"lines": {"type": "array", "items": {"$ref": "#/components/schemas/Line"}}}}},
                "text/csv": {},
            }}},
            "schemas": {
                "Line": {"type": "object", "required": ["sku"], "properties": {"sku": {"type": "string"}, "amount": {"$ref": "#/components/schemas/A~1mount"}}},
                "A/mount": {"type": "integer", "minimum": 1},
            },
        },
    }));
    fake
}

#[tokio::test]
async fn an_operation_is_written_as_its_document_says() {
    let fake = operation();
    let url = "POST /shops/a%2Fb%20c/orders?dry=true&tag=x%26y&tag=z&ids=1,2";
    fake.reply(url, Reply::new(201, "{}"));
    let input = Input::new()
        .parameter("shop", "a/b c")
        .parameter("dry", true)
        .parameter("tag", json!(["x&y", "z"]))
        .parameter("ids", json!([1, 2]))
        .parameter("X-Trace", "t1")
        .json(json!({"lines": [{"sku": "a", "amount": 1}]}));
    assert_eq!(invoke(&fake, input).await.unwrap().status.as_u16(), 201);
    let [fetch] = &sent(&fake)[..] else { panic!() };
    assert_eq!(field(fetch, "x-trace"), Some("t1"));
    assert_eq!(field(fetch, "accept"), Some("application/json"));
    assert_eq!(field(fetch, "content-type"), Some("application/json"));
    let csv = "POST /shops/a/orders?dry=false";
    fake.reply(csv, Reply::new(201, ""));
    let input = Input::new()
        .parameter("shop", "a")
        .parameter("dry", false)
        .bytes("text/csv", "sku\na\n");
    invoke(&fake, input).await.unwrap();
    assert_eq!(sent(&fake)[1].body.as_deref(), Some(&b"sku\na\n"[..]));
}

#[tokio::test]
async fn an_input_that_does_not_fit_the_operation_is_not_sent() {
    let fake = operation();
    let good = || {
        Input::new()
            .parameter("dry", true)
            .json(json!({"lines": []}))
    };
    let lines = |lines: Value| {
        Input::new()
            .parameter("shop", "a")
            .parameter("dry", true)
            .json(json!({"lines": lines}))
    };
    for (input, place) in [
        (good(), Some("shop")),
        (good().parameter("shop", ".."), Some("shop")),
        (good().parameter("shop", ""), Some("shop")),
        (good().parameter("shop", json!({})), Some("shop")),
        (good().parameter("shop", json!([])), Some("shop")),
        (good().parameter("shop", "a").parameter("more", 1), None),
        (good().parameter("shop", "a").parameter("shop", "b"), None),
        (
            good().parameter("shop", "a").parameter("session", "s"),
            None,
        ),
        (
            good()
                .parameter("shop", "a")
                .parameter("X-Trace", "a\r\nb: c"),
            Some("X-Trace"),
        ),
        (
            good()
                .parameter("shop", "a")
                .parameter("Authorization", "x"),
            Some("Authorization"),
        ),
        (
            Input::new().parameter("shop", "a").parameter("dry", true),
            None,
        ),
        (
            Input::new()
                .parameter("shop", "a")
                .json(json!({"lines": []})),
            Some("dry"),
        ),
        (
            Input::new()
                .parameter("shop", "a")
                .parameter("dry", true)
                .bytes("text/html", "x"),
            None,
        ),
        (lines(json!([{"sku": 1}])), Some("/lines/0/sku")),
        (
            lines(json!([{"sku": "a"}, {"sku": "b", "amount": 0}])),
            Some("/lines/1/amount"),
        ),
    ] {
        let shown = format!("{input:?}");
        let error = invoke(&fake, input).await.unwrap_err();
        assert_eq!(code(&error), "INVALID_REQUEST", "{shown}");
        assert_eq!(
            error.invalid_params().first().map(InvalidParam::name),
            place,
            "{shown}"
        );
    }
    assert!(sent(&fake).is_empty());
}
