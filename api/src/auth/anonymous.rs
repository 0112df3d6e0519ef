//! Anonymous users: a client that has the user's secret is that user.
//!
//! The database stores only a fingerprint of the secret, so a reader of the database cannot act as any user. The secret
//! never derives from the client's address, because several clients share an address.

use axum::http::{HeaderMap, HeaderValue};
use axum_extra::extract::CookieJar;
use base64::{
    Engine,
    alphabet::URL_SAFE,
    engine::general_purpose::{GeneralPurpose, NO_PAD},
};
use holdfast_shared::config::ANONYMOUS_PREFIX;
use sha2::{Digest, Sha256};

use super::{CallerKind, Identity};

/// The secret of an anonymous user: 32 random bytes, as 43 characters of base64url.
#[derive(Clone, PartialEq, Eq)]
pub struct AnonymousUser(String);

/// The prefix `__Host-` makes browsers accept the cookie only over HTTPS and only for this host.
const COOKIE: &str = "__Host-holdfast_user";

/// A year, in seconds.
const COOKIE_AGE: u32 = 31_536_000;

const SECRET_BYTES: usize = 32;

/// A client may have chosen its secret: 43 characters have two bits more than 32 bytes.
const BASE64URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

impl AnonymousUser {
    /// Returns a new user with a random secret.
    pub fn new() -> Self {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes).expect("the system gives random bytes");
        Self(BASE64URL.encode(bytes))
    }

    /// Returns the user with this secret, or `None` if the text is no secret.
    pub fn of(text: &str) -> Option<Self> {
        let is_secret = BASE64URL.decode(text).is_ok_and(|bytes| bytes.len() == SECRET_BYTES);
        is_secret.then(|| Self(text.to_owned()))
    }

    /// Returns the user of the request's cookie, if any.
    pub fn of_cookie(headers: &HeaderMap) -> Option<Self> {
        Self::of(CookieJar::from_headers(headers).get(COOKIE)?.value())
    }

    /// Returns a new user, whose secret the answer sends as a cookie.
    pub(super) fn new_identity() -> Identity {
        let user = Self::new();
        Identity { new_user: Some(user.clone()), ..user.identity() }
    }

    pub(super) fn identity(&self) -> Identity {
        Identity {
            owner: self.owner(),
            kind: CallerKind::Anonymous,
            is_operator: false,
            is_unnamed: true,
            expires_at: None,
            is_ambient: false,
            new_user: None,
        }
    }

    /// Returns the user's name, which has 128 bits of the secret's SHA-256.
    pub fn owner(&self) -> String {
        let digest = Sha256::digest(self.0.as_bytes());
        format!("{ANONYMOUS_PREFIX}_{}", hex::encode(&digest[..16]))
    }

    pub fn secret(&self) -> &str {
        &self.0
    }

    pub fn cookie(&self) -> HeaderValue {
        let cookie = format!("{COOKIE}={}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={COOKIE_AGE}", self.0);
        HeaderValue::from_str(&cookie).expect("a cookie is a header value")
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header;

    use super::*;

    #[test]
    fn a_secret_is_random_and_its_owner_does_not_reveal_it() {
        let (one, two) = (AnonymousUser::new(), AnonymousUser::new());
        assert!(one.secret() != two.secret() && one.owner() != two.owner());
        assert!(AnonymousUser::of(one.secret()).is_some_and(|again| again.owner() == one.owner()));
        assert_eq!(one.owner().len(), "anonymous_".len() + 32);
        // `printf %s <secret> | sha256sum`
        let expected = AnonymousUser::of("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").unwrap();
        assert_eq!(expected.owner(), "anonymous_0f007385b6f9d4b7eeb2748605afe1a9");
    }

    #[test]
    fn only_a_complete_secret_in_the_right_cookie_counts() {
        let secret = "s".repeat(43);
        let check = |cookie: &str, counts: bool| {
            let headers = HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(cookie).unwrap())]);
            assert_eq!(AnonymousUser::of_cookie(&headers).is_some(), counts, "{cookie}");
        };
        check(&format!("__Host-holdfast_user={secret}"), true);
        check(&format!("a=b; __Host-holdfast_user={secret};c=d"), true);
        check(&format!("holdfast_user={secret}"), false);
        check(&format!("__Host-holdfast_user={secret}s"), false);
        check(&format!("__Host-holdfast_user={}+", &secret[1..]), false);
        check("__Host-holdfast_user", false);
    }
}
