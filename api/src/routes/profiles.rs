//! `/v1/profiles`: the model profiles of the deployment, for operators.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use chrono::{DateTime, Utc};
use holdfast_shared::{
    agent::{ModelRole, Origin, Profile, Profiles},
    storage::StoredProfiles,
};
use serde::Serialize;

use crate::{app::App, auth::Operator, extract::JsonBody, problem::Problem};

/// The profiles, and their source.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ProfilesView {
    /// `api`, or `file` for the file `HOLDFAST_AGENTS`, which only that file can change.
    origin: Origin,
    /// Time of the database; null before the first change.
    #[serde(serialize_with = "holdfast_shared::timestamp::optional_milliseconds")]
    updated_at: Option<DateTime<Utc>>,
    /// The profiles by their names.
    profiles: BTreeMap<String, Profile>,
    /// The profile that each role uses.
    roles: BTreeMap<ModelRole, String>,
}

/// Read the model profiles and the roles.
#[utoipa::path(get, path = "/v1/profiles", operation_id = "read_profiles", tag = "agents", responses(
    (status = 200, body = ProfilesView),
    (status = 403, body = Problem, description = "operator_needed")
))]
pub async fn read(State(app): State<Arc<App>>, _: Operator) -> Result<Json<ProfilesView>, Problem> {
    Ok(Json(view(app.storage().stored_profiles().await?)))
}

/// Replace the model profiles and the roles. Runs use them from their next attempt on.
#[utoipa::path(put, path = "/v1/profiles", operation_id = "replace_profiles", tag = "agents", request_body = Profiles, responses(
    (status = 200, body = ProfilesView),
    (status = 400, body = Problem, description = "invalid_profiles, invalid_body, invalid_json"),
    (status = 403, body = Problem, description = "operator_needed"),
    (status = 409, body = Problem, description = "profiles_in_file")
))]
pub async fn replace(
    State(app): State<Arc<App>>,
    _: Operator,
    JsonBody(profiles): JsonBody<Profiles>,
) -> Result<Json<ProfilesView>, Problem> {
    profiles.check().map_err(|invalid| Problem::invalid_profiles(&invalid))?;
    if !app.storage().put_profiles(&profiles).await? {
        return Err(Problem::profiles_in_file());
    }
    Ok(Json(view(app.storage().stored_profiles().await?)))
}

fn view(stored: Option<StoredProfiles>) -> ProfilesView {
    let (origin, updated_at) = match &stored {
        Some(stored) => (stored.origin, Some(stored.updated_at)),
        None => (Origin::Api, None),
    };
    let Profiles { profiles, roles } = stored.map(|stored| stored.profiles).unwrap_or_default();
    ProfilesView { origin, updated_at, profiles, roles }
}
