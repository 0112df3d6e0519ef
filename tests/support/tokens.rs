//! JWTs, valid and invalid.

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

pub const SECRET: &str = "the tests' own secret, of more than 32 bytes";

// These keys exist only for the tests.
pub const RSA: Keys = Keys {
    algorithm: Algorithm::RS256,
    private: include_str!("../keys/rsa.pem"),
    public: include_str!("../keys/rsa.pub.pem"),
};
pub const EC: Keys = Keys {
    algorithm: Algorithm::ES256,
    private: include_str!("../keys/ec.pem"),
    public: include_str!("../keys/ec.pub.pem"),
};
pub const ED25519: Keys = Keys {
    algorithm: Algorithm::EdDSA,
    private: include_str!("../keys/ed.pem"),
    public: include_str!("../keys/ed.pub.pem"),
};

pub struct Keys {
    pub algorithm: Algorithm,
    pub private: &'static str,
    pub public: &'static str,
}

impl Keys {
    pub fn sign(&self, claims: &Value) -> String {
        let pem = self.private.as_bytes();
        let key = match self.algorithm {
            Algorithm::RS256 => EncodingKey::from_rsa_pem(pem),
            Algorithm::ES256 => EncodingKey::from_ec_pem(pem),
            _ => EncodingKey::from_ed_pem(pem),
        };
        encode(&Header::new(self.algorithm), claims, &key.unwrap()).unwrap()
    }
}

/// Returns an HS256 token with the tests' secret.
pub fn token(claims: &Value) -> String {
    sign_with(SECRET, Algorithm::HS256, claims)
}

pub fn sign_with(secret: &str, algorithm: Algorithm, claims: &Value) -> String {
    encode(&Header::new(algorithm), claims, &EncodingKey::from_secret(secret.as_bytes())).unwrap()
}

/// Returns valid claims for an hour, with these additions or replacements. A null removes a claim.
pub fn claims(subject: &str, more: Value) -> Value {
    let mut claims = json!({"sub": subject, "exp": now() + 3_600});
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

/// Returns the current time in seconds.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}
