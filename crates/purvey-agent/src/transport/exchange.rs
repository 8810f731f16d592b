//! One request and its response as they are: for those who judge a Service, not for those who use it.

use super::connection::{Request, within};
use super::{Class, Guarded};
use crate::Error;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use purvey_odp::identity::LocalDevelopment;
use url::Url;

/// A request whose response is wanted whatever it is. No cache, no retry, no redirect, no `Accept` and no media type of its own;
/// addresses, bytes and seconds are bounded as always.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The method. `HEAD` has no body.
    pub method: Method,
    /// Where: `https`, or `http` on a literal loopback host in local development.
    pub url: Url,
    /// The request's fields.
    pub headers: HeaderMap,
    /// The request's body.
    pub body: Option<Bytes>,
    /// Most bytes of the response's body without its content codings.
    pub byte_limit: usize,
    /// Whether the credentials for this origin are left out.
    pub anonymous: bool,
}

/// The response to an [`Exchange`].
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// Any status.
    pub status: StatusCode,
    /// The response's fields as received.
    pub headers: HeaderMap,
    /// The body without its content codings, or why it is not whole.
    pub body: Result<Bytes, Error>,
}

impl Guarded {
    /// Whether local development is switched on.
    pub fn local_development(&self) -> LocalDevelopment {
        self.connection.local
    }

    /// Whether requests to this URL carry credentials.
    pub(crate) fn is_authenticated(&self, url: &Url) -> bool {
        self.credentials
            .for_request(url, Class::ServiceDocument)
            .is_some()
    }

    /// Carries out one exchange.
    ///
    /// # Errors
    /// When no response came: the URL or an address is not permitted, the connection failed, a time limit was passed, the
    /// header is too large or malformed.
    pub async fn exchange(&self, exchange: Exchange) -> Result<Exchanged, Error> {
        let url = exchange.url.clone();
        let total = self.connection.limits.total;
        within(total, "the response", self.carry_out(exchange))
            .await
            .map_err(|error| error.with_url(url))
    }

    async fn carry_out(&self, exchange: Exchange) -> Result<Exchanged, Error> {
        let mut headers = exchange.headers;
        headers
            .entry(header::ACCEPT_ENCODING)
            .or_insert(HeaderValue::from_static("br, zstd, gzip, deflate"));
        let credentials = match exchange.anonymous {
            true => None,
            // An Action would be sent with the same credentials; so is everything else at the origin.
            false => self
                .credentials
                .for_request(&exchange.url, Class::ServiceDocument),
        };
        for (name, value) in credentials.into_iter().flatten() {
            headers.insert(name, value.clone());
        }
        let is_head = exchange.method == Method::HEAD;
        let request = Request {
            method: exchange.method,
            url: exchange.url,
            class: Class::Invoke,
            headers,
            body: exchange.body,
        };
        let response = self.connection.send(&request).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = match is_head {
            true => Ok(Bytes::new()),
            false => {
                self.connection
                    .body(&headers, response, exchange.byte_limit)
                    .await
            }
        };
        Ok(Exchanged {
            status,
            headers,
            body,
        })
    }
}
