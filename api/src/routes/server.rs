//! `/v1/server`: what a page shows of the server itself.

use std::sync::Arc;

use axum::{Json, extract::State};
use holdfast_shared::{config::Provider, storage::BackEnd};
use serde::Serialize;

use crate::{app::App, auth::Caller, problem::Problem};

/// The server, as its users may know it.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Server)]
pub struct ServerInfo {
    /// The version of the API.
    version: &'static str,
    /// The model of plain conversations; null for an API alone before the first worker has started.
    #[schema(required)]
    model: Option<ServerModel>,
    storage: BackEnd,
    /// A sentence for users about where their conversations are kept, or null.
    #[schema(required)]
    warning: Option<&'static str>,
}

/// The deployment's own model. An agent may have another.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Model)]
pub struct ServerModel {
    /// As in `CHAT_MODEL_PROVIDER`.
    provider: String,
    name: String,
    /// False for the scripted model, which only plays one.
    is_real: bool,
}

impl ServerModel {
    fn new(provider: String, name: String) -> Self {
        let is_real = provider != Provider::Scripted.to_string();
        Self { provider, name, is_real }
    }
}

/// Show what the server is.
#[utoipa::path(get, path = "/v1/server", tag = "server", responses(
    (status = 200, body = ServerInfo, description = "The server."),
    (status = 401, body = Problem, description = "unauthenticated, invalid_token, development_identity")
))]
pub async fn show(State(app): State<Arc<App>>, _: Caller) -> Json<ServerInfo> {
    let storage = app.storage();
    let model = match app.model() {
        Some(own) => Some((own.provider.to_string(), own.name.clone())),
        // A page asks for this first, and shows the rest also while the database is away.
        None => storage.noted_model().await.ok().flatten(),
    };
    Json(ServerInfo {
        version: env!("CARGO_PKG_VERSION"),
        model: model.map(|(provider, name)| ServerModel::new(provider, name)),
        storage: storage.back_end(),
        warning: storage.caution().map(|caution| caution.message),
    })
}
