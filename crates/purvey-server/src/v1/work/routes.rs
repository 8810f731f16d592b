//! Every path of the Work API and the call of the platform behind it.

use super::{
    Work, artifacts,
    call::{Answer, Call, Names, answer},
    events, threads, triggers,
};
use crate::{
    Response, published,
    v1::{
        id_of,
        problem::{Code, Failure},
    },
};
use axum::{
    Router,
    extract::{Request, State},
    routing::{get, patch, post, put},
};
use purvey_work::{Platform, RunFilter};
use std::time::Duration;

/// What a handler makes of a call.
pub(super) type Answered = Result<Answer, Failure>;

/// The paths of the Work API.
pub(in crate::v1) fn router<S: Clone + Send + Sync + 'static>(work: Work) -> Router<S> {
    Router::new()
        .route("/v1/admin/organizations", post(create_organization))
        .route("/v1/admin/users", post(create_user))
        .route("/v1/admin/users/{id}", patch(update_user))
        .route("/v1/admin/limits", get(limits).patch(update_limits))
        .route("/v1/workspaces", get(workspaces).post(create_workspace))
        .route(
            "/v1/workspaces/{ws}",
            get(workspace).patch(update_workspace),
        )
        .route("/v1/workspaces/{ws}/members", get(members))
        .route(
            "/v1/workspaces/{ws}/members/{user}",
            put(put_member).delete(remove_member),
        )
        .route("/v1/tokens", get(tokens).post(create_token))
        .route("/v1/tokens/{id}", axum::routing::delete(revoke_token))
        .route("/v1/workspaces/{ws}/agents", get(agents).post(create_agent))
        .route(
            "/v1/agents/{id}",
            get(agent).patch(update_agent).delete(delete_agent),
        )
        .route("/v1/agents/{id}/runs", post(start_run))
        .route("/v1/agents/{id}/request-schema", get(request_schema))
        .route("/v1/workspaces/{ws}/runs", get(runs))
        .route("/v1/runs/{id}", get(run))
        .route("/v1/runs/{id}/steps", get(steps))
        .route("/v1/runs/{id}/cancel", post(cancel_run))
        .route("/v1/runs/{id}/events", get(events::follow))
        .merge(artifacts::router())
        .merge(threads::router())
        .merge(triggers::router())
        .with_state(work)
}

pub(super) fn platform(call: &Call) -> Platform {
    call.work().platform.clone()
}

async fn create_organization(State(work): State<Work>, request: Request) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        let made = platform(&call)
            .create_organization(call.principal.clone(), body)
            .await?;
        Ok(Answer::created(
            &made,
            format!("/v1/admin/organizations/{}", made.id),
        ))
    })
    .await
}

async fn create_user(State(work): State<Work>, request: Request) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        let made = platform(&call)
            .create_user(call.principal.clone(), body)
            .await?;
        Ok(Answer::created(
            &made,
            format!("/v1/admin/users/{}", made.id),
        ))
    })
    .await
}

async fn update_user(
    State(work): State<Work>,
    Names([id]): Names<1>,
    request: Request,
) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        Ok(Answer::ok(
            &platform(&call)
                .update_user(call.principal.clone(), id, body)
                .await?,
        ))
    })
    .await
}

async fn limits(State(work): State<Work>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        Ok(Answer::ok(
            &platform(&call).limits(call.principal.clone()).await?,
        ))
    })
    .await
}

async fn update_limits(State(work): State<Work>, request: Request) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        Ok(Answer::ok(
            &platform(&call)
                .update_limits(call.principal.clone(), body)
                .await?,
        ))
    })
    .await
}

async fn workspaces(State(work): State<Work>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        let page = call.query.page()?;
        Ok(Answer::ok(
            &platform(&call)
                .workspaces(call.principal.clone(), page)
                .await?,
        ))
    })
    .await
}

async fn create_workspace(State(work): State<Work>, request: Request) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        let made = platform(&call)
            .create_workspace(call.principal.clone(), body)
            .await?;
        Ok(Answer::created(
            &made,
            format!("/v1/workspaces/{}", made.id),
        ))
    })
    .await
}

async fn workspace(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        Ok(Answer::ok(
            &platform(&call)
                .workspace(call.principal.clone(), id)
                .await?,
        ))
    })
    .await
}

async fn update_workspace(
    State(work): State<Work>,
    Names([id]): Names<1>,
    request: Request,
) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        Ok(Answer::ok(
            &platform(&call)
                .update_workspace(call.principal.clone(), id, body)
                .await?,
        ))
    })
    .await
}

async fn members(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        Ok(Answer::ok(
            &platform(&call).members(call.principal.clone(), id).await?,
        ))
    })
    .await
}

async fn put_member(
    State(work): State<Work>,
    Names([id, user]): Names<2>,
    request: Request,
) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        let member = platform(&call)
            .put_member(call.principal.clone(), id, user, body)
            .await?;
        Ok(Answer::ok(&member))
    })
    .await
}

async fn remove_member(
    State(work): State<Work>,
    Names([id, user]): Names<2>,
    request: Request,
) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        platform(&call)
            .remove_member(call.principal.clone(), id, user)
            .await?;
        Ok(Answer::nothing())
    })
    .await
}

async fn tokens(State(work): State<Work>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        let page = call.query.page()?;
        Ok(Answer::ok(
            &platform(&call).tokens(call.principal.clone(), page).await?,
        ))
    })
    .await
}

async fn create_token(State(work): State<Work>, request: Request) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        let made = platform(&call)
            .create_token(call.principal.clone(), body)
            .await?;
        Ok(Answer::created(
            &made,
            format!("/v1/tokens/{}", made.token.id),
        ))
    })
    .await
}

async fn revoke_token(
    State(work): State<Work>,
    Names([id]): Names<1>,
    request: Request,
) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        platform(&call)
            .revoke_token(call.principal.clone(), id)
            .await?;
        Ok(Answer::nothing())
    })
    .await
}

async fn agents(State(work): State<Work>, Names([ws]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        let page = call.query.page()?;
        Ok(Answer::ok(
            &platform(&call)
                .agents(call.principal.clone(), ws, page)
                .await?,
        ))
    })
    .await
}

async fn create_agent(
    State(work): State<Work>,
    Names([ws]): Names<1>,
    request: Request,
) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        let made = platform(&call)
            .create_agent(call.principal.clone(), ws, body)
            .await?;
        Ok(Answer::created(&made, format!("/v1/agents/{}", made.id)))
    })
    .await
}

async fn agent(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        Ok(Answer::ok(
            &platform(&call).agent(call.principal.clone(), id).await?,
        ))
    })
    .await
}

async fn update_agent(
    State(work): State<Work>,
    Names([id]): Names<1>,
    request: Request,
) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        Ok(Answer::ok(
            &platform(&call)
                .update_agent(call.principal.clone(), id, body)
                .await?,
        ))
    })
    .await
}

async fn delete_agent(
    State(work): State<Work>,
    Names([id]): Names<1>,
    request: Request,
) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        platform(&call)
            .delete_agent(call.principal.clone(), id)
            .await?;
        Ok(Answer::nothing())
    })
    .await
}

async fn start_run(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |mut call: Call| -> Answered {
        let body = call.json().await?;
        let key = call.header("idempotency-key")?;
        let started = platform(&call)
            .start_run(call.principal.clone(), id, body, key)
            .await?;
        Ok(Answer::started(
            &started.run,
            started.run.id,
            started.replayed,
        ))
    })
    .await
}

async fn runs(State(work): State<Work>, Names([ws]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        let page = call.query.page()?;
        let (status, agent) = (call.query.one("status")?, call.query.one("agent_id")?);
        let filter = RunFilter::parse(status.as_deref(), agent.as_deref())?;
        Ok(Answer::ok(
            &platform(&call)
                .runs(call.principal.clone(), ws, filter, page)
                .await?,
        ))
    })
    .await
}

async fn run(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        let wait = call.query.wait()?;
        let platform = platform(&call);
        let now = platform.run(call.principal.clone(), id.clone(), Duration::ZERO);
        let run = tokio::select! {
            run = platform.run(call.principal.clone(), id, wait) => run,
            () = call.work().closing.cancelled() => now.await,
        };
        Ok(Answer::ok(&run?))
    })
    .await
}

async fn steps(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        Ok(Answer::ok(
            &platform(&call).steps(call.principal.clone(), id).await?,
        ))
    })
    .await
}

async fn cancel_run(State(work): State<Work>, Names([id]): Names<1>, request: Request) -> Response {
    answer(work, request, async |call: Call| -> Answered {
        Ok(Answer::ok(
            &platform(&call)
                .cancel_run(call.principal.clone(), id)
                .await?,
        ))
    })
    .await
}

/// The schema of a start's body, for whoever found the agent in the catalog.
async fn request_schema(
    State(work): State<Work>,
    Names([id]): Names<1>,
    request: Request,
) -> Response {
    let request_id = id_of(&request);
    let schema = async {
        let agent = work.platform.published_agent(id).await?;
        let agent = agent.ok_or(Failure::new(Code::NotFound))?;
        Ok::<_, Failure>(Answer::schema(&published::request_schema(&agent)))
    };
    match schema.await {
        Ok(answer) => answer.response(),
        Err(failure) => failure.response(&request_id),
    }
}
