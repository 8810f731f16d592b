//! The official Service SDK on axum: `peer-service RECORDS.ndjson` serves wire-form Offerings on a free port of 127.0.0.1 and
//! says which on standard output.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout)]

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use odp_core::{parse_collection, parse_offering};
use odp_service::{Service, ServiceBuilder, StaticCatalog, StaticCatalogOptions};
use std::collections::BTreeSet;
use std::io::BufRead;
use std::sync::Arc;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: peer-service RECORDS.ndjson")?;
    let mut offerings = Vec::new();
    let mut named = BTreeSet::new();
    for line in std::io::BufReader::new(std::fs::File::open(path)?).lines() {
        let line = line?;
        // The SDK parses top-level documents: the version goes in front.
        let document = format!(
            "{{\"odp_version\":\"1.0\",{}",
            line.trim_start().trim_start_matches('{')
        );
        let offering = parse_offering(document.as_bytes())?;
        named.extend(offering.collection_ids.iter().cloned());
        offerings.push(offering);
    }
    let collections = named
        .iter()
        .map(|id| {
            let document = serde_json::json!({"odp_version": "1.0", "id": id, "name": id});
            parse_collection(document.to_string().as_bytes())
        })
        .collect::<Result<Vec<_>, _>>()?;
    let catalog = StaticCatalog::new(StaticCatalogOptions {
        collections,
        offerings,
    })?;
    let service =
        ServiceBuilder::new("Peer", "The official SDK.", "en", "/odp").build(Arc::new(catalog))?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    axum::serve(
        listener,
        Router::new().fallback(handle).with_state(Arc::new(service)),
    )
    .await?;
    Ok(())
}

async fn handle(State(service): State<Arc<Service>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let headers = parts
        .headers
        .iter()
        .filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        })
        .collect();
    let answer = service
        .handle(odp_service::Request {
            body: to_bytes(body, 65_537)
                .await
                .map(|bytes| bytes.to_vec())
                .unwrap_or_default(),
            headers,
            method: parts.method.as_str().to_owned(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
        })
        .await;
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(answer.body)).unwrap_or_default()
}
