//! Secrets in a definition: written, kept and used, and never shown.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

/// A secret, or the name of the environment variable of the worker that holds it.
#[derive(Clone)]
pub enum Secret {
    Given(SecretString),
    /// `{"env": "NAME"}`: looked up by the worker when it is needed.
    Env(String),
    /// `{"redacted": true}`: what a definition shows in place of a given secret. In a change it stands for the one that is
    /// kept already; it is never stored.
    Redacted,
}

/// A secret that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretUnavailable {
    #[error("the environment variable {0}, which holds a secret of the agent, is not set for the worker")]
    NotSet(String),
    #[error("the environment variable {0} is not one that agents may use; HOLDFAST_AGENT_SECRETS lists those")]
    NotAllowed(String),
    #[error("a secret of the agent is missing")]
    Redacted,
}

impl Secret {
    /// The secret itself, looked up with `variable` where it lies in the environment and is `allowed`.
    pub fn reveal(
        &self,
        allowed: &[String],
        variable: impl FnOnce(&str) -> Option<String>,
    ) -> Result<SecretString, SecretUnavailable> {
        match self {
            Self::Given(secret) => Ok(secret.clone()),
            Self::Env(name) if !allowed.contains(name) => Err(SecretUnavailable::NotAllowed(name.clone())),
            Self::Env(name) => variable(name).map(Into::into).ok_or_else(|| SecretUnavailable::NotSet(name.clone())),
            Self::Redacted => Err(SecretUnavailable::Redacted),
        }
    }

    /// The variable that holds it, unless that is one of those that agents may use.
    pub fn forbidden_variable(&self, allowed: &[String]) -> Option<&str> {
        match self {
            Self::Env(name) if !allowed.contains(name) => Some(name),
            _ => None,
        }
    }

    /// The same, as a client may see it.
    pub fn redacted(&self) -> Self {
        match self {
            Self::Env(name) => Self::Env(name.clone()),
            Self::Given(_) | Self::Redacted => Self::Redacted,
        }
    }

    pub fn is_redacted(&self) -> bool {
        matches!(self, Self::Redacted)
    }
}

/// Never the secret itself.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(_) => f.write_str("Given(…)"),
            Self::Env(name) => write!(f, "Env({name})"),
            Self::Redacted => f.write_str("Redacted"),
        }
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Given(one), Self::Given(other)) => one.expose_secret() == other.expose_secret(),
            (Self::Env(one), Self::Env(other)) => one == other,
            (Self::Redacted, Self::Redacted) => true,
            _ => false,
        }
    }
}

/// The form in which the database keeps it. What a client may see is made by `redacted` first.
impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Given(secret) => serializer.serialize_str(secret.expose_secret()),
            Self::Env(name) => Reference { env: Some(name.clone()), redacted: None }.serialize(serializer),
            Self::Redacted => Reference { env: None, redacted: Some(true) }.serialize(serializer),
        }
    }
}

/// What is refused is never quoted.
impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let invalid = || de::Error::custom("a secret is a text, or {\"env\": \"NAME\"}");
        match Value::deserialize(deserializer)? {
            Value::String(secret) => Ok(Self::Given(secret.into())),
            Value::Object(fields) => match serde_json::from_value(Value::Object(fields)).map_err(|_| invalid())? {
                Reference { env: Some(name), redacted: None } => Ok(Self::Env(name)),
                Reference { env: None, redacted: Some(true) } => Ok(Self::Redacted),
                Reference { .. } => Err(invalid()),
            },
            _ => Err(invalid()),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    env: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redacted: Option<bool>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_shown_in_no_form_but_the_databases() {
        let secret: Secret = serde_json::from_value(json!("hunter2")).unwrap();
        assert!(!format!("{secret:?}").contains("hunter2"));
        assert_eq!(json!(secret.redacted()), json!({"redacted": true}));
        assert_eq!(json!(secret), json!("hunter2"));
    }

    #[test]
    fn a_variables_name_may_be_shown() {
        let secret: Secret = serde_json::from_value(json!({"env": "TOKEN"})).unwrap();
        assert_eq!(json!(secret.redacted()), json!({"env": "TOKEN"}));
        let allowed = ["TOKEN".to_owned()];
        let found = secret.reveal(&allowed, |name| (name == "TOKEN").then(|| "t".to_owned())).unwrap();
        assert_eq!(found.expose_secret(), "t");
        assert_eq!(secret.reveal(&allowed, |_| None).unwrap_err(), SecretUnavailable::NotSet("TOKEN".into()));
    }

    #[test]
    fn a_variable_that_is_not_listed_is_not_even_looked_at() {
        let secret: Secret = serde_json::from_value(json!({"env": "POSTGRES_PASSWORD"})).unwrap();
        let allowed = ["TOKEN".to_owned()];
        let refused = secret.reveal(&allowed, |name| panic!("{name} was looked up"));
        assert_eq!(refused.unwrap_err(), SecretUnavailable::NotAllowed("POSTGRES_PASSWORD".into()));
        assert_eq!(secret.forbidden_variable(&allowed), Some("POSTGRES_PASSWORD"));
    }

    #[test]
    fn a_refused_secret_is_not_quoted() {
        for secret in [json!({"value": "hunter2"}), json!(["hunter2"]), json!({"env": ["hunter2"]})] {
            let error = serde_json::from_value::<Secret>(secret).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
