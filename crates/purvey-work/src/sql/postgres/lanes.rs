//! Jobs that wait, by lane: those of one workspace go together and one group at a time, and no workspace holds more than one worker.

use crate::{error::Error, sql::job::Job};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::{HashMap, VecDeque},
    time::Instant,
};

/// Most jobs in one transaction.
const GROUP: usize = 128;
/// Most jobs that wait; more are refused.
const WAITING: usize = 16_384;

#[derive(Default)]
pub(super) struct Lanes {
    state: Mutex<State>,
    ready: Condvar,
}

#[derive(Default)]
struct State {
    /// What may be taken now, in order of arrival: a lane, or a job of none.
    turns: VecDeque<Turn>,
    /// Every lane that has jobs or a worker; it has a turn while it has jobs and no worker.
    lanes: HashMap<String, VecDeque<Waiting>>,
    count: usize,
    closed: bool,
}

enum Turn {
    Lane(String),
    Single(Waiting),
}

pub(super) struct Waiting {
    pub(super) job: Box<dyn Job>,
    pub(super) since: Instant,
}

/// What a worker took: it gives `lane` back with [`Lanes::done`].
pub(super) struct Taken {
    pub(super) lane: Option<String>,
    pub(super) jobs: Vec<Waiting>,
}

impl Lanes {
    pub(super) fn push(&self, lane: Option<&str>, job: Box<dyn Job>) {
        let mut state = self.state.lock();
        if state.closed || state.count >= WAITING {
            drop(state);
            return job.answer(Err(Error::Unavailable {
                detail: format!("{WAITING} transactions wait already, or the store is closing"),
            }));
        }
        state.count += 1;
        let waiting = Waiting {
            job,
            since: Instant::now(),
        };
        match lane {
            None => state.turns.push_back(Turn::Single(waiting)),
            Some(lane) => match state.lanes.get_mut(lane) {
                // It has a turn or a worker already.
                Some(jobs) => {
                    jobs.push_back(waiting);
                    return;
                }
                None => {
                    state.lanes.insert(lane.into(), [waiting].into());
                    state.turns.push_back(Turn::Lane(lane.into()));
                }
            },
        }
        self.ready.notify_one();
    }

    /// Waits for work; none when the store is closing and nothing is left.
    pub(super) fn take(&self) -> Option<Taken> {
        let mut state = self.state.lock();
        loop {
            match state.turns.pop_front() {
                Some(Turn::Single(waiting)) => {
                    state.count -= 1;
                    return Some(Taken {
                        lane: None,
                        jobs: vec![waiting],
                    });
                }
                Some(Turn::Lane(lane)) => {
                    let jobs: Vec<_> = match state.lanes.get_mut(&lane) {
                        Some(jobs) => jobs.drain(..jobs.len().min(GROUP)).collect(),
                        None => continue,
                    };
                    state.count -= jobs.len();
                    return Some(Taken {
                        lane: Some(lane),
                        jobs,
                    });
                }
                None if state.closed => return None,
                None => self.ready.wait(&mut state),
            }
        }
    }

    /// Gives a lane back: its next jobs take their turn behind the others'.
    pub(super) fn done(&self, lane: Option<String>) {
        let Some(lane) = lane else { return };
        let mut state = self.state.lock();
        if state.lanes.get(&lane).is_some_and(VecDeque::is_empty) {
            state.lanes.remove(&lane);
        } else {
            state.turns.push_back(Turn::Lane(lane));
            self.ready.notify_one();
        }
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.ready.notify_all();
    }
}
