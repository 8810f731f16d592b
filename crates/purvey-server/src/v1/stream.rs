//! `POST /v1/catalog/records`: records in, one result a line out, both as they come.
//!
//! A record is an Offering, or a Collection as `{"collection": {…}}`, as in files to import. Results of about 130,000 records wait for a
//! caller that sends everything before it reads; beyond that they hold up the reading of records.

use super::{
    Context, auth, id_of,
    lines::{Line, Lines},
    problem::{Code, Failure, Fault},
    record::{self, Warning},
};
use crate::{Response, body};
use axum::{
    body::Body,
    extract::{Request, State},
};
use bytes::Bytes;
use futures_util::{FutureExt, stream};
use http::{
    HeaderValue,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use purvey_catalog::catalog::{Change, Written};
use purvey_catalog::import::record_kind;
use purvey_odp::identity::ResourceType;
use serde::Serialize;
use serde_json::Value;
use std::convert::Infallible;
use tokio::{sync::mpsc, time::timeout};
use tracing::Instrument;

/// Records of one transaction, at most.
const BATCH: usize = 256;
/// Batches of results that wait to be read.
const RESULTS: usize = 512;
/// Bytes of the lines of one transaction, about.
const BATCH_BYTES: usize = 1_024 * 1_024;

/// Takes the stream; the answer begins at once and each transaction adds to it.
pub(super) async fn records(State(context): State<Context>, request: Request) -> Response {
    let request_id = id_of(&request);
    if let Err(failure) = auth::writer(&context, request.headers()).await {
        return failure.response(&request_id);
    }
    let begin = || {
        record::expect_media(request.headers(), "application/x-ndjson")?;
        let mut faults = Vec::new();
        let query = request.uri().query();
        let wait = record::wait_published(query, &mut faults);
        if faults.is_empty() {
            Ok(wait)
        } else {
            Err(Failure::invalid(faults))
        }
    };
    let wait = match begin() {
        Ok(begun) => begun,
        Err(failure) => return failure.response(&request_id),
    };
    let (results, receiver) = mpsc::channel(RESULTS);
    let limit = context.config.max_record_bytes;
    let intake = Intake {
        context,
        limit,
        results,
        batch: Vec::new(),
        batch_bytes: 0,
        tally: Tally::default(),
    };
    tokio::spawn(intake.run(request.into_body(), wait).in_current_span());
    let lines = stream::unfold(receiver, async |mut receiver| {
        let line: Bytes = receiver.recv().await?;
        Some((Ok::<_, Infallible>(line), receiver))
    });
    let mut response = http::Response::new(Body::from_stream(lines));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-ndjson"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The caller went away: what is committed stays, the rest is not read.
struct Gone;

struct Intake {
    context: Context,
    limit: usize,
    results: mpsc::Sender<Bytes>,
    batch: Vec<Judged>,
    batch_bytes: usize,
    tally: Tally,
}

/// A line, ready to be written or refused already.
struct Judged {
    line: u64,
    change: Result<Change, Failure>,
}

#[derive(Default)]
struct Tally {
    accepted: u64,
    rejected: u64,
    /// The generation of the last record accepted.
    last: Option<u64>,
}

impl Intake {
    async fn run(mut self, mut body: Body, wait: bool) {
        let failure = match self.take(&mut body).await {
            Ok(()) => None,
            Err(Stop::Failed(failure)) => Some(failure),
            Err(Stop::Gone) => return,
        };
        let published = match self.tally.last {
            Some(generation) => record::published(&self.context, generation, wait)
                .await
                .unwrap_or(Some(false)),
            None => wait.then_some(true),
        };
        let summary = Summary {
            done: failure.is_none(),
            accepted: self.tally.accepted,
            rejected: self.tally.rejected,
            generation: self.tally.last,
            published,
            code: failure.as_ref().map(|failure| failure.code.text()),
            detail: failure.as_ref().map(|failure| failure.detail.as_ref()),
        };
        let mut out = Vec::new();
        append(&mut out, &summary);
        let _ = self.send(out).await;
    }

    async fn take(&mut self, body: &mut Body) -> Result<(), Stop> {
        let mut lines = Lines::new(self.limit);
        loop {
            let ready = body::next(body).now_or_never();
            let piece = match ready {
                Some(piece) => piece,
                None => {
                    // A caller that pauses gets its results meanwhile.
                    self.flush().await?;
                    let next = timeout(self.context.config.body_timeout, body::next(body));
                    tokio::select! {
                        next = next => next.unwrap_or(Err(body::BodyError::TimedOut)),
                        () = self.results.closed() => return Err(Stop::Gone),
                    }
                }
            };
            let piece = match piece {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(error) => {
                    self.flush().await?;
                    return Err(Stop::Failed(error.into()));
                }
            };
            lines.push(&piece);
            while let Some(line) = lines.next() {
                self.add(line).await?;
            }
        }
        if let Some(line) = lines.last() {
            self.add(line).await?;
        }
        Ok(self.flush().await?)
    }

    async fn add(&mut self, line: Line) -> Result<(), Gone> {
        let (line, change) = match line {
            Line::TooLong(line) => (line, Err(Failure::new(Code::RequestTooLarge))),
            Line::Whole(_, bytes) if bytes.trim_ascii().is_empty() => return Ok(()),
            Line::Whole(line, bytes) => {
                self.batch_bytes += bytes.len();
                (line, self.judge(&bytes))
            }
        };
        self.batch.push(Judged { line, change });
        if self.batch.len() >= BATCH || self.batch_bytes >= BATCH_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    fn judge(&self, bytes: &[u8]) -> Result<Change, Failure> {
        let mut faults = Vec::new();
        let Some(value) = record::decoded(bytes, self.limit, &mut faults) else {
            return Err(Failure::invalid(faults));
        };
        let (kind, value) = record_kind(value);
        Ok(Change { kind, value })
    }

    /// Writes the batch in one transaction and sends its results.
    async fn flush(&mut self) -> Result<(), Gone> {
        if self.batch.is_empty() {
            return Ok(());
        }
        self.batch_bytes = 0;
        let mut places = Vec::with_capacity(self.batch.len());
        let mut changes = Vec::with_capacity(self.batch.len());
        for Judged { line, change } in self.batch.drain(..) {
            match change {
                Err(failure) => places.push((line, Err(failure))),
                Ok(change) => {
                    let id = change.value.get("id").and_then(Value::as_str);
                    places.push((line, Ok((change.kind, id.unwrap_or_default().to_owned()))));
                    changes.push(change);
                }
            }
        }
        let catalog = self.context.catalog.clone();
        let written = record::blocking(move || catalog.put_many(changes)).await;
        let mut written = written.map(Vec::into_iter);
        let mut out = Vec::new();
        for (line, place) in places {
            let result = place.and_then(|(kind, id)| {
                let result = match &mut written {
                    Ok(results) => results.next().map(|result| result.map_err(Failure::from)),
                    Err(failure) => Some(Err(failure.clone())),
                };
                let result = result.unwrap_or_else(|| {
                    tracing::error!(line, "the catalog gave no result for a record");
                    Err(Failure::new(Code::ServerError))
                });
                result.map(|written| (kind, id, written))
            });
            self.tally.count(&result);
            append(&mut out, &LineResult::new(line, &result));
        }
        self.send(out).await
    }

    async fn send(&self, out: Vec<u8>) -> Result<(), Gone> {
        let send = self.results.send(out.into());
        match timeout(self.context.config.body_timeout, send).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }
}

enum Stop {
    Gone,
    Failed(Failure),
}

impl From<Gone> for Stop {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

type Outcome = Result<(ResourceType, String, Written), Failure>;

impl Tally {
    fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Ok((_, _, written)) => {
                self.accepted += 1;
                self.last = Some(written.generation);
            }
            Err(_) => self.rejected += 1,
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum LineResult<'a> {
    Written {
        line: u64,
        status: &'static str,
        kind: &'static str,
        id: &'a str,
        revision: u64,
        generation: u64,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<Warning<'a>>,
    },
    Rejected {
        line: u64,
        status: &'static str,
        code: &'static str,
        detail: &'a str,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        errors: &'a [Fault],
    },
}

impl<'a> LineResult<'a> {
    fn new(line: u64, outcome: &'a Outcome) -> Self {
        match outcome {
            Ok((kind, id, written)) => Self::Written {
                line,
                status: if written.created {
                    "created"
                } else {
                    "updated"
                },
                kind: record::kind_text(*kind),
                id,
                revision: written.revision,
                generation: written.generation,
                warnings: Warning::all(written),
            },
            Err(failure) => Self::Rejected {
                line,
                status: "rejected",
                code: failure.code.text(),
                detail: &failure.detail,
                errors: &failure.errors,
            },
        }
    }
}

/// The last line.
#[derive(Serialize)]
struct Summary<'a> {
    /// Whether every line was read.
    done: bool,
    accepted: u64,
    rejected: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

fn append(out: &mut Vec<u8>, line: &impl Serialize) {
    // Plain structs of text and numbers always serialise.
    if serde_json::to_writer(&mut *out, line).is_ok() {
        out.push(b'\n');
    }
}
