//! Triggers, and the way in for webhooks (Work §10, §11).

use super::{
    Work,
    call::{self, Answer, Call, Names, answer},
    routes::{Answered, platform},
};
use crate::{
    Response,
    v1::{
        auth, id_of,
        problem::{Failure, Fault},
    },
};
use axum::{
    Router,
    extract::{Request, State},
    routing::{get, post},
};

pub(super) fn router() -> Router<Work> {
    Router::new()
        .route("/v1/workspaces/{ws}/triggers", get(list).post(create))
        .route("/v1/triggers/{id}", get(read).patch(update).delete(delete))
        .route("/v1/hooks/{id}", post(deliver))
}

async fn create(State(work): State<Work>, Names([ws]): Names<1>, request: Request) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        let made = platform(&call)
            .create_trigger(call.principal.clone(), ws, body)
            .await?;
        Ok(Answer::created(
            &made,
            format!("/v1/triggers/{}", made.trigger.id),
        ))
    })
    .await
}

async fn list(State(work): State<Work>, Names([ws]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        let page = call.query.page()?;
        Ok(Answer::ok(
            &platform(&call)
                .triggers(call.principal.clone(), ws, page)
                .await?,
        ))
    })
    .await
}

async fn read(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        Ok(Answer::ok(
            &platform(&call).trigger(call.principal.clone(), id).await?,
        ))
    })
    .await
}

async fn update(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        Ok(Answer::ok(
            &platform(&call)
                .update_trigger(call.principal.clone(), id, body)
                .await?,
        ))
    })
    .await
}

async fn delete(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        platform(&call)
            .delete_trigger(call.principal.clone(), id)
            .await?;
        Ok(Answer::nothing())
    })
    .await
}

/// A delivery: judged by the trigger's own token before anything of its body is read.
async fn deliver(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    let request_id = id_of(&request);
    let delivered = async {
        let secret = auth::secret(request.headers())?.to_owned();
        let platform = work.platform.clone();
        platform
            .authenticate_hook(id.clone(), secret.clone())
            .await?;
        let (parts, body) = request.into_parts();
        let event = call::json(&work, &parts.headers, body).await?;
        let key = key(&parts.headers)?;
        let started = platform.deliver(id, secret, key, event).await?;
        Ok::<_, Failure>(Answer::started(
            &started.run,
            started.run.id,
            started.replayed,
        ))
    };
    match delivered.await {
        Ok(answer) => answer.response(),
        Err(failure) => failure.response(&request_id),
    }
}

/// The key of a delivery: ours, or what most senders of webhooks send.
fn key(headers: &http::HeaderMap) -> Result<Option<String>, Failure> {
    for name in ["idempotency-key", "webhook-id"] {
        if let Some(key) = call::header(headers, name)? {
            return match key.is_empty() {
                true => Err(Failure::invalid(vec![Fault::header(
                    name,
                    "Must not be empty.",
                )])),
                false => Ok(Some(key)),
            };
        }
    }
    Ok(None)
}
