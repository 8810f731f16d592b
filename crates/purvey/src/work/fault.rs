//! How a call's failure is shown, and its exit code.

use crate::{
    failure::{FAILED, Failure, USAGE},
    text,
};
use purvey_client::Error;

const ABSENT: u8 = 4;
const FORBIDDEN: u8 = 5;
const NOT_NOW: u8 = 6;
pub(super) const RUN_FAILED: u8 = 8;
const CONFLICT: u8 = 9;

/// A failed call.
pub(super) fn failure(error: &Error) -> Failure {
    let Error::Problem(problem) = error else {
        let failure = Failure::new(text::line(&error.to_string()));
        return match error {
            Error::Connection { .. } => failure
                .exit_code(NOT_NOW)
                .hint("is the server running, and is --server (or PURVEY_SERVER) its origin?"),
            Error::Usage(_) | Error::File { .. } => failure.exit_code(USAGE),
            _ => failure,
        };
    };
    let mut failure = Failure::new(text::line(&problem.detail)).exit_code(match problem.status {
        400 | 413 | 415 | 422 => USAGE,
        401 | 403 => FORBIDDEN,
        404 => ABSENT,
        409 => CONFLICT,
        429 | 500.. => NOT_NOW,
        _ => FAILED,
    });
    for fault in &problem.errors {
        let place = fault.pointer.as_deref().or(fault.name.as_deref());
        failure = failure.detail(format_args!(
            "{} {}: {}",
            text::line(&fault.r#in),
            text::line(place.unwrap_or_default()),
            text::line(&fault.reason)
        ));
    }
    let id = problem.request_id.as_deref().unwrap_or("none");
    failure = failure.detail(format_args!(
        "{} {}, request {}",
        problem.status,
        text::line(&problem.code),
        text::line(id)
    ));
    if let Some(next) = next(&problem.code) {
        return failure.hint(next);
    }
    match (problem.status, problem.retry_after) {
        (401, _) => failure.hint("give a token with --token-file or PURVEY_TOKEN"),
        (_, Some(wait)) => failure.hint(format_args!("try again in {} s", wait.as_secs())),
        _ => failure,
    }
}

/// What to do after an upload that failed.
fn next(code: &str) -> Option<&'static str> {
    Some(match code {
        "artifact.size_mismatch" | "artifact.checksum_mismatch" => {
            "the file changed while it was uploaded; upload it again"
        }
        "artifact.metadata_mismatch" => "the key names another upload; give another --key, or none",
        "artifact.upload_failed" | "artifact.deleted" => {
            "what the key names failed or was deleted; give another --key, or none"
        }
        "artifact.upload_active" => {
            "the same upload is still under way; run the command again later"
        }
        "artifact.storage_quota" => {
            "`purvey artifact delete` makes room, or ask the operator for more"
        }
        _ => return None,
    })
}
