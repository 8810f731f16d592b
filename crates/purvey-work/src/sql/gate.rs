//! Work of one kind gathers while a transaction with its like is under way, and goes together in the next.

#[cfg(test)]
mod tests;

use super::{
    ANSWER, Session, Store,
    job::{Job, alike, ended, guarded},
    silent,
};
use crate::error::Error;
use parking_lot::Mutex;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};
use tokio::{sync::oneshot, time::timeout};

/// Most questions in one transaction: whoever comes after them waits for all of them.
const TOGETHER: usize = 256;
/// Most questions that wait; more are refused.
const WAITING: usize = 16_384;

/// Where questions gather. One that finds nothing under way in its lane goes at once; nobody waits for others to come. In a lane questions
/// are answered in the order in which they came. Each gets an answer of its own; what fails the transaction fails all in it.
pub(crate) struct Gate<Q, A>(Arc<Inner<Q, A>>);

/// Answers questions within one transaction, in their order. A failure of the whole that does not lie in the store concerns one of them,
/// so it is asked again for each alone.
type Ask<Q, A> =
    dyn Fn(&mut dyn Session, &[Q]) -> Result<Vec<Result<A, Error>>, Error> + Send + Sync;

struct Inner<Q, A> {
    store: Store,
    ask: Box<Ask<Q, A>>,
    lanes: Mutex<Lanes<Q, A>>,
}

struct Lanes<Q, A> {
    /// What waits behind each transaction that is under way.
    behind: HashMap<Lane, VecDeque<Waiting<Q, A>>>,
    count: usize,
}

/// None on a store with one writer, where all lanes are one.
type Lane = Option<String>;

struct Waiting<Q, A> {
    question: Q,
    reply: oneshot::Sender<Result<A, Error>>,
    alone: bool,
}

impl<Q: Send + 'static, A: Send + 'static> Gate<Q, A> {
    pub(crate) fn new(
        store: Store,
        ask: impl Fn(&mut dyn Session, &[Q]) -> Result<Vec<Result<A, Error>>, Error>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            store,
            ask: Box::new(ask),
            lanes: Mutex::new(Lanes {
                behind: HashMap::new(),
                count: 0,
            }),
        }))
    }

    /// Asks within a transaction of `lane`, which may be a workspace as in [`Store::write_in`]; it may be asked more than once.
    ///
    /// # Errors
    /// Those of the question; [`Error::Unavailable`] when too many wait, or no answer comes.
    pub(crate) async fn ask(&self, lane: &str, question: Q) -> Result<A, Error> {
        let (reply, answer) = oneshot::channel();
        let waiting = Waiting {
            question,
            reply,
            alone: false,
        };
        let lane = (!self.0.store.has_one_writer()).then(|| lane.to_owned());
        if let Some(first) = self.gather(&lane, waiting)? {
            self.send(&lane, vec![first]);
        }
        match timeout(ANSWER, answer).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(ended())),
            Err(_) => Err(silent()),
        }
    }

    /// Puts a question behind the transaction of its lane; gives it back if there is none.
    fn gather(&self, lane: &Lane, waiting: Waiting<Q, A>) -> Result<Option<Waiting<Q, A>>, Error> {
        let mut lanes = self.0.lanes.lock();
        if lanes.count >= WAITING {
            return Err(Error::Unavailable {
                detail: format!("{WAITING} questions wait already"),
            });
        }
        match lanes.behind.get_mut(lane) {
            Some(behind) => {
                behind.push_back(waiting);
                lanes.count += 1;
                Ok(None)
            }
            None => {
                lanes.behind.insert(lane.clone(), VecDeque::new());
                Ok(Some(waiting))
            }
        }
    }

    fn send(&self, lane: &Lane, waiting: Vec<Waiting<Q, A>>) {
        let (questions, replies) = waiting
            .into_iter()
            .map(|waiting| (waiting.question, waiting.reply))
            .unzip();
        let group = Group {
            gate: self.clone(),
            lane: lane.clone(),
            questions,
            replies,
            answers: Vec::new(),
            again: Vec::new(),
        };
        self.0
            .store
            .backend
            .submit(lane.as_deref(), Box::new(group));
    }

    /// A transaction of the lane is over: `again` and what gathered behind it go next.
    fn go_on(&self, lane: &Lane, again: Vec<Waiting<Q, A>>) {
        let next = {
            let Lanes { behind, count } = &mut *self.0.lanes.lock();
            let Some(waiting) = behind.get_mut(lane) else {
                return;
            };
            for again in again.into_iter().rev() {
                waiting.push_front(again);
                *count += 1;
            }
            let before = waiting.len();
            let next = take(waiting);
            *count -= before - waiting.len();
            if next.is_empty() {
                behind.remove(lane);
            }
            next
        };
        if !next.is_empty() {
            self.send(lane, next);
        }
    }
}

/// What goes next of what waits; all of it has been given up if nothing does.
fn take<Q, A>(waiting: &mut VecDeque<Waiting<Q, A>>) -> Vec<Waiting<Q, A>> {
    let mut next: Vec<Waiting<Q, A>> = Vec::new();
    while let Some(first) = waiting.pop_front() {
        let full = next.len() == TOGETHER || next.first().is_some_and(|next| next.alone);
        if full || first.alone && !next.is_empty() {
            waiting.push_front(first);
            break;
        }
        if !first.reply.is_closed() {
            next.push(first);
        }
    }
    next
}

/// Questions on their way through one transaction.
struct Group<Q: Send + 'static, A: Send + 'static> {
    gate: Gate<Q, A>,
    lane: Lane,
    questions: Vec<Q>,
    replies: Vec<oneshot::Sender<Result<A, Error>>>,
    answers: Vec<Result<A, Error>>,
    /// What is asked again, each alone.
    again: Vec<Waiting<Q, A>>,
}

impl<Q: Send + 'static, A: Send + 'static> Job for Group<Q, A> {
    fn is_given_up(&self) -> bool {
        self.replies.iter().all(oneshot::Sender::is_closed)
    }

    fn run(&mut self, session: &mut dyn Session) -> Result<(), Error> {
        self.answers.clear();
        self.answers = guarded(|| (self.gate.0.ask)(session, &self.questions))?;
        Ok(())
    }

    fn answer(mut self: Box<Self>, fate: Result<(), Error>) {
        let mut replies = std::mem::take(&mut self.replies);
        let failed = match fate {
            Ok(()) => {
                let answers = std::mem::take(&mut self.answers).into_iter();
                for (reply, answer) in replies.into_iter().zip(answers) {
                    // Nobody listens any more when the caller gave up.
                    let _ = reply.send(answer);
                }
                return;
            }
            Err(error) => error,
        };
        if matches!(failed, Error::Unavailable { .. }) {
            for reply in replies {
                let _ = reply.send(Err(alike(&failed)));
            }
        } else if replies.len() == 1 {
            let _ = replies.pop().map(|reply| reply.send(Err(failed)));
        } else {
            let asked = std::mem::take(&mut self.questions).into_iter();
            let again = asked.zip(replies).map(|(question, reply)| Waiting {
                question,
                reply,
                alone: true,
            });
            self.again = again.collect();
        }
    }
}

/// Whatever became of the transaction, those behind it must not wait for ever.
impl<Q: Send + 'static, A: Send + 'static> Drop for Group<Q, A> {
    fn drop(&mut self) {
        let lane = self.lane.take();
        self.gate.go_on(&lane, std::mem::take(&mut self.again));
    }
}

impl<Q, A> Clone for Gate<Q, A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}
