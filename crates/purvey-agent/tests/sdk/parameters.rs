//! Parameters of an operation, held to their schemas before anything is sent.

use crate::support::{Fake, Reply, code, document, with_offering};
use purvey_agent::{Answer, Error, Input};
use purvey_odp::problem::In;
use serde_json::{Value, json};

/// A fake whose Action is an operation with these parameters beside `shop`, which is in its path.
fn operation(parameters: &[Value], schemas: &Value) -> Fake {
    let action = json!({"authentication": "not-required", "id": "act", "rel": "invoke",
        "openapi": {"url": "/api.json", "operation_id": "find"}});
    let fake = with_offering(&document(), &json!({"actions": [action]}));
    let shop = json!({"name": "shop", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^[a-z]+$"}});
    let parameters: Vec<&Value> = [&shop].into_iter().chain(parameters).collect();
    fake.on(
        "GET /api.json",
        &json!({
            "openapi": "3.1.0", "info": {"title": "Shop", "version": "1"},
            "paths": {"/{shop}": {"get": {"operationId": "find", "parameters": parameters}}},
            "components": {"schemas": schemas},
        }),
    );
    fake
}

async fn invoke(fake: &Fake, input: Input) -> Result<Answer, Error> {
    let service = fake.service().await;
    let found = service.get_offering("item").await.unwrap();
    assert!(found.issues.is_empty(), "{:?}", found.issues);
    let action = found.action("act").unwrap();
    service.invoke(action, input.parameter("shop", "a")).await
}

fn parameters() -> Vec<Value> {
    vec![
        json!({"name": "count", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 5}}),
        json!({"name": "dry", "in": "query", "schema": {"$ref": "#/components/schemas/Flag"}}),
        json!({"name": "size", "in": "query", "schema": {"enum": [1, 2, "large"]}}),
        json!({"name": "tags", "in": "query", "schema": {"type": "array", "maxItems": 2, "items": {"type": "string", "maxLength": 3}}}),
        json!({"name": "ids", "in": "query", "explode": false, "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Id"}}}),
        json!({"name": "X-Kind", "in": "header", "schema": {"type": ["string", "null"], "enum": ["a", "b"]}}),
    ]
}

fn schemas() -> Value {
    json!({"Flag": {"type": "boolean"}, "Id": {"type": "integer", "multipleOf": 2}})
}

#[tokio::test]
async fn a_value_is_what_its_text_says() {
    for (name, value, query) in [
        ("count", json!(5), "count=5"),
        ("count", json!("5"), "count=5"),
        ("dry", json!("true"), "dry=true"),
        ("dry", json!(false), "dry=false"),
        ("size", json!("2"), "size=2"),
        ("size", json!("large"), "size=large"),
        ("tags", json!(["a", "b"]), "tags=a&tags=b"),
        ("tags", json!("abc"), "tags=abc"),
        // A text that looks like a number is one only where the schema says so.
        ("tags", json!([123]), "tags=123"),
        ("ids", json!(["2", 4]), "ids=2,4"),
        ("X-Kind", json!("b"), ""),
    ] {
        let fake = operation(&parameters(), &schemas());
        let query = if query.is_empty() {
            String::new()
        } else {
            format!("?{query}")
        };
        fake.reply(&format!("GET /a{query}"), Reply::new(200, "{}"));
        let answer = invoke(&fake, Input::new().parameter(name, value.clone())).await;
        assert!(answer.is_ok(), "{name} {value}: {answer:?}");
    }
}

#[tokio::test]
async fn what_does_not_fit_is_named_with_its_reason_and_not_sent() {
    let query = In::Query;
    for (name, value, location, reason) in [
        (
            "count",
            json!("6"),
            query,
            "Does not fit its schema: maximum.",
        ),
        (
            "count",
            json!(0),
            query,
            "Does not fit its schema: minimum.",
        ),
        (
            "count",
            json!("many"),
            query,
            "Does not fit its schema: type.",
        ),
        (
            "count",
            json!([1, 2]),
            query,
            "Does not fit its schema: type.",
        ),
        ("dry", json!("yes"), query, "Does not fit its schema: type."),
        ("size", json!("3"), query, "Does not fit its schema: enum."),
        (
            "tags",
            json!(["a", "b", "c"]),
            query,
            "Does not fit its schema: maxItems.",
        ),
        (
            "tags",
            json!(["a", "long"]),
            query,
            "At /1: Does not fit its schema: maxLength.",
        ),
        (
            "ids",
            json!(["2", "3"]),
            query,
            "At /1: Does not fit its schema: multipleOf.",
        ),
        (
            "X-Kind",
            json!("c"),
            In::Header,
            "Does not fit its schema: enum.",
        ),
        (
            "shop",
            json!("A"),
            In::Path,
            "Does not fit its schema: pattern.",
        ),
    ] {
        let fake = operation(&parameters(), &schemas());
        let input = Input::new().parameter(name, value.clone());
        let service = fake.service().await;
        let found = service.get_offering("item").await.unwrap();
        let input = if name == "shop" {
            input
        } else {
            input.parameter("shop", "a")
        };
        let error = service
            .invoke(found.action("act").unwrap(), input)
            .await
            .unwrap_err();
        assert_eq!(code(&error), "INVALID_REQUEST", "{name} {value}");
        let [param] = error.invalid_params() else {
            panic!("{error:?}")
        };
        assert_eq!(
            (param.location(), param.name(), param.reason()),
            (location, name, reason),
            "{value}"
        );
        assert!(error.message().contains(name), "{error}");
        assert_eq!(
            fake.log().last().unwrap(),
            "GET /api.json",
            "nothing was sent"
        );
    }
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_is_said_to_be_that() {
    for schema in [
        json!({"$ref": "https://other.example/schema.json"}),
        json!({"type": "string", "pattern": "("}),
        json!({"type": 5}),
    ] {
        let parameter = json!({"name": "q", "in": "query", "schema": schema});
        let fake = operation(&[parameter], &json!({}));
        let error = invoke(&fake, Input::new().parameter("q", "x"))
            .await
            .unwrap_err();
        assert_eq!(code(&error), "UNSUPPORTED_SCHEMA", "{schema}");
        // Whoever does not use it is not hurt by it.
        fake.reply("GET /a", Reply::new(200, "{}"));
        invoke(&fake, Input::new()).await.unwrap();
    }
}
