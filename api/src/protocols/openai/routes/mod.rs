//! `/openai/v1`: the routes for the clients of OpenAI, with the Responses API and chat completions.
//!
//! `request` and `completion_request` read the bodies into `turns`, which say what a request asks for. `posting` makes a message of
//! it, `answering` gives a waiting run its answers, `respond` the response of a run, and `repeated` knows what that has of its request. The other files have the routes of a noun each.

mod answering;
mod catalog;
mod completion_request;
pub mod completions;
mod conversations;
mod files;
mod given_history;
mod items;
mod posting;
mod repeated;
mod request;
mod respond;
pub mod responses;
mod tool_choice;
mod turns;

use std::sync::Arc;

use axum::{Router, extract::OriginalUri, routing::post};

use crate::{
    app::App,
    problem::Problem,
    routes::described::{DescribedRoutes, routes},
};

/// Returns the routes whose bodies are small.
pub fn routes() -> DescribedRoutes {
    DescribedRoutes::default()
        .routes(routes!(responses::read, responses::delete))
        .routes(routes!(responses::cancel))
        .routes(routes!(responses::input_items))
        .routes(routes!(conversations::create))
        .routes(routes!(conversations::read, conversations::change, conversations::delete))
        .routes(routes!(items::list, items::create))
        .routes(routes!(items::read))
        .routes(routes!(files::create, files::list))
        .routes(routes!(files::read, files::delete))
        .routes(routes!(files::content))
        .routes(routes!(catalog::list))
        .routes(routes!(catalog::read))
}

/// Returns routes of OpenAI that this server does not have. Their addresses are those of responses, whose other methods get 405, and
/// clients know 404 alone for what a server lacks.
pub fn absent_routes() -> Router<Arc<App>> {
    let absent = async |OriginalUri(uri): OriginalUri| Problem::route_not_found(uri.path());
    Router::new()
        .route("/openai/v1/responses/input_tokens", post(absent))
        .route("/openai/v1/responses/compact", post(absent))
}
