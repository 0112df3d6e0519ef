//! `/v1/users`: the caller, new anonymous users, the claim of an anonymous user's data, and erasure.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{FromRequest, Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use holdfast_shared::storage;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    anonymous_limits::AdmittedWriter,
    app::App,
    auth::{AnonymousUser, Caller, CallerKind, CookieUser, NewUserCookie},
    extract::JsonBody,
    problem::Problem,
};

/// The caller.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Me {
    /// The owner of the caller's data.
    user: String,
    kind: CallerKind,
    /// Whether the caller may write agents.
    operator: bool,
    /// The session of requests that name none.
    default_session: String,
    /// Data of the cookie's anonymous user, which the caller may take over.
    #[serde(skip_serializing_if = "Option::is_none")]
    claimable: Option<ClaimResult>,
}

/// Data of an anonymous user.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Claimed)]
pub struct ClaimResult {
    conversations: usize,
}

#[derive(Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewClaim {
    /// The secret of the anonymous user; the cookie's by default.
    anonymous_token: Option<String>,
}

/// An anonymous user.
#[derive(Serialize, utoipa::ToSchema)]
pub struct NewUser {
    user: String,
    /// The secret, which the client sends as `Authorization: Bearer`. The server never returns it again.
    token: String,
}

/// Read the caller's user and permissions.
#[utoipa::path(get, path = "/v1/users/me", tag = "users", responses(
    (status = 200, body = Me),
    (status = 401, body = Problem, description = "unauthenticated, invalid_token, development_identity")
))]
pub async fn me(
    State(app): State<Arc<App>>,
    caller: Caller,
    CookieUser(former): CookieUser,
) -> Result<Json<Me>, Problem> {
    let claimable = match former.filter(|_| caller.kind == CallerKind::Jwt) {
        Some(former) => Some(app.storage().count_conversations(&former.owner()).await?),
        None => None,
    };
    let claimable = claimable.filter(|count| *count > 0).map(|conversations| ClaimResult { conversations });
    let default_session = caller.default_session();
    Ok(Json(Me { user: caller.owner, kind: caller.kind, operator: caller.is_operator, default_session, claimable }))
}

/// The text about a user that planners read, and the user's time zone.
#[derive(Serialize, utoipa::ToSchema)]
pub struct UserProfile {
    /// Free text; null if there is none.
    profile: Option<String>,
    /// The zone of requests without the header `Time-Zone`, as a name of the IANA database; null if there is none.
    time_zone: Option<String>,
}

impl From<storage::StoredUserProfile> for UserProfile {
    fn from(stored: storage::StoredUserProfile) -> Self {
        Self { profile: stored.text, time_zone: stored.time_zone.map(|zone| zone.name().to_owned()) }
    }
}

/// A change of a profile: an absent field stays as it is, and null removes it.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUserProfile {
    /// Free text.
    #[serde(default, deserialize_with = "present")]
    profile: Option<Option<String>>,
    /// A name of the IANA database, such as `Europe/Copenhagen`.
    #[serde(default, deserialize_with = "present")]
    time_zone: Option<Option<String>>,
}

/// Distinguishes null from an absent field.
fn present<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(field).map(Some)
}

/// Read the text about the caller that planners read, and the caller's time zone.
#[utoipa::path(get, path = "/v1/users/me/profile", operation_id = "read_profile", tag = "users", responses((status = 200, body = UserProfile)))]
pub async fn read_profile(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<UserProfile>, Problem> {
    Ok(Json(app.storage().user_profile(&caller.owner).await?.into()))
}

/// Replace the text about the caller that planners read, or the caller's time zone; null removes it.
#[utoipa::path(put, path = "/v1/users/me/profile", operation_id = "replace_profile", tag = "users", request_body = NewUserProfile, responses(
    (status = 200, body = UserProfile), (status = 400, body = Problem, description = "invalid_profile, unknown_time_zone")
))]
pub async fn replace_profile(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    JsonBody(body): JsonBody<NewUserProfile>,
) -> Result<Json<UserProfile>, Problem> {
    let mut profile = app.storage().user_profile(&caller.owner).await?;
    if let Some(text) = body.profile {
        let most = app.config().max_profile_bytes;
        if text.as_ref().is_some_and(|text| text.len() > most || text.contains('\0')) {
            return Err(Problem::invalid_profile(most));
        }
        profile.text = text.filter(|text| !text.is_empty());
    }
    if let Some(zone) = body.time_zone {
        let zone = zone.map(|name| name.parse().map_err(|_| Problem::unknown_time_zone()));
        profile.time_zone = zone.transpose()?;
    }
    app.storage().put_user_profile(&caller.owner, &profile).await?;
    Ok(Json(profile.into()))
}

/// Take over all data of an anonymous user: conversations, runs, briefings and memories. Live runs and open streams continue.
#[utoipa::path(post, path = "/v1/users/me/claim", tag = "users", request_body(content = Option<NewClaim>), responses(
    (status = 200, body = ClaimResult, description = "The number of moved conversations."),
    (status = 400, body = Problem, description = "no_anonymous_user: the request has neither a cookie nor a token of one"),
    (status = 403, body = Problem, description = "token_needed: no JWT names the caller; quota_exceeded, too_many_memories, too_many_collections, too_many_documents, too_much_text, workspace_full: the two together keep too much"),
    (status = 429, body = Problem, description = "too_many_runs: the two together have too many unfinished runs")
))]
pub async fn claim(
    State(app): State<Arc<App>>,
    caller: Caller,
    CookieUser(cookie): CookieUser,
    request: Request,
) -> Result<Json<ClaimResult>, Problem> {
    if caller.kind != CallerKind::Jwt {
        return Err(Problem::token_needed());
    }
    let claim = if request.headers().contains_key(header::CONTENT_TYPE) {
        JsonBody::<NewClaim>::from_request(request, &app).await?.0
    } else {
        NewClaim::default()
    };
    let former = match claim.anonymous_token {
        Some(token) => AnonymousUser::of(&token),
        None => cookie,
    };
    let former = former.ok_or_else(Problem::no_anonymous_user)?;
    let conversations = app.move_owner(&former.owner(), &caller.owner).await?;
    Ok(Json(ClaimResult { conversations }))
}

/// Remove all data of the caller: briefings, and conversations with their runs, which the server cancels.
#[utoipa::path(delete, path = "/v1/users/me", tag = "users", responses((status = 204, description = "The server has removed all data.")))]
pub async fn erase(State(app): State<Arc<App>>, AdmittedWriter(caller): AdmittedWriter) -> Result<StatusCode, Problem> {
    app.erase(&caller.owner).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The anonymous user that the request's cookie names.
#[derive(Serialize, utoipa::ToSchema)]
pub struct CurrentUser {
    user: String,
}

/// Create an anonymous user, for clients that keep no cookies. A request with the cookie of an anonymous user keeps that user.
#[utoipa::path(post, path = "/v1/users/anonymous", tag = "users", responses(
    (status = 201, body = NewUser, description = "The token, in the body and as a cookie."),
    (status = 200, body = CurrentUser, description = "The user of the request's cookie, without its token, which only the cookie has."),
    (status = 409, body = Problem, description = "no_anonymous_users: development mode, or HOLDFAST_ANONYMOUS=false")
))]
pub async fn create_anonymous(
    State(app): State<Arc<App>>,
    CookieUser(current): CookieUser,
) -> Result<Response, Problem> {
    if app.auth().is_development() {
        return Err(Problem::no_anonymous_users("in development mode X-User names the user, or it is debug_user"));
    }
    if !app.auth().takes_anonymous() {
        return Err(Problem::no_anonymous_users("HOLDFAST_ANONYMOUS is false; send a JWT"));
    }
    // A new cookie would replace the only copy of the current user's secret.
    if let Some(current) = current {
        return Ok(Json(CurrentUser { user: current.owner() }).into_response());
    }
    let user = AnonymousUser::new();
    let body = NewUser { user: user.owner(), token: user.secret().to_owned() };
    Ok((StatusCode::CREATED, Extension(NewUserCookie(user)), Json(body)).into_response())
}
