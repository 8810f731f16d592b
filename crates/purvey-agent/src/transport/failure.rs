//! What a failure of the HTTP client means.

use super::coding::Fault;
use crate::{Code, Error};
use std::error::Error as StdError;
use std::io;

/// The typed error for a failure of the client.
pub(super) fn of(error: &reqwest::Error) -> Error {
    // A refusal by the guard travels through the client's own errors.
    if let Some(own) = causes(error).find_map(|cause| cause.downcast_ref::<Error>()) {
        return own.clone();
    }
    let code = if error.is_timeout() {
        Code::Timeout
    } else if error.is_dns() {
        Code::NameNotResolved
    } else if error.is_connect() {
        Code::ConnectFailed
    } else if error.is_builder() {
        Code::UrlNotAllowed
    } else {
        causes(error)
            .find_map(of_cause)
            .unwrap_or(Code::ConnectionLost)
    };
    // The client's own words name the URL, which the error has anyway.
    let why = error.source().map_or_else(|| error.to_string(), chain);
    Error::new(code, format!("The exchange failed: {why}."))
}

fn of_cause(cause: &(dyn StdError + 'static)) -> Option<Code> {
    if let Some(error) = cause.downcast_ref::<hyper::Error>() {
        if error.is_parse_too_large() {
            return Some(Code::ResponseLimitExceeded);
        }
        return error.is_parse().then_some(Code::InvalidResponse);
    }
    let error = cause.downcast_ref::<io::Error>()?;
    let malformed = matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
    );
    malformed.then_some(Code::InvalidResponse)
}

/// An error and what caused it.
fn causes<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn StdError + 'static)| {
        let error: &'e (dyn StdError + 'static) = *error;
        error.source()
    })
}

/// An error and its causes as one line.
pub(super) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

impl Fault {
    /// The typed error, for a body of at most `limit` bytes.
    pub(super) fn into_error(self, limit: usize) -> Error {
        match self {
            Self::TooLarge => Error::new(
                Code::ResponseLimitExceeded,
                format!("The response's body has more than {limit} bytes."),
            ),
            Self::Unknown(name) => Error::new(
                Code::InvalidResponse,
                format!("The response has the content coding {name:?}, which was not offered."),
            ),
            Self::TooMany => Error::new(
                Code::InvalidResponse,
                "The response has more than two content codings.",
            ),
            Self::Corrupt(name) => Error::new(
                Code::InvalidResponse,
                format!("The response's {name} coding is not well formed or not whole."),
            ),
        }
    }
}
