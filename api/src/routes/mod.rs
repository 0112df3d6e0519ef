//! The whole HTTP surface on a page. A file per noun; each handler extracts, calls a use case, responds.

mod conversations;
mod events;
mod health;
mod home;
mod messages;
mod runs;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, OriginalUri},
    http::{Method, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use serde::{Deserialize, Serialize};
use tower_http::{
    catch_panic::CatchPanicLayer,
    trace::{DefaultMakeSpan, TraceLayer},
};
use tracing::Level;
use utoipa::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use crate::{app::App, auth, problem::Problem};

#[derive(OpenApi)]
#[openapi(
    info(title = "Holdfast", description = "Agent runs that outlive the connection."),
    components(schemas(Problem))
)]
struct Document;

/// Every route, with what holds for all of them.
pub fn router(app: Arc<App>) -> Router {
    let (router, document) = OpenApiRouter::<Arc<App>>::with_openapi(Document::openapi())
        .routes(routes!(conversations::create, conversations::list))
        .routes(routes!(conversations::read, conversations::rename, conversations::delete))
        .routes(routes!(messages::list, messages::post))
        .routes(routes!(runs::create, runs::list))
        .routes(routes!(runs::read))
        .routes(routes!(runs::wait))
        .routes(routes!(runs::cancel))
        .routes(routes!(events::follow))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .split_for_parts();
    let max_body_bytes = app.config().max_body_bytes;
    router
        .route("/", get(home::page))
        .route("/openapi.json", get(|| async move { Json(document) }))
        .fallback(|OriginalUri(uri): OriginalUri| async move { Problem::route_not_found(uri.path()) })
        .method_not_allowed_fallback(|method: Method, OriginalUri(uri): OriginalUri| async move {
            Problem::method_not_allowed(method.as_str(), uri.path())
        })
        .with_state(app)
        .layer(DefaultBodyLimit::max(max_body_bytes))
        .layer(middleware::from_fn(auth::only_loopback_hosts))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(TraceLayer::new_for_http().make_span_with(DefaultMakeSpan::new().level(Level::INFO)).on_failure(()))
}

/// Which part of a list is asked for.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Most items of the page; 50 by default.
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

impl ListQuery {
    fn limit(&self, app: &App) -> Result<usize, Problem> {
        checked_limit(app, self.limit)
    }
}

const DEFAULT_PAGE: usize = 50;

fn checked_limit(app: &App, limit: Option<usize>) -> Result<usize, Problem> {
    let max = app.config().max_page;
    match limit.unwrap_or(DEFAULT_PAGE.min(max)) {
        limit if (1..=max).contains(&limit) => Ok(limit),
        _ => Err(Problem::invalid_query(format!("limit is a number from 1 to {max}."))),
    }
}

/// 202: the run is committed and will be executed.
fn accepted(run_id: Uuid, body: impl Serialize) -> Response {
    (StatusCode::ACCEPTED, [(header::LOCATION, format!("/v1/runs/{run_id}"))], Json(body)).into_response()
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    tracing::error!("a request panicked");
    Problem::internal().into_response()
}
