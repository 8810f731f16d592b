//! From bytes to a document, or to the error that says why not.

use crate::transport::Fetched;
use crate::{Code, Error};
use purvey_odp::decode::{Bounds, DecodeError, decode};
use purvey_odp::report::Invalid;
use purvey_odp::version::{self, ProtocolVersion};
use serde_json::Value;

/// The document in a response: decoded within `bounds`, and of a version that is spoken here (ODP §1, §7).
pub(crate) fn read(fetched: &Fetched, bounds: Bounds) -> Result<Value, Error> {
    let value = decode(&fetched.body, bounds).map_err(|error| {
        let code = match error {
            DecodeError::TooLarge { .. } | DecodeError::TooDeep { .. } => {
                Code::ResponseLimitExceeded
            }
            _ => Code::InvalidDocument,
        };
        about(fetched, Error::new(code, error.to_string()))
    })?;
    let version = value
        .get(version::MEMBER)
        .and_then(Value::as_str)
        .and_then(|text| ProtocolVersion::parse(text).ok());
    match version {
        Some(version) if !version.is_supported() => Err(about(
            fetched,
            Error::new(
                Code::UnsupportedVersion,
                format!("The document is of ODP {version}, not 1.0."),
            ),
        )),
        _ => Ok(value),
    }
}

/// The error of a document that breaks rules.
pub(crate) fn invalid(fetched: &Fetched, invalid: &Invalid) -> Error {
    about(
        fetched,
        Error::new(Code::InvalidDocument, invalid.to_string()),
    )
}

/// The error of a page whose `next` must not be followed.
pub(crate) fn discontinued(fetched: &Fetched, message: impl Into<String>) -> Error {
    about(fetched, Error::new(Code::InvalidContinuation, message))
}

fn about(fetched: &Fetched, error: Error) -> Error {
    error
        .with_status(fetched.status)
        .with_url(fetched.url.clone())
}

/// The language that a response says it is in.
pub(crate) fn language(fetched: &Fetched) -> Option<String> {
    let field = fetched.headers.get(http::header::CONTENT_LANGUAGE)?;
    field.to_str().ok().map(str::to_owned)
}
