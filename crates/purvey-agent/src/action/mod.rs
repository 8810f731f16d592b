//! Actions: what can follow discovery, made ready, and invoked only when a caller says so (ODP §4).

mod answering;
mod compact;
mod input;
mod invoke;
mod openapi;
mod parameters;

pub use answering::ChallengeHandler;
pub use input::Input;
pub use invoke::Answer;

use crate::issue::Fault;
use crate::service::Service;
use crate::supporting::Supporting;
use crate::{Code, Error};
use compact::Compact;
use http::Method;
use openapi::{Document, OpenApi};
use purvey_odp::action::{Action, Target};
use std::collections::HashMap;
use std::sync::Arc;
use url::Url;

/// An Action whose target is known. [`Service::invoke`] and [`Service::invoke_with`] send it; nothing else does.
#[derive(Clone, Debug)]
pub struct ResolvedAction {
    action: Action,
    request: Request,
}

#[derive(Clone, Debug)]
enum Request {
    Compact(Compact),
    OpenApi(OpenApi),
}

impl ResolvedAction {
    /// The Action as the Offering has it.
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// The method of its request.
    pub fn method(&self) -> &Method {
        match &self.request {
            Request::Compact(compact) => &compact.method,
            Request::OpenApi(operation) => &operation.method,
        }
    }

    /// Where its request goes; with `{name}` for each parameter of the path, percent-encoded braces and all, when it comes from
    /// an OpenAPI document.
    pub fn url(&self) -> &str {
        match &self.request {
            Request::Compact(compact) => compact.url.as_str(),
            Request::OpenApi(operation) => &operation.url,
        }
    }

    /// The media types that its request can have, the preferred one first; none when it has no body or says nothing.
    pub fn content_types(&self) -> Vec<&str> {
        match &self.request {
            Request::Compact(compact) => compact.content_type.as_deref().into_iter().collect(),
            Request::OpenApi(operation) => operation.content_types().collect(),
        }
    }
}

/// Resolves the Actions of one Offering; OpenAPI documents that they share are read once.
pub(crate) struct Resolver<'a> {
    service: &'a Service,
    supporting: Supporting<'a>,
    documents: HashMap<Url, Result<Arc<Document>, Fault>>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(service: &'a Service, supporting: Supporting<'a>) -> Self {
        Self {
            service,
            supporting,
            documents: HashMap::new(),
        }
    }

    pub(crate) async fn resolve(&mut self, action: &Action) -> Result<ResolvedAction, Fault> {
        let request = match &action.target {
            Target::Http(target) => Request::Compact(Compact::new(target, self.service.origin())),
            Target::OpenApi(target) => {
                let own = target.url.as_ref();
                let inherited = self.service.document().http().openapi.as_ref();
                let url = own
                    .or(inherited)
                    .ok_or_else(openapi::nowhere)?
                    .resolve(self.service.origin());
                let document = self.document(url).await?;
                Request::OpenApi(OpenApi::find(&document, target.operation_id.as_str())?)
            }
        };
        Ok(ResolvedAction {
            action: action.clone(),
            request,
        })
    }

    async fn document(&mut self, url: Url) -> Result<Arc<Document>, Fault> {
        if let Some(known) = self.documents.get(&url) {
            return known.clone();
        }
        let read = Document::fetch(&self.supporting, url.clone())
            .await
            .map(Arc::new);
        self.documents.insert(url, read.clone());
        read
    }
}

/// An input that does not fit the Action.
fn refused(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidRequest, message)
}

/// Why it cannot be known whether an input fits.
fn unsupported(fault: Fault) -> Error {
    match fault.cause {
        Some(cause) => cause,
        None => Error::new(Code::UnsupportedSchema, fault.message),
    }
}
