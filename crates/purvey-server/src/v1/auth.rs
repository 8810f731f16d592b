//! Who calls under `/v1`.

use super::{
    Context,
    problem::{Code, Failure},
};
use crate::AdminToken;
use http::{HeaderMap, header::AUTHORIZATION};
use purvey_work::{Platform, Principal};

/// Lets through who may write the catalog: the operator, or with the scope `catalog:write` a user of the organization that it belongs to.
pub(super) async fn writer(context: &Context, headers: &HeaderMap) -> Result<(), Failure> {
    let operator = context.config.admin_token.as_ref();
    match principal(operator, context.work.as_ref(), headers).await? {
        Principal::Operator => Ok(()),
        user => match &context.work {
            Some(platform) => Ok(platform.may_write_catalog(user).await?),
            None => Err(Failure::new(Code::AuthInvalid)),
        },
    }
}

/// Who presents the one bearer token of a request: the operator, or a user of the run platform where there is one.
pub(super) async fn principal(
    operator: Option<&AdminToken>,
    platform: Option<&Platform>,
    headers: &HeaderMap,
) -> Result<Principal, Failure> {
    let secret = secret(headers)?;
    if operator.is_some_and(|token| token.matches(secret.as_bytes())) {
        return Ok(Principal::Operator);
    }
    match platform {
        Some(platform) => Ok(platform.authenticate(secret).await?),
        None => Err(Failure::new(Code::AuthInvalid)),
    }
}

/// The one bearer token of a request.
pub(super) fn secret(headers: &HeaderMap) -> Result<&str, Failure> {
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let secret = match (sent.next(), sent.next()) {
        (None, _) => return Err(Failure::new(Code::AuthMissing)),
        (Some(value), None) => value.to_str().ok().and_then(crate::odp::bearer),
        _ => None,
    };
    secret.ok_or_else(|| Failure::new(Code::AuthInvalid))
}
