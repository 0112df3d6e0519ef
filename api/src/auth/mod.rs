//! Identifies the caller, once per request; nothing else in the API does.
//!
//! Without a key for JWTs the server is in development mode (`development`). With one, a caller is the user that a JWT
//! names (`jwt`), or an anonymous user (`anonymous`). `credential` reads the headers for that, `origin` refuses changes by
//! pages of other origins, `client_address` finds the client's address, `caller_group` names the group of an anonymous caller,
//! and `refusal` has the problems of refused callers.

mod anonymous;
mod caller_group;
mod client_address;
mod credential;
mod development;
mod jwt;
mod origin;
mod refusal;

use std::{
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
    agent::CallerRights,
    config::{self, ApiConfig, UsersConfig},
    hidden::is_visible,
    time_zone::TimeZone,
};
use ipnet::IpNet;
use serde::Serialize;
use tokio::time::Instant;

pub use anonymous::AnonymousUser;
pub use client_address::{Peer, one_client};

use crate::problem::Problem;
use caller_group::CallerGroups;
use client_address::{client_address, is_trusted};
use credential::Credential;
use development::DevelopmentGate;
use jwt::TokenVerifier;
use origin::{OriginRule, OriginVerdict};

/// The sender of a request, and its permissions.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The owner of everything that the request may read and create.
    pub owner: String,
    pub kind: CallerKind,
    /// Whether the caller may change the deployment, such as its agents.
    pub is_operator: bool,
    /// Whether the request names no user; `CHAT_RATE_LIMIT` applies to such callers, by address.
    pub is_unnamed: bool,
    /// Whether this is the first request of an anonymous user, which carries no secret.
    pub is_new_user: bool,
    /// The client's address, as far as trusted proxies report it.
    pub address: IpAddr,
    /// The group of an anonymous caller, whose runs share the slots of workers with all runs of the address.
    pub group: Option<String>,
    /// Whether a rate limit has counted this request.
    pub admission: Admission,
    /// When the caller's token expires; the caller's streams end then.
    pub expires_at: Option<Instant>,
    /// `X-Session-ID`.
    session: Option<String>,
    /// `Time-Zone`, as the client has sent it.
    time_zone: Option<HeaderValue>,
}

/// Whether a limit has counted the request; shared by all clones of its caller.
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

/// How the server knows a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Kind)]
pub enum CallerKind {
    /// A JWT names the user.
    Jwt,
    /// The client keeps a secret that no other client has.
    Anonymous,
    /// The client names the user itself, in development mode.
    Developer,
}

impl Caller {
    /// Returns `moment`, or the expiry of the caller's token if that is earlier.
    pub fn no_later_than(&self, moment: Instant) -> Instant {
        self.expires_at.map_or(moment, |end| end.min(moment))
    }

    /// Returns the session that the request names, if any.
    pub fn named_session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Returns the time zone that the request names, if any. Fails if there is no such zone.
    pub fn time_zone(&self) -> Result<Option<TimeZone>, Problem> {
        let Some(value) = &self.time_zone else { return Ok(None) };
        let zone = value.to_str().ok().and_then(|name| name.trim().parse().ok());
        zone.map(Some).ok_or_else(Problem::unknown_time_zone)
    }

    /// Returns the caller as the access rules of agents see it.
    pub fn standing(&self) -> CallerRights<'_> {
        let (is_anonymous, is_operator) = (self.kind == CallerKind::Anonymous, self.is_operator);
        CallerRights { owner: &self.owner, is_anonymous, is_operator }
    }

    /// Returns the name of the session for requests that name none.
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
    /// Returns a caller with a JWT.
    pub fn test(owner: &str) -> Self {
        Self {
            owner: owner.to_owned(),
            kind: CallerKind::Jwt,
            is_operator: false,
            is_unnamed: false,
            is_new_user: false,
            address: IpAddr::from([192, 0, 2, 1]),
            group: None,
            admission: Admission::default(),
            expires_at: None,
            session: None,
            time_zone: None,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let AuthResult(result) = parts.extensions.get().expect("`authenticate` wraps every route");
        result.clone()
    }
}

/// Extracts an operator; fails with `operator_needed` for other callers.
#[derive(Debug, Clone, Copy)]
pub struct Operator;

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        if Caller::from_request_parts(parts, state).await?.is_operator {
            Ok(Self)
        } else {
            Err(Problem::operator_needed())
        }
    }
}

/// Returns the caller of a request after `authenticate`; `None` if `authenticate` refused the request.
pub fn caller_of(request: &Request) -> Option<&Caller> {
    request.extensions().get::<AuthResult>()?.0.as_ref().ok()
}

/// Fails with `foreign_origin` if a page of another origin sends the request.
pub fn origin_verdict(parts: &Parts) -> Result<(), Problem> {
    let OriginVerdict(verdict) = parts.extensions.get().expect("`authenticate` wraps every route");
    verdict.clone()
}

/// The anonymous user of the request's cookie, which a client may send beside a JWT. Fails with `foreign_origin` if a page of
/// another origin would change something with it.
pub struct CookieUser(pub Option<AnonymousUser>);

impl<S: Sync> FromRequestParts<S> for CookieUser {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(user) = AnonymousUser::of_cookie(&parts.headers) else { return Ok(Self(None)) };
        origin_verdict(parts).map(|()| Self(Some(user)))
    }
}

/// Identifies callers by the process's settings.
pub struct Authenticator {
    mode: AuthMode,
    origins: OriginRule,
    trusted_proxies: Vec<IpNet>,
}

enum AuthMode {
    Development(DevelopmentGate),
    Checked { tokens: Box<TokenVerifier>, groups: CallerGroups, takes_anonymous: bool },
}

/// The result of `authenticate`, in the extensions of a request; extractors read it.
#[derive(Clone)]
struct AuthResult(Result<Caller, Problem>);

/// A user as one of the modes identifies it.
struct Identity {
    owner: String,
    kind: CallerKind,
    is_operator: bool,
    is_unnamed: bool,
    expires_at: Option<Instant>,
    /// Whether the browser adds what identifies the user to the requests of any page, so that `origin` must admit the page.
    is_ambient: bool,
    /// The secret of a new anonymous user, which the client does not know yet.
    new_user: Option<AnonymousUser>,
}

impl Authenticator {
    /// Reads the settings. Fails if the key is too weak, or if development mode would serve other hosts without
    /// consent.
    pub fn new(config: &UsersConfig, api: &ApiConfig) -> Result<Self, config::Error> {
        config.check(api.addr)?;
        api.check()?;
        let mode = match &config.jwt_key {
            Some(key) => AuthMode::Checked {
                tokens: Box::new(TokenVerifier::new(key, config)?),
                groups: CallerGroups::new(key),
                takes_anonymous: config.anonymous,
            },
            None => AuthMode::Development(DevelopmentGate::new(config)),
        };
        let origins = OriginRule::new(api, config.jwt_key.is_none());
        Ok(Self { mode, origins, trusted_proxies: config.trusted_proxies.clone() })
    }

    /// Returns whether the server believes every name, because it has no key.
    pub const fn is_development(&self) -> bool {
        matches!(self.mode, AuthMode::Development(_))
    }

    /// Returns whether the server accepts anonymous users.
    pub const fn takes_anonymous(&self) -> bool {
        matches!(self.mode, AuthMode::Checked { takes_anonymous: true, .. })
    }

    /// Returns the issuers whose tokens the server accepts, if it checks them.
    pub fn issuers(&self) -> Vec<&str> {
        match &self.mode {
            AuthMode::Checked { tokens, .. } => tokens.issuers(),
            AuthMode::Development(_) => Vec::new(),
        }
    }

    /// Returns the group of a caller of this kind and address; `None` for a caller with a name.
    fn group(&self, kind: CallerKind, address: IpAddr) -> Option<String> {
        match &self.mode {
            AuthMode::Checked { groups, .. } if kind == CallerKind::Anonymous => Some(groups.of(address)),
            _ => None,
        }
    }

    fn identify(&self, headers: &HeaderMap) -> Result<Identity, Problem> {
        let (tokens, takes_anonymous) = match &self.mode {
            AuthMode::Development(_) => return development::identify(headers),
            AuthMode::Checked { tokens, takes_anonymous, .. } => (tokens, *takes_anonymous),
        };
        if headers.contains_key(development::HEADER) {
            return Err(Problem::development_identity());
        }
        match credential::from_headers(headers)? {
            Some(Credential::Token(token)) => tokens.identify(token),
            Some(Credential::Anonymous(user)) if takes_anonymous => Ok(user.identity()),
            Some(Credential::Anonymous(_)) => Err(Problem::unauthenticated()),
            None if takes_anonymous => Ok(match AnonymousUser::of_cookie(headers) {
                Some(user) => Identity { is_ambient: true, ..user.identity() },
                None => AnonymousUser::new_identity(),
            }),
            None => Err(Problem::unauthenticated()),
        }
    }
}

/// Identifies the caller before any other code reads the request. A new anonymous user receives its cookie with the
/// first successful write.
pub async fn authenticate(State(auth): State<Arc<Authenticator>>, mut request: Request, next: Next) -> Response {
    let Peer(peer) = *request.extensions().get().expect("`serve` inserts the peer of each request");
    if let AuthMode::Development(gate) = &auth.mode
        && let Err(refused) = gate.admit(&request, peer)
    {
        return refused.into_response();
    }
    let address = client_address(peer, request.headers(), &auth.trusted_proxies);
    let verdict = auth.origins.check(&request, is_trusted(peer, &auth.trusted_proxies));
    let identity = auth.identify(request.headers());
    // Not every route asks for its caller.
    if let (Ok(Identity { is_ambient: true, .. }), Err(foreign)) = (&identity, &verdict) {
        return foreign.clone().into_response();
    }
    let mut new_user = None;
    let caller = identity.and_then(|identity| {
        let Identity { owner, kind, is_operator, is_unnamed, expires_at, is_ambient: _, new_user: secret } = identity;
        let is_new_user = secret.is_some();
        new_user = secret;
        let session = session(request.headers())?;
        let (group, admission) = (auth.group(kind, address), Admission::default());
        let time_zone = request.headers().get("time-zone").cloned();
        Ok(Caller {
            owner,
            kind,
            is_operator,
            is_unnamed,
            is_new_user,
            address,
            group,
            admission,
            expires_at,
            session,
            time_zone,
        })
    });
    // A page sends many reads at once, and they would overwrite each other's cookie. A request from another site's page
    // lacks the cookie that the browser has for this site, and must not replace it.
    let may_set_cookie = !matches!(*request.method(), Method::GET | Method::HEAD)
        && verdict.is_ok()
        && !origin::is_cross_site(request.headers());
    request.extensions_mut().insert(AuthResult(caller));
    request.extensions_mut().insert(OriginVerdict(verdict));
    let mut response = next.run(request).await;
    if let Some(NewUserCookie(created)) = response.extensions_mut().remove() {
        new_user = Some(created);
    }
    if let Some(user) = new_user.filter(|_| may_set_cookie && !response.status().is_client_error()) {
        response.headers_mut().append(header::SET_COOKIE, user.cookie());
    }
    response
}

/// In the extensions of an answer: the anonymous user whose cookie the answer sets.
#[derive(Clone)]
pub struct NewUserCookie(pub AnonymousUser);

/// Most characters of a name that a client gives, such as a user's or a session's.
pub const MAX_NAME_CHARS: usize = 128;

fn session(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("x-session-id") else { return Ok(None) };
    name(value).map(|name| Some(name.to_owned())).ok_or_else(|| Problem::invalid_session(MAX_NAME_CHARS))
}

fn name(value: &HeaderValue) -> Option<&str> {
    let name = std::str::from_utf8(value.as_bytes()).ok()?.trim();
    is_name(name).then_some(name)
}

/// Returns whether a text is a valid name of a user, a session or a chat. A valid name stays as it is.
pub fn is_name(text: &str) -> bool {
    text.chars().count() <= MAX_NAME_CHARS && is_visible(text) && !text.chars().any(char::is_control)
}

/// Returns the `WWW-Authenticate` header of a 401.
pub fn challenge(status: StatusCode) -> Option<HeaderValue> {
    (status == StatusCode::UNAUTHORIZED).then(|| HeaderValue::from_static("Bearer"))
}
