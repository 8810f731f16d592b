//! Who asks counts: tokens, contexts, and that an outsider cannot tell what is hidden.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use axum::{Router, body::Body};
use common::{Answer, config, request};
use http::Method;
use purvey_catalog::catalog::{Catalog, Change, Options, Precondition};
use purvey_catalog::clock::ManualClock;
use purvey_catalog::manifest::Manifest;
use purvey_catalog::tokens::{NewToken, Tokens};
use purvey_odp::identity::ResourceType::{self, Collection, Offering};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tower::ServiceExt;

const MANIFEST: &str = r#"
[service]
name = "Lamps"
description = "Lamps and bulbs."
language = "en"
"#;

struct Service {
    router: Router,
    catalog: Catalog,
    directory: TempDir,
}

impl Service {
    fn new(manifest: &str, records: Vec<(ResourceType, Value)>) -> Self {
        Self::with(Options::default(), manifest, records)
    }

    fn with(options: Options, manifest: &str, records: Vec<(ResourceType, Value)>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(directory.path(), options).unwrap();
        let manifest = Manifest::parse(manifest, Path::new(".")).unwrap();
        catalog.set_manifest(&manifest).unwrap();
        let service = Self {
            router: purvey_server::router(catalog.clone(), config()),
            catalog,
            directory,
        };
        service.put(records);
        service
    }

    fn put(&self, records: Vec<(ResourceType, Value)>) {
        let changes = records
            .into_iter()
            .map(|(kind, value)| Change { kind, value });
        for result in self.catalog.put_many(changes.collect()) {
            result.unwrap();
        }
        self.catalog.publish().unwrap();
    }

    fn tokens(&self) -> Tokens {
        Tokens::open(self.directory.path(), &Options::default()).unwrap()
    }

    fn token(&self, audience: &str) -> String {
        let new = NewToken {
            audiences: vec![audience.to_owned()],
            ..NewToken::default()
        };
        self.tokens().create(new).unwrap().secret
    }

    async fn get(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let request = request(Method::GET, path, fields, Body::empty());
        Answer::of(self.router.clone().oneshot(request).await.unwrap()).await
    }

    async fn as_bearer(&self, path: &str, token: &str) -> Answer {
        let credentials = format!("Bearer {token}");
        self.get(path, &[("authorization", &credentials)]).await
    }
}

/// What everybody sees.
fn public() -> Vec<(ResourceType, Value)> {
    let mut records = vec![
        (Collection, json!({"id": "lamps", "name": "Lamps"})),
        (
            Collection,
            json!({"id": "desk", "name": "Desk", "parent_ids": ["lamps"]}),
        ),
    ];
    for number in 0..10 {
        let mut value = json!({
            "id": format!("lamp-{number}"), "name": "Lamp", "description": "A lamp.",
            "collection_ids": ["lamps"],
        });
        if number == 3 {
            value["translations"] = json!({"de": {"name": "Lampe"}});
        }
        records.push((Offering, value));
    }
    records
}

/// The same, among much that is for staff.
fn crowded() -> Vec<(ResourceType, Value)> {
    let audience = json!(["staff"]);
    let mut records = public();
    for id in ["attic", "zoo"] {
        let value =
            json!({"id": id, "name": "Inner", "parent_ids": ["lamps"], "audience": audience});
        records.insert(1, (Collection, value));
    }
    for (kind, value) in &mut records {
        match (*kind, value["id"].as_str().unwrap()) {
            (Collection, "desk") => value["parent_ids"] = json!(["attic", "lamps"]),
            (Offering, "lamp-3" | "lamp-4") => {
                value["collection_ids"] = json!(["attic", "lamps", "zoo"]);
            }
            _ => {}
        }
    }
    for number in 0..25 {
        let value = json!({
            "id": format!("lamp-{number}x"), "name": "Lamp", "audience": audience,
            "collection_ids": ["lamps", "attic"], "language": "tlh",
            "translations": {"fr": {"name": "Lampe"}},
        });
        records.push((Offering, value));
    }
    records
}

/// The body without its continuation, and the path of that.
fn parted(answer: &Answer) -> (String, Option<String>) {
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let parts = text.split_once("\"next\":\"").map(|(before, after)| {
        let (next, rest) = after.split_once('"').unwrap();
        (format!("{before}{rest}"), Some(next.to_owned()))
    });
    parts.unwrap_or((text, None))
}

#[tokio::test]
async fn an_outsider_cannot_tell_what_is_hidden() {
    let plain = Service::new(MANIFEST, public());
    let crowded = Service::new(MANIFEST, crowded());
    let mut paths: Vec<String> = [
        "/.well-known/odp",
        "/odp/collections",
        "/odp/collections/lamps",
        "/odp/collections/desk",
        "/odp/collections/desk?representation=terse",
        "/odp/collections/attic",
        "/odp/collections/attic/offerings",
        "/odp/collections/zoo?representation=terse",
        "/odp/collections/nowhere",
        "/odp/collections/lamps/offerings?limit=3",
        "/odp/collections/lamps/offerings?representation=full&limit=100",
        "/odp/offerings?limit=4",
        "/odp/offerings?limit=4&representation=full",
        "/odp/offerings/lamp-0x",
        "/odp/offerings/lamp-0y",
        "/odp/offerings?limit=0",
        "/odp/offerings?cursor=x",
    ]
    .map(str::to_owned)
    .to_vec();
    for number in 0..10 {
        paths.push(format!("/odp/offerings/lamp-{number}"));
        paths.push(format!("/odp/offerings/lamp-{number}?representation=terse"));
    }
    for language in ["", "de", "tlh", "fr, tlh;q=0.5"] {
        let fields = [("accept-language", language)];
        for path in &paths {
            let (mut here, mut there) = (path.clone(), path.clone());
            loop {
                let one = plain.get(&here, &fields).await;
                let other = crowded.get(&there, &fields).await;
                assert_eq!(one.status, other.status, "{path} {language}");
                let ((text, next), (same, also)) = (parted(&one), parted(&other));
                assert_eq!(text, same, "{path} {language}");
                for (name, value) in &one.headers {
                    // A cursor differs, and with it the tag of its page.
                    if name == "x-request-id" || (next.is_some() && name == "etag") {
                        continue;
                    }
                    assert_eq!(other.headers.get(name), Some(value), "{path} {name}");
                }
                assert_eq!(one.headers.len(), other.headers.len(), "{path}");
                match (next, also) {
                    (None, None) => break,
                    (Some(next), Some(also)) => {
                        assert_eq!(next.len(), also.len());
                        (here, there) = (next, also);
                    }
                    other => panic!("{path}: {other:?}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn what_is_hidden_changes_and_an_outsiders_tags_do_not() {
    let service = Service::new(MANIFEST, crowded());
    let paths = [
        "/odp/offerings?limit=100",
        "/odp/collections?limit=100",
        "/odp/offerings/lamp-3",
        "/odp/collections/desk",
    ];
    let mut before = Vec::new();
    for path in paths {
        before.push(service.get(path, &[]).await);
    }
    service.put(vec![(
        Offering,
        json!({"id": "lamp-77", "name": "New", "audience": ["staff"], "collection_ids": ["zoo"]}),
    )]);
    let deleted = service
        .catalog
        .delete(Offering, "lamp-2x", Precondition::None, false);
    deleted.unwrap();
    service.catalog.publish().unwrap();
    for (path, before) in paths.iter().zip(before) {
        let after = service.get(path, &[]).await;
        assert_eq!(after.body, before.body, "{path}");
        let tag = before.header("etag").to_owned();
        assert_eq!(after.header("etag"), tag);
        let again = service.get(path, &[("if-none-match", &tag)]).await;
        assert_eq!(again.status, 304);
    }
}

#[tokio::test]
async fn a_bearer_sees_more_and_keeps_it_out_of_shared_caches() {
    let service = Service::new(MANIFEST, crowded());
    let token = service.token("staff");
    let path = "/odp/collections/attic/offerings?limit=100";
    assert_eq!(service.get(path, &[]).await.status, 404);
    let seen = service.as_bearer(path, &token).await;
    assert_eq!(seen.status, 200);
    assert_eq!(seen.json()["items"].as_array().unwrap().len(), 27);
    assert_eq!(seen.header("cache-control"), "private");
    let tag = seen.header("etag").to_owned();
    let credentials = format!("bearer {token}");
    let fields = [
        ("authorization", credentials.as_str()),
        ("if-none-match", tag.as_str()),
    ];
    let again = service.get(path, &fields).await;
    assert_eq!(again.status, 304);
    assert_eq!(again.header("cache-control"), "private");
    for path in [
        "/odp/offerings",
        "/odp/offerings/lamp-3",
        "/odp/collections/desk",
    ] {
        let (outside, inside) = (
            service.get(path, &[]).await,
            service.as_bearer(path, &token).await,
        );
        for answer in [&outside, &inside] {
            assert!(answer.header("vary").contains("Authorization"), "{path}");
        }
        assert_eq!(outside.header("cache-control"), "");
        assert_ne!(outside.header("etag"), inside.header("etag"), "{path}");
        assert!(!inside.body.windows(8).any(|part| part == b"audience"));
    }
    // A token for others shows what is public, and no more.
    let other = service.token("trade");
    let seen = service.as_bearer("/odp/offerings?limit=100", &other).await;
    assert_eq!(seen.json()["items"].as_array().unwrap().len(), 10);
}

#[tokio::test]
async fn whatever_lets_nobody_in_is_401() {
    let service = Service::new(MANIFEST, public());
    let token = service.token("staff");
    let paths = [
        "/odp/offerings",
        "/odp/collections",
        "/odp/collections/lamps",
        "/odp/collections/lamps/offerings",
        "/odp/offerings/lamp-1",
        "/odp/offerings/nothing",
    ];
    let presented = [
        (
            "Bearer pvc_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned(),
            true,
        ),
        (format!("Bearer {token}x"), true),
        (format!("Bearer {}", common::TOKEN), true),
        (format!("Basic {token}"), false),
        (token.clone(), false),
        ("Bearer ".to_owned(), false),
        (String::new(), false),
    ];
    for path in paths {
        for (credentials, is_token) in &presented {
            let answer = service.get(path, &[("authorization", credentials)]).await;
            answer.assert_problem(401, "NOT_AUTHENTICATED");
            let challenge = match is_token {
                true => "Bearer error=\"invalid_token\"",
                false => "Bearer",
            };
            assert_eq!(
                answer.header("www-authenticate"),
                challenge,
                "{credentials}"
            );
            assert_eq!(answer.header("cache-control"), "no-store");
        }
        let good = format!("Bearer {token}");
        let twice = [("authorization", good.as_str()), ("authorization", &good)];
        let answer = service.get(path, &twice).await;
        answer.assert_problem(401, "NOT_AUTHENTICATED");
    }
    // What is the same for everybody is not refused to anybody.
    let answer = service.as_bearer("/.well-known/odp", "nothing").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("vary"),
        "Accept, Accept-Encoding, Accept-Language"
    );
}

#[tokio::test]
async fn a_revoked_token_ends_its_traversal_and_cursors_are_not_passed_on() {
    let service = Service::new(MANIFEST, crowded());
    let (staff, trade) = (service.token("staff"), service.token("trade"));
    let page = service.as_bearer("/odp/offerings?limit=5", &staff).await;
    let next = page.json()["next"].as_str().unwrap().to_owned();
    assert_eq!(service.as_bearer(&next, &staff).await.status, 200);
    for answer in [
        service.get(&next, &[]).await,
        service.as_bearer(&next, &trade).await,
    ] {
        answer.assert_problem(400, "INVALID_REQUEST");
        assert_eq!(
            answer.json()["invalid_params"],
            json!([{"in": "query", "name": "cursor", "reason": "Must be one that this operation issued."}])
        );
    }
    let outside = service.get("/odp/offerings?limit=5", &[]).await;
    let outside = outside.json()["next"].as_str().unwrap().to_owned();
    let answer = service.as_bearer(&outside, &staff).await;
    answer.assert_problem(400, "INVALID_REQUEST");
    service.tokens().revoke(&staff).unwrap();
    let answer = service.as_bearer(&next, &staff).await;
    answer.assert_problem(401, "NOT_AUTHENTICATED");
    // Another token of the same audience goes on.
    let again = service.token("staff");
    assert_eq!(service.as_bearer(&next, &again).await.status, 200);
}

#[tokio::test]
async fn an_operation_that_wants_authentication_gets_it() {
    let manifest = format!(
        "{MANIFEST}protocols = {{ enrollment = [{{ name = \"aep\" }}] }}\nauth_expands = [\"list-offerings\"]\n\
         authentication = {{ get-offering = \"required\", list-offerings = \"optional\" }}\n"
    );
    let service = Service::new(&manifest, crowded());
    let token = service.token("staff");
    let answer = service.get("/odp/offerings/lamp-1", &[]).await;
    answer.assert_problem(401, "NOT_AUTHENTICATED");
    let challenges: Vec<_> = answer.headers.get_all("www-authenticate").iter().collect();
    assert_eq!(challenges, ["Bearer", "AEP"]);
    // Whether it exists is not told either.
    let absent = service.get("/odp/offerings/nothing", &[]).await;
    absent.assert_problem(401, "NOT_AUTHENTICATED");
    assert_eq!(absent.body, answer.body);
    assert_eq!(
        service
            .as_bearer("/odp/offerings/lamp-1", &token)
            .await
            .status,
        200
    );
    let outside = service.get("/odp/offerings", &[]).await;
    assert_eq!(outside.json()["auth_expands"], true);
    let inside = service.as_bearer("/odp/offerings", &token).await;
    assert_eq!(inside.json().get("auth_expands"), None);
    let members = service.get("/odp/collections/lamps/offerings", &[]).await;
    assert_eq!(members.json().get("auth_expands"), None);
    let document = service.get("/.well-known/odp", &[]).await.json();
    let operations = document["operations"].as_array().unwrap();
    let wanted = |name: &str| {
        let mut found = operations.iter().filter(|entry| entry["name"] == name);
        found.next().unwrap()["authentication"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(wanted("get-offering"), "required");
    assert_eq!(wanted("list-offerings"), "optional");
    assert_eq!(wanted("list-collections"), "not-required");
}

#[tokio::test]
async fn a_hidden_write_changes_no_entity_tag() {
    let options = Options {
        clock: Arc::new(ManualClock::new(1_800_000_001)),
        ..Options::default()
    };
    let service = Service::with(options, MANIFEST, crowded());
    let path = "/odp/offerings?limit=3";
    let first = service.get(path, &[]).await;
    assert!(first.json()["next"].is_string());
    let tag = first.header("etag").to_owned();
    let hidden = |id: &str| {
        let value = json!({"id": id, "name": "Lamp", "audience": ["staff"]});
        vec![(Offering, value)]
    };
    for id in ["a", "lamp-1a", "z"] {
        service.put(hidden(id));
        let again = service.get(path, &[("if-none-match", &tag)]).await;
        assert_eq!(again.status, 304, "{id}");
        assert_eq!(again.header("etag"), tag);
    }
    service.put(vec![(Offering, json!({"id": "z", "name": "Lamp"}))]);
    let again = service.get(path, &[("if-none-match", &tag)]).await;
    assert_eq!(again.status, 200);
    assert_ne!(again.header("etag"), tag);
}
