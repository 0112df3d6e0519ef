//! Google's credentials: a service account's key, a user's refresh token, or the identity of a machine of Google Cloud.
//!
//! Reads them once, from a setting or from a file. The formats are those of `gcloud` and of the Cloud console.

use std::path::Path;

use holdfast_shared::config::{self, VertexAccess, VertexConfig, read_secret_file};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;

/// Where Google turns credentials into tokens, unless the credentials name another address.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// The proof of this process's identity.
pub(super) enum GoogleCredentials {
    ServiceAccount(ServiceAccount),
    User(GoogleUser),
    Machine { metadata_host: String },
}

/// The key of a service account.
pub(super) struct ServiceAccount {
    pub email: String,
    pub key_id: Option<String>,
    pub key: EncodingKey,
    pub token_uri: String,
    project: Option<String>,
}

/// A user's permission, as `gcloud auth application-default login` writes it.
pub(super) struct GoogleUser {
    pub client_id: String,
    pub client_secret: SecretString,
    pub refresh_token: SecretString,
    pub token_uri: String,
    quota_project: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CredentialsJson {
    ServiceAccount {
        client_email: String,
        private_key: String,
        private_key_id: Option<String>,
        project_id: Option<String>,
        token_uri: Option<String>,
    },
    AuthorizedUser {
        client_id: String,
        client_secret: String,
        refresh_token: String,
        quota_project_id: Option<String>,
        token_uri: Option<String>,
    },
}

impl GoogleCredentials {
    /// Reads the credentials that the settings choose, if they choose any. The error names the setting.
    pub fn load(config: &VertexConfig) -> Result<Option<Self>, config::Error> {
        match config.access() {
            VertexAccess::Token => Ok(None),
            VertexAccess::Json(json) => Self::parse(&json, "VERTEX_CREDENTIALS").map(Some),
            VertexAccess::File(path) => Self::read(&path, "GOOGLE_APPLICATION_CREDENTIALS").map(Some),
            VertexAccess::Ambient { gcloud_file: Some(path), .. } if path.exists() => {
                Self::read(&path, "CLOUDSDK_CONFIG").map(Some)
            }
            VertexAccess::Ambient { metadata_host, .. } => {
                Ok(metadata_host.map(|metadata_host| Self::Machine { metadata_host }))
            }
        }
    }

    /// Returns the project that the credentials name.
    pub fn project(&self) -> Option<&str> {
        match self {
            Self::ServiceAccount(account) => account.project.as_deref(),
            Self::User(user) => user.quota_project.as_deref(),
            Self::Machine { .. } => None,
        }
    }

    pub fn quota_project(&self) -> Option<String> {
        match self {
            Self::User(user) => user.quota_project.clone(),
            Self::ServiceAccount(_) | Self::Machine { .. } => None,
        }
    }

    fn read(path: &Path, variable: &'static str) -> Result<Self, config::Error> {
        let json = read_secret_file(path).map_err(|problem| config::Error::new(variable, problem))?;
        let in_file = |error: config::Error| {
            config::Error::new(variable, format!("could not use {}: {}", path.display(), error.problem))
        };
        Self::parse(&json, variable).map_err(in_file)
    }

    /// The error never quotes the credentials.
    fn parse(json: &SecretString, variable: &'static str) -> Result<Self, config::Error> {
        let malformed = |problem: &str| config::Error::new(variable, problem);
        let expected = "expected the JSON of a service_account or of an authorized_user, with all of its fields";
        let parsed = serde_json::from_str(json.expose_secret()).map_err(|_| malformed(expected))?;
        let or_usual = |uri: Option<String>| uri.unwrap_or_else(|| TOKEN_URI.to_owned());
        Ok(match parsed {
            CredentialsJson::ServiceAccount { client_email, private_key, private_key_id, project_id, token_uri } => {
                let key = EncodingKey::from_rsa_pem(private_key.as_bytes()).ok().filter(can_sign);
                let key = key.ok_or_else(|| malformed("its private_key is no RSA key as PEM"))?;
                Self::ServiceAccount(ServiceAccount {
                    email: client_email,
                    key_id: private_key_id,
                    key,
                    token_uri: or_usual(token_uri),
                    project: project_id,
                })
            }
            CredentialsJson::AuthorizedUser {
                client_id,
                client_secret,
                refresh_token,
                quota_project_id,
                token_uri,
            } => Self::User(GoogleUser {
                client_id,
                client_secret: client_secret.into(),
                refresh_token: refresh_token.into(),
                token_uri: or_usual(token_uri),
                quota_project: quota_project_id,
            }),
        })
    }
}

/// A key may be well-formed PEM and still be unusable.
fn can_sign(key: &EncodingKey) -> bool {
    encode(&Header::new(Algorithm::RS256), &Value::Null, key).is_ok()
}
