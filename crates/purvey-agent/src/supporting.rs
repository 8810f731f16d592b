//! Supporting documents: schemas and OpenAPI documents, always fetched anonymously (ODP §11).

use crate::Code;
use crate::issue::{Fault, IssueCode};
use crate::transport::{Class, Fetch, Fetched, Operation, Transport};
use purvey_odp::decode::DecodeError;
use url::Url;

/// Fetches supporting documents within one operation.
#[derive(Clone, Copy)]
pub(crate) struct Supporting<'a> {
    pub(crate) transport: &'a dyn Transport,
    pub(crate) operation: &'a Operation,
}

impl Supporting<'_> {
    pub(crate) async fn fetch(&self, class: Class, url: Url) -> Result<Fetched, Fault> {
        let fetch = Fetch::get(url, class);
        self.transport
            .fetch(self.operation, fetch)
            .await
            .map_err(|error| Fault {
                code: if *error.code() == Code::ResponseLimitExceeded {
                    IssueCode::ResponseLimitExceeded
                } else {
                    IssueCode::Unavailable
                },
                message: error.message().to_owned(),
                cause: Some(error),
            })
    }
}

/// Why the bytes of a document are not the JSON that it should be.
pub(crate) fn undecodable(document: &str, error: &DecodeError) -> Fault {
    let code = match error {
        DecodeError::TooLarge { .. } | DecodeError::TooDeep { .. } => {
            IssueCode::ResponseLimitExceeded
        }
        _ => IssueCode::Invalid,
    };
    Fault::new(code, format!("In the {document}: {error}"))
}
