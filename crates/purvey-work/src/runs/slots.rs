//! A workspace's slots and queue, under a lock on its row.

use crate::{
    error::Error,
    id::WorkspaceId,
    sql::{Param, Session},
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
    /// Holds a workspace's row; nothing if there is no such workspace.
    pub(super) fn hold(
        session: &mut dyn Session,
        workspace: WorkspaceId,
    ) -> Result<Option<Self>, Error> {
        let Some(row) = session.row(
            "SELECT concurrency_limit, queue_limit, running, queued, next_position FROM workspaces WHERE id = $1 /*pg:FOR UPDATE*/",
            &[Param::Text(&workspace.to_string())],
        )?
        else {
            return Ok(None);
        };
        let (running, queued, next_position) = (row.int(2)?, row.int(3)?, row.int(4)?);
        Ok(Some(Self {
            workspace,
            limit: row.int(0)?,
            queue_limit: row.int(1)?,
            running,
            queued,
            next_position,
            saved: (running, queued, next_position),
        }))
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
        let now = (self.running, self.queued, self.next_position);
        if now != self.saved {
            session.execute(
                "UPDATE workspaces SET running = $2, queued = $3, next_position = $4 WHERE id = $1",
                &[
                    Param::Text(&self.workspace.to_string()),
                    Param::Int(self.running),
                    Param::Int(self.queued),
                    Param::Int(self.next_position),
                ],
            )?;
            self.saved = now;
        }
        Ok(())
    }
}
