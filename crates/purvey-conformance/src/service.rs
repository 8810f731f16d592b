//! A whole Service in a temporary directory: the catalog, and the HTTP surface in front of it without sockets.

use crate::case::Fault;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::{BodyExt, Full};
use purvey_catalog::catalog::{Catalog, Options};
use purvey_catalog::clock::ManualClock;
use purvey_catalog::manifest::Manifest;
use purvey_odp::decode::{Bounds, decode};
use purvey_odp::identity::LocalId;
use purvey_odp::media;
use purvey_odp::service::{EndpointBase, Operation, ServiceDocument};
use purvey_server::{AdminToken, ServerConfig, router};
use serde_json::Value;
use std::cell::Cell;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// Any time will do, as long as it only moves when told.
pub(crate) const NOW: u64 = 1_800_000_000;
const TOKEN: &str = "conformance-adapter-token";

/// The manifest of a Service about which nothing matters.
pub const MANIFEST: &str =
    "[service]\nname = \"Example\"\ndescription = \"An example Service.\"\nlanguage = \"en\"\n";

/// A running Service. Time stands still but for [`Service::advance`].
#[derive(Debug)]
pub struct Service {
    // Fields are dropped in this order: the directory last.
    catalog: Catalog,
    runtime: Runtime,
    clock: Arc<ManualClock>,
    base: EndpointBase,
    /// Whether something was written that is not visible yet.
    written: Cell<bool>,
    directory: TempDir,
}

/// A response, its body complete.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The fields.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Service {
    /// A Service with [`MANIFEST`] and no entries.
    ///
    /// # Errors
    /// When it cannot be brought up.
    pub fn empty() -> Result<Self, Fault> {
        let manifest = Manifest::parse_embedded(MANIFEST, &[]).map_err(Fault::of("manifest"))?;
        Self::with_manifest(&manifest)
    }

    /// A Service with this manifest and no further entries.
    ///
    /// # Errors
    /// When it cannot be brought up.
    pub fn with_manifest(manifest: &Manifest) -> Result<Self, Fault> {
        let directory = TempDir::new().map_err(Fault::of("temporary directory"))?;
        let clock = Arc::new(ManualClock::new(NOW));
        let catalog = open(&directory, &clock)?;
        catalog
            .set_manifest(manifest)
            .map_err(Fault::of("manifest"))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Fault::of("runtime"))?;
        let base =
            EndpointBase::parse(manifest.endpoint_base()).map_err(Fault::of("endpoint base"))?;
        Ok(Self {
            catalog,
            runtime,
            clock,
            base,
            written: Cell::new(true),
            directory,
        })
    }

    /// Stops the Service and starts it again on the same data.
    ///
    /// # Errors
    /// When it does not come up again.
    pub fn restart(self) -> Result<Self, Fault> {
        self.catalog.shutdown();
        drop(self.catalog);
        let catalog = open(&self.directory, &self.clock)?;
        Ok(Self { catalog, ..self })
    }

    /// Makes what was written visible, all at once.
    fn publish(&self) -> Result<(), Fault> {
        if self.written.replace(false) {
            self.catalog.publish().map_err(Fault::of("publication"))?;
        }
        Ok(())
    }

    /// Moves time on.
    pub fn advance(&self, seconds: u64) {
        self.clock.advance(seconds);
    }

    /// Sends a request to the Service, to which everything is visible that was written before, and waits for the whole response.
    ///
    /// # Errors
    /// When the request cannot be written or the response breaks off.
    pub fn send(
        &self,
        method: Method,
        target: &str,
        fields: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Response, Fault> {
        self.publish()?;
        self.exchange(method, target, fields, body)
    }

    fn exchange(
        &self,
        method: Method,
        target: &str,
        fields: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Response, Fault> {
        let mut request = http::Request::builder().method(method).uri(target);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Full::<Bytes>::from(body))
            .map_err(Fault::of("request"))?;
        let mut config = ServerConfig::default();
        config.admin_token = Some(AdminToken::new(TOKEN).map_err(Fault::of("token"))?);
        self.runtime.block_on(async {
            let response = router(self.catalog.clone(), config).oneshot(request).await;
            let (parts, body) = response.map_err(Fault::of("request"))?.into_parts();
            let body = body
                .collect()
                .await
                .map_err(Fault::of("response"))?
                .to_bytes();
            Ok(Response {
                status: parts.status,
                headers: parts.headers,
                body,
            })
        })
    }

    /// Sends a GET request.
    ///
    /// # Errors
    /// As [`Service::send`].
    pub fn get(&self, target: &str) -> Result<Response, Fault> {
        self.send(Method::GET, target, &[], Vec::new())
    }

    /// Sends a search request with this content type.
    ///
    /// # Errors
    /// As [`Service::send`].
    pub fn search(
        &self,
        target: &str,
        request: &Value,
        content_type: Option<&str>,
    ) -> Result<Response, Fault> {
        let fields: Vec<_> = content_type
            .map(|value| (header::CONTENT_TYPE.as_str(), value))
            .into_iter()
            .collect();
        self.send(
            Method::POST,
            target,
            &fields,
            request.to_string().into_bytes(),
        )
    }

    /// Gets an ODP document.
    ///
    /// # Errors
    /// As [`Service::send`], and when the answer is anything but a document.
    pub fn document(&self, target: &str) -> Result<Value, Fault> {
        let response = self.get(target)?;
        if response.status != StatusCode::OK {
            return Err(Fault(format!(
                "{target} answers {}: {}",
                response.status,
                response.text()
            )));
        }
        response.document()
    }

    /// The Service Document, valid.
    ///
    /// # Errors
    /// As [`Service::document`], and when it is not valid.
    pub fn service_document(&self) -> Result<ServiceDocument, Fault> {
        let value = self.document("/.well-known/odp")?;
        ServiceDocument::validate(value).map_err(Fault::of("Service Document"))
    }

    /// Path of an operation.
    ///
    /// # Errors
    /// When `id` is missing, not wanted, or not an identifier.
    pub fn path(&self, operation: Operation, id: Option<&str>) -> Result<String, Fault> {
        let id = id
            .map(LocalId::parse)
            .transpose()
            .map_err(Fault::of("identifier"))?;
        let path = self.base.path(operation, id.as_ref());
        path.ok_or_else(|| {
            Fault(format!(
                "{} has no path with this identifier",
                operation.as_str()
            ))
        })
    }

    /// Writes a record as the operator. `false` when the Service refuses it.
    ///
    /// # Errors
    /// When it can neither be taken nor refused.
    pub fn put(&self, kind: &str, value: &Value) -> Result<bool, Fault> {
        let id = value.get("id").and_then(Value::as_str).unwrap_or_default();
        let id = LocalId::parse(id).map_err(Fault::of("identifier"))?;
        let bearer = format!("Bearer {TOKEN}");
        let fields = [
            (header::AUTHORIZATION.as_str(), bearer.as_str()),
            (header::CONTENT_TYPE.as_str(), media::ODP),
        ];
        let target = format!("/v1/catalog/{kind}/{id}");
        let response = self.exchange(
            Method::PUT,
            &target,
            &fields,
            value.to_string().into_bytes(),
        )?;
        match response.status {
            StatusCode::OK | StatusCode::CREATED => {
                self.written.set(true);
                Ok(true)
            }
            StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT => Ok(false),
            status => Err(Fault(format!(
                "a write was answered {status}: {}",
                response.text()
            ))),
        }
    }
}

impl Response {
    /// The value of a field.
    pub fn field(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as an ODP document within its bounds.
    ///
    /// # Errors
    /// When it is of another type or cannot be decoded.
    pub fn document(&self) -> Result<Value, Fault> {
        let content_type = self.field(header::CONTENT_TYPE).unwrap_or_default();
        if media::essence(content_type).as_deref() != Some(media::ODP) {
            return Err(Fault(format!("the answer is of type {content_type:?}")));
        }
        decode(&self.body, Bounds::PAGE).map_err(Fault::of("response"))
    }

    /// The body as text, for messages.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }
}

fn open(directory: &TempDir, clock: &Arc<ManualClock>) -> Result<Catalog, Fault> {
    let options = Options {
        clock: Arc::<ManualClock>::clone(clock),
        ..Options::default()
    };
    Catalog::open(directory.path(), options).map_err(Fault::of("catalog"))
}
