//! `/v1/server`: facts about the server, for pages.

use std::sync::Arc;

use axum::{Json, extract::State};
use holdfast_shared::{
    config::{PageComposer, Provider},
    storage::BackEnd,
};
use serde::Serialize;

use crate::{app::App, auth::Caller, problem::Problem};

/// Facts about the server that its users may know.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Server)]
pub struct ServerInfo {
    /// The version of the API.
    version: &'static str,
    /// The model of conversations without an agent; null if the API runs alone and no worker has started yet.
    #[schema(required)]
    model: Option<ServerModel>,
    storage: BackEnd,
    /// Whether the chat page locks its message field while an answer is being made.
    composer: PageComposer,
    /// A warning for users about the storage of their conversations, or null.
    #[schema(required)]
    warning: Option<&'static str>,
}

/// The deployment's default model. An agent may have another.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Model)]
pub struct ServerModel {
    /// As in `CHAT_MODEL_PROVIDER`.
    provider: String,
    name: String,
    /// False for the scripted model, which only imitates one.
    is_real: bool,
}

impl ServerModel {
    fn new(provider: String, name: String) -> Self {
        let is_real = provider != Provider::Scripted.to_string();
        Self { provider, name, is_real }
    }
}

/// Read the server's version, model and storage.
#[utoipa::path(get, path = "/v1/server", tag = "server", responses(
    (status = 200, body = ServerInfo, description = "The server."),
    (status = 401, body = Problem, description = "unauthenticated, invalid_token, development_identity")
))]
pub async fn show(State(app): State<Arc<App>>, _: Caller) -> Json<ServerInfo> {
    let storage = app.storage();
    let model = match app.model() {
        Some(own) => Some((own.provider.to_string(), own.name.clone())),
        // A page requests this first, and must show the rest also while the database is unavailable.
        None => storage.noted_model().await.ok().flatten(),
    };
    Json(ServerInfo {
        version: env!("CARGO_PKG_VERSION"),
        model: model.map(|(provider, name)| ServerModel::new(provider, name)),
        storage: storage.back_end(),
        composer: app.config().page_composer,
        warning: storage.caution().map(|caution| caution.message),
    })
}
