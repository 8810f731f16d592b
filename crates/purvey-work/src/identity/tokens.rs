//! Bearer tokens: shown once, kept as hashes only.

use super::{
    named,
    organizations::{missing, read_user},
};
use crate::{
    access::{Action, Actor, Principal},
    body::Members,
    clock::{Cx, Timestamp},
    code::Code,
    error::{Error, Fault, Refusal},
    id::{TokenId, UserId},
    model::{Scope, Token, UserState},
    paging::{Listing, PageRequest},
    sql::{Param, Row, Session},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// What a token begins with.
const PREFIX: &str = "pvy_";
/// Longest secret that is looked up.
const LONGEST: usize = 256;

const COLUMNS: &str = "t.id, t.user_id, t.scopes, t.expires_at, t.revoked_at, t.created_at";

/// A token with its secret, which nobody can show again.
#[derive(Clone, Serialize)]
pub struct NewToken {
    /// The secret.
    #[serde(rename = "token")]
    pub secret: String,
    /// What it stands for.
    #[serde(flatten)]
    pub token: Token,
}

impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewToken")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

/// A new secret and the hash that is kept of it.
pub(crate) fn secret(cx: Cx<'_>) -> (String, [u8; 32]) {
    let mut bytes = [0; 32];
    cx.chance.fill(&mut bytes);
    let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
    let hash = hash(&secret);
    (secret, hash)
}

/// What is kept of a secret.
pub(crate) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Who presents this secret.
///
/// # Errors
/// `auth.invalid` for what is no token, has expired or belongs to a deleted user, `auth.revoked`.
pub(crate) fn authenticate(
    session: &mut dyn Session,
    now: Timestamp,
    secret: &str,
) -> Result<Principal, Error> {
    if !secret.starts_with(PREFIX) || secret.len() > LONGEST {
        return Err(Code::AuthInvalid.into());
    }
    let row = session.row(
        &format!(
            "SELECT {COLUMNS}, u.organization_id, u.state FROM tokens t JOIN users u ON u.id = t.user_id WHERE t.hash = $1"
        ),
        &[Param::Bytes(&hash(secret))],
    )?;
    let row = row.ok_or(Code::AuthInvalid)?;
    let token = read(&row)?;
    if token.revoked_at.is_some() {
        return Err(Code::AuthRevoked.into());
    }
    let state: UserState = row.parsed(7)?;
    let expired = token.expires_at.is_some_and(|expires| expires <= now);
    if expired || state == UserState::Deleted {
        return Err(Code::AuthInvalid.into());
    }
    Ok(Principal::User(Actor {
        user: token.user_id,
        organization: row.parsed(6)?,
        state,
        scopes: token.scopes,
        token: token.id,
    }))
}

/// Makes a token: users for themselves and with scopes that they present themselves, the operator for anybody.
pub(crate) fn create(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    body: &Value,
) -> Result<NewToken, Error> {
    let mut members = Members::of(body);
    let user = members.parsed::<UserId>("user_id", "a user's id");
    if members
        .value("scopes")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty)
    {
        members.fault("/scopes".into(), "Must name a scope at least.".into());
    }
    let scopes =
        members.opt_list::<Scope>("scopes", Scope::ALL.len(), "a scope such as runs:write");
    let expires_at = members.opt_time("expires_at");
    if expires_at.is_some_and(|expires| expires <= cx.now) {
        members.fault("/expires_at".into(), "Must lie in the future.".into());
    }
    members.end()?;
    let (Some(user), Some(scopes)) = (user, scopes) else {
        return Err(Code::NotFound.into());
    };
    let known = read_user(session, user)?.filter(|user| caller.sees(user.organization_id));
    let Some(known) = known.filter(|user| user.state != UserState::Deleted) else {
        return Err(missing("/user_id", "There is no such user."));
    };
    caller.may(Action::TokensWrite, None, true)?;
    if let Principal::User(actor) = caller {
        if known.id != actor.user {
            return Err(others());
        }
        let beyond = scopes
            .iter()
            .position(|scope| !actor.scopes.contains(scope));
        if let Some(index) = beyond {
            let mut refusal = Refusal::because(
                Code::PermissionScope,
                "A token gives no scope that it does not have.",
            );
            refusal.errors = vec![Fault::body(
                format!("/scopes/{index}"),
                "Is not a scope of the token that asks.",
            )];
            return Err(refusal.into());
        }
    }
    issue(session, cx, user, scopes, expires_at)
}

/// Makes a token without asking whether the caller may.
pub(crate) fn issue(
    session: &mut dyn Session,
    cx: Cx<'_>,
    user_id: UserId,
    scopes: Vec<Scope>,
    expires_at: Option<Timestamp>,
) -> Result<NewToken, Error> {
    let (secret, hash) = secret(cx);
    let token = Token {
        id: TokenId::new(cx.now, cx.chance),
        user_id,
        scopes,
        expires_at,
        revoked_at: None,
        created_at: cx.now,
    };
    let words: Vec<&str> = token.scopes.iter().map(|scope| scope.text()).collect();
    session.execute(
        "INSERT INTO tokens (id, user_id, hash, scopes, expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
        &[
            Param::Text(&token.id.to_string()),
            Param::Text(&user_id.to_string()),
            Param::Bytes(&hash),
            Param::Text(&serde_json::json!(words).to_string()),
            expires_at.map_or(Param::Null, |time| Param::Int(time.millis())),
            Param::Int(cx.now.millis()),
        ],
    )?;
    Ok(NewToken { secret, token })
}

/// The caller's own tokens; for the operator all.
pub(crate) fn list(
    session: &mut dyn Session,
    caller: &Principal,
    page: &PageRequest,
) -> Result<Listing<Token>, Error> {
    let before = page.before::<TokenId>()?;
    caller.may(Action::TokensRead, None, true)?;
    let rows = match caller {
        Principal::Operator => session.query(
            &format!("SELECT {COLUMNS} FROM tokens t WHERE t.id < $1 ORDER BY t.id DESC LIMIT $2"),
            &[Param::Text(&before), Param::Int(page.rows())],
        )?,
        Principal::User(actor) => session.query(
            &format!(
                "SELECT {COLUMNS} FROM tokens t WHERE t.user_id = $1 AND t.id < $2 ORDER BY t.id DESC LIMIT $3"
            ),
            &[
                Param::Text(&actor.user.to_string()),
                Param::Text(&before),
                Param::Int(page.rows()),
            ],
        )?,
    };
    let items = rows.iter().map(read).collect::<Result<_, _>>()?;
    Ok(page.listing(items, |token: &Token| token.id))
}

/// Ends a token; one that has ended stays so.
pub(crate) fn revoke(
    session: &mut dyn Session,
    now: Timestamp,
    caller: &Principal,
    id: &str,
) -> Result<(), Error> {
    let id: TokenId = named(id)?;
    let row = session.row(
        "SELECT t.user_id, u.organization_id FROM tokens t JOIN users u ON u.id = t.user_id WHERE t.id = $1",
        &[Param::Text(&id.to_string())],
    )?;
    let row = row.ok_or(Code::NotFound)?;
    if !caller.sees(row.parsed(1)?) {
        return Err(Code::NotFound.into());
    }
    caller.may(Action::TokensWrite, None, true)?;
    if let Principal::User(actor) = caller
        && row.parsed::<UserId>(0)? != actor.user
    {
        return Err(others());
    }
    session.execute(
        "UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL",
        &[Param::Text(&id.to_string()), Param::Int(now.millis())],
    )?;
    Ok(())
}

fn others() -> Error {
    Refusal::because(
        Code::PermissionRole,
        "Users make and revoke their own tokens; the operator anybody's.",
    )
    .into()
}

fn read(row: &Row) -> Result<Token, Error> {
    let time = |column: usize| Ok::<_, Error>(row.opt_int(column)?.map(Timestamp::from_millis));
    Ok(Token {
        id: row.parsed(0)?,
        user_id: row.parsed(1)?,
        scopes: row.json(2)?.unwrap_or_default(),
        expires_at: time(3)?,
        revoked_at: time(4)?,
        created_at: Timestamp::from_millis(row.int(5)?),
    })
}
