//! Daily limits (Work §4): what may still be spent, and the ledger of what was.
//!
//! The ledger counts micro-cents for each day of UTC and each of three scopes: the workspace, its owner, the platform. Before a call of a
//! provider the most it can cost is reserved, after it the reservation is settled, on the day of the reservation. A call is refused when
//! settled + reserved has reached a limit, so a limit is passed at most by what the one call that reached it was reserved with, however
//! many calls go on at once: they see each other's reservations.

mod ledger;

pub(crate) use ledger::{Call, charge, reserve, settle};

use crate::{
    clock::{Cx, Day, Timestamp},
    code::Code,
    error::{Error, LimitDetail, Refusal},
    id::{UserId, WorkspaceId},
    sql::{Param, ROWS, Row, Session, values},
};

/// Micro-cents of a cent.
pub(crate) const MICROS_PER_CENT: i64 = 1_000_000;

/// Cents for showing, rounded up.
pub(crate) const fn cents(micros: i64) -> i64 {
    micros.div_euclid(MICROS_PER_CENT) + (micros.rem_euclid(MICROS_PER_CENT) > 0) as i64
}

/// Whose money a workspace's runs spend, and what may be spent.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    pub(crate) workspace: WorkspaceId,
    pub(crate) owner: UserId,
    /// The workspace's own limit in cents.
    pub(crate) cost_cents: Option<i64>,
    /// Of all workspaces of the owner.
    pub(crate) allowance_cents: Option<i64>,
    /// Of everyone.
    pub(crate) platform_cents: Option<i64>,
    pub(crate) stopped: bool,
    /// The owner joined by an invitation, shares no workspace with who invited them, and nobody has approved the account.
    pub(crate) needs_approval: bool,
    /// What was spent and reserved today when this was read.
    pub(crate) used: Used,
}

/// What is spent and reserved on a day, in micro-cents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) workspace: i64,
    pub(crate) owner: i64,
    pub(crate) platform: i64,
}

impl Budget {
    /// The budgets of workspaces as they stand on a day.
    ///
    /// # Errors
    /// [`Error::Store`] when one of the workspaces is not there.
    pub(crate) fn load_all(
        session: &mut dyn Session,
        day: Day,
        workspaces: &[WorkspaceId],
    ) -> Result<Vec<Self>, Error> {
        let texts: Vec<String> = workspaces.iter().map(ToString::to_string).collect();
        let rows: Vec<_> = texts.iter().map(|text| [Param::Text(text)]).collect();
        let mut budgets = Vec::with_capacity(workspaces.len());
        for rows in rows.chunks(ROWS) {
            let mut params = vec![Param::Int(day.number()), Param::Text(ledger::PLATFORM)];
            let wanted = values([""], rows, &mut params);
            let rows = session.query(
                &format!(
                    "SELECT w.owner_id, w.daily_cost_cents, l.allowance_daily_cents, l.platform_daily_cents, l.budget_stop,
                        CAST(CASE WHEN u.approved = 0 AND u.invited_by IS NOT NULL AND NOT EXISTS (
                            SELECT 1 FROM members mine JOIN members theirs ON theirs.workspace_id = mine.workspace_id
                            WHERE mine.user_id = u.id AND theirs.user_id = u.invited_by) THEN 1 ELSE 0 END AS BIGINT),
                        (SELECT settled + reserved FROM ledger WHERE day = $1 AND scope = w.id),
                        (SELECT settled + reserved FROM ledger WHERE day = $1 AND scope = w.owner_id),
                        (SELECT settled + reserved FROM ledger WHERE day = $1 AND scope = $2), w.id
                     FROM workspaces w JOIN users u ON u.id = w.owner_id JOIN limits l ON l.id = 1 WHERE w.id IN {wanted}"
                ),
                &params,
            )?;
            for row in rows {
                budgets.push(Self::read(&row)?);
            }
        }
        match budgets.len() == workspaces.len() {
            true => Ok(budgets),
            false => Err(gone()),
        }
    }

    fn load(session: &mut dyn Session, day: Day, workspace: WorkspaceId) -> Result<Self, Error> {
        Self::load_all(session, day, &[workspace])?
            .pop()
            .ok_or_else(gone)
    }

    fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            workspace: row.parsed(9)?,
            owner: row.parsed(0)?,
            cost_cents: row.opt_int(1)?,
            allowance_cents: row.opt_int(2)?,
            platform_cents: row.opt_int(3)?,
            stopped: row.int(4)? != 0,
            needs_approval: row.int(5)? != 0,
            used: Used {
                workspace: row.opt_int(6)?.unwrap_or(0),
                owner: row.opt_int(7)?.unwrap_or(0),
                platform: row.opt_int(8)?.unwrap_or(0),
            },
        })
    }

    /// Which limit stands in the way now, by what was used when this was read.
    pub(crate) fn met(&self, now: Timestamp) -> Option<LimitDetail> {
        self.judge(self.used, now)
    }

    /// Which limit stands in the way, if one does.
    pub(crate) fn judge(&self, used: Used, now: Timestamp) -> Option<LimitDetail> {
        if self.stopped {
            return Some(LimitDetail::of(Code::BudgetStopped));
        }
        if self.needs_approval {
            return Some(LimitDetail::of(Code::NeedsApproval));
        }
        [
            (Code::DailyCost, self.cost_cents, used.workspace),
            (Code::DailyAllowance, self.allowance_cents, used.owner),
            (Code::DailyPlatform, self.platform_cents, used.platform),
        ]
        .into_iter()
        .find_map(|(code, limit, used)| {
            let limit = limit?;
            (used >= limit.saturating_mul(MICROS_PER_CENT)).then(|| LimitDetail {
                used_cents: Some(cents(used)),
                limit_cents: Some(limit),
                resets_at: Some(now.day().end()),
                ..LimitDetail::of(code)
            })
        })
    }
}

fn gone() -> Error {
    Error::Store {
        detail: "the workspace of a run is gone".into(),
    }
}

/// Which limit stands in the way of a workspace's runs now, if one does.
///
/// # Errors
/// Those of the store.
pub(crate) fn met(
    session: &mut dyn Session,
    cx: Cx<'_>,
    workspace: WorkspaceId,
) -> Result<Option<LimitDetail>, Error> {
    let budget = Budget::load(session, cx.now.day(), workspace)?;
    Ok(budget.met(cx.now))
}

/// The refusal of a start that met a limit: without a time to try again, since waiting a little does not help.
pub(crate) fn refusal(limit: &LimitDetail) -> Refusal {
    Refusal {
        limit_detail: Some(limit.clone()),
        ..Refusal::new(limit.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cents_are_shown_rounded_up() {
        assert_eq!(cents(0), 0);
        assert_eq!(cents(1), 1);
        assert_eq!(cents(1_000_000), 1);
        assert_eq!(cents(1_000_001), 2);
    }
}
