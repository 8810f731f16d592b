//! The bytes of one upload: counted, hashed and made durable while they come, and the one place where an attempt ends (Work §7).

use super::{
    Lost, RENEW, UploadLimits,
    blobs::{Blobs, Sink},
    tend,
};
use crate::{
    clock::{Chance, Clock, Cx},
    code::Code,
    error::Error,
    model::{Artifact, ArtifactStatus},
    sql::{Session, Store},
};
use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt, future::BoxFuture};
use std::{
    mem,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Bytes that are written at once, if they have come by then.
const CHUNK: usize = 64 * 1_024;
/// Bytes that wait to be written, at most: beyond, nothing more is read.
const AHEAD: usize = 128 * 1_024;
/// How often the pace is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// A piece of a body, or nothing where the connection broke.
pub type Piece = Option<Bytes>;

/// An upload whose bytes may come.
pub(crate) struct Receiving {
    pub(crate) artifact: Artifact,
    pub(crate) limits: UploadLimits,
    pub(crate) blobs: Blobs,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Arc<dyn Chance>,
    /// What the store of objects calls the upload of the parts, once there is one.
    pub(crate) upload: OnceLock<String>,
}

/// Why an attempt failed.
enum Failure {
    /// What its caller is told.
    Told(Error),
    /// The lease is gone: it is written down already.
    Lost,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

impl From<Code> for Failure {
    fn from(code: Code) -> Self {
        Self::Told(code.into())
    }
}

impl From<Lost> for Failure {
    fn from(Lost: Lost) -> Self {
        Self::Lost
    }
}

impl Receiving {
    /// Takes the bytes and makes the artifact ready, or writes down why not.
    ///
    /// # Errors
    /// 400 for other bytes than declared, 413, `request.timeout`, `request.broken`; [`Error::Store`] when they cannot be kept;
    /// [`Error::Unavailable`] when it is not known whether the artifact became ready: the same request with the same key tells.
    pub(crate) async fn receive(
        self,
        body: impl Stream<Item = Piece> + Send,
    ) -> Result<Artifact, Error> {
        self.keep(body).await?;
        let id = self.artifact.id;
        match self
            .write(move |session, cx| tend::ready(session, cx, id))
            .await
        {
            Ok(Ok(())) => Ok(Artifact {
                status: ArtifactStatus::Ready,
                ..self.artifact
            }),
            Ok(Err(Lost)) => Err(self.fail(Failure::Lost).await),
            // It may have become ready all the same; if not, its lease lapses and its bytes are collected.
            Err(error) => Err(error),
        }
    }

    /// Takes the bytes and makes them durable, or writes down why not; the artifact is not ready yet.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub(crate) async fn keep(&self, body: impl Stream<Item = Piece> + Send) -> Result<(), Error> {
        let kept = match self.take(body).await {
            Ok(sink) => self.leased(sink.keep()).await,
            Err(failure) => Err(failure),
        };
        match kept {
            Ok(()) => Ok(()),
            Err(failure) => Err(self.fail(failure).await),
        }
    }

    /// Writes down that an upload cannot become whole, as its head already shows.
    pub(crate) async fn refuse(self, code: Code) -> Error {
        self.fail(code.into()).await
    }

    /// Every byte, as declared, but not kept yet.
    async fn take(&self, body: impl Stream<Item = Piece> + Send) -> Result<Sink, Failure> {
        let mut body = pin!(body);
        let mut arrived = Arrived::default();
        let mut pace = Pace::new(&self.limits);
        let (mut renew, mut look) = (ticks(RENEW), ticks(LOOK));
        // A sink is either at work or at rest.
        let mut work: Option<BoxFuture<'_, Result<Sink, Error>>> = Some(self.begin().boxed());
        let mut rest: Option<Sink> = None;
        loop {
            if let Some(sink) = rest.take() {
                let all = arrived.ended && arrived.waiting == 0;
                if all {
                    return self.check(sink);
                }
                if arrived.ended || arrived.waiting >= CHUNK {
                    work = Some(sink.write(arrived.take()).boxed());
                } else {
                    rest = Some(sink);
                }
            }
            let reads = !arrived.ended && arrived.waiting < AHEAD;
            let worked = async {
                match work.as_mut() {
                    Some(work) => work.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                sink = worked => {
                    work = None;
                    rest = Some(sink?);
                }
                piece = body.next(), if reads => match piece {
                    None => arrived.ended = true,
                    Some(None) => return Err(Code::RequestBroken.into()),
                    Some(Some(piece)) => {
                        pace.came(piece.len());
                        arrived.add(piece);
                        self.bounded(arrived.bytes)?;
                    }
                },
                _ = renew.tick() => self.renew().await?,
                _ = look.tick() => pace.judge(reads)?,
            }
        }
    }

    async fn begin(&self) -> Result<Sink, Error> {
        let (id, size) = (self.artifact.id, self.artifact.size);
        let sink = self.blobs.begin(id, size).await?;
        if let Some(upload) = sink.upload() {
            // Parts that nothing names could never be thrown away.
            let upload = self.upload.get_or_init(|| upload.to_owned()).clone();
            self.write(move |session, _| tend::named(session, id, &upload))
                .await?;
        }
        Ok(sink)
    }

    /// Stops at the first byte too many.
    fn bounded(&self, bytes: u64) -> Result<(), Code> {
        if bytes > self.limits.bytes {
            Err(Code::RequestTooLarge)
        } else if bytes > self.artifact.size {
            Err(Code::SizeMismatch)
        } else {
            Ok(())
        }
    }

    fn check(&self, sink: Sink) -> Result<Sink, Failure> {
        let (bytes, sha256) = sink.sum();
        if bytes != self.artifact.size {
            Err(Code::SizeMismatch.into())
        } else if sha256 != self.artifact.sha256 {
            Err(Code::ChecksumMismatch.into())
        } else {
            Ok(sink)
        }
    }

    /// Waits for work that may take longer than a lease.
    async fn leased<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        let mut work = pin!(work);
        let mut renew = ticks(RENEW);
        loop {
            tokio::select! {
                done = &mut work => return done.map_err(Into::into),
                _ = renew.tick() => self.renew().await?,
            }
        }
    }

    async fn renew(&self) -> Result<(), Failure> {
        let id = self.artifact.id;
        match self
            .write(move |session, cx| tend::renewed(session, cx, id))
            .await
        {
            Ok(held) => held.map_err(Into::into),
            Err(error) => {
                // Whether the lease outlives this shows when the artifact is to become ready.
                tracing::warn!(%error, artifact = %id, "the lease of an upload could not be renewed; trying again");
                Ok(())
            }
        }
    }

    /// Throws away what came and writes down that the attempt failed; what its caller is told.
    async fn fail(&self, failure: Failure) -> Error {
        let id = self.artifact.id;
        let removed = self
            .blobs
            .remove(id, self.upload.get().map(String::as_str))
            .await;
        if let Err(error) = &removed {
            tracing::warn!(%error, artifact = %id, "what came of an upload could not be removed; trying again later");
        }
        let error = match failure {
            Failure::Told(error) => error,
            Failure::Lost => return Code::UploadFailed.into(),
        };
        let (why, kept) = (why(&error), removed.is_err());
        let written = self
            .write(move |session, cx| tend::failed(session, cx, id, why, kept))
            .await;
        if let Err(error) = written {
            tracing::warn!(%error, artifact = %id, "a failed upload could not be recorded; its lease will lapse");
        }
        error
    }

    async fn write<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut dyn Session, Cx<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (clock, chance) = (Arc::clone(&self.clock), Arc::clone(&self.chance));
        self.store
            .write(move |session| {
                let cx = Cx {
                    now: clock.now(),
                    chance: &*chance,
                };
                work(session, cx)
            })
            .await
    }
}

fn why(error: &Error) -> &'static str {
    match error {
        Error::Refused(refusal) => refusal.code.text(),
        _ => Code::ServerError.text(),
    }
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// What has come.
#[derive(Default)]
struct Arrived {
    bytes: u64,
    pieces: Vec<Bytes>,
    /// Bytes in `pieces`.
    waiting: usize,
    ended: bool,
}

impl Arrived {
    fn add(&mut self, piece: Bytes) {
        self.bytes += piece.len() as u64;
        self.waiting += piece.len();
        self.pieces.push(piece);
    }

    fn take(&mut self) -> Vec<Bytes> {
        self.waiting = 0;
        mem::take(&mut self.pieces)
    }
}

/// How fast bytes come.
struct Pace {
    since: Instant,
    bytes: u64,
    least: u64,
    patience: Duration,
}

impl Pace {
    fn new(limits: &UploadLimits) -> Self {
        Self {
            since: Instant::now(),
            bytes: 0,
            least: limits.least_rate.saturating_mul(limits.patience.as_secs()),
            patience: limits.patience,
        }
    }

    fn came(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Whether enough came; the sender is not to blame for what was not read.
    fn judge(&mut self, reads: bool) -> Result<(), Code> {
        if reads && self.since.elapsed() < self.patience {
            return Ok(());
        }
        if reads && self.bytes < self.least.max(1) {
            return Err(Code::RequestTimeout);
        }
        self.since = Instant::now();
        self.bytes = 0;
        Ok(())
    }
}
