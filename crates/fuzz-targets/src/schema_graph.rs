//! Any documents as the schema of an Offering's attributes. `---` alone on a line parts them: first the attributes, then the
//! documents `/schemas/0`, `/schemas/1` and so on; the Offering names the first of those.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use jsonschema::{Draft, Retrieve, Uri};
use purvey_agent::transport::{Fetch, Fetched, Operation, Transport};
use purvey_agent::{Agent, Code, EnrichedOffering, Error, IssueCode, Scope};
use purvey_odp::decode::{Bounds, decode};
use serde_json::{Map, Value, json};

const ORIGIN: &str = "https://market.example";
const SERVICE: &str = r#"{"odp_version": "1.0", "name": "Market", "description": "Things.", "language": "en",
    "localizations": ["en"], "http": {"endpoint_base": "/odp"}, "operations": [
    {"name": "list-offerings", "authentication": "not-required"}, {"name": "get-offering", "authentication": "not-required"}]}"#;

/// An Offering is usable whatever its schema is; its attributes are, exactly when they fit a schema that needs no network.
pub fn holds(input: &[u8]) {
    let mut documents = split(input).map(Bytes::copy_from_slice);
    let attributes = documents
        .next()
        .and_then(|first| decode(&first, Bounds::RESOURCE).ok());
    let Some(Value::Object(attributes)) = attributes else {
        return;
    };
    let offering = json!({
        "odp_version": "1.0", "id": "item", "name": "Item", "schema": {"url": "/schemas/0"}, "attributes": attributes,
    });
    let service = InMemory {
        offering: offering.to_string().into(),
        schemas: documents.collect(),
    };
    // Written and read again, as numbers may be spelt in another way now.
    let Ok(offering) = decode(&service.offering, Bounds::RESOURCE) else {
        return;
    };
    let attributes = match offering.get("attributes") {
        Some(Value::Object(attributes)) if !attributes.is_empty() => attributes,
        _ => return,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime
        .expect("a runtime")
        .block_on(enriched(&service, &offering, attributes));
}

fn split(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    const LINE: &[u8] = b"\n---\n";
    let mut rest = Some(input);
    std::iter::from_fn(move || {
        let all = rest?;
        let end = all.windows(LINE.len()).position(|window| window == LINE);
        rest = end.map(|end| &all[end + LINE.len()..]);
        Some(&all[..end.unwrap_or(all.len())])
    })
}

async fn enriched(service: &InMemory, offering: &Value, attributes: &Map<String, Value>) {
    let agent = Agent::builder()
        .transport(service.clone())
        .build()
        .expect("an Agent");
    let handle = agent.service(ORIGIN).await.expect("a Service");
    let found = handle.get_offering("item").await.expect("an Offering");
    assert_eq!(found.offering.name().as_str(), "Item");
    match (&found.schema, found.issues.as_slice()) {
        (Some(schema), []) => {
            assert_eq!(found.offering.attributes(), attributes);
            let value = Value::Object(attributes.clone());
            assert!(fits(schema.document(), &value), "{}", schema.document());
            let checked = schema.check(Scope::Attributes, "/attributes", value).await;
            assert!(checked.is_ok(), "{checked:?}");
        }
        (None, [issue]) => {
            assert!(found.offering.attributes().is_empty() && found.offering.schema().is_none());
            assert_eq!(issue.scope, Scope::Attributes);
            assert!(offering.pointer(&issue.pointer).is_some(), "{issue}");
            let mismatch = issue.code == IssueCode::Mismatch;
            assert!(
                !mismatch || issue.pointer.starts_with("/attributes"),
                "{issue}"
            );
        }
        _ => panic!("{found:?}"),
    }
    let again = handle
        .get_offering("item")
        .await
        .expect("the same Offering");
    assert_eq!(said(&again), said(&found));
}

fn said(found: &EnrichedOffering) -> Vec<String> {
    found.issues.iter().map(ToString::to_string).collect()
}

/// Whether `value` fits `schema` for a validator that knows neither the network nor our bounds.
fn fits(schema: &Value, value: &Value) -> bool {
    let options = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_retriever(Nowhere);
    let validator = options
        .build(schema)
        .expect("a schema that needs no network");
    validator.is_valid(value)
}

struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        panic!("{uri} is not at hand");
    }
}

/// A Service with one Offering.
#[derive(Clone)]
struct InMemory {
    offering: Bytes,
    schemas: Vec<Bytes>,
}

impl InMemory {
    fn body(&self, path: &str) -> Option<Bytes> {
        match path {
            "/.well-known/odp" => Some(SERVICE.into()),
            "/odp/offerings/item" => Some(self.offering.clone()),
            _ => {
                let index: usize = path.strip_prefix("/schemas/")?.parse().ok()?;
                self.schemas.get(index).cloned()
            }
        }
    }
}

impl Transport for InMemory {
    fn fetch<'a>(
        &'a self,
        _: &'a Operation,
        fetch: Fetch,
    ) -> BoxFuture<'a, Result<Fetched, Error>> {
        let fetched = match self.body(fetch.url.path()) {
            Some(body) if fetch.url.as_str().starts_with(ORIGIN) => Ok(Fetched {
                status: StatusCode::OK,
                headers: HeaderMap::new(),
                body,
                url: fetch.url,
                from_cache: false,
            }),
            _ => Err(Error::new(
                Code::ConnectFailed,
                "There is no such document.",
            )),
        };
        Box::pin(async { fetched })
    }
}
