//! One run in the hands of one worker.

use super::{
    Node,
    conversation::{Conversation, Next, history},
    signal::{Signal, Stop, stopped},
    step::{self, Called},
};
use crate::{
    code::Code,
    error::Error,
    id::WorkspaceId,
    provider::{Message, Priced},
    runs::{self, Begun, Claim, Lease, Outcome, What, Write},
    sql::{Param, Session},
};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// How long to wait before a store that cannot be used is asked again.
const AGAIN: Duration = Duration::from_millis(250);
/// Earlier turns of a thread that a model is shown.
const TURNS: i64 = 50;

/// How a worker's time with a run ends.
pub(super) enum End {
    /// The run ends so.
    Outcome(Outcome),
    /// The run has ended or waits, and the store knows.
    Done,
    /// The worker was told to stop.
    Stopped(Stop),
}

/// Works on a run until it ends, waits, or is taken away.
pub(super) async fn work(node: &Arc<Node>, claim: Claim, mut signal: watch::Receiver<Signal>) {
    let lease = claim.lease.clone();
    let time = node.parts.time.clone();
    let mut watched = signal.clone();
    let ended = tokio::select! {
        biased;
        stop = stopped(&mut watched, &*time) => Ok(End::Stopped(stop)),
        () = time.sleep_until(claim.deadline) => Ok(End::Outcome(Outcome::Failed {
            code: Code::RunTimeLimit,
            detail: Code::RunTimeLimit.detail().into(),
            limit: None,
        })),
        ended = go_on(node, claim) => ended,
    };
    // What is left to write is as urgent as the lease is long.
    tokio::select! {
        biased;
        () = end(node, &lease, ended) => {}
        () = lost(&mut signal, &*time) => {}
    }
}

async fn lost(signal: &mut watch::Receiver<Signal>, time: &dyn super::Sleeper) {
    loop {
        let until = signal.borrow_and_update().until;
        tokio::select! {
            changed = signal.changed() => if changed.is_err() { return },
            () = time.sleep_until(until) => return,
        }
    }
}

async fn end(node: &Arc<Node>, lease: &Lease, ended: Result<End, Error>) {
    let run = lease.run;
    let attempt = lease.attempt;
    let written = match ended {
        Ok(End::Done | End::Stopped(Stop::Lost)) | Err(Error::LeaseLost) => Ok(()),
        Ok(End::Outcome(outcome)) => finish(node, lease, outcome).await,
        Ok(End::Stopped(Stop::Cancel)) => finish(node, lease, Outcome::Cancelled).await,
        Ok(End::Stopped(Stop::HandOver)) => {
            let lease = lease.clone();
            node.persist(lease.workspace, move |session, cx| {
                runs::release(session, cx, &lease)
            })
            .await
        }
        // Its lease runs out, and another attempt goes on; after several of them the run fails.
        Err(error) => Err(error),
    };
    match written {
        Ok(()) | Err(Error::LeaseLost) => {}
        Err(error) => tracing::error!(%run, attempt, %error, "a run cannot go on here"),
    }
}

async fn finish(node: &Arc<Node>, lease: &Lease, outcome: Outcome) -> Result<(), Error> {
    let lease = lease.clone();
    node.persist(lease.workspace, move |session, cx| {
        runs::finish(session, cx, &lease, &outcome).map(|_| ())
    })
    .await
}

impl Node {
    /// A transaction of a worker, tried again while the store cannot be used: what was done is not lost for a moment's outage. Who calls
    /// this stops it when the lease runs out.
    pub(super) async fn persist<T: Send + 'static>(
        &self,
        workspace: WorkspaceId,
        job: impl FnMut(&mut dyn Session, crate::clock::Cx<'_>) -> Result<T, Error>
        + Clone
        + Send
        + 'static,
    ) -> Result<T, Error> {
        loop {
            match self.write(Some(workspace), job.clone()).await {
                Err(Error::Unavailable { detail }) => {
                    tracing::warn!(detail, "the run store cannot be used now; trying again");
                    self.sleep(AGAIN).await;
                }
                answer => return answer,
            }
        }
    }

    /// [`Self::persist`] of what gathers with what other workers write, whatever their workspaces; alone while that cannot be written: a
    /// workspace that somebody else holds must not keep back the others.
    pub(super) async fn gather(&self, write: Write) -> Result<Begun, Error> {
        // Apart, since each takes rows of the ledger in order, but not both in one transaction.
        let lane = match &write.what {
            What::Begin { .. } => "begin",
            What::End(last) if last.produced.is_empty() => "end",
            What::End(_) => return self.alone(write).await,
        };
        match self.writes.ask(lane, write.clone()).await {
            Err(Error::Unavailable { .. }) => self.alone(write).await,
            answer => answer,
        }
    }

    async fn alone(&self, write: Write) -> Result<Begun, Error> {
        self.persist(write.lease.workspace, move |session, cx| {
            runs::alone(session, cx, &write)
        })
        .await
    }
}

/// Does step after step, as long as the node is not stopping.
async fn go_on(node: &Arc<Node>, claim: Claim) -> Result<End, Error> {
    let definition = &claim.definition;
    let rejected = |detail: String| {
        Ok(End::Outcome(Outcome::Failed {
            code: Code::ProviderRejected,
            detail,
            limit: None,
        }))
    };
    let Some(provider) = node.parts.providers.get(&definition.provider).cloned() else {
        return rejected(format!(
            "The agent's provider {:?} is not configured on this server.",
            definition.provider
        ));
    };
    let mut conversation = Conversation::of(&claim, earlier(node, &claim).await?)?;
    loop {
        let next = conversation.next();
        if !matches!(next, Next::End(_)) {
            if node.is_stopping() {
                return Ok(End::Stopped(Stop::HandOver));
            }
            if conversation.seq() > node.parts.settings.steps {
                return rejected(format!(
                    "The model did not come to an end in {} steps; mend the agent's instructions or give it fewer tools.",
                    node.parts.settings.steps
                ));
            }
        }
        match next {
            Next::Call { limited } => {
                match step::call(node, &claim, &provider, &conversation, limited).await? {
                    Called::Replied(reply) => conversation.replied(reply),
                    Called::Ended(end) => return Ok(end),
                }
            }
            Next::Use(call) => {
                let result = step::use_tool(node, &claim, conversation.seq(), &call).await?;
                conversation.used(result);
            }
            // Only a run that was taken up again after its last reply was kept comes here.
            Next::End(reply) => return Ok(End::Outcome(step::judge(&claim, reply).await?)),
        }
    }
}

/// What was said before in the run's thread.
async fn earlier(node: &Node, claim: &Claim) -> Result<Vec<Message>, Error> {
    if !claim.answers_turn {
        return Ok(Vec::new());
    }
    let run = claim.lease.run.to_string();
    let read = move |session: &mut dyn Session| {
        let rows = session.query(
            "SELECT before.input, answer.output FROM runs r JOIN turns t ON t.id = r.turn_id
             JOIN turns before ON before.thread_id = t.thread_id AND before.seq < t.seq AND before.state = 'answered'
             JOIN runs answer ON answer.id = before.run_id
             WHERE r.id = $1 ORDER BY before.seq DESC LIMIT $2",
            &[Param::Text(&run), Param::Int(TURNS)],
        )?;
        let turns = rows.iter().rev();
        turns
            .map(|row| {
                let input = row.json(0)?.unwrap_or_default();
                Ok((input, row.json(1)?.unwrap_or_default()))
            })
            .collect::<Result<Vec<_>, Error>>()
    };
    Ok(history(node.parts.store.read(read).await?))
}

/// The provider of a run.
pub(super) type Provider = Priced;
