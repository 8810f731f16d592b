//! Jobs on their way to a transaction and back.

use super::Session;
use crate::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tokio::sync::oneshot;

/// What runs in a transaction, perhaps more than once.
pub(super) type Work<'a> = &'a mut (dyn FnMut(&mut dyn Session) -> Result<(), Error> + 'a);

/// A piece of work with someone who waits for its answer.
pub(super) trait Job: Send {
    /// Whether nobody waits for its answer any more.
    fn is_given_up(&self) -> bool;

    /// Does it.
    fn run(&mut self, session: &mut dyn Session) -> Result<(), Error>;

    /// Answers: with what the last run gave if that is durable now, else why not.
    fn answer(self: Box<Self>, fate: Result<(), Error>);
}

/// A job with an answer of type `T`.
pub(super) struct Typed<T, F> {
    work: F,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, Error>>,
}

impl<T, F: FnMut(&mut dyn Session) -> Result<T, Error>> Typed<T, F> {
    pub(super) fn new(work: F) -> (Self, oneshot::Receiver<Result<T, Error>>) {
        let (reply, answer) = oneshot::channel();
        let job = Self {
            work,
            value: None,
            reply,
        };
        (job, answer)
    }
}

impl<T: Send, F: FnMut(&mut dyn Session) -> Result<T, Error> + Send> Job for Typed<T, F> {
    fn is_given_up(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, session: &mut dyn Session) -> Result<(), Error> {
        self.value = None;
        self.value = Some(guarded(|| (self.work)(session))?);
        Ok(())
    }

    fn answer(self: Box<Self>, fate: Result<(), Error>) {
        let Self { value, reply, .. } = *self;
        // Nobody listens any more when the caller gave up.
        let _ = reply.send(fate.and_then(|()| value.ok_or_else(ended)));
    }
}

/// Does a job's work: a defect in one must not end the thread that serves all of them.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::Store {
            detail: "a transaction panicked".into(),
        })
    })
}

/// What callers get whose job ended without an answer: the store is closing.
pub(super) fn ended() -> Error {
    Error::Unavailable {
        detail: "a transaction ended without an answer".into(),
    }
}

/// The same failure for each of several jobs.
pub(super) fn alike(error: &Error) -> Error {
    match error {
        Error::Unavailable { detail } => Error::Unavailable {
            detail: detail.clone(),
        },
        other => Error::Store {
            detail: other.to_string(),
        },
    }
}
