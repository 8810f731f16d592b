//! Organizations, users, workspaces, members and tokens (Work §1, §11).

pub(crate) mod organizations;
pub(crate) mod tokens;
pub(crate) mod workspaces;

use crate::{
    code::Code,
    error::Error,
    id::{UserId, WorkspaceId},
    model::Role,
    sql::{Param, Session},
};
use std::str::FromStr;

/// Characters of a name.
const NAME: std::ops::RangeInclusive<usize> = 1..=200;

/// An identifier of a path: a malformed one is as absent as any other.
pub(crate) fn named<T: FromStr>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| Code::NotFound.into())
}

/// A user's role in a workspace.
pub(crate) fn role(
    session: &mut dyn Session,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<Option<Role>, Error> {
    session
        .row(
            "SELECT role FROM members WHERE workspace_id = $1 AND user_id = $2",
            &[
                Param::Text(&workspace.to_string()),
                Param::Text(&user.to_string()),
            ],
        )?
        .map(|row| row.parsed(0))
        .transpose()
}
