//! The Service Document, and single resources.

use crate::support::{Fake, ORIGIN, Reply, code, document, offering, with};
use purvey_agent::Agent;
use serde_json::{Value, json};

#[tokio::test]
async fn an_origin_is_named_in_one_way_or_a_few() {
    let fake = Fake::serving(&document());
    for text in [
        "https://market.example",
        "https://market.example/",
        "HTTPS://Market.Example:443",
    ] {
        let service = fake.agent().service(text).await.unwrap();
        assert_eq!(service.origin().as_str(), ORIGIN);
        assert_eq!(service.document().name().as_str(), "Market");
    }
    for text in [
        "market.example",
        "http://market.example",
        "https://market.example/odp",
        "https://market.example/?x",
        "https://market.example/#x",
        "https://user@market.example",
        "https://market.example.",
        "ftp://market.example",
        "http://localhost:8080",
        "",
    ] {
        let error = fake.agent().service(text).await.unwrap_err();
        assert_eq!(code(&error), "INVALID_REQUEST", "{text}");
    }
}

#[tokio::test]
async fn local_development_is_a_switch_and_a_literal_host() {
    let fake = Fake::new();
    fake.on("GET http://localhost:8080/.well-known/odp", &document());
    let agent = Agent::builder()
        .transport(fake)
        .local_development(true)
        .build()
        .unwrap();
    let service = agent.service("http://localhost:8080").await.unwrap();
    assert_eq!(service.origin().as_str(), "http://localhost:8080");
    for text in [
        "http://dev.localhost:8080",
        "http://127.0.0.2",
        "http://market.example",
    ] {
        assert_eq!(
            code(&agent.service(text).await.unwrap_err()),
            "INVALID_REQUEST"
        );
    }
}

#[tokio::test]
async fn a_service_document_is_good_as_a_whole_or_not_at_all() {
    let mut without = document();
    without.as_object_mut().unwrap().remove("http");
    let deep = with(document(), "x", json!([[[[[[[[1]]]]]]]]));
    for (body, expected) in [
        (without.to_string(), "INVALID_DOCUMENT"),
        (
            with(document(), "odp_version", json!("1.1")).to_string(),
            "UNSUPPORTED_VERSION",
        ),
        (
            with(document(), "odp_version", json!("2.0")).to_string(),
            "UNSUPPORTED_VERSION",
        ),
        (
            with(document(), "odp_version", json!(1.0)).to_string(),
            "INVALID_DOCUMENT",
        ),
        (
            with(document(), "web_url", json!("/x")).to_string(),
            "INVALID_DOCUMENT",
        ),
        (
            with(document(), "name", json!("x".repeat(129))).to_string(),
            "INVALID_DOCUMENT",
        ),
        (deep.to_string(), "RESPONSE_LIMIT_EXCEEDED"),
        (
            format!("{}{}", document(), " ".repeat(65_536)),
            "RESPONSE_LIMIT_EXCEEDED",
        ),
        ("null".to_owned(), "INVALID_DOCUMENT"),
        ("<html>".to_owned(), "INVALID_DOCUMENT"),
    ] {
        let fake = Fake::new();
        fake.reply("GET /.well-known/odp", Reply::new(200, body.clone()));
        let error = fake.agent().service(ORIGIN).await.unwrap_err();
        assert_eq!(code(&error), expected, "{body:.80}");
        assert!(!error.retryable());
    }
    let error = Fake::new().agent().service(ORIGIN).await.unwrap_err();
    assert_eq!((code(&error), error.status()), ("NOT_FOUND", Some(404)));
}

#[tokio::test]
async fn what_a_newer_service_says_costs_only_itself() {
    let mut newer = document();
    let operations = newer["operations"].as_array_mut().unwrap();
    operations.push(json!({"name": "subscribe-offerings", "authentication": "not-required"}));
    newer["mcp"] = json!([{"type": "carrier-pigeon", "url": "/p"}]);
    newer["later"] = json!(1);
    let service = Fake::serving(&newer).service().await;
    assert_eq!(service.document().operations().len(), 7);
    assert!(service.document().mcp().is_empty());
    assert_eq!(service.document().extra()["later"], json!(1));
    let pointers: Vec<_> = service
        .issues()
        .iter()
        .map(|issue| issue.pointer.as_str())
        .collect();
    assert_eq!(pointers, ["/operations/7", "/mcp/0"]);
}

#[tokio::test]
async fn one_resource() {
    let fake = Fake::serving(&document());
    fake.reply(
        "GET /odp/offerings/lamp",
        Reply::json(&offering("lamp", &json!({"price": {"type": "free"}})))
            .with("content-language", "en"),
    );
    let collection =
        json!({"odp_version": "1.0", "id": "home", "name": "Home", "parent_ids": ["all"]});
    fake.on("GET /odp/collections/home", &collection);
    let service = fake.service().await;
    let found = service.get_offering("lamp").await.unwrap();
    assert_eq!(found.offering.name().as_str(), "lamp");
    assert_eq!(found.content_language.as_deref(), Some("en"));
    assert!(found.issues.is_empty() && found.actions.is_empty() && found.schema.is_none());
    let found = service.get_collection("home").await.unwrap();
    assert_eq!(found.collection.parent_ids()[0].as_str(), "all");
    assert_eq!(
        fake.log(),
        ["GET /odp/offerings/lamp", "GET /odp/collections/home"]
    );
}

#[tokio::test]
async fn a_resource_that_is_not_what_was_asked_for_is_refused() {
    let whole = |value: Value| value.to_string();
    for (body, expected) in [
        (whole(offering("other", &json!({}))), "INVALID_DOCUMENT"),
        (
            whole(json!({"id": "lamp", "name": "Lamp"})),
            "INVALID_DOCUMENT",
        ),
        (
            whole(json!({"odp_version": "1.2", "id": "lamp", "name": "Lamp"})),
            "UNSUPPORTED_VERSION",
        ),
        (
            whole(offering("lamp", &json!({"attributes": {"a": 1}}))),
            "INVALID_DOCUMENT",
        ),
        (
            whole(offering("lamp", &json!({"collection_ids": []}))),
            "INVALID_DOCUMENT",
        ),
        (
            whole(offering("lamp", &json!({"x": "y".repeat(524_288)}))),
            "RESPONSE_LIMIT_EXCEEDED",
        ),
        (
            r#"{"odp_version":"1.0","id":"lamp","name":"A","name":"B"}"#.to_owned(),
            "INVALID_DOCUMENT",
        ),
    ] {
        let fake = Fake::serving(&document());
        fake.reply("GET /odp/offerings/lamp", Reply::new(200, body.clone()));
        let error = fake.service().await.get_offering("lamp").await.unwrap_err();
        assert_eq!(code(&error), expected, "{body:.80}");
    }
    let fake = Fake::serving(&document());
    let error = fake.service().await.get_offering("lamp").await.unwrap_err();
    assert_eq!((code(&error), error.status()), ("NOT_FOUND", Some(404)));
    assert_eq!(
        code(
            &fake
                .service()
                .await
                .get_collection("a b")
                .await
                .unwrap_err()
        ),
        "INVALID_REQUEST"
    );
}
