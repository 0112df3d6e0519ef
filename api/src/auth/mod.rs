//! Who is asking: the one place that answers it, once per request.
//!
//! Without a key for JWTs this is development mode (`development`). With one, somebody is whom a JWT names (`jwt`), or
//! nobody in particular but always the same (`anonymous`). `credential` reads what was sent for that, `client_address` where
//! it came from; `refusal` has the words for those who are turned away.

mod anonymous;
mod client_address;
mod credential;
mod development;
mod jwt;
mod refusal;

use std::{
    convert::Infallible,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use holdfast_shared::{
    agent::Standing,
    config::{self, ApiConfig, UsersConfig},
};
use ipnet::IpNet;
use serde::Serialize;
use tokio::time::Instant;

pub use anonymous::AnonymousUser;
pub use client_address::{Peer, one_client};

use crate::problem::Problem;
use client_address::client_address;
use credential::Credential;
use development::DevelopmentGate;
use jwt::TokenVerifier;

/// Who is asking, and what that allows.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The owner of everything that a request may see and make.
    pub owner: String,
    pub kind: CallerKind,
    /// Whether it may change what belongs to the deployment.
    pub is_operator: bool,
    /// Whether nobody has said who this is: `CHAT_RATE_LIMIT` is for those.
    pub is_unnamed: bool,
    /// Whether this request is the first of an anonymous user, who has shown no secret.
    pub is_new_user: bool,
    /// The client's, as far as it can be known.
    pub address: IpAddr,
    /// Whether a rate limit has counted this request.
    pub admission: Admission,
    /// When the token that named the caller expires; the caller's streams end then.
    pub expires_at: Option<Instant>,
    /// `X-Session-ID`.
    session: Option<String>,
}

/// Shared by all copies of one request's caller.
#[derive(Debug, Clone, Default)]
pub struct Admission(Arc<AtomicBool>);

impl Admission {
    pub fn count(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn was_counted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How somebody is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Kind)]
pub enum CallerKind {
    /// A JWT names them.
    Jwt,
    /// They keep a secret that nobody else has.
    Anonymous,
    /// They say so, in development mode.
    Developer,
}

impl Caller {
    /// A moment, or that at which the caller's token expires if it comes before.
    pub fn no_later_than(&self, moment: Instant) -> Instant {
        self.expires_at.map_or(moment, |end| end.min(moment))
    }

    /// The session that the request names.
    pub fn named_session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// What agents know of the caller.
    pub fn standing(&self) -> Standing<'_> {
        let (is_anonymous, is_operator) = (self.kind == CallerKind::Anonymous, self.is_operator);
        Standing { owner: &self.owner, is_anonymous, is_operator }
    }

    /// The name of the session that is meant where none is named.
    pub fn default_session(&self) -> String {
        match &self.session {
            Some(name) => name.clone(),
            None if self.kind == CallerKind::Developer && self.is_unnamed => "debug_session".to_owned(),
            None => format!("session_{}", self.owner),
        }
    }
}

#[cfg(test)]
impl Caller {
    /// A user whom a token names.
    pub fn test(owner: &str) -> Self {
        Self {
            owner: owner.to_owned(),
            kind: CallerKind::Jwt,
            is_operator: false,
            is_unnamed: false,
            is_new_user: false,
            address: IpAddr::from([192, 0, 2, 1]),
            admission: Admission::default(),
            expires_at: None,
            session: None,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let AuthResult(result) = parts.extensions.get().expect("`authenticate` is around every route");
        result.clone()
    }
}

/// A caller who may change what belongs to the deployment.
#[derive(Debug, Clone, Copy)]
pub struct Operator;

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Caller::from_request_parts(parts, state).await?.is_operator {
            true => Ok(Self),
            false => Err(Problem::operator_needed()),
        }
    }
}

/// The caller of a request, once `authenticate` knows; `None` if `authenticate` refuses the request.
pub fn caller_of(request: &Request) -> Option<&Caller> {
    request.extensions().get::<AuthResult>()?.0.as_ref().ok()
}

/// The anonymous user that a caller was before a token named them: the cookie beside the token.
pub struct CookieUser(pub Option<AnonymousUser>);

impl<S: Sync> FromRequestParts<S> for CookieUser {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(AnonymousUser::of_cookie(&parts.headers)))
    }
}

/// How callers are told apart here.
pub struct Authenticator {
    mode: AuthMode,
    trusted_proxies: Vec<IpNet>,
}

enum AuthMode {
    Development(DevelopmentGate),
    Checked { tokens: Box<TokenVerifier>, takes_anonymous: bool },
}

/// What the extractors find in a request.
#[derive(Clone)]
struct AuthResult(Result<Caller, Problem>);

/// Somebody, as one of the ways knows them.
struct Identity {
    owner: String,
    kind: CallerKind,
    is_operator: bool,
    is_unnamed: bool,
    expires_at: Option<Instant>,
    /// The secret of an anonymous user who does not know it yet.
    new_user: Option<AnonymousUser>,
}

impl Authenticator {
    /// Reads the key; refuses one that could not keep anybody out, and an open gate that nobody has asked for.
    pub fn new(config: &UsersConfig, api: &ApiConfig) -> Result<Self, config::Error> {
        config.check(api.addr)?;
        api.check()?;
        let mode = match &config.jwt_key {
            Some(key) => AuthMode::Checked {
                tokens: Box::new(TokenVerifier::new(key, config)?),
                takes_anonymous: config.anonymous,
            },
            None => AuthMode::Development(DevelopmentGate::new(config, api)),
        };
        Ok(Self { mode, trusted_proxies: config.trusted_proxies.clone() })
    }

    /// Whether everybody is believed.
    pub const fn is_development(&self) -> bool {
        matches!(self.mode, AuthMode::Development(_))
    }

    /// Whether somebody may be anonymous here.
    pub const fn takes_anonymous(&self) -> bool {
        matches!(self.mode, AuthMode::Checked { takes_anonymous: true, .. })
    }

    fn identify(&self, headers: &HeaderMap) -> Result<Identity, Problem> {
        let (tokens, takes_anonymous) = match &self.mode {
            AuthMode::Development(_) => return development::identify(headers),
            AuthMode::Checked { tokens, takes_anonymous } => (tokens, *takes_anonymous),
        };
        if headers.contains_key(development::HEADER) {
            return Err(Problem::development_identity());
        }
        match credential::from_headers(headers)? {
            Some(Credential::Token(token)) => tokens.identify(token),
            Some(Credential::Anonymous(user)) if takes_anonymous => Ok(user.identity()),
            Some(Credential::Anonymous(_)) => Err(Problem::unauthenticated()),
            None if takes_anonymous => {
                Ok(AnonymousUser::of_cookie(headers).map_or_else(AnonymousUser::new_identity, |user| user.identity()))
            }
            None => Err(Problem::unauthenticated()),
        }
    }
}

/// Decides who is asking, before anything else looks at the request; hands newcomers their secret when they have made
/// something that they must find again.
pub async fn authenticate(State(auth): State<Arc<Authenticator>>, mut request: Request, next: Next) -> Response {
    let Peer(peer) = *request.extensions().get().expect("`serve` says where each request comes from");
    if let AuthMode::Development(gate) = &auth.mode
        && let Err(refused) = gate.admit(&request, peer)
    {
        return refused.into_response();
    }
    let address = client_address(peer, request.headers(), &auth.trusted_proxies);
    let mut new_user = None;
    let caller = auth.identify(request.headers()).and_then(|identity| {
        let Identity { owner, kind, is_operator, is_unnamed, expires_at, new_user: secret } = identity;
        let is_new_user = secret.is_some();
        new_user = secret;
        let session = session(request.headers())?;
        let admission = Admission::default();
        Ok(Caller { owner, kind, is_operator, is_unnamed, is_new_user, address, admission, expires_at, session })
    });
    // Reads, of which a page makes many at once, would take each other's cookie away. What another site's page asks for
    // comes without the cookie that its reader has here, and must not replace it.
    let may_set_cookie = !matches!(*request.method(), Method::GET | Method::HEAD) && !is_cross_site(request.headers());
    request.extensions_mut().insert(AuthResult(caller));
    let mut response = next.run(request).await;
    if let Some(NewUserCookie(created)) = response.extensions_mut().remove() {
        new_user = Some(created);
    }
    if let Some(user) = new_user.filter(|_| may_set_cookie && !response.status().is_client_error()) {
        response.headers_mut().append(header::SET_COOKIE, user.cookie());
    }
    response
}

/// In the extensions of an answer: the anonymous user whose cookie it brings.
#[derive(Clone)]
pub struct NewUserCookie(pub AnonymousUser);

fn is_cross_site(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site")
}

/// Most characters of a name that somebody gives: a user's, a session's.
pub const MAX_NAME_CHARS: usize = 128;

fn session(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("x-session-id") else { return Ok(None) };
    name(value).map(|name| Some(name.to_owned())).ok_or_else(|| Problem::invalid_session(MAX_NAME_CHARS))
}

fn name(value: &HeaderValue) -> Option<&str> {
    let name = std::str::from_utf8(value.as_bytes()).ok()?.trim();
    is_name(name).then_some(name)
}

/// Whether somebody, or something of theirs, may be called like this.
pub fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_CHARS).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// What an answer says beside the problem, where somebody must say who they are.
pub fn challenge(status: StatusCode) -> Option<HeaderValue> {
    (status == StatusCode::UNAUTHORIZED).then(|| HeaderValue::from_static("Bearer"))
}
