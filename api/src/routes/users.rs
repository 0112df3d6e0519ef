//! `/v1/users`: who one is, and how to be somebody without an account.

use std::sync::Arc;

use axum::{Extension, Json, extract::State, http::StatusCode, response::IntoResponse};
use serde::Serialize;

use crate::{
    app::App,
    auth::{Anonymous, Caller, Kind, Newcomer},
    problem::Problem,
};

/// Who is asking.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Me {
    /// The owner of what this caller makes.
    user: String,
    kind: Kind,
    /// Whether agents may be written.
    operator: bool,
    /// The session that is meant where none is named.
    default_session: String,
}

/// An anonymous user.
#[derive(Serialize, utoipa::ToSchema)]
pub struct NewUser {
    user: String,
    /// To be sent as `Authorization: Bearer`; it cannot be had again.
    token: String,
}

/// Show who one is.
#[utoipa::path(get, path = "/v1/users/me", tag = "users", responses(
    (status = 200, body = Me),
    (status = 401, body = Problem, description = "unauthenticated, invalid_token, development_identity")
))]
pub async fn me(caller: Caller) -> Json<Me> {
    let default_session = caller.default_session();
    Json(Me { user: caller.owner, kind: caller.kind, operator: caller.is_operator, default_session })
}

/// Make an anonymous user, for clients that keep no cookies.
#[utoipa::path(post, path = "/v1/users/anonymous", tag = "users", responses(
    (status = 201, body = NewUser, description = "The token, in the body and as a cookie."),
    (status = 409, body = Problem, description = "no_anonymous_users: development mode, or HOLDFAST_ANONYMOUS=false")
))]
pub async fn create_anonymous(State(app): State<Arc<App>>) -> Result<impl IntoResponse, Problem> {
    if app.auth().is_development() {
        return Err(Problem::no_anonymous_users("in development mode everybody is debug_user, or whoever X-User says"));
    }
    if !app.auth().takes_anonymous() {
        return Err(Problem::no_anonymous_users("HOLDFAST_ANONYMOUS is false; send a JWT"));
    }
    let user = Anonymous::new();
    let body = NewUser { user: user.owner(), token: user.secret().to_owned() };
    Ok((StatusCode::CREATED, Extension(Newcomer(user)), Json(body)))
}
