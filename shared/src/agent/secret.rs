//! Secrets of a definition. Storage keeps them, the worker uses them, and no client sees them.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

/// A secret, or the name of the worker's environment variable that has it.
#[derive(Clone)]
pub enum Secret {
    /// The secret itself.
    Given(SecretString),
    /// `{"env": "NAME"}`: the worker reads this variable when it needs the secret.
    Env(String),
    /// `{"redacted": true}`: stands for a given secret in what clients see. In a change it means the stored secret, and
    /// storage never keeps it.
    Redacted,
}

/// The reason why the worker cannot get a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretUnavailable {
    /// The worker's environment lacks this variable.
    #[error("the environment variable {0}, which holds a secret of the agent, is not set for the worker")]
    NotSet(String),
    /// `HOLDFAST_AGENT_SECRETS` does not list this variable.
    #[error("the environment variable {0} is not one that agents may use; HOLDFAST_AGENT_SECRETS lists those")]
    NotAllowed(String),
    /// The definition has only the mark of a redacted secret.
    #[error("a secret of the agent is missing")]
    Redacted,
}

impl Secret {
    /// Returns the secret. It calls `variable` for a variable that is `allowed`, and fails for any other one.
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

    /// Returns the secret's variable, if agents may not use it.
    pub fn forbidden_variable(&self, allowed: &[String]) -> Option<&str> {
        match self {
            Self::Env(name) if !allowed.contains(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the secret as a client may see it.
    pub fn redacted(&self) -> Self {
        match self {
            Self::Env(name) => Self::Env(name.clone()),
            Self::Given(_) | Self::Redacted => Self::Redacted,
        }
    }

    /// Returns whether the secret itself is missing here.
    pub fn is_redacted(&self) -> bool {
        matches!(self, Self::Redacted)
    }
}

/// Never writes the secret itself.
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

/// Writes the form for the database. `redacted` must come first for what a client may see.
impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Given(secret) => serializer.serialize_str(secret.expose_secret()),
            Self::Env(name) => Reference { env: Some(name.clone()), redacted: None }.serialize(serializer),
            Self::Redacted => Reference { env: None, redacted: Some(true) }.serialize(serializer),
        }
    }
}

/// Its errors never quote the refused input.
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
    fn only_the_databases_form_has_the_secret() {
        let secret: Secret = serde_json::from_value(json!("hunter2")).unwrap();
        assert!(!format!("{secret:?}").contains("hunter2"));
        assert_eq!(json!(secret.redacted()), json!({"redacted": true}));
        assert_eq!(json!(secret), json!("hunter2"));
    }

    #[test]
    fn a_client_may_see_a_variables_name() {
        let secret: Secret = serde_json::from_value(json!({"env": "TOKEN"})).unwrap();
        assert_eq!(json!(secret.redacted()), json!({"env": "TOKEN"}));
        let allowed = ["TOKEN".to_owned()];
        let found = secret.reveal(&allowed, |name| (name == "TOKEN").then(|| "t".to_owned())).unwrap();
        assert_eq!(found.expose_secret(), "t");
        assert_eq!(secret.reveal(&allowed, |_| None).unwrap_err(), SecretUnavailable::NotSet("TOKEN".into()));
    }

    #[test]
    fn a_variable_that_is_not_listed_is_not_read() {
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
