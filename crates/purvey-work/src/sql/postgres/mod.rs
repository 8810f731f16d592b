//! The store that several nodes share: a few workers with a connection each, and news by `LISTEN` and `NOTIFY`.

mod connection;
mod lanes;
mod news;

use super::{
    Backend, Hub,
    job::{Job, Work},
    schema,
    tls::Address,
};
use crate::error::Error;
use connection::{Connection, Mode, Trouble};
use lanes::{Lanes, Waiting};
use news::News;
use parking_lot::{Condvar, Mutex};
use std::{
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Threads that write.
const WORKERS: usize = 4;
/// Connections for callers on threads of their own.
const CALLERS: usize = super::READS;
/// How long a server that cannot be reached is tried.
const REACH: Duration = Duration::from_secs(10);
/// How often a transaction is tried that the server asks to repeat.
const REPEATS: u32 = 10;

pub(super) struct Postgres {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    address: Address,
    lanes: Lanes,
    callers: Callers,
    news: News,
}

impl Postgres {
    pub(super) fn open(url: &str, hub: Hub) -> Result<Self, Error> {
        let address = Address::read(url)?;
        let mut connection = None;
        let first = Shared {
            address,
            lanes: Lanes::default(),
            callers: Callers::default(),
            news: News::new(hub),
        };
        first.alone(&mut connection, Mode::Migrate, &mut |session| {
            schema::migrate(session)
        })?;
        let schema = match &mut connection {
            Some(connection) => connection.schema()?,
            None => String::new(),
        };
        first.news.set_channel(&schema);
        if let Some(connection) = connection {
            first.callers.give_back(Some(connection));
        }
        let mut postgres = Self {
            shared: Arc::new(first),
            threads: Vec::new(),
        };
        for number in 0..WORKERS {
            postgres.start(&format!("purvey-store-{number}"), Shared::serve)?;
        }
        postgres.start("purvey-listen", |shared| {
            shared.news.listen(&shared.address);
        })?;
        postgres.start("purvey-notify", |shared| {
            shared.news.tell(&shared.address);
        })?;
        Ok(postgres)
    }

    fn start(&mut self, name: &str, work: fn(&Shared)) -> Result<(), Error> {
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || work(&shared))
            .map_err(|error| Error::Store {
                detail: format!("its threads cannot be started: {error}"),
            })?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.shared.lanes.close();
        self.shared.news.close();
        let idle = self.shared.callers.close();
        // A connection cannot be closed on a thread that serves a runtime.
        let closing = std::thread::spawn(move || drop(idle));
        for thread in self.threads.drain(..).chain([closing]) {
            if thread.thread().id() != std::thread::current().id() {
                // A panic in it has been reported.
                let _ = thread.join();
            }
        }
    }
}

impl Backend for Postgres {
    fn submit(&self, lane: Option<&str>, job: Box<dyn Job>) {
        self.shared.lanes.push(lane, job);
    }

    fn write(&self, work: Work<'_>) -> Result<(), Error> {
        self.shared.for_caller(Mode::Write, work)
    }

    fn read(&self, work: Work<'_>) -> Result<(), Error> {
        self.shared.for_caller(Mode::Read, work)
    }
}

impl Shared {
    /// A worker's life.
    fn serve(&self) {
        let mut connection = None;
        while let Some(taken) = self.lanes.take() {
            let mut jobs = taken.jobs;
            // While the server did not answer, callers were told so, and may have come again since.
            jobs.retain(|waiting| !waiting.job.is_given_up());
            if jobs.is_empty() {
                self.lanes.done(taken.lane);
                continue;
            }
            let oldest = jobs.first().map_or_else(Instant::now, |job| job.since);
            let fates = {
                let mut works: Vec<_> = jobs
                    .iter_mut()
                    .map(|Waiting { job, .. }| {
                        move |session: &mut dyn super::Session| job.run(session)
                    })
                    .collect();
                let mut works: Vec<Work<'_>> =
                    works.iter_mut().map(|work| work as Work<'_>).collect();
                self.transact(
                    &mut connection,
                    Mode::Write,
                    taken.lane.as_deref(),
                    &mut works,
                    oldest + REACH,
                )
            };
            self.lanes.done(taken.lane);
            for (waiting, fate) in jobs.into_iter().zip(fates) {
                waiting.job.answer(fate);
            }
        }
    }

    fn for_caller(&self, mode: Mode, work: Work<'_>) -> Result<(), Error> {
        let mut connection = self.callers.take()?;
        let outcome = self.alone(&mut connection, mode, work);
        self.callers.give_back(connection);
        outcome
    }

    fn alone(
        &self,
        connection: &mut Option<Connection>,
        mode: Mode,
        work: Work<'_>,
    ) -> Result<(), Error> {
        let mut fates = self.transact(connection, mode, None, &mut [work], Instant::now() + REACH);
        fates.pop().unwrap_or_else(|| Err(super::job::ended()))
    }

    /// Runs all of `works` in one transaction, from the start again where that is safe; the fate of each.
    fn transact(
        &self,
        connection: &mut Option<Connection>,
        mode: Mode,
        lane: Option<&str>,
        works: &mut [Work<'_>],
        until: Instant,
    ) -> Vec<Result<(), Error>> {
        let mut repeats = 0;
        let mut pause = Duration::from_millis(20);
        let count = works.len();
        let all = |detail: String| {
            let fate = |_| {
                Err(Error::Unavailable {
                    detail: detail.clone(),
                })
            };
            (0..count).map(fate).collect()
        };
        loop {
            let open = match connection {
                Some(open) if !open.is_closed() => open,
                _ => match Connection::open(&self.address) {
                    Ok(open) => connection.insert(open),
                    Err(_) if Instant::now() + pause < until => {
                        std::thread::sleep(pause);
                        pause = (pause * 2).min(Duration::from_secs(1));
                        continue;
                    }
                    Err(detail) => return all(detail),
                },
            };
            match open.attempt(mode, lane, works) {
                Ok((fates, topics)) => {
                    self.news.publish(topics);
                    return fates;
                }
                Err(Trouble::Again(_)) if repeats < REPEATS => {
                    repeats += 1;
                    std::thread::sleep(Duration::from_millis(1 << repeats.min(6)));
                }
                Err(Trouble::Lost(_)) if repeats < REPEATS => {
                    repeats += 1;
                    *connection = None;
                }
                Err(Trouble::Again(detail) | Trouble::Busy(detail)) => return all(detail),
                Err(Trouble::Lost(detail) | Trouble::Ambiguous(detail)) => {
                    *connection = None;
                    return all(detail);
                }
            }
        }
    }
}

/// Connections that callers on threads of their own take turns with.
#[derive(Default)]
struct Callers {
    state: Mutex<CallerState>,
    free: Condvar,
}

#[derive(Default)]
struct CallerState {
    idle: Vec<Connection>,
    taken: usize,
    closed: bool,
}

impl Callers {
    fn take(&self) -> Result<Option<Connection>, Error> {
        let mut state = self.state.lock();
        while state.taken >= CALLERS {
            self.free.wait(&mut state);
        }
        if state.closed {
            return Err(super::job::ended());
        }
        state.taken += 1;
        Ok(state.idle.pop())
    }

    fn give_back(&self, connection: Option<Connection>) {
        let mut state = self.state.lock();
        state.taken = state.taken.saturating_sub(1);
        state.idle.extend(connection);
        self.free.notify_one();
    }

    fn close(&self) -> Vec<Connection> {
        let mut state = self.state.lock();
        state.closed = true;
        std::mem::take(&mut state.idle)
    }
}
