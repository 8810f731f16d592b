//! The transport for networks.

use super::connection::{Connection, Reply, Request, within};
use super::{
    Class, Clock, Credentials, Fetch, Fetched, GuardedBuilder, Operation, Redirects, Transport,
};
use crate::cache::{Cache, Context, Entry, Key, Lookup};
use crate::error::retry_after;
use crate::{Code, Error};
use futures_util::future::BoxFuture;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH,
    CONTENT_TYPE, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use purvey_odp::media;
use purvey_retry::{Decision, Failure};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use url::Url;

/// Codings that can be undone.
const CODINGS: HeaderValue = HeaderValue::from_static("br, zstd, gzip, deflate");

/// Fields that belong to the connection, or that the transport answers for.
const OWN_FIELDS: [HeaderName; 9] = [
    ACCEPT_ENCODING,
    CONNECTION,
    CONTENT_LENGTH,
    EXPECT,
    HOST,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Fetches over the network without being hurt (ODP §7, §8, §11, §12).
///
/// Each hop of a fetch is answered from the cache, or sent, and sent again as the operation's budget permits; each connection
/// goes to an address that was checked. No proxy is used, whatever the environment says: a proxy would connect to addresses
/// that nobody checked.
pub struct Guarded {
    pub(super) connection: Connection,
    pub(super) credentials: Credentials,
    pub(super) cache: Option<Cache>,
    pub(super) freshness: HashMap<Class, Duration>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Guarded {
    /// A builder with safe defaults.
    pub fn builder() -> GuardedBuilder {
        GuardedBuilder::default()
    }

    async fn run(&self, operation: &Operation, fetch: Fetch) -> Result<Fetched, Error> {
        let Some(deadline) = operation.budget().deadline() else {
            return self.follow(operation, fetch).await;
        };
        let left = deadline
            .duration_since(self.clock.now())
            .unwrap_or_default();
        let url = fetch.url.clone();
        let result = if left.is_zero() {
            // Not even begun: the request might have an effect.
            Err(Error::new(Code::Timeout, "The operation's time is over."))
        } else {
            within(left, "the operation", self.follow(operation, fetch)).await
        };
        result.map_err(|error| match error.url() {
            Some(_) => error,
            None => error.with_url(url),
        })
    }

    /// Hops from redirect to redirect.
    async fn follow(&self, operation: &Operation, fetch: Fetch) -> Result<Fetched, Error> {
        let mut url = fetch.url.clone();
        let mut redirects = Redirects::new(&url);
        loop {
            let request = self.request(&fetch, &url)?;
            let reply = self.hop(operation, &fetch, &request).await?;
            match redirects.follow(&fetch.method, reply.status, &reply.headers)? {
                Some(next) => url = next,
                None => return self.fetched(&fetch, reply, url).await,
            }
        }
    }

    /// The request for one hop, with the credentials of the origin that it goes to.
    fn request(&self, fetch: &Fetch, url: &Url) -> Result<Request, Error> {
        check(fetch)?;
        let mut headers = representation(fetch)?;
        if fetch.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media::ODP));
        }
        if fetch.no_cache {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        let credentials = self.credentials_for(fetch, url);
        let extra = (fetch.class == Class::Invoke).then_some(&fetch.headers);
        for fields in credentials.into_iter().chain(extra) {
            for name in fields.keys() {
                headers.remove(name);
            }
            for (name, value) in fields {
                headers.append(name, value.clone());
            }
        }
        Ok(Request {
            method: fetch.method.clone(),
            url: url.clone(),
            class: fetch.class,
            headers,
            body: fetch.body.clone(),
        })
    }

    fn credentials_for(&self, fetch: &Fetch, url: &Url) -> Option<&HeaderMap> {
        let credentials = self.credentials.for_request(url, fetch.class);
        credentials.filter(|_| !fetch.anonymous)
    }

    /// One hop: from the cache if that is right, else from the network.
    async fn hop(
        &self,
        operation: &Operation,
        fetch: &Fetch,
        request: &Request,
    ) -> Result<Reply, Error> {
        let cache = self.cache.as_ref().filter(|_| {
            fetch.method == Method::GET && fetch.class != Class::Invoke && fetch.body.is_none()
        });
        let Some(cache) = cache else {
            return self.send(operation, request).await.map(|(reply, _)| reply);
        };
        // Before the cache is asked, so that what may not be fetched is not answered either.
        super::address::Destination::of(&request.url, self.connection.local)?;
        let chosen = representation(fetch)?;
        let credentials = self.credentials_for(fetch, &request.url);
        let key = Key::new(Method::GET, &request.url, &chosen, Context::of(credentials));
        let entry = cache.get(&key).await.filter(|entry| {
            fetch.class.accepts(&entry.headers) && entry.body.len() <= fetch.class.byte_limit()
        });
        let lookup = entry.as_ref().map(|entry| match fetch.no_cache {
            true => entry.confirm(),
            false => entry.look(&chosen, self.clock.now()),
        });
        let fallback = self.fallback(fetch.class);
        match (entry, lookup) {
            (Some(entry), Some(Lookup::Fresh)) => return Ok(self.stored(entry)),
            (Some(entry), Some(Lookup::Confirm(fields))) => {
                let mut conditional = request.clone();
                conditional.headers.extend(fields);
                let (reply, sent) = self.send(operation, &conditional).await?;
                if reply.status != StatusCode::NOT_MODIFIED {
                    return Ok(keep(cache, &key, &chosen, reply, sent, fallback).await);
                }
                if let Some(entry) = entry.confirmed(&chosen, &reply.headers, sent, fallback) {
                    if entry.is_storable() {
                        cache.put(&key, entry.clone()).await;
                    } else {
                        cache.forget(&request.url).await;
                    }
                    return Ok(self.stored(entry));
                }
                // The 304 is about another state than the one that is here: ask for it whole.
            }
            _ => {}
        }
        let (reply, sent) = self.send(operation, request).await?;
        Ok(keep(cache, &key, &chosen, reply, sent, fallback).await)
    }

    /// Sends, and sends again as the budget permits. Also says when the request that was answered left.
    async fn send(
        &self,
        operation: &Operation,
        request: &Request,
    ) -> Result<(Reply, SystemTime), Error> {
        loop {
            let sent = self.clock.now();
            let result = self.connection.exchange(request).await;
            let (failure, told) = match &result {
                Ok(reply) => (
                    Failure::Status(reply.status.as_u16()),
                    retry_after(&reply.headers),
                ),
                Err(error) if is_of_connection(error) => (Failure::Connection, None),
                Err(_) => return result.map(|reply| (reply, sent)),
            };
            let failed = result.as_ref().map_or(true, |reply| {
                reply.status.is_client_error() || reply.status.is_server_error()
            });
            if !failed || request.class == Class::Invoke {
                return result.map(|reply| (reply, sent));
            }
            let (chance, now) = (self.clock.chance(), self.clock.now());
            match operation.decide(failure, told, chance, now) {
                Decision::Wait(wait) => {
                    tracing::debug!(url = %request.url, ?failure, ?wait, "trying again");
                    self.clock.sleep(wait).await;
                }
                Decision::GiveUp(reason) => {
                    tracing::debug!(url = %request.url, ?failure, ?reason, "no further attempt");
                    return result.map(|reply| (reply, sent));
                }
            }
        }
    }

    fn fallback(&self, class: Class) -> Duration {
        let set = self.freshness.get(&class).copied();
        set.unwrap_or_else(|| class.fallback_freshness())
    }

    fn stored(&self, entry: Entry) -> Reply {
        Reply {
            status: StatusCode::OK,
            headers: entry.headers_at(self.clock.now()),
            body: Some(entry.body),
            from_cache: true,
        }
    }

    /// What the last hop's response is for the caller.
    async fn fetched(&self, fetch: &Fetch, reply: Reply, url: Url) -> Result<Fetched, Error> {
        if let (true, Some(body)) = (reply.status.is_success(), &reply.body) {
            if let (Class::Invoke, Some(cache)) = (fetch.class, &self.cache)
                && !fetch.method.is_safe()
            {
                // What was stored may no longer be so (RFC 9111 §4.4).
                cache.forget(&url).await;
            }
            return Ok(Fetched {
                status: reply.status,
                headers: reply.headers,
                body: body.clone(),
                url,
                from_cache: reply.from_cache,
            });
        }
        let body = reply.body.as_deref();
        let error = Error::from_response(reply.status, &reply.headers, body, self.clock.now());
        let error = match fetch.class {
            Class::Invoke => error,
            _ if reply.status == StatusCode::NOT_MODIFIED => Error::new(
                Code::InvalidResponse,
                "The response says that nothing has changed, but nothing was compared.",
            )
            .with_status(reply.status),
            _ => error,
        };
        Err(error.with_url(url))
    }
}

impl Transport for Guarded {
    fn fetch<'a>(
        &'a self,
        operation: &'a Operation,
        fetch: Fetch,
    ) -> BoxFuture<'a, Result<Fetched, Error>> {
        Box::pin(async move {
            let has_effect = fetch.class == Class::Invoke && !fetch.method.is_safe();
            let result = self.run(operation, fetch).await;
            // A lost response does not tell whether the Action was carried out.
            result.map_err(|error| match is_of_connection(&error) && has_effect {
                true => error.not_retryable(),
                false => error,
            })
        })
    }
}

/// Whether the request is one that the transport sends.
fn check(fetch: &Fetch) -> Result<(), Error> {
    let refuse =
        |why: String| Err(Error::new(Code::InvalidRequest, why).with_url(fetch.url.clone()));
    let read = fetch.method == Method::GET && fetch.body.is_none();
    let search = fetch.method == Method::POST && fetch.class == Class::Search;
    if !read && !search && fetch.class != Class::Invoke {
        return refuse(format!("A {} is not a read of that class.", fetch.method));
    }
    if let Some(name) = OWN_FIELDS
        .iter()
        .find(|name| fetch.headers.contains_key(*name))
    {
        return refuse(format!("The field {name} is the transport's own."));
    }
    Ok(())
}

/// The fields that choose a representation.
fn representation(fetch: &Fetch) -> Result<HeaderMap, Error> {
    let mut fields = HeaderMap::new();
    fields.insert(ACCEPT, HeaderValue::from_static(fetch.class.accept()));
    fields.insert(ACCEPT_ENCODING, CODINGS);
    if let Some(languages) = &fetch.accept_language {
        let value = HeaderValue::try_from(languages).map_err(|_| {
            Error::new(
                Code::InvalidRequest,
                "Accept-Language must hold printable ASCII characters.",
            )
        })?;
        fields.insert(ACCEPT_LANGUAGE, value);
    }
    Ok(fields)
}

/// Stores a response if it is to be stored, and passes it on.
async fn keep(
    cache: &Cache,
    key: &Key,
    chosen: &HeaderMap,
    reply: Reply,
    sent: SystemTime,
    fallback: Duration,
) -> Reply {
    if let (StatusCode::OK, Some(body)) = (reply.status, &reply.body)
        && let Some(entry) = Entry::new(chosen, &reply.headers, body.clone(), sent, fallback)
    {
        cache.put(key, entry).await;
    }
    reply
}

/// Whether no response came, or not all of it.
fn is_of_connection(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::ConnectFailed | Code::ConnectionLost | Code::Timeout
    )
}
