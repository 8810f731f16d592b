//! Threads and turns (Work §10).

use super::{
    Work,
    call::{Answer, Call, Names, answer},
    routes::{Answered, platform},
};
use crate::Response;
use axum::{
    Router,
    extract::{Request, State},
    routing::{get, post},
};

pub(super) fn router() -> Router<Work> {
    Router::new()
        .route("/v1/workspaces/{ws}/threads", get(list).post(open))
        .route("/v1/threads/{id}", get(read))
        .route("/v1/threads/{id}/turns", get(turns).post(send))
        .route("/v1/threads/{id}/pause", post(pause))
        .route("/v1/threads/{id}/resume", post(resume))
        .route("/v1/threads/{id}/close", post(close))
}

async fn open(State(work): State<Work>, Names([ws]): Names<1>, request: Request) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        let thread = platform(&call)
            .open_thread(call.principal.clone(), ws, body)
            .await?;
        Ok(Answer::created(
            &thread,
            format!("/v1/threads/{}", thread.id),
        ))
    })
    .await
}

async fn list(State(work): State<Work>, Names([ws]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        let page = call.query.page()?;
        Ok(Answer::ok(
            &platform(&call)
                .threads(call.principal.clone(), ws, page)
                .await?,
        ))
    })
    .await
}

async fn read(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        Ok(Answer::ok(
            &platform(&call).thread(call.principal.clone(), id).await?,
        ))
    })
    .await
}

async fn turns(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        let page = call.query.page()?;
        Ok(Answer::ok(
            &platform(&call)
                .turns(call.principal.clone(), id, page)
                .await?,
        ))
    })
    .await
}

async fn send(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        let key = call.header("idempotency-key")?;
        let sent = platform(&call)
            .send_turn(call.principal.clone(), id, body, key)
            .await?;
        Ok(Answer::started(&sent, sent.run.id, sent.replayed))
    })
    .await
}

async fn pause(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        Ok(Answer::ok(
            &platform(&call)
                .pause_thread(call.principal.clone(), id)
                .await?,
        ))
    })
    .await
}

async fn resume(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        Ok(Answer::ok(
            &platform(&call)
                .resume_thread(call.principal.clone(), id)
                .await?,
        ))
    })
    .await
}

async fn close(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        Ok(Answer::ok(
            &platform(&call)
                .close_thread(call.principal.clone(), id)
                .await?,
        ))
    })
    .await
}
