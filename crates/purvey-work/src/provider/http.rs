//! One exchange with a provider behind HTTP: what goes out, and what a response that is no success means.

use super::{ApiKey, CallError, Retry, reset::reset_signal, sse};
use crate::clock::Clock;
use ::http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use serde_json::Value;
use std::{fmt, sync::Arc, time::Duration};
use url::Url;

/// Most bytes of one response.
const RESPONSE_BYTES: usize = 16 * 1_048_576;
/// Most bytes of a response that says why not.
const REFUSAL_BYTES: usize = 65_536;
/// Most characters of an identifier that a provider says, repeated in a detail.
const IDENTIFIER: usize = 64;

/// How long a provider may let us wait.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a connection, TLS included; 10 s unless set.
    pub connect: Duration,
    /// For the next byte of a response, the first one included; 120 s unless set.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(120),
        }
    }
}

/// Where a provider is. The operator says so, so its address may be local; redirects are not followed and no proxy is asked.
pub struct Endpoint {
    client: reqwest::Client,
    base: Url,
    key: Option<ApiKey>,
    idle: Duration,
    clock: Arc<dyn Clock>,
}

impl Endpoint {
    /// An endpoint below `base`, an `http` or `https` URL. `clock` tells how far away the dates are that a provider names.
    ///
    /// # Errors
    /// Why there can be no TLS.
    pub fn new(
        base: Url,
        key: Option<ApiKey>,
        timeouts: Timeouts,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(base.scheme() == "https")?)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .user_agent(concat!("purvey/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(timeouts.connect)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            client,
            base,
            key,
            idle: timeouts.idle,
            clock,
        })
    }

    pub(super) fn base(&self) -> &Url {
        &self.base
    }

    pub(super) fn key(&self) -> Option<&ApiKey> {
        self.key.as_ref()
    }

    /// Posts `body` to `path` below the base; gives the response once it is known to be a success.
    pub(super) async fn post(
        &self,
        path: &str,
        fields: &[(&'static str, String)],
        body: &Value,
    ) -> Result<Response, CallError> {
        let mut request = reqwest::Request::new(Method::POST, self.below(path));
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("text/event-stream, application/json"),
        );
        for (name, value) in fields {
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| CallError::rejected("The provider's key cannot be sent."))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        *request.body_mut() = Some(body.to_string().into());
        let sent = tokio::time::timeout(self.idle, self.client.execute(request)).await;
        let response = sent
            .map_err(|_| silent(self.idle))?
            .map_err(|error| not_sent(&error))?;
        let mut response = Response {
            left: RESPONSE_BYTES,
            response,
            idle: self.idle,
        };
        match response.response.status() {
            status if status.is_success() => Ok(response),
            status => Err(self.refused(status, &mut response).await),
        }
    }

    fn below(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/{path}"));
        url
    }

    /// What a response means that is no success (Work §5). 408 and 425 say that nothing was done and ask for another attempt, like 5xx;
    /// every other status below 500 stands for the request itself.
    async fn refused(&self, status: StatusCode, response: &mut Response) -> CallError {
        response.left = REFUSAL_BYTES;
        let said = response.all().await.unwrap_or_default();
        let headers = response.response.headers();
        let detail = self.detail(status, headers, &said);
        let wait = reset_signal(headers, self.clock.now());
        match status.as_u16() {
            429 => CallError::Limited { wait, detail },
            408 | 425 | 500.. => CallError::Failed {
                detail,
                retry: wait.map_or(Retry::Backoff, Retry::After),
                charged: false,
            },
            300..=399 => CallError::Rejected {
                detail: format!(
                    "{detail}; redirects are not followed: set base_url to where it leads"
                ),
            },
            _ => CallError::Rejected { detail },
        }
    }

    /// The status with the identifiers that the provider gives. Its sentences may quote the request or the key, so they stay out.
    fn detail(&self, status: StatusCode, headers: &HeaderMap, said: &[u8]) -> String {
        let mut detail = format!("The provider answered {status}");
        let body: Value = serde_json::from_slice(said).unwrap_or_default();
        let error = body.get("error").unwrap_or(&body);
        let named = ["type", "code"].map(|member| error.get(member).and_then(Value::as_str));
        let id = ["x-request-id", "request-id"]
            .into_iter()
            .find_map(|name| headers.get(name)?.to_str().ok());
        let id = id.filter(|id| self.harmless(id));
        let mut known: Vec<_> = named.into_iter().flatten().collect();
        known.retain(|text| self.harmless(text));
        known.dedup();
        let mut known = known.join(", ");
        if let Some(id) = id {
            let between = if known.is_empty() { "" } else { "; " };
            known.push_str(&format!("{between}its request id is {id}"));
        }
        if !known.is_empty() {
            detail.push_str(&format!(" ({known})"));
        }
        detail
    }

    /// Whether a text is an identifier and no part of the key.
    fn harmless(&self, text: &str) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        let secret = self.key.as_ref().map_or("", ApiKey::text);
        let leaks = !secret.is_empty() && (text.contains(secret) || secret.contains(text));
        !text.is_empty() && text.len() <= IDENTIFIER && text.bytes().all(plain) && !leaks
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base", &self.base.as_str())
            .finish_non_exhaustive()
    }
}

/// A successful response whose body was not read yet.
pub(super) struct Response {
    response: reqwest::Response,
    left: usize,
    idle: Duration,
}

impl Response {
    /// Whether the body is a stream of events.
    pub(super) fn is_stream(&self) -> bool {
        let media_type = self.response.headers().get(CONTENT_TYPE);
        media_type
            .and_then(|field| field.to_str().ok())
            .is_some_and(|field| field.trim_start().starts_with("text/event-stream"))
    }

    /// The next piece of the body.
    async fn piece(&mut self) -> Result<Option<bytes::Bytes>, CallError> {
        let piece = tokio::time::timeout(self.idle, self.response.chunk()).await;
        let piece = piece.map_err(|_| silent(self.idle))?.map_err(|_| {
            CallError::lost(
                "The connection to the provider was lost in the middle of its response.",
            )
        })?;
        let size = piece.as_ref().map_or(0, bytes::Bytes::len);
        self.left = self.left.checked_sub(size).ok_or_else(too_large)?;
        Ok(piece)
    }

    /// The whole body.
    pub(super) async fn all(&mut self) -> Result<Vec<u8>, CallError> {
        let mut all = Vec::new();
        while let Some(piece) = self.piece().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    /// The whole body as JSON.
    pub(super) async fn json(&mut self) -> Result<Value, CallError> {
        let all = self.all().await?;
        serde_json::from_slice(&all).map_err(|_| malformed())
    }

    /// Hands every event of the body to `take`, until it says that the last one came; whether it did.
    pub(super) async fn events(
        &mut self,
        mut take: impl FnMut(&sse::Event) -> Result<bool, CallError>,
    ) -> Result<bool, CallError> {
        let mut events = sse::Events::default();
        while let Some(piece) = self.piece().await? {
            for event in events.push(&piece).map_err(|sse::TooLarge| too_large())? {
                if take(&event)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// A body that is not what the provider's protocol says.
pub(super) fn malformed() -> CallError {
    CallError::lost("The provider's response is not what its protocol says.")
}

/// A stream that ended before the reply did.
pub(super) fn cut() -> CallError {
    CallError::lost("The provider's response ended in the middle.")
}

fn too_large() -> CallError {
    CallError::Failed {
        detail: format!("The provider's response has more than {RESPONSE_BYTES} bytes."),
        retry: Retry::Never,
        charged: true,
    }
}

fn silent(idle: Duration) -> CallError {
    CallError::lost(format!(
        "The provider sent nothing for {} seconds.",
        idle.as_secs_f32()
    ))
}

/// The client's own words name the URL, so only what happened is told.
fn not_sent(error: &reqwest::Error) -> CallError {
    if !error.is_connect() && !error.is_builder() {
        return CallError::lost("The connection to the provider was lost before its response.");
    }
    let what = match () {
        () if error.is_timeout() => "took too long",
        () if error.is_dns() => "failed: its name is not known",
        () => "failed",
    };
    CallError::Failed {
        detail: format!("Connecting to the provider {what}."),
        retry: Retry::Backoff,
        charged: false,
    }
}

fn tls(needed: bool) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = if needed {
        let verifier = Verifier::new(provider).map_err(|error| error.to_string())?;
        config
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth()
    } else {
        config
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
