//! Parallel work with an ordered result: one thread feeds, several work, the caller consumes in the order of feeding. What is
//! under way is bounded, however long one piece takes.

use crate::error::Error;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::thread::{self, ScopedJoinHandle};

/// Pieces under way for each worker.
const PER_WORKER: usize = 4;

/// Hands pieces of work over; see [`consume_here`].
pub(crate) struct Feed<T, R> {
    work: Sender<(T, Sender<R>)>,
    order: Sender<Receiver<R>>,
}

impl<T, R> Feed<T, R> {
    /// Hands one piece over, waiting while too much is under way; `false` when nobody consumes any more: stop feeding.
    pub(crate) fn push(&self, piece: T) -> bool {
        let (done, result) = bounded(1);
        self.order.send(result).is_ok() && self.work.send((piece, done)).is_ok()
    }
}

/// Workers for work that fills processors.
pub(crate) fn workers() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `work` on `workers` threads over what `feed` hands over, and `consume` on the results in feeding order, until it answers
/// `false`. `feed` gets a thread of its own, `consume` runs here.
///
/// # Errors
/// The first error of `consume`, else that of `feed`.
pub(crate) fn consume_here<T: Send, R: Send>(
    workers: usize,
    feed: impl FnOnce(&Feed<T, R>) -> Result<(), Error> + Send,
    work: impl Fn(T) -> R + Sync,
    consume: impl FnMut(R) -> Result<bool, Error>,
) -> Result<(), Error> {
    thread::scope(|scope| {
        let (line, order) = start(scope, workers, &work);
        let feeder = scope.spawn(move || feed(&line));
        let consumed = drain(order, consume);
        consumed.and(join(feeder))
    })
}

/// As [`consume_here`], but `consume` gets a thread of its own and `feed` runs here.
///
/// # Errors
/// The first error of `consume`, else that of `feed`.
pub(crate) fn feed_here<T: Send, R: Send>(
    workers: usize,
    feed: impl FnOnce(&Feed<T, R>) -> Result<(), Error>,
    work: impl Fn(T) -> R + Sync,
    consume: impl FnMut(R) -> Result<bool, Error> + Send,
) -> Result<(), Error> {
    thread::scope(|scope| {
        let (line, order) = start(scope, workers, &work);
        let consumer = scope.spawn(move || drain(order, consume));
        let fed = feed(&line);
        drop(line);
        join(consumer).and(fed)
    })
}

fn start<'scope, 'env, T: Send + 'scope, R: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, 'env>,
    workers: usize,
    work: &'scope (impl Fn(T) -> R + Sync),
) -> (Feed<T, R>, Receiver<Receiver<R>>) {
    let (work_sender, work_receiver) = bounded::<(T, Sender<R>)>(workers * PER_WORKER);
    let (order_sender, order_receiver) = bounded(workers * PER_WORKER);
    for _ in 0..workers {
        let receiver = work_receiver.clone();
        scope.spawn(move || {
            for (piece, done) in receiver {
                // Nobody waits for it any more when the consumer has stopped.
                let _ = done.send(work(piece));
            }
        });
    }
    let feed = Feed {
        work: work_sender,
        order: order_sender,
    };
    (feed, order_receiver)
}

/// Ends with the feed, or when `consume` has enough; then the queue closes, which stops the feeder and through it the workers.
fn drain<R>(
    order: Receiver<Receiver<R>>,
    mut consume: impl FnMut(R) -> Result<bool, Error>,
) -> Result<(), Error> {
    for result in order {
        // A worker that panicked, or a feeder that stopped in between, leaves a place without a result.
        let Ok(result) = result.recv() else { break };
        if !consume(result)? {
            break;
        }
    }
    Ok(())
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn results_come_in_feeding_order() {
        let mut seen = Vec::new();
        consume_here(
            4,
            |feed| {
                for i in 0..500_u64 {
                    assert!(feed.push(i));
                }
                Ok(())
            },
            |i| {
                // Early pieces take longest.
                thread::sleep(Duration::from_micros(if i < 8 { 3_000 } else { 10 }));
                i * 2
            },
            |r| {
                seen.push(r);
                Ok(true)
            },
        )
        .unwrap();
        assert_eq!(seen, (0..500).map(|i| i * 2).collect::<Vec<_>>());
    }

    #[test]
    fn a_failing_consumer_stops_the_feeder() {
        let mut fed = 0;
        let result = consume_here(
            2,
            |feed| {
                while feed.push(()) {
                    fed += 1;
                }
                Ok(())
            },
            |()| (),
            |()| Err(Error::NotFound),
        );
        assert!(matches!(result, Err(Error::NotFound)));
        assert!(fed < 100);
    }

    #[test]
    fn a_failing_feeder_is_reported_after_what_it_fed() {
        let mut seen = 0;
        let result = consume_here(
            2,
            |feed| {
                feed.push(1);
                Err(Error::CursorInvalid)
            },
            |i| i,
            |i: i32| {
                seen += i;
                Ok(true)
            },
        );
        assert!(matches!(result, Err(Error::CursorInvalid)));
        assert_eq!(seen, 1);
    }
}
