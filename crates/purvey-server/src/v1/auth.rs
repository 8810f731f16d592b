//! Who may write.

use super::{
    Context,
    problem::{Code, Failure},
};
use http::{HeaderMap, header::AUTHORIZATION};

/// Lets the operator through: exactly one `Authorization: Bearer` with its token.
pub(super) fn operator(context: &Context, headers: &HeaderMap) -> Result<(), Failure> {
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let bearer = match (sent.next(), sent.next()) {
        (None, _) => return Err(Failure::new(Code::AuthMissing)),
        (Some(value), None) => bearer(value.as_bytes()),
        _ => None,
    };
    match (&context.config.admin_token, bearer) {
        (Some(token), Some(bearer)) if token.matches(bearer) => Ok(()),
        _ => Err(Failure::new(Code::AuthInvalid)),
    }
}

/// The token of a field of the scheme `Bearer`.
pub(super) fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| rest.trim_ascii())
}
