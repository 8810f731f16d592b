//! Responses that are whole, and mean something else than they should: media types, problems, challenges.

use super::transport_support::{ODP, Server, Step, document, fetch, local, page, response};
use super::{Case, run};
use http::HeaderValue;
use purvey_agent::challenge::Demand;
use purvey_agent::transport::{Class, Fetch};
use purvey_agent::{Code, Error};
use purvey_odp::problem;
use std::time::Duration;

fn typed(media: &str) -> Vec<Step> {
    response("200 OK", &[("Content-Type", media)], b"{}")
}

#[tokio::test(flavor = "multi_thread")]
async fn media_types_are_held_to() {
    let mut cases = vec![
        Case::steps(
            "parameters of a document",
            typed("application/odp+json; charset=utf-8; version=9"),
        )
        .gives("{}"),
        Case::steps("a document in capitals", typed("Application/ODP+JSON")).gives("{}"),
        Case::steps("a schema", typed("application/schema+json;x=y"))
            .class(Class::AttributeSchema)
            .gives("{}"),
        Case::steps(
            "OpenAPI 3.1",
            typed("application/vnd.oai.openapi+json;version=3.1"),
        )
        .class(Class::OpenApi)
        .gives("{}"),
        Case::steps(
            "OpenAPI 3.1 quoted",
            typed("application/vnd.oai.openapi+json; version=\"3.1\""),
        )
        .class(Class::OpenApi)
        .gives("{}"),
        Case::steps("OpenAPI as JSON", typed("application/json; charset=utf-8"))
            .class(Class::OpenApi)
            .gives("{}"),
        Case::steps("a png", typed("image/png"))
            .class(Class::Image)
            .gives("{}"),
        Case::steps("an action's response of any kind", typed("text/html"))
            .class(Class::Invoke)
            .gives("{}"),
        Case::steps(
            "an action's response of no kind",
            response("200 OK", &[], b"{}"),
        )
        .class(Class::Invoke)
        .gives("{}"),
    ];
    for (name, steps, class) in [
        ("a document as JSON", typed("application/json"), Class::Page),
        (
            "a document as text",
            typed("text/plain"),
            Class::ServiceDocument,
        ),
        (
            "a document as a problem",
            typed("application/problem+json"),
            Class::Offering,
        ),
        (
            "a document as a schema",
            typed("application/schema+json"),
            Class::Collection,
        ),
        (
            "a document of no kind",
            response("200 OK", &[], b"{}"),
            Class::Page,
        ),
        (
            "a document of two kinds",
            response("200 OK", &[ODP, ODP], b"{}"),
            Class::Page,
        ),
        (
            "a document of two kinds in one field",
            typed("application/odp+json, text/html"),
            Class::Search,
        ),
        (
            "a malformed kind",
            typed("application/odp+json; charset"),
            Class::Definitions,
        ),
        (
            "a login page",
            response("200 OK", &[("Content-Type", "text/html")], b"<html>"),
            Class::Page,
        ),
        (
            "a schema as JSON",
            typed("application/json"),
            Class::AttributeSchema,
        ),
        (
            "a schema as a document",
            typed("application/odp+json"),
            Class::AttributeSchema,
        ),
        (
            "OpenAPI without version",
            typed("application/vnd.oai.openapi+json"),
            Class::OpenApi,
        ),
        (
            "OpenAPI 3.0",
            typed("application/vnd.oai.openapi+json;version=3.0"),
            Class::OpenApi,
        ),
        (
            "OpenAPI as YAML",
            typed("application/vnd.oai.openapi;version=3.1"),
            Class::OpenApi,
        ),
        ("an image as a page", typed("text/html"), Class::Image),
        ("a gif", typed("image/gif"), Class::Image),
    ] {
        cases.push(
            Case::steps(name, steps)
                .class(class)
                .fails_with(Code::UnexpectedMediaType, 200),
        );
    }
    run(cases).await;
}

const PROBLEM: (&str, &str) = ("Content-Type", "application/problem+json");

async fn failure(steps: Vec<Step>) -> Error {
    let server = Server::start(move |_, _| steps.clone()).await;
    let transport = local().build().unwrap();
    fetch(&transport, page(server.url("/"))).await.unwrap_err()
}

#[tokio::test]
async fn a_problem_is_told_whole() {
    let body = br#"{"type":"https://offeringprotocol.org/problems/invalid-request","title":"Invalid request","status":400,
        "code":"INVALID_REQUEST","detail":"No.","future":1,"invalid_params":[
        {"in":"query","name":"limit","reason":"Too many."},{"in":"cookie","name":"x","reason":"Later."}]}"#;
    let error = failure(response(
        "400 Bad",
        &[PROBLEM, ("X-Request-Id", "r-1")],
        body,
    ))
    .await;
    assert_eq!(*error.code(), Code::Problem(problem::Code::InvalidRequest));
    assert_eq!(error.code().as_str(), "INVALID_REQUEST");
    assert_eq!((error.status(), error.message()), (Some(400), "No."));
    assert_eq!(error.request_id(), Some("r-1"));
    let params: Vec<_> = error
        .invalid_params()
        .iter()
        .map(|param| (param.name(), param.reason()))
        .collect();
    assert_eq!(params, [("limit", "Too many.")]);
    assert!(!error.retryable());
    assert_eq!(error.problem().unwrap().title(), "Invalid request");
    assert_eq!(error.to_string(), "INVALID_REQUEST: No.");
}

#[tokio::test]
async fn an_unknown_code_means_its_status() {
    let body = |status: u16| {
        format!(
            r#"{{"type":"https://offeringprotocol.org/problems/on-fire","title":"On fire","status":{status},"code":"ON_FIRE"}}"#
        )
    };
    let error = failure(response("409 Conflict", &[PROBLEM], body(409).as_bytes())).await;
    assert_eq!(
        (error.code().as_str(), error.status(), error.retryable()),
        ("ON_FIRE", Some(409), false)
    );
    let told = response(
        "429 Wait",
        &[PROBLEM, ("Retry-After", "60")],
        body(429).as_bytes(),
    );
    let error = failure(told).await;
    assert_eq!(
        (error.code().as_str(), error.retryable()),
        ("ON_FIRE", true)
    );
    assert_eq!(error.retry_after(), Some(Duration::from_secs(60)));
}

#[tokio::test]
async fn a_bad_problem_does_not_lose_the_status() {
    let large = format!(
        r#"{{"type":"https://offeringprotocol.org/problems/not-found","title":"x","status":404,"code":"NOT_FOUND","x":"{}"}}"#,
        "x".repeat(16_384)
    );
    let good = r#"{"type":"https://offeringprotocol.org/problems/not-found","title":"x","status":404,"code":"NOT_FOUND"}"#;
    let deep = format!("{}{}", "[".repeat(17), "]".repeat(17));
    for (name, fields, body) in [
        ("too large", [PROBLEM], large.as_str()),
        ("malformed", [PROBLEM], "{"),
        ("empty", [PROBLEM], ""),
        ("no object", [PROBLEM], "[]"),
        ("too deep", [PROBLEM], deep.as_str()),
        ("a member twice", [PROBLEM], r#"{"code":"A","code":"B"}"#),
        (
            "no code",
            [PROBLEM],
            r#"{"type":"about:blank","title":"x","status":404}"#,
        ),
        ("another status", [PROBLEM], &good.replace("404", "400")),
        (
            "another type",
            [PROBLEM],
            &good.replace("not-found", "not-here"),
        ),
        ("plain JSON", [("Content-Type", "application/json")], good),
        ("a document", [ODP], good),
        (
            "a page for people",
            [("Content-Type", "text/html")],
            "<h1>Not found</h1>",
        ),
        ("an unknown coding", [("Content-Encoding", "aes")], good),
    ] {
        let error = failure(response("404 Not Found", &fields, body.as_bytes())).await;
        assert_eq!(
            (error.code(), error.status()),
            (&Code::Status, Some(404)),
            "{name}"
        );
        assert!(error.problem().is_none(), "{name}");
        assert!(error.message().contains("404"), "{name}");
    }
    let cut = vec![
        Step::Send(super::transport_support::head(
            "410 Gone",
            &[PROBLEM, ("Content-Length", "100")],
        )),
        Step::Send(good.as_bytes().to_vec()),
        Step::Close,
    ];
    assert_eq!(failure(cut).await.status(), Some(410));
}

#[tokio::test]
async fn request_ids_are_bounded() {
    for id in [&"x".repeat(129), "caf\u{e9}", ""] {
        let error = failure(response("404 Not Found", &[("X-Request-Id", id)], b"")).await;
        assert_eq!(error.request_id(), None, "{id:?}");
    }
}

#[tokio::test]
async fn challenges_come_as_they_are() {
    let aep =
        "AEP service_did=\"did:web:a.example\", inspect=\"https://a.example/.well-known/aep\"";
    let mpp = "Bearer realm=\"x, Payment y\", Payment realm=\"a.example\", id=\"1\"";
    for (status, fields, demands) in [
        ("401 No", vec![("WWW-Authenticate", aep)], vec![Demand::Aep]),
        (
            "402 Pay",
            vec![("WWW-Authenticate", mpp)],
            vec![Demand::Mpp],
        ),
        (
            "402 Pay",
            vec![("PAYMENT-REQUIRED", "e30=")],
            vec![Demand::X402],
        ),
        (
            "402 Pay",
            vec![("payment-required", "e30="), ("WWW-Authenticate", mpp)],
            vec![Demand::Mpp, Demand::X402],
        ),
        (
            "401 No",
            vec![
                ("WWW-Authenticate", "Basic realm=\"AEP x\""),
                ("WWW-Authenticate", "aep"),
            ],
            vec![Demand::Aep],
        ),
        // A scheme means its protocol only with its status.
        ("401 No", vec![("WWW-Authenticate", mpp)], vec![]),
        ("402 Pay", vec![("WWW-Authenticate", aep)], vec![]),
        ("401 No", vec![], vec![]),
        ("401 No", vec![("WWW-Authenticate", ",,=\"\\")], vec![]),
    ] {
        let error = failure(response(status, &fields, b"")).await;
        assert_eq!(error.demands(), demands, "{status} {fields:?}");
        let mut values: Vec<_> = error
            .challenges()
            .iter()
            .map(|challenge| challenge.value().clone())
            .collect();
        let mut sent: Vec<_> = fields
            .iter()
            .map(|(_, value)| HeaderValue::from_str(value).unwrap())
            .collect();
        values.sort();
        sent.sort();
        assert_eq!(values, sent);
        assert!(!error.retryable());
    }
    // Other statuses challenge nobody.
    let other = response(
        "403 No",
        &[("WWW-Authenticate", aep), ("PAYMENT-REQUIRED", "e30=")],
        b"",
    );
    assert!(failure(other).await.challenges().is_empty());
    // Nor does success.
    let server =
        Server::start(move |_, _| response("200 OK", &[ODP, ("WWW-Authenticate", aep)], b"{}"))
            .await;
    let transport = local().build().unwrap();
    assert!(fetch(&transport, page(server.url("/"))).await.is_ok());
}

#[tokio::test]
async fn what_is_no_read_is_not_sent() {
    let server = Server::start(|_, _| document(b"{}")).await;
    let transport = local().build().unwrap();
    let mut requests = vec![
        Fetch::post(server.url("/"), Class::Page, "{}".into()),
        Fetch::post(server.url("/"), Class::AttributeSchema, "{}".into()),
    ];
    let mut deletion = page(server.url("/"));
    deletion.method = http::Method::DELETE;
    requests.push(deletion);
    let mut language = page(server.url("/"));
    language.accept_language = Some("de\r\nX-Evil: 1".to_owned());
    requests.push(language);
    for name in [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "accept-encoding",
    ] {
        let mut action = Fetch::get(server.url("/"), Class::Invoke);
        let name = http::HeaderName::from_static(name);
        action.headers.insert(name, HeaderValue::from_static("1"));
        requests.push(action);
    }
    for request in requests {
        let shown = format!("{request:?}");
        let error = fetch(&transport, request).await.expect_err(&shown);
        assert_eq!(*error.code(), Code::InvalidRequest, "{shown}");
    }
    assert_eq!(server.requests(), 0);
}
