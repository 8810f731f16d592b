//! Artifacts: what is judged before a byte is read, and how bytes come in (Work §7).

use super::{
    Work,
    call::{Answer, Call, Names, answer, header},
    content,
    routes::{Answered, platform},
};
use crate::{
    Response,
    body::{self, Drain},
    v1::{
        auth, id_of,
        problem::{Code, Failure},
    },
};
use axum::{
    Router,
    body::{Body, HttpBody},
    extract::{Request, State},
    routing::get,
};
use bytes::Bytes;
use futures_util::Stream;
use http::{
    HeaderMap,
    header::{CONTENT_TYPE, EXPECT},
};
use purvey_work::{Piece, UploadHead, Uploaded};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

/// What is read of an upload that was answered early, so that its caller gets to read the answer (Work §7).
const DRAIN: Drain = Drain {
    bytes: 8 * 1_024 * 1_024,
    time: Duration::from_secs(5),
};

pub(super) fn router() -> Router<Work> {
    Router::new()
        .route("/v1/workspaces/{ws}/artifacts", get(list).post(upload))
        .route("/v1/artifacts/{id}", get(artifact).delete(delete))
        .route("/v1/artifacts/{id}/content", get(content::read))
}

async fn upload(State(work): State<Work>, Names([ws]): Names<1>, request: Request) -> Response {
    let id = id_of(&request);
    let (parts, body) = request.into_parts();
    let body = Incoming::new(body, &parts.headers);
    match receive(&work, ws, &parts.headers, body).await {
        Ok(uploaded) => {
            let artifact = uploaded.artifact;
            let location = format!("/v1/artifacts/{}", artifact.id);
            Answer::uploaded(&artifact, location, uploaded.replayed).response()
        }
        Err(failure) => failure.response(&id),
    }
}

/// Judges as much as the head shows, in the order of Work §3, before the body is polled.
async fn receive(
    work: &Work,
    workspace: String,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Uploaded, Failure> {
    let platform = &work.platform;
    let principal = auth::principal(work.operator(), Some(platform), headers).await?;
    expect_octets(headers)?;
    let most = platform.upload_limits().bytes;
    let field = |name| header(headers, name);
    let size = field("x-upload-size")?;
    let declared = size.as_deref().and_then(|size| size.parse::<u64>().ok());
    let length = body.length();
    if declared.max(length).is_some_and(|bytes| bytes > most) {
        return Err(Failure {
            detail: format!(
                "The upload is larger than the {most} bytes that this server takes; make it smaller and use a new key."
            )
            .into(),
            ..Failure::new(Code::RequestTooLarge)
        });
    }
    let head = UploadHead::parse(
        field("idempotency-key")?.as_deref(),
        size.as_deref(),
        field("x-content-sha256")?.as_deref(),
        field("x-filename")?.as_deref(),
        field("x-description")?.as_deref(),
    )?;
    Ok(platform
        .upload(principal, workspace, head, length, body)
        .await?)
}

/// Exactly `application/octet-stream`, without a parameter, and without a content coding.
fn expect_octets(headers: &HeaderMap) -> Result<(), Failure> {
    let mut sent = headers.get_all(CONTENT_TYPE).iter();
    let exact = match (sent.next(), sent.next()) {
        (Some(value), None) => value
            .as_bytes()
            .eq_ignore_ascii_case(b"application/octet-stream"),
        _ => false,
    };
    if exact && body::coding(headers).is_none() {
        return Ok(());
    }
    Err(Failure {
        detail: "Send the bytes as Content-Type: application/octet-stream, without parameters and without a content coding.".into(),
        ..Failure::new(Code::UnsupportedMediaType)
    })
}

/// The bytes of an upload. What is not read of them when they are given up is drained a little.
struct Incoming {
    body: Option<Body>,
    /// Whether the caller sends nothing until it is asked to, which it is at the first poll.
    waits: bool,
}

impl Incoming {
    fn new(body: Body, headers: &HeaderMap) -> Self {
        Self {
            body: Some(body),
            waits: headers.contains_key(EXPECT),
        }
    }

    /// How many bytes there are, where that is known.
    fn length(&self) -> Option<u64> {
        self.body.as_ref().and_then(|body| body.size_hint().exact())
    }
}

impl Stream for Incoming {
    type Item = Piece;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        self.waits = false;
        loop {
            let Some(body) = self.body.as_mut() else {
                return Poll::Ready(None);
            };
            let piece: Option<Result<Option<Bytes>, axum::Error>> =
                ready!(Pin::new(body).poll_frame(context))
                    .map(|frame| frame.map(|frame| frame.into_data().ok()));
            match piece {
                // Trailers say nothing.
                Some(Ok(None)) => {}
                Some(Ok(Some(piece))) => return Poll::Ready(Some(Some(piece))),
                Some(Err(_)) => {
                    self.body = None;
                    return Poll::Ready(Some(None));
                }
                None => {
                    self.body = None;
                    return Poll::Ready(None);
                }
            }
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(body) = self.body.take()
            && !self.waits
            && !body.is_end_stream()
        {
            body::drain(body, DRAIN);
        }
    }
}

async fn list(State(work): State<Work>, Names([ws]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        let page = call.query.page()?;
        let status = call.query.one("status")?;
        Ok(Answer::ok(
            &platform(&call)
                .artifacts(call.principal.clone(), ws, status, page)
                .await?,
        ))
    })
    .await
}

async fn artifact(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        Ok(Answer::ok(
            &platform(&call).artifact(call.principal.clone(), id).await?,
        ))
    })
    .await
}

async fn delete(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        platform(&call)
            .delete_artifact(call.principal.clone(), id)
            .await?;
        Ok(Answer::nothing())
    })
    .await
}
