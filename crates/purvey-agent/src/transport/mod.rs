//! The way to a Service and back.
//!
//! Whoever uses a [`Transport`] never sees a redirect, a retry, a cache or a content coding: a [`Fetch`] becomes a [`Fetched`]
//! with status 2xx and a whole body within its limit, or an [`Error`].

pub mod address;
mod builder;
mod class;
mod clock;
mod coding;
mod connection;
mod credentials;
mod exchange;
mod failure;
mod guarded;
mod limits;
mod operation;
mod redirect;
mod resolve;

pub use builder::GuardedBuilder;
pub use class::Class;
pub use clock::{Clock, SystemClock};
pub use credentials::Credentials;
pub use exchange::{Exchange, Exchanged};
pub use guarded::Guarded;
pub use limits::Limits;
pub use operation::Operation;
pub use redirect::{Redirects, is_same_origin};
pub use resolve::{Resolve, SystemResolver};

use crate::Error;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode};
use url::Url;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// `GET`, or `POST` for a search; any for an Action.
    pub method: Method,
    /// Where: `https`, or `http` on a literal loopback host in local development.
    pub url: Url,
    /// What kind of resource it is.
    pub class: Class,
    /// The request's body. Its media type is that of ODP documents unless `headers` say otherwise.
    pub body: Option<Bytes>,
    /// `Accept-Language`, as it is sent.
    pub accept_language: Option<String>,
    /// Whether a stored response may only be used after the Service has confirmed it.
    pub no_cache: bool,
    /// Further fields; only those of an [`Class::Invoke`] are sent.
    pub headers: HeaderMap,
    /// Whether the credentials that the transport has for the origin are left out, whatever the class: nobody but that origin
    /// may have them used.
    pub anonymous: bool,
}

impl Fetch {
    /// A plain `GET`.
    pub fn get(url: Url, class: Class) -> Self {
        Self {
            method: Method::GET,
            url,
            class,
            body: None,
            accept_language: None,
            no_cache: false,
            headers: HeaderMap::new(),
            anonymous: false,
        }
    }

    /// A `POST` of a search document.
    pub fn post(url: Url, class: Class, body: Bytes) -> Self {
        Self {
            method: Method::POST,
            body: Some(body),
            ..Self::get(url, class)
        }
    }
}

/// What came.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// 2xx.
    pub status: StatusCode,
    /// The response's fields.
    pub headers: HeaderMap,
    /// The whole body without content codings, within the limit of the request's class.
    pub body: Bytes,
    /// The URL that answered, after redirects.
    pub url: Url,
    /// Whether the body was stored before, confirmed by the Service or not.
    pub from_cache: bool,
}

/// Fetches resources. [`Guarded`] is the one for networks; tests bring their own.
pub trait Transport: Send + Sync {
    /// Fetches within what is left of the budget of `operation`.
    ///
    /// # Errors
    /// Every response but 2xx, and every failure on the way to one.
    fn fetch<'a>(
        &'a self,
        operation: &'a Operation,
        fetch: Fetch,
    ) -> BoxFuture<'a, Result<Fetched, Error>>;
}
