//! Verifies JWTs.
//!
//! The key fixes the one accepted algorithm. The server only compares it with the token's `alg`, so that no token can
//! choose a weaker one. Prefixes of user names separate the users of different issuers.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use holdfast_shared::config::{ANONYMOUS_PREFIX, Error, Issuer, UsersConfig, begins_with};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, errors::ErrorKind};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{CallerKind, Identity, MAX_NAME_CHARS, is_name};
use crate::problem::Problem;

/// Verifies tokens with the deployment's key.
pub struct TokenVerifier {
    key: DecodingKey,
    validation: Validation,
    /// Prefixes by issuer. If it is empty, the server does not check issuers.
    prefixes: HashMap<String, String>,
    role_claim: String,
}

/// The role that may write agents.
const OPERATOR: &str = "operator";

/// Allowed difference of clocks, in seconds.
const LEEWAY: u64 = 5;

/// RFC 7518, section 3.2: the secret of HS256 is as long as its hash, or longer.
const MIN_SECRET_BYTES: usize = 32;

/// RSA keys of 2,048 bits take at least this many bytes.
const MIN_RSA_BYTES: usize = 256;

/// Beginnings of public keys that are not in PEM. As an HS256 secret, such a key would be public.
const OTHER_PUBLIC_KEYS: [&str; 7] =
    ["{", "ssh-", "ecdsa-sha2-", "MII", "MFkwEwYHKoZIzj0", "MHYwEAYHKoZIzj0", "MCowBQYDK2Vw"];

impl TokenVerifier {
    pub fn new(key: &SecretString, config: &UsersConfig) -> Result<Self, Error> {
        let (key, algorithm) = read_key(key.expose_secret())?;
        // An issuer with a key pair signs tokens for other services too, and this server would accept all of them.
        if algorithm != Algorithm::HS256 && config.jwt_audience.is_none() {
            return Err(Error::new(
                "HOLDFAST_JWT_AUDIENCE",
                "is required with a public key: its issuer signs tokens for other services too, so name the audience (aud) of this one",
            ));
        }
        let mut validation = Validation::new(algorithm);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        validation.required_spec_claims = ["exp", "sub"].map(str::to_owned).into();
        validation.validate_aud = config.jwt_audience.is_some();
        if let Some(audience) = &config.jwt_audience {
            validation.set_audience(&[audience]);
            validation.required_spec_claims.insert("aud".to_owned());
        }
        let prefixes: HashMap<_, _> =
            config.jwt_issuers.iter().map(|Issuer { name, prefix }| (name.clone(), prefix.clone())).collect();
        if !prefixes.is_empty() {
            validation.iss = Some(prefixes.keys().cloned().collect());
            validation.required_spec_claims.insert("iss".to_owned());
        }
        Ok(Self { key, validation, prefixes, role_claim: config.jwt_role_claim.clone() })
    }

    /// Returns the accepted issuers, in the order of their names.
    pub fn issuers(&self) -> Vec<&str> {
        let mut issuers: Vec<&str> = self.prefixes.keys().map(String::as_str).collect();
        issuers.sort_unstable();
        issuers
    }

    pub fn identify(&self, token: &str) -> Result<Identity, Problem> {
        let result = jsonwebtoken::decode::<Map<String, Value>>(token, &self.key, &self.validation);
        let token = result.map_err(|error| Problem::invalid_token(&self.reason(error.kind())))?;
        // RFC 7515, section 4.1.11: a recipient that does not understand a critical extension rejects the token.
        if token.header.crit.is_some() {
            return Err(Problem::invalid_token(
                "it has critical extensions (crit), which this server does not support",
            ));
        }
        Ok(Identity {
            owner: self.user(&token.claims).map_err(Problem::invalid_token)?,
            kind: CallerKind::Jwt,
            is_operator: token.claims.get(&self.role_claim).is_some_and(is_operator),
            is_unnamed: false,
            expires_at: token.claims.get("exp").and_then(Value::as_f64).and_then(moment_of),
            is_ambient: false,
            new_user: None,
        })
    }

    /// Returns the subject with its issuer's prefix. Fails if another kind of user, or another issuer's user, could
    /// have the name.
    fn user(&self, claims: &Map<String, Value>) -> Result<String, &'static str> {
        let subject = claims.get("sub").and_then(Value::as_str).unwrap_or("");
        if !is_name(subject) {
            // The text below has this number.
            const { assert!(MAX_NAME_CHARS == 128) };
            return Err(
                "its subject (sub) must have 1 to 128 characters, one of them visible, and no control characters",
            );
        }
        let prefix = match claims.get("iss").and_then(Value::as_str) {
            _ if self.prefixes.is_empty() => "",
            // The library accepts a list with one known issuer, which would leave the prefix ambiguous.
            issuer => self.prefixes.get(issuer.unwrap_or("")).ok_or("this server does not accept its issuer (iss)")?,
        };
        let user = if prefix.is_empty() { subject.to_owned() } else { format!("{prefix}_{subject}") };
        let others = self.prefixes.values().map(String::as_str).chain([ANONYMOUS_PREFIX]);
        let mut others = others.filter(|other| !other.is_empty() && *other != prefix);
        if others.any(|other| begins_with(&user, other)) {
            Err("its subject (sub) begins like the name of another kind of user")
        } else {
            Ok(user)
        }
    }

    /// Returns the reason for a refusal; it never quotes the token.
    fn reason(&self, kind: &ErrorKind) -> String {
        let algorithm = self.validation.algorithms[0];
        match kind {
            ErrorKind::ExpiredSignature => "it has expired".to_owned(),
            ErrorKind::ImmatureSignature => "it is not valid yet (nbf)".to_owned(),
            ErrorKind::InvalidSignature => "its signature is wrong".to_owned(),
            ErrorKind::InvalidAlgorithm => {
                format!("its algorithm (alg) is not {algorithm:?}, which the server's key requires")
            }
            ErrorKind::InvalidAudience => "it is for another audience (aud)".to_owned(),
            ErrorKind::InvalidIssuer => "this server does not accept its issuer (iss)".to_owned(),
            ErrorKind::MissingRequiredClaim(claim) => format!("its claim {claim} is missing, or of the wrong type"),
            ErrorKind::InvalidClaimFormat(claim) => format!("its claim {claim} is of the wrong type"),
            _ => format!("it is no JWT that is signed with {algorithm:?}"),
        }
    }
}

/// Returns the moment from which the server refuses a token with this `exp`; `None` if no clock reaches it.
fn moment_of(exp: f64) -> Option<Instant> {
    // `decode` compares full seconds, so a token is still valid in the last of them.
    let last = Duration::try_from_secs_f64(exp).ok()?.checked_add(Duration::from_secs(LEEWAY + 1))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Instant::now().checked_add(last.saturating_sub(now))
}

/// Returns whether the role claim, a text or a list of texts, names the operator role.
fn is_operator(role: &Value) -> bool {
    match role {
        Value::String(role) => role == OPERATOR,
        Value::Array(roles) => roles.iter().any(|role| role == OPERATOR),
        _ => false,
    }
}

/// Parses the key and returns it with its algorithm. Fails if the key is weak, private, or of an unsupported kind.
fn read_key(text: &str) -> Result<(DecodingKey, Algorithm), Error> {
    let refused = |problem: &str| Err(Error::new("HOLDFAST_JWT_KEY", problem));
    if !text.contains("-----BEGIN") {
        if OTHER_PUBLIC_KEYS.iter().any(|beginning| text.trim_start().starts_with(beginning)) {
            return refused("looks like a public key that is not in PEM; as a secret it would be public");
        }
        if text.len() < MIN_SECRET_BYTES {
            return refused(&format!(
                "has {} bytes, which is too short: a secret has at least {MIN_SECRET_BYTES}, such as the output of `openssl rand -hex 32`",
                text.len()
            ));
        }
        return Ok((DecodingKey::from_secret(text.as_bytes()), Algorithm::HS256));
    }
    if text.contains("PRIVATE KEY-----") {
        return refused("is a private key; use the public one, which `openssl pkey -pubout` prints");
    }
    if text.contains("CERTIFICATE-----") {
        return refused("is a certificate; use its public key, which `openssl x509 -pubkey -noout` prints");
    }
    // In environment variables, deployments often write line breaks as `\n`.
    let pem = text.trim().replace("\\n", "\n");
    let length = |key: &DecodingKey| key.try_get_as_bytes().map_or(0, <[u8]>::len);
    if let Ok(key) = DecodingKey::from_rsa_pem(pem.as_bytes()) {
        return if length(&key) >= MIN_RSA_BYTES {
            Ok((key, Algorithm::RS256))
        } else {
            refused("is an RSA key with less than 2048 bits")
        };
    }
    if let Ok(key) = DecodingKey::from_ec_pem(pem.as_bytes()) {
        // An uncompressed point has one byte and two coordinates.
        return match length(&key) {
            65 => Ok((key, Algorithm::ES256)),
            97 => Ok((key, Algorithm::ES384)),
            _ => refused("is an EC key on another curve than P-256 and P-384, or a compressed one"),
        };
    }
    match DecodingKey::from_ed_pem(pem.as_bytes()) {
        Ok(key) => Ok((key, Algorithm::EdDSA)),
        Err(_) => refused("is not a readable public key in PEM: RSA, EC (P-256, P-384) or Ed25519"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // These keys were made for these tests with openssl, without keeping their private parts.
    const RSA: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA4+ruKAOnaOmK0Yai9iSU
UYDt3grcTUfxwd25lIUjgxCzPRk6zJqpyUkLMzETEE3HgLGQqnsbx3EI3Gg0eS3/
VAGplaFJLCv3j/lbt3Y4JCRrMlUbvPikJRb2fP8yMoRd5zOUfeTT9HmEsi62YsYX
v1SwXTaP7081gGtSf8M1X11OHAqWkvoP0o61pVP8cqwAhaiboRmj66Fl7KF6jn8X
2fI5u1Jq3cnkR68luLyegP9ysvY09Ckyk4iuHAwN8Kaz9UzpDCHC2st2mYuQqCkI
miIPudh6bZODMWNMVlBoabgxF+8+3It4800rwar8rLMhgmBk1dtKmADPYVV/9e9n
BwIDAQAB
-----END PUBLIC KEY-----";
    const SHORT_RSA: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDK4v0D3EPiyxjEG0kD3fh5MRV0
8C651WosONgU0t4f6Xm1/SqiMDydWMxhaIQY3mU9wsMJCMEn8el1zaI0Jynx+qUb
aOJk/Ber1to6sZx2LO3zoKwg6rq5lKxVdriQWz4NrTliGlmnT0iL1IuV8BNCI8Ek
JgvJ/gPZoNVCeleihwIDAQAB
-----END PUBLIC KEY-----";
    const P256: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEpWCXJLROxx1ltNXKjOZVfpGVO50x
amLkoT43OXYy633o0Hp8LouEGc81YMm2rfFjxQEWtNIJoXJy3lcTs7rD7A==
-----END PUBLIC KEY-----";
    const P384: &str = "-----BEGIN PUBLIC KEY-----
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEXBSHOLOOTs/NxuTPaDqmr6mhanDVkzo2
FgvRZAd652pls9SmRgfeIFCpRpvy2ZOGA+ZruQaHak+CHIxhd2qV5Jx5ROQ3ALYm
OrAg2JDtufWO1fU3CVm8P/GnxaymeBUw
-----END PUBLIC KEY-----";
    const P521: &str = "-----BEGIN PUBLIC KEY-----
MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQB9+WBUSxfp7Rv/Lqzdj4WXh+G/Ce2
2xaend9P5xx3LDua+Jv0irmz5OhB7Ho0lpfu5K2s+RNAoKJjOHDGqee6EmoBySvi
Lssh32Cll8LHlVvcP1vg5i0lq6iLvuDD5PxIfXUHC4ML7szYUEP9ihjVC5lhkOdV
S2LahELSFx5GXan/duU=
-----END PUBLIC KEY-----";
    const ED25519: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAUk7XeNVz+Eoi6r6kYVtxGq1v669ohOfCXlcXDnNd+Do=
-----END PUBLIC KEY-----";

    #[test]
    fn the_key_fixes_the_algorithm() {
        let check = |key: &str, expected: Algorithm| {
            assert_eq!(read_key(key).map(|(_, algorithm)| algorithm).map_err(|error| error.to_string()), Ok(expected));
        };
        check(&"s".repeat(MIN_SECRET_BYTES), Algorithm::HS256);
        for (key, algorithm) in
            [(RSA, Algorithm::RS256), (P256, Algorithm::ES256), (P384, Algorithm::ES384), (ED25519, Algorithm::EdDSA)]
        {
            check(key, algorithm);
            check(&key.replace('\n', "\\n"), algorithm);
            check(&format!("\n{key}\n"), algorithm);
        }
    }

    #[test]
    fn a_weak_or_unusable_key_is_refused() {
        let check = |key: &str, expected: &str| {
            let refused = read_key(key).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.starts_with("HOLDFAST_JWT_KEY: ") && refused.contains(expected), "{key}: {refused}");
        };
        check(&"s".repeat(MIN_SECRET_BYTES - 1), "has 31 bytes");
        check(SHORT_RSA, "2048 bits");
        check(P521, "another curve");
        check(&RSA.replace("PUBLIC", "PRIVATE"), "is a private key");
        check("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "is a certificate");
        check(&RSA[..200], "not a readable public key");
        check("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "not a readable public key");
        check(RSA.lines().nth(1).unwrap(), "would be public");
        check(ED25519.lines().nth(1).unwrap(), "would be public");
        check("{\"keys\": []}", "would be public");
        check("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI", "would be public");
    }
}
