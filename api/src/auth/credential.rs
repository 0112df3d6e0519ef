//! Reads the credential of a request; `jwt` and `anonymous` check it.
//!
//! Clients of other APIs send a key in every request, as `Authorization: Bearer` or as `x-api-key`. Either header may
//! carry a JWT or the secret of an anonymous user. Only a JWT has dots, so the server can distinguish them.

use axum::http::{HeaderMap, HeaderValue, header};

use super::anonymous::AnonymousUser;
use crate::problem::Problem;

pub enum Credential<'a> {
    Token(&'a str),
    Anonymous(AnonymousUser),
}

/// Returns the credential of `Authorization`, else of `x-api-key`, else `None`. Fails if a header is there but
/// unreadable, so that no user becomes anonymous by mistake.
pub fn from_headers(headers: &HeaderMap) -> Result<Option<Credential<'_>>, Problem> {
    let text = match (headers.get(header::AUTHORIZATION), headers.get("x-api-key")) {
        (Some(authorization), _) => bearer(authorization)?,
        (None, Some(key)) => readable(key)?,
        (None, None) => return Ok(None),
    };
    if text.is_empty() {
        return Err(Problem::invalid_token("it is empty"));
    }
    if text.contains('.') {
        return Ok(Some(Credential::Token(text)));
    }
    match AnonymousUser::of(text) {
        Some(user) => Ok(Some(Credential::Anonymous(user))),
        None => Err(Problem::invalid_token("it is neither a JWT nor the token of an anonymous user")),
    }
}

fn bearer(value: &HeaderValue) -> Result<&str, Problem> {
    let text = readable(value)?;
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if scheme.eq_ignore_ascii_case("bearer") || text.is_empty() {
        Ok(token.trim())
    } else {
        Err(Problem::invalid_token("Authorization must begin with Bearer and a space"))
    }
}

fn readable(value: &HeaderValue) -> Result<&str, Problem> {
    value.to_str().map(str::trim).map_err(|_| Problem::invalid_token("it has characters that a token cannot have"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_accepted_or_refused_but_never_ignored() {
        let secret = "a".repeat(43);
        let check = |sent_headers: &[(&'static str, &str)], expected: &str| {
            let mut headers = HeaderMap::new();
            for (name, value) in sent_headers {
                headers.append(*name, HeaderValue::from_str(value).unwrap());
            }
            let result = match from_headers(&headers) {
                Ok(Some(Credential::Token(token))) => format!("token {token}"),
                Ok(Some(Credential::Anonymous(_))) => "anonymous".to_owned(),
                Ok(None) => "nothing".to_owned(),
                Err(problem) => problem.code.to_owned(),
            };
            assert_eq!(result, expected, "{sent_headers:?}");
        };
        check(&[], "nothing");
        check(&[("authorization", "Bearer a.b.c")], "token a.b.c");
        check(&[("authorization", "bearer  a.b.c ")], "token a.b.c");
        check(&[("x-api-key", "a.b.c")], "token a.b.c");
        check(&[("authorization", "Bearer a.b.c"), ("x-api-key", "sk-dummy")], "token a.b.c");
        check(&[("authorization", &format!("Bearer {secret}"))], "anonymous");
        check(&[("x-api-key", &secret)], "anonymous");
        check(&[("authorization", "Bearer "), ("x-api-key", "a.b.c")], "invalid_token");
        check(&[("x-api-key", "")], "invalid_token");
        check(&[("authorization", "Bearer sk-dummy")], "invalid_token");
        check(&[("authorization", "a.b.c")], "invalid_token");
        check(&[("authorization", "Basic YTpi")], "invalid_token");
        check(&[("x-api-key", &secret[1..])], "invalid_token");
    }
}
