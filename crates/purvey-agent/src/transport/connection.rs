//! One exchange: a request goes out, a response within all limits comes back.

use super::address::Destination;
use super::coding::Decoder;
use super::{Class, Limits, failure};
use crate::error::content_type;
use crate::{Code, Error};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Method, StatusCode};
use purvey_odp::identity::LocalDevelopment;
use purvey_odp::{limits, media};
use std::time::Duration;
use url::Url;

/// A request with all its fields.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) class: Class,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
}

/// A response. A body is there after success, and after failure if it can be a problem.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Bytes>,
    pub(super) from_cache: bool,
}

/// The guarded way out.
pub(super) struct Connection {
    pub(super) client: reqwest::Client,
    pub(super) local: LocalDevelopment,
    pub(super) limits: Limits,
}

impl Connection {
    /// Carries out one exchange.
    pub(super) async fn exchange(&self, request: &Request) -> Result<Reply, Error> {
        within(self.limits.total, "the response", self.carry_out(request))
            .await
            .map_err(|error| error.with_url(request.url.clone()))
    }

    async fn carry_out(&self, request: &Request) -> Result<Reply, Error> {
        let response = self.send(request).await?;
        self.read(request, response).await
    }

    /// Sends a request to an address that was checked, and gives the response up to its header.
    pub(super) async fn send(&self, request: &Request) -> Result<reqwest::Response, Error> {
        // The client resolves names through the guard, but it does not ask about addresses written in the URL.
        let destination = Destination::of(&request.url, self.local)?;
        let mut outgoing = reqwest::Request::new(request.method.clone(), request.url.clone());
        *outgoing.headers_mut() = request.headers.clone();
        *outgoing.body_mut() = request.body.clone().map(reqwest::Body::from);
        let response = within(self.limits.header, "the response's header", async {
            let sent = self.client.execute(outgoing).await;
            sent.map_err(|error| failure::of(&error))
        })
        .await?;
        if let Some(peer) = response.remote_addr()
            && !destination.permits(peer.ip())
        {
            return Err(destination.refuse(peer.ip()));
        }
        self.check_header(response.headers())?;
        Ok(response)
    }

    fn check_header(&self, headers: &HeaderMap) -> Result<(), Error> {
        let size: usize = headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 4)
            .sum();
        if u32::try_from(size).is_ok_and(|size| size <= self.limits.header_bytes) {
            return Ok(());
        }
        let why = format!(
            "The response's header has more than {} bytes.",
            self.limits.header_bytes
        );
        Err(Error::new(Code::ResponseLimitExceeded, why))
    }

    async fn read(
        &self,
        request: &Request,
        mut response: reqwest::Response,
    ) -> Result<Reply, Error> {
        let (status, class) = (response.status(), request.class);
        let mut headers = std::mem::take(response.headers_mut());
        let body = if status.is_success() {
            check_success(class, status, &headers)?;
            let limit = self.byte_limit(class);
            let body = self.body(&headers, response, limit).await;
            Some(body.map_err(|error| error.with_status(status))?)
        } else if content_type(&headers).as_deref() == Some(media::PROBLEM) {
            // Whatever happens to the body, the status has been told.
            let body = self.body(&headers, response, limits::PROBLEM_BYTES);
            let body = within(self.limits.idle, "the problem", body).await;
            body.ok()
        } else {
            None
        };
        for gone in [CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING] {
            headers.remove(gone);
        }
        Ok(Reply {
            status,
            headers,
            body,
            from_cache: false,
        })
    }

    fn byte_limit(&self, class: Class) -> usize {
        match class {
            Class::Invoke => self.limits.invoke_bytes,
            class => class.byte_limit(),
        }
    }

    /// The whole body without its codings.
    pub(super) async fn body(
        &self,
        headers: &HeaderMap,
        mut response: reqwest::Response,
        limit: usize,
    ) -> Result<Bytes, Error> {
        let fault = |fault: super::coding::Fault| fault.into_error(limit);
        let mut decoder = Decoder::new(headers, limit).map_err(fault)?;
        if response
            .content_length()
            .is_some_and(|length| decoder.refuses(length))
        {
            return Err(fault(super::coding::Fault::TooLarge));
        }
        loop {
            let piece = within(self.limits.idle, "the next piece of the body", async {
                let piece = response.chunk().await;
                piece.map_err(|error| failure::of(&error))
            });
            match piece.await? {
                Some(piece) => decoder.push(&piece).map_err(fault)?,
                None => return decoder.finish().map(Bytes::from).map_err(fault),
            }
        }
    }
}

/// Whether a success can be what was asked for.
fn check_success(class: Class, status: StatusCode, headers: &HeaderMap) -> Result<(), Error> {
    let refuse = |code, why: String| Err(Error::new(code, why).with_status(status));
    if class == Class::Invoke {
        return Ok(());
    }
    if status != StatusCode::OK && status != StatusCode::NON_AUTHORITATIVE_INFORMATION {
        let why =
            format!("The response has the status {status}, which is not that of a whole document.");
        return refuse(Code::InvalidResponse, why);
    }
    if !class.accepts(headers) {
        let found = content_type(headers).unwrap_or_else(|| "none that can be read".to_owned());
        let why = format!(
            "The response's media type is {found}; asked for was {}.",
            class.accept()
        );
        return refuse(Code::UnexpectedMediaType, why);
    }
    Ok(())
}

/// What `work` makes, if it is done in time.
pub(super) async fn within<T>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result,
        Err(_) => {
            let why = format!(
                "Waiting for {what} took longer than {} ms.",
                limit.as_millis()
            );
            Err(Error::new(Code::Timeout, why))
        }
    }
}
