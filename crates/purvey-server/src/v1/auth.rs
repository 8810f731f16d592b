//! Who may write.

use super::{
    Context,
    problem::{Code, Failure},
};
use http::{HeaderMap, header::AUTHORIZATION};
use purvey_work::access::Action;

/// Lets through who may write the catalog: exactly one `Authorization: Bearer` with the operator's token, or with a user's that has the
/// scope `catalog:write`.
pub(super) async fn writer(context: &Context, headers: &HeaderMap) -> Result<(), Failure> {
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let bearer = match (sent.next(), sent.next()) {
        (None, _) => return Err(Failure::new(Code::AuthMissing)),
        (Some(value), None) => bearer(value.as_bytes()),
        _ => None,
    };
    let bearer = bearer.ok_or(Failure::new(Code::AuthInvalid))?;
    let operator = context.config.admin_token.as_ref();
    if operator.is_some_and(|token| token.matches(bearer)) {
        return Ok(());
    }
    match (&context.work, std::str::from_utf8(bearer)) {
        (Some(platform), Ok(secret)) => {
            let caller = platform.authenticate(secret).await?;
            Ok(caller.may(Action::CatalogWrite, None, false)?)
        }
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
