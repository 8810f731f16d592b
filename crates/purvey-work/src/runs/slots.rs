//! A workspace's slots and queue, under a lock on its row.

use crate::{
    error::Error,
    id::WorkspaceId,
    sql::{Param, ROWS, Session, values},
};

/// The counters of a workspace. Whoever holds this holds the workspace's row; [`Slots::save`] writes what changed.
pub(super) struct Slots {
    pub(super) workspace: WorkspaceId,
    pub(super) limit: i64,
    pub(super) queue_limit: i64,
    /// Runs that hold a slot.
    pub(super) running: i64,
    /// Runs that wait.
    pub(super) queued: i64,
    pub(super) next_position: i64,
    saved: (i64, i64, i64),
}

impl Slots {
    /// Holds the rows of these workspaces, in the order of their identifiers; nothing of one that is not there.
    pub(super) fn hold_all(
        session: &mut dyn Session,
        workspaces: &[WorkspaceId],
    ) -> Result<Vec<Self>, Error> {
        let texts: Vec<String> = workspaces.iter().map(ToString::to_string).collect();
        let rows: Vec<_> = texts.iter().map(|text| [Param::Text(text)]).collect();
        let mut held = Vec::with_capacity(workspaces.len());
        for rows in rows.chunks(ROWS) {
            let mut params = Vec::new();
            let wanted = values([""], rows, &mut params);
            let rows = session.query(
                &format!(
                    "SELECT concurrency_limit, queue_limit, running, queued, next_position, id FROM workspaces
                     WHERE id IN {wanted} ORDER BY id /*pg:FOR UPDATE*/"
                ),
                &params,
            )?;
            for row in rows {
                let (running, queued, next_position) = (row.int(2)?, row.int(3)?, row.int(4)?);
                held.push(Self {
                    workspace: row.parsed(5)?,
                    limit: row.int(0)?,
                    queue_limit: row.int(1)?,
                    running,
                    queued,
                    next_position,
                    saved: (running, queued, next_position),
                });
            }
        }
        Ok(held)
    }

    /// Holds a workspace's row; nothing if there is no such workspace.
    pub(super) fn hold(
        session: &mut dyn Session,
        workspace: WorkspaceId,
    ) -> Result<Option<Self>, Error> {
        Ok(Self::hold_all(session, &[workspace])?.pop())
    }

    /// Holds the row of a workspace that runs are known of.
    pub(super) fn of(session: &mut dyn Session, workspace: WorkspaceId) -> Result<Self, Error> {
        Self::hold(session, workspace)?.ok_or_else(|| Error::Store {
            detail: format!("workspace {workspace} of a run is gone"),
        })
    }

    /// Whether a run may take a slot.
    pub(super) const fn has_room(&self) -> bool {
        self.running < self.limit
    }

    /// Writes what changed.
    pub(super) fn save(&mut self, session: &mut dyn Session) -> Result<(), Error> {
        Self::save_all(session, [self])
    }

    /// Writes what changed in any of these.
    pub(super) fn save_all<'a>(
        session: &mut dyn Session,
        all: impl IntoIterator<Item = &'a mut Self>,
    ) -> Result<(), Error> {
        let mut changed = Vec::new();
        for slots in all {
            let now = (slots.running, slots.queued, slots.next_position);
            if now != slots.saved {
                slots.saved = now;
                changed.push((slots.workspace.to_string(), now));
            }
        }
        let number = Param::Int;
        let rows: Vec<_> = changed
            .iter()
            .map(|(workspace, (running, queued, next))| {
                [
                    Param::Text(workspace),
                    number(*running),
                    number(*queued),
                    number(*next),
                ]
            })
            .collect();
        for rows in rows.chunks(ROWS) {
            let mut params = Vec::new();
            let new = values(["", "BIGINT", "BIGINT", "BIGINT"], rows, &mut params);
            session.execute(
                &format!(
                    "UPDATE workspaces SET running = new.column2, queued = new.column3, next_position = new.column4
                     FROM {new} AS new WHERE workspaces.id = new.column1"
                ),
                &params,
            )?;
        }
        Ok(())
    }
}
