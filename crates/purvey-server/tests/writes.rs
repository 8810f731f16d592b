//! The operator's writes, rule by rule, without sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use axum::body::Body;
use bytes::Bytes;
use common::{Answer, Service, TOKEN, config, lamp, request};
use http::Method;
use serde_json::{Value, json};

const LAMP: &str = "/v1/catalog/offerings/lamp-01";

fn bearer() -> String {
    format!("Bearer {TOKEN}")
}

async fn write(
    service: &Service,
    method: Method,
    path: &str,
    fields: &[(&str, &str)],
    body: impl Into<Body>,
) -> Answer {
    let bearer = bearer();
    let mut all = vec![("authorization", bearer.as_str())];
    all.extend_from_slice(fields);
    service.send(request(method, path, &all, body.into())).await
}

async fn put(service: &Service, path: &str, fields: &[(&str, &str)], value: &Value) -> Answer {
    let fields = [&[("content-type", "application/odp+json")], fields].concat();
    write(service, Method::PUT, path, &fields, value.to_string()).await
}

#[tokio::test]
async fn a_written_record_is_served_once_published() {
    let service = Service::new();
    service.catalog.start_indexer().unwrap();
    let new = lamp(77);
    let answer = put(
        &service,
        "/v1/catalog/offerings/lamp-77?wait=published",
        &[],
        &new,
    )
    .await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.header("location"), "/v1/catalog/offerings/lamp-77");
    let receipt = answer.json();
    assert_eq!(receipt["kind"], "offering");
    assert_eq!(receipt["id"], "lamp-77");
    assert_eq!(receipt["created"], true);
    assert_eq!(receipt["published"], true);
    assert!(receipt["generation"].as_u64().unwrap() > 0);
    assert_eq!(
        answer.header("etag"),
        format!("\"{}\"", receipt["revision"])
    );
    assert_eq!(service.get("/odp/offerings/lamp-77").await.status, 200);

    let gone = write(
        &service,
        Method::DELETE,
        "/v1/catalog/offerings/lamp-77?wait=published",
        &[],
        "",
    )
    .await;
    assert_eq!(gone.status, 200);
    service
        .get("/odp/offerings/lamp-77")
        .await
        .assert_problem(404, "NOT_FOUND");
    let again = write(
        &service,
        Method::DELETE,
        "/v1/catalog/offerings/lamp-77",
        &[],
        "",
    )
    .await;
    again.assert_failure(404, "resource.not_found");
    service.catalog.shutdown();
}

#[tokio::test]
async fn a_write_is_told_what_may_be_a_typing_error() {
    let service = Service::new();
    let doubtful = json!({"id": "d", "name": "D", "descripton": "x", "price": {"type": "free", "amount": "1"}});
    let answer = put(&service, "/v1/catalog/offerings/d", &[], &doubtful).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let warnings = answer.json()["warnings"].clone();
    assert_eq!(warnings[0]["pointer"], "/descripton");
    assert_eq!(warnings[1]["pointer"], "/price/amount");
    assert!(warnings[1]["reason"].as_str().unwrap().contains("free"));
    assert_eq!(warnings.as_array().unwrap().len(), 2);
    let clean = put(&service, "/v1/catalog/offerings/lamp-78", &[], &lamp(78)).await;
    assert_eq!(clean.json().get("warnings"), None);
    let lines = format!("{doubtful}\n{}\n", lamp(79));
    let ndjson = [("content-type", "application/x-ndjson")];
    let stream = write(
        &service,
        Method::POST,
        "/v1/catalog/records",
        &ndjson,
        lines,
    )
    .await;
    let text = String::from_utf8(stream.body.to_vec()).unwrap();
    let results: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(results[0]["warnings"], warnings);
    assert_eq!(results[1].get("warnings"), None);
}

#[tokio::test]
async fn the_token_is_asked_for_first() {
    let service = Service::new();
    for authorization in [
        "",
        "Bearer",
        "Bearer wrong-wrong-wrong-wrong",
        "Basic 0123456789abcdef-operator",
    ] {
        for (method, path) in [
            (Method::PUT, LAMP),
            (Method::DELETE, LAMP),
            (Method::GET, LAMP),
            (Method::POST, "/v1/catalog/records"),
        ] {
            let fields = [
                ("authorization", authorization),
                ("content-type", "text/plain"),
            ];
            let answer = service
                .send(request(method, path, &fields, Body::from("{")))
                .await;
            answer.assert_failure(401, "auth.invalid");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
    let mut open = config();
    open.admin_token = None;
    let closed = Service::with(open);
    put(&closed, LAMP, &[], &lamp(1))
        .await
        .assert_failure(401, "auth.invalid");
    let nobody = request(Method::GET, LAMP, &[], Body::empty());
    let answer = service.send(nobody).await;
    answer.assert_failure(401, "auth.missing");
    assert_eq!(answer.header("www-authenticate"), "Bearer");
    let lower = [("authorization", "bearer 0123456789abcdef-operator")];
    assert_eq!(service.get_with(LAMP, &lower).await.status, 200);
}

#[tokio::test]
async fn failures_come_in_their_order() {
    let mut small = config();
    small.max_record_bytes = 2_000;
    let service = Service::with(small);
    let large = "x".repeat(3_000);
    for media in [
        "text/plain",
        "application/json",
        "application/odp+json, text/plain",
    ] {
        let answer = write(
            &service,
            Method::PUT,
            LAMP,
            &[("content-type", media)],
            large.clone(),
        )
        .await;
        answer.assert_failure(415, "request.unsupported_media_type");
    }
    let none = write(&service, Method::PUT, LAMP, &[], "{}").await;
    none.assert_failure(415, "request.unsupported_media_type");
    let odp = [("content-type", "application/odp+json; charset=utf-8")];
    let declared = write(&service, Method::PUT, LAMP, &odp, large.clone()).await;
    declared.assert_failure(413, "request.too_large");
    let pieces = (0..30).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 100])));
    let streamed = Body::from_stream(futures_util::stream::iter(pieces));
    let streamed = write(&service, Method::PUT, LAMP, &odp, streamed).await;
    streamed.assert_failure(413, "request.too_large");
    // The shape is judged before the id, which no record can have.
    let bad = write(
        &service,
        Method::PUT,
        "/v1/catalog/offerings/a%20b",
        &odp,
        "{",
    )
    .await;
    bad.assert_failure(422, "request.invalid");
    let mut value = lamp(1);
    value["id"] = json!("a b");
    let malformed = put(&service, "/v1/catalog/offerings/a%20b", &[], &value).await;
    malformed.assert_failure(404, "resource.not_found");
}

#[tokio::test]
async fn every_fault_of_a_write_is_placed() {
    let service = Service::new();
    let errors = async |path: &str, fields: &[(&str, &str)], body: &str| {
        let fields = [&[("content-type", "application/odp+json")], fields].concat();
        let answer = write(&service, Method::PUT, path, &fields, body.to_owned()).await;
        answer.assert_failure(422, "request.invalid");
        answer.json()["errors"].clone()
    };
    let both = errors(
        "/v1/catalog/offerings/lamp-01?wait=later",
        &[("if-none-match", "\"1\"")],
        "{\"id\":\"lamp-02\",\"name\":\"x\"}",
    )
    .await;
    let places: Vec<(&str, &str)> = both
        .as_array()
        .unwrap()
        .iter()
        .map(|error| {
            let place = error.get("name").or(error.get("pointer")).unwrap();
            (error["in"].as_str().unwrap(), place.as_str().unwrap())
        })
        .collect();
    assert_eq!(
        places,
        [
            ("query", "wait"),
            ("header", "If-None-Match"),
            ("body", "/id")
        ]
    );
    let twice = errors(LAMP, &[], "{\"id\":\"lamp-01\",\"a\":{\"b\":1,\"b\":2}}").await;
    assert_eq!(twice[0]["pointer"], "/a/b");
    let array = errors(LAMP, &[], "[]").await;
    assert_eq!(array[0]["pointer"], "");
    let rule = errors(LAMP, &[], "{\"id\":\"lamp-01\"}").await;
    assert_eq!(rule[0]["in"], "body");
    let schema = errors(
        LAMP,
        &[],
        "{\"id\":\"lamp-01\",\"name\":\"x\",\"schema\":{\"url\":\"/schemas/lamp.json\"},\"attributes\":{\"watts\":\"many\"}}",
    )
    .await;
    assert_eq!(schema[0]["pointer"], "/attributes/watts");
}

#[tokio::test]
async fn revisions_guard_against_lost_updates() {
    let service = Service::new();
    let bearer = bearer();
    let authorized = [("authorization", bearer.as_str())];
    let stored = service.get_with(LAMP, &authorized).await;
    assert_eq!(stored.status, 200);
    assert_eq!(stored.header("content-type"), "application/odp+json");
    assert_eq!(stored.json()["translations"]["de"]["name"], "Lampe 1");
    let tag = stored.header("etag").to_owned();
    let same = [authorized[0], ("if-none-match", tag.as_str())];
    assert_eq!(service.get_with(LAMP, &same).await.status, 304);

    let updated = put(&service, LAMP, &[("if-match", &tag)], &lamp(1)).await;
    assert_eq!(updated.status, 200, "{updated:?}");
    assert_eq!(updated.json()["created"], false);
    let newer = updated.header("etag").to_owned();
    assert_ne!(newer, tag);
    let lost = put(&service, LAMP, &[("if-match", &tag)], &lamp(1)).await;
    lost.assert_failure(412, "state.precondition_failed");
    assert_eq!(lost.header("etag"), newer);
    let either = format!("{tag}, {newer}");
    assert_eq!(
        put(&service, LAMP, &[("if-match", &either)], &lamp(1))
            .await
            .status,
        200
    );
    let weak = format!("W/{newer}");
    put(&service, LAMP, &[("if-match", &weak)], &lamp(1))
        .await
        .assert_failure(412, "state.precondition_failed");
    assert_eq!(
        put(&service, LAMP, &[("if-match", "*")], &lamp(1))
            .await
            .status,
        200
    );

    let exists = put(&service, LAMP, &[("if-none-match", "*")], &lamp(1)).await;
    exists.assert_failure(412, "state.precondition_failed");
    let fresh = "/v1/catalog/offerings/lamp-50";
    let absent = put(&service, fresh, &[("if-match", "*")], &lamp(50)).await;
    absent.assert_failure(412, "state.precondition_failed");
    let created = put(&service, fresh, &[("if-none-match", "*")], &lamp(50)).await;
    assert_eq!(created.status, 201);
    let stale = write(&service, Method::DELETE, fresh, &[("if-match", &tag)], "").await;
    stale.assert_failure(412, "state.precondition_failed");
    let tag = created.header("etag").to_owned();
    let deleted = write(&service, Method::DELETE, fresh, &[("if-match", &tag)], "").await;
    assert_eq!(deleted.status, 200);
}

#[tokio::test]
async fn collections_keep_their_shape() {
    let service = Service::new();
    let path = "/v1/catalog/collections/lamps";
    let held = write(&service, Method::DELETE, path, &[], "").await;
    held.assert_failure(409, "state.conflict");
    let odd = write(
        &service,
        Method::DELETE,
        &format!("{path}?detach=yes"),
        &[],
        "",
    )
    .await;
    odd.assert_failure(422, "request.invalid");
    let cycle = json!({"id": "lamps", "name": "Lamps", "parent_ids": ["desk"]});
    let cycle = put(&service, path, &[], &cycle).await;
    assert!([409, 422].contains(&cycle.status.as_u16()), "{cycle:?}");
    let orphan = json!({"id": "lamp-01", "name": "x", "collection_ids": ["none"]});
    let orphan = put(&service, LAMP, &[], &orphan).await;
    assert!([409, 422].contains(&orphan.status.as_u16()), "{orphan:?}");
    let detached = write(
        &service,
        Method::DELETE,
        &format!("{path}?detach=true"),
        &[],
        "",
    )
    .await;
    assert_eq!(detached.status, 200, "{detached:?}");
    service.catalog.publish().unwrap();
    let lamp = service.get("/odp/offerings/lamp-01").await.json();
    assert!(lamp.get("collection_ids").is_none());
}

#[tokio::test]
async fn a_stream_of_records_gets_a_result_a_line() {
    let service = Service::new();
    let lines = [
        "{\"collection\":{\"id\":\"new\",\"name\":\"New\"}}",
        "",
        "{\"id\":\"in-new\",\"name\":\"x\",\"collection_ids\":[\"new\"]}",
        "{\"id\":\"lamp-01\",\"name\":\"y\"}",
        "{\"id\":\"bad\"}",
        "not json",
        "{\"collection\":{\"id\":\"t\"}}",
        "{\"id\":\"last\",\"name\":\"x\"}",
    ]
    .join("\n");
    let ndjson = [("content-type", "application/x-ndjson")];
    let answer = write(
        &service,
        Method::POST,
        "/v1/catalog/records",
        &ndjson,
        lines,
    )
    .await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let results: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let seen: Vec<(u64, &str)> = results[..7]
        .iter()
        .map(|result| {
            (
                result["line"].as_u64().unwrap(),
                result["status"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (1, "created"),
            (3, "created"),
            (4, "updated"),
            (5, "rejected"),
            (6, "rejected"),
            (7, "rejected"),
            (8, "created")
        ],
        "{text}"
    );
    assert_eq!(results[0]["kind"], "collection");
    assert_eq!(results[1]["id"], "in-new");
    assert_eq!(results[3]["code"], "request.invalid");
    assert_eq!(results[5]["errors"][0]["pointer"], "");
    let summary = &results[7];
    assert_eq!(summary["done"], true);
    assert_eq!(summary["accepted"], 4);
    assert_eq!(summary["rejected"], 3);
    assert_eq!(summary["generation"], results[6]["generation"]);
    service.catalog.publish().unwrap();
    assert_eq!(
        service.get("/odp/collections/new/offerings").await.json()["items"][0]["id"],
        "in-new"
    );
}

#[tokio::test]
async fn a_stream_is_judged_before_it_is_read() {
    let service = Service::new();
    let path = "/v1/catalog/records";
    let json = [("content-type", "application/odp+json")];
    write(&service, Method::POST, path, &json, "{}")
        .await
        .assert_failure(415, "request.unsupported_media_type");
    let ndjson = [("content-type", "application/x-ndjson")];
    write(
        &service,
        Method::POST,
        "/v1/catalog/records?wait=forever",
        &ndjson,
        "",
    )
    .await
    .assert_failure(422, "request.invalid");
}

#[tokio::test]
async fn what_is_not_there_has_the_same_form() {
    let service = Service::new();
    for path in [
        "/v1",
        "/v1/",
        "/v1/none",
        "/v1/catalog",
        "/v1/problems/none",
    ] {
        service
            .get(path)
            .await
            .assert_failure(404, "resource.not_found");
    }
    for (path, code) in [
        ("/v1/catalog/things/a", "resource.not_found"),
        ("/v1/catalog/offerings/%ff", "resource.not_found"),
        ("/v1/catalog/offerings/none", "resource.not_found"),
    ] {
        let answer = write(&service, Method::GET, path, &[], "").await;
        answer.assert_failure(404, code);
    }
    let post = write(&service, Method::POST, LAMP, &[], "{}").await;
    post.assert_failure(405, "request.method_not_allowed");
    assert!(post.header("allow").contains("PUT"));
    let page = service.get("/v1/problems/resource.not_found").await;
    assert_eq!(page.status, 200);
    assert!(String::from_utf8_lossy(&page.body).contains("resource.not_found"));
}

#[tokio::test]
async fn a_coded_body_is_refused_by_name() {
    let service = Service::new();
    for (coding, refused) in [
        ("gzip", true),
        ("identity, br", true),
        ("identity", false),
        ("", false),
    ] {
        let fields = [("content-encoding", coding)];
        let answer = put(&service, LAMP, &fields, &lamp(1)).await;
        let lines = write(
            &service,
            Method::POST,
            "/v1/catalog/records",
            &[("content-type", "application/x-ndjson"), fields[0]],
            lamp(1).to_string(),
        )
        .await;
        if refused {
            for answer in [answer, lines] {
                answer.assert_failure(415, "request.unsupported_media_type");
                let detail = answer.json()["detail"].as_str().unwrap().to_owned();
                let named = coding.rsplit(' ').next().unwrap();
                assert!(detail.contains(named), "{detail}");
            }
        } else {
            assert_eq!((answer.status.as_u16(), lines.status.as_u16()), (200, 200));
        }
    }
}
