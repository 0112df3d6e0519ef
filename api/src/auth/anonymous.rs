//! Anonymous users: a client that has the user's secret is that user.
//!
//! The database stores only a fingerprint of the secret, so a reader of the database cannot act as any user. The secret
//! never derives from the client's address, because several clients share an address.

use axum::http::{HeaderMap, HeaderValue, header};
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
const SECRET_CHARS: usize = 43;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl AnonymousUser {
    /// Returns a new user with a random secret.
    pub fn new() -> Self {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes).expect("the system gives random bytes");
        Self(base64url(&bytes))
    }

    /// Returns the user with this secret, or `None` if the text is no secret.
    pub fn of(text: &str) -> Option<Self> {
        let is_secret = text.len() == SECRET_CHARS && text.bytes().all(|byte| ALPHABET.contains(&byte));
        is_secret.then(|| Self(text.to_owned()))
    }

    /// Returns the user of the request's cookie, if any.
    pub fn of_cookie(headers: &HeaderMap) -> Option<Self> {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find_map(|(name, value)| if name == COOKIE { Self::of(value) } else { None })
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
            new_user: None,
        }
    }

    /// Returns the user's name, which has 128 bits of the secret's SHA-256.
    pub fn owner(&self) -> String {
        let digest = Sha256::digest(self.0.as_bytes());
        let hex: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{ANONYMOUS_PREFIX}_{hex}")
    }

    pub fn secret(&self) -> &str {
        &self.0
    }

    pub fn cookie(&self) -> HeaderValue {
        let cookie = format!("{COOKIE}={}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={COOKIE_AGE}", self.0);
        HeaderValue::from_str(&cookie).expect("a cookie is a header value")
    }
}

/// RFC 4648, section 5, without padding.
fn base64url(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for index in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * index)) as usize & 63]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
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
    fn base64url_follows_the_rfc() {
        let check = |bytes: &[u8], text: &str| assert_eq!(base64url(bytes), text);
        check(b"", "");
        check(b"f", "Zg");
        check(b"fo", "Zm8");
        check(b"foo", "Zm9v");
        check(b"foob", "Zm9vYg");
        check(&[0xfb, 0xff, 0xfe], "-__-");
        assert_eq!(base64url(&[0; SECRET_BYTES]).len(), SECRET_CHARS);
    }

    #[test]
    fn only_a_complete_secret_in_the_right_cookie_counts() {
        let secret = "s".repeat(SECRET_CHARS);
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
