//! `GET /v1/runs/{id}/events`: what happens to a run, as `text/event-stream`, resumed by `Last-Event-ID`.

use super::{
    Work,
    call::{self, Call, Names},
};
use crate::{
    Response,
    v1::problem::{Failure, Fault},
};
use axum::{
    extract::{Request, State},
    response::{
        IntoResponse, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::stream;
use http::{HeaderValue, header::CACHE_CONTROL};
use purvey_work::Watched;
use std::{collections::VecDeque, convert::Infallible, time::Duration};

/// A silent stream is kept alive by a comment this often (Work §11).
const COMMENT: Duration = Duration::from_secs(15);

/// A stream under way.
struct Stream {
    call: Call,
    run: String,
    news: purvey_work::Watch,
    after: u32,
    waiting: VecDeque<Watched>,
    ended: bool,
}

pub(super) async fn follow(
    State(work): State<Work>,
    Names([run]): Names<1>,
    request: Request,
) -> Response {
    let (call, id) = match call::open(work, request).await {
        Ok(opened) => opened,
        Err(refused) => return refused,
    };
    let begun = async {
        let after = last_event_id(&call)?;
        // Before the first look, so that nothing falls between it and the first wait.
        let news = call.work().platform.watch(&run);
        let mut stream = Stream {
            call,
            run,
            news,
            after,
            waiting: VecDeque::new(),
            ended: false,
        };
        stream.look().await?;
        Ok::<_, Failure>(stream)
    };
    let stream = match begun.await {
        Ok(stream) => stream,
        Err(failure) => return failure.response(&id),
    };
    let events = stream::unfold(stream, async |mut stream| {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    let alive = KeepAlive::new().interval(COMMENT);
    let mut response = Sse::new(events).keep_alive(alive).into_response();
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn last_event_id(call: &Call) -> Result<u32, Failure> {
    let fault = || {
        Failure::invalid(vec![Fault::header(
            "last-event-id",
            "Must be the id of an event of this run.",
        )])
    };
    match call.header("last-event-id")? {
        None => Ok(0),
        Some(text) => text.parse().map_err(|_| fault()),
    }
}

impl Stream {
    /// Takes what has happened since.
    async fn look(&mut self) -> Result<(), purvey_work::Error> {
        let platform = &self.call.work().platform;
        let principal = self.call.principal.clone();
        let (events, ended) = platform
            .events(principal, self.run.clone(), self.after)
            .await?;
        if let Some(last) = events.last() {
            self.after = last.id;
        }
        self.waiting.extend(events);
        self.ended = ended;
        Ok(())
    }

    /// The next event; none when the run has ended and everything is said, or when it cannot be read any more or the server stops: then
    /// the caller comes again with the id of the last event.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                let sent = Event::default().id(event.id.to_string()).event(event.kind);
                return Some(sent.data(event.data.to_string()));
            }
            if self.ended {
                return None;
            }
            let closing = self.call.work().closing.clone();
            tokio::select! {
                () = self.news.changed() => {}
                () = closing.cancelled() => return None,
            }
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "a stream of events ends early");
                return None;
            }
        }
    }
}
