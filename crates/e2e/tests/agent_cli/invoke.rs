//! `purvey actions` and `purvey invoke`

use std::fs;

use super::fake::{Fake, Reply, Request, nothing, service};
use super::support::{agent, fails, json as json_of, lines, ok, run, stderr, stdout};
use serde_json::json;
use tempfile::TempDir;

/// A shop where lamps can be bought, ordered by OpenAPI, and downloaded from elsewhere.
fn shop(elsewhere: String) -> Fake {
    Fake::start(move |request: &Request| {
        match (request.method.as_str(), request.target.as_str()) {
        (_, "/.well-known/odp") => service(&super::fake::LEAST, &json!({})),
        (_, "/odp/offerings/lamp") => Reply::odp(&json!({
            "odp_version": "1.0", "id": "lamp", "name": "Lamp",
            "actions": [
                {
                    "id": "buy", "rel": "purchase", "description": "Buy some.", "authentication": "not-required",
                    "http": {
                        "method": "POST", "href": "/buy",
                        "request": {"content_type": "application/json", "schema": {"url": "/schemas/buy.json"}},
                    },
                },
                {
                    "id": "order", "rel": "x-order", "authentication": "not-required",
                    "openapi": {"url": "/openapi.json", "operation_id": "order"},
                },
                {
                    "id": "manual", "rel": "download", "authentication": "not-required",
                    "http": {"method": "GET", "href": format!("{elsewhere}/manual")},
                },
            ],
        })),
        (_, "/schemas/buy.json") => Reply::new(200, "application/schema+json", json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object", "properties": {"pieces": {"type": "integer"}}, "required": ["pieces"],
        }).to_string()),
        (_, "/openapi.json") => Reply::new(200, "application/json", json!({
            "openapi": "3.1.0", "info": {"title": "Shop", "version": "1"},
            "paths": {"/order/{place}": {"put": {
                "operationId": "order",
                "parameters": [
                    {"name": "place", "in": "path", "required": true, "schema": {"type": "string"}},
                    {"name": "tag", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                ],
                "responses": {"200": {"description": "Done."}},
            }}},
        }).to_string()),
        ("POST", "/buy") => Reply::new(201, "application/json", "{\"order\":7}\n")
            .with("location", "/orders/7")
            .with("set-cookie", "id=1"),
        ("PUT", _) => Reply::new(200, "application/octet-stream", [0, 159, 146, 150]),
        ("GET", "/manual") => Reply::new(200, "text/plain", "Turn it on."),
        _ => nothing(),
    }
    })
}

#[test]
fn actions_are_listed_and_none_is_invoked() {
    let fake = shop("https://docs.example".to_owned());
    let origin = &fake.url;
    let found = lines(&ok(&["actions", origin, "lamp", "--json"]));
    let requests: Vec<_> = found
        .iter()
        .map(|action| {
            (
                action["action"]["id"].clone(),
                action["method"].clone(),
                action["url"].clone(),
            )
        })
        .collect();
    assert_eq!(
        requests,
        [
            (json!("buy"), json!("POST"), json!(format!("{origin}/buy"))),
            (
                json!("order"),
                json!("PUT"),
                json!(format!("{origin}/order/{{place}}"))
            ),
            (
                json!("manual"),
                json!("GET"),
                json!("https://docs.example/manual")
            ),
        ]
    );
    let table = ok(&["actions", origin, "lamp"]);
    assert!(table.starts_with("ACTION  REL       REQUEST"), "{table}");
    assert!(table.contains("buy     purchase  POST "), "{table}");
    assert!(fake.requests_for("/buy").is_empty());
}

#[test]
fn an_action_is_invoked_only_when_it_is_meant() {
    let fake = shop("https://docs.example".to_owned());
    let home = TempDir::new().unwrap();
    let input = home.path().join("order.json");
    fs::write(&input, "{\"pieces\": 2}").unwrap();
    let input = input.to_str().unwrap();
    let arguments = ["invoke", &fake.url, "lamp", "buy", "--input", input];
    let said = fails(2, &arguments);
    assert!(said.contains("--yes"), "{said}");
    let read = fake
        .requests()
        .iter()
        .all(|request| request.method == "GET");
    assert!(read, "nothing is sent");
    // What cannot be done is said before it is asked whether to do it.
    let said = fails(4, &["invoke", &fake.url, "lamp", "sell"]);
    assert!(said.contains("sell") && said.contains("buy"), "{said}");

    let meant = [
        &arguments[..],
        &["--yes", "--header", "Idempotency-Key: k1"],
    ]
    .concat();
    let output = run(&meant);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output), "{\"order\":7}\n");
    assert_eq!(
        stderr(&output),
        "201 Created\ncontent-type: application/json\nlocation: /orders/7\n"
    );
    let sent = fake.requests_for("/buy").remove(0);
    assert_eq!(sent.body, b"{\"pieces\": 2}");
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.header("idempotency-key"), Some("k1"));

    let answer = json_of(&[&meant[..], &["--json"]].concat());
    assert_eq!(answer["status"], 201);
    assert_eq!(answer["body"], json!({"order": 7}));
    assert_eq!(answer["headers"]["location"], json!(["/orders/7"]));

    let out = home.path().join("answer");
    ok(&[&meant[..], &["--output", out.to_str().unwrap()]].concat());
    assert_eq!(fs::read(out).unwrap(), b"{\"order\":7}\n");
}

#[test]
fn standard_input_is_an_input() {
    let fake = shop("https://docs.example".to_owned());
    let command = agent(&["invoke", &fake.url, "lamp", "buy", "--input", "-", "--yes"]);
    e2e::binary::feed(command, b"{\"pieces\": 3}");
    assert_eq!(fake.requests_for("/buy").remove(0).body, b"{\"pieces\": 3}");
}

#[test]
fn what_does_not_fit_is_not_sent() {
    let fake = shop("https://docs.example".to_owned());
    let home = TempDir::new().unwrap();
    let input = home.path().join("order.json");
    fs::write(&input, "{\"pieces\": \"two\"}").unwrap();
    let said = fails(
        2,
        &[
            "invoke",
            &fake.url,
            "lamp",
            "buy",
            "--yes",
            "--input",
            input.to_str().unwrap(),
        ],
    );
    assert!(
        said.contains("--input: Does not fit its schema: type. (/pieces)"),
        "{said}"
    );
    let said = fails(2, &["invoke", &fake.url, "lamp", "buy", "--yes"]);
    assert!(said.contains("needs a body"), "{said}");
    let said = fails(2, &["invoke", &fake.url, "lamp", "order", "--yes"]);
    assert!(said.contains("--param place: Is needed."), "{said}");
    let said = fails(
        2,
        &[
            "invoke", &fake.url, "lamp", "buy", "--yes", "--input", "/nowhere",
        ],
    );
    assert!(said.contains("--input /nowhere"), "{said}");
    let said = fails(4, &["invoke", &fake.url, "lamp", "sell", "--yes"]);
    assert!(said.contains("lamp has no action sell"), "{said}");
    assert!(said.contains("it has buy, order, manual"), "{said}");
    for request in fake.requests() {
        assert_eq!(request.method, "GET", "{}", request.target);
    }
}

#[test]
fn parameters_and_bytes_are_what_the_document_says() {
    let fake = shop("https://docs.example".to_owned());
    let arguments = [
        "invoke",
        &fake.url,
        "lamp",
        "order",
        "--yes",
        "--param",
        "place=a b/c",
        "--param",
        "tag=x",
        "--param",
        "tag=y",
    ];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, [0, 159, 146, 150], "to a pipe, as they came");
    let sent: Vec<String> = fake
        .requests()
        .into_iter()
        .filter(|r| r.method == "PUT")
        .map(|r| r.target)
        .collect();
    assert_eq!(sent, ["/order/a%20b%2Fc?tag=x&tag=y"]);
    let answer = json_of(&[&arguments[..], &["--json"]].concat());
    assert_eq!(
        (&answer["body"], &answer["bytes"]),
        (&json!(null), &json!(4))
    );
}

#[test]
fn a_token_stays_with_its_service() {
    let fake = shop("https://docs.example".to_owned());
    let output = agent(&[
        "invoke", &fake.url, "lamp", "order", "--yes", "--param", "place=x",
    ])
    .env("PURVEY_TOKEN", "secret-token")
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for request in fake.requests() {
        let supporting =
            request.target == "/openapi.json" || request.target.starts_with("/schemas");
        let expected = (!supporting).then_some("Bearer secret-token");
        assert_eq!(
            request.header("authorization"),
            expected,
            "{}",
            request.target
        );
    }
}
