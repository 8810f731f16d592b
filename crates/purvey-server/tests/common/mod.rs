//! A small catalog in two languages, and requests to it without sockets.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "shared by test programs that each use a part"
)]

pub mod log;
pub mod search;

use axum::{Router, body::Body};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use purvey_catalog::{
    catalog::{Catalog, Change, Options},
    manifest::Manifest,
};
use purvey_odp::identity::ResourceType;
use purvey_server::{AdminToken, ServerConfig};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;
use tower::ServiceExt;

pub const TOKEN: &str = "0123456789abcdef-operator";

const MANIFEST: &str = r#"
[service]
name = "Lamps"
description = "Lamps and bulbs."
language = "en"
translations = { de = { description = "Lampen." } }
openapi = { url = "/openapi.json", inline = '{"openapi":"3.1.1","paths":{}}' }

[schemas]
"/schemas/lamp.json" = "lamp.json"

[[collections]]
id = "lamps"
name = "Lamps"

[[collections]]
id = "desk"
name = "Desk lamps"
parent_ids = ["lamps"]
"#;

const SCHEMA: &str = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"watts":{"type":"integer"}}}"#;

/// What can be searched for: a filter of each kind of comparison, one of them a Collection's own.
const SEARCHABLE: &str = r#"
[service]
name = "Lamps"
description = "Lamps and bulbs."
language = "en"
translations = { de = { description = "Lampen." } }

[schemas]
"/schemas/lamp.json" = "lamp.json"

[[filters]]
id = "watts"
title = "Power"
description = "Power in watts."
type = "integer"
operators = ["eq", "in", "gte", "lte", "exists"]
refinable = true
path = "/attributes/watts"

[[filters]]
id = "lamp-name"
title = "Name"
description = "The lamp's name."
type = "string"
operators = ["eq"]
path = "/name"

[[sorts]]
id = "strongest"
title = "Strongest"
description = "Watts, largest first."
keys = [{ filter_id = "watts", direction = "descending", missing = "last" }]

[[collections]]
id = "lamps"
name = "Lamps"
description = "All that shines."

[[collections]]
id = "desk"
name = "Desk lamps"
parent_ids = ["lamps"]

  [[collections.filters]]
  id = "reach"
  title = "Reach"
  description = "Reach in centimetres."
  type = "integer"
  operators = ["gte"]
  path = "/attributes/reach"
"#;

/// A service with a catalog of `lamp-00`, `lamp-01` … of which every one is in `lamps`.
pub struct Service {
    pub router: Router,
    pub catalog: Catalog,
    pub directory: TempDir,
}

impl Service {
    pub fn new() -> Self {
        Self::with(config())
    }

    pub fn with(config: ServerConfig) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let catalog = filled(directory.path());
        Self {
            router: purvey_server::router(catalog.clone(), config),
            catalog,
            directory,
        }
    }

    /// The same lamps under a manifest that lets them be searched.
    pub fn searchable(config: ServerConfig) -> Self {
        let service = Self::with(config);
        let manifest = Manifest::parse_embedded(SEARCHABLE, &[("lamp.json", SCHEMA)]).unwrap();
        service.catalog.set_manifest(&manifest).unwrap();
        service.catalog.publish().unwrap();
        service
    }

    /// A POST of a search.
    pub async fn search(&self, path: &str, body: impl Into<Body>) -> Answer {
        let fields = [("content-type", "application/odp+json")];
        self.send(request(Method::POST, path, &fields, body.into()))
            .await
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        Answer::of(response).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    pub async fn get_with(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.send(request(Method::GET, path, fields, Body::empty()))
            .await
    }
}

pub fn config() -> ServerConfig {
    let mut config = ServerConfig::default();
    config.listen = ([127, 0, 0, 1], 0).into();
    config.admin_token = Some(AdminToken::new(TOKEN).unwrap());
    config
}

pub fn filled(directory: &Path) -> Catalog {
    let catalog = Catalog::open(directory, Options::default()).unwrap();
    let manifest = Manifest::parse_embedded(MANIFEST, &[("lamp.json", SCHEMA)]).unwrap();
    catalog.set_manifest(&manifest).unwrap();
    let changes = (0..30).map(|number| Change {
        kind: ResourceType::Offering,
        value: lamp(number),
    });
    for result in catalog.put_many(changes.collect()) {
        result.unwrap();
    }
    catalog.publish().unwrap();
    catalog
}

pub fn lamp(number: u32) -> Value {
    let mut lamp = json!({
        "id": format!("lamp-{number:02}"),
        "name": format!("Lamp {number}"),
        "description": "A lamp. ".repeat(12).trim_end(),
        "collection_ids": ["lamps"],
        "schema": {"url": "/schemas/lamp.json"},
        "attributes": {"watts": number},
    });
    if number == 1 {
        lamp["translations"] = json!({"de": {"name": "Lampe 1"}});
    }
    lamp
}

pub fn request(method: Method, path: &str, fields: &[(&str, &str)], body: Body) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(body).unwrap()
}

/// A response, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub async fn of(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Checks that this is a problem of the ODP form with this status and code.
    pub fn assert_problem(&self, status: u16, code: &str) {
        let body = self.json();
        assert_eq!(self.status, status, "{body}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(body["status"], status);
        assert_eq!(body["code"], code);
        let kind = code.to_lowercase().replace('_', "-");
        assert_eq!(
            body["type"],
            format!("https://offeringprotocol.org/problems/{kind}")
        );
        assert!(!body["title"].as_str().unwrap().is_empty());
        assert_eq!(self.header("access-control-allow-origin"), "*");
        assert!(!self.header("x-request-id").is_empty());
    }

    /// Checks that this is a problem of the `/v1` form with this status and code.
    pub fn assert_failure(&self, status: u16, code: &str) {
        let body = self.json();
        assert_eq!(self.status, status, "{body}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(body["status"], status);
        assert_eq!(body["code"], code);
        assert_eq!(body["type"], format!("/v1/problems/{code}"));
        assert_eq!(body["request_id"], self.header("x-request-id"));
        assert!(!body["title"].as_str().unwrap().is_empty());
        assert!(!body["detail"].as_str().unwrap().is_empty());
    }
}
