//! The one writer of a process: whatever waits goes into one transaction (group commit), each change apart from the others, and
//! is answered once it is durable.

use super::{Store, Write};
use crate::error::Error;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use std::thread::JoinHandle;

/// Most changes of one transaction: keeps the wait of the first one short.
const GROUP: usize = 512;

/// A thread that owns the write connection; ends when dropped, after everything handed to it was answered.
#[derive(Debug)]
pub struct Writer {
    jobs: Option<Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread; `committed` is called after each transaction that changed something.
    ///
    /// # Errors
    /// The operating system's, when no thread can be had.
    pub fn start(store: Store, committed: impl Fn() + Send + 'static) -> Result<Self, Error> {
        let (jobs, queue) = unbounded();
        let thread = std::thread::Builder::new()
            .name("catalog-writer".to_owned())
            .spawn(move || run(store, &queue, &committed))
            .map_err(Error::io("catalog-writer"))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Runs `step` in a transaction and returns once its result is durable. When it fails, nothing of it remains.
    ///
    /// # Errors
    /// Those of `step`; [`Error::Busy`] while another process writes; [`Error::NotWritten`] when the disk refuses.
    pub fn run<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Write<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let closed = || Error::NotWritten {
            detail: "the catalog is shutting down".to_owned(),
        };
        let (reply, answer) = bounded(1);
        let job = Box::new(Pending {
            step: Some(step),
            result: None,
            reply,
        });
        let jobs = self.jobs.as_ref().ok_or_else(closed)?;
        jobs.send(job).map_err(|_| closed())?;
        answer.recv().map_err(|_| closed())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic in there has been printed already; nothing depends on the thread any more.
            let _ = thread.join();
        }
    }
}

/// A step with the place that its result goes to.
trait Job: Send {
    fn run(&mut self, write: &mut Write<'_>);
    /// Sends the result, or `failure` in place of it when the transaction did not come about.
    fn settle(self: Box<Self>, failure: Option<Error>);
}

struct Pending<F, T> {
    step: Option<F>,
    result: Option<Result<T, Error>>,
    reply: Sender<Result<T, Error>>,
}

impl<F, T> Job for Pending<F, T>
where
    F: FnOnce(&mut Write<'_>) -> Result<T, Error> + Send,
    T: Send,
{
    fn run(&mut self, write: &mut Write<'_>) {
        if let Some(step) = self.step.take() {
            self.result = Some(write.step(step));
        }
    }

    fn settle(self: Box<Self>, failure: Option<Error>) {
        let result = match (failure, self.result) {
            // What was refused on its own merits stays so, whatever became of its neighbours.
            (_, Some(Err(refused))) => Err(refused),
            (Some(failure), _) => Err(failure),
            (None, Some(done)) => done,
            (None, None) => return,
        };
        // A caller that went away needs no answer.
        let _ = self.reply.send(result);
    }
}

fn run(mut store: Store, queue: &Receiver<Box<dyn Job>>, committed: &dyn Fn()) {
    while let Ok(first) = queue.recv() {
        let mut jobs = vec![first];
        jobs.extend(queue.try_iter().take(GROUP - 1));
        match group(&mut store, &mut jobs) {
            Ok(changed) => {
                for job in jobs {
                    job.settle(None);
                }
                if changed {
                    committed();
                }
            }
            Err(error) => {
                for job in jobs {
                    job.settle(Some(error.again()));
                }
            }
        }
    }
}

fn group(store: &mut Store, jobs: &mut [Box<dyn Job>]) -> Result<bool, Error> {
    let mut write = store.write()?;
    for job in jobs {
        job.run(&mut write);
    }
    let changed = write.changed();
    if changed {
        write.commit()?;
    }
    Ok(changed)
}
