//! Model profiles: names for models, so that agents and roles need not name a provider, and the models to ask instead of
//! one that does not answer.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{InvalidDefinition, ModelOptions, definition::check_provider};

/// The profiles of a deployment, and the profile of each role.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Profiles {
    /// At most 64 profiles by their names of 1 to 64 characters.
    #[serde(default)]
    pub profiles: BTreeMap<String, Profile>,
    /// The profile that each role uses; the run's own model where absent.
    #[serde(default)]
    pub roles: BTreeMap<ModelRole, String>,
}

/// A model with its options, and the models to ask instead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// A provider's name, as in `CHAT_MODEL_PROVIDER`.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// The options of the answer.
    #[serde(default, skip_serializing_if = "ModelOptions::is_default")]
    pub options: ModelOptions,
    /// At most 8 models, in the order in which the worker asks them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<Fallback>,
}

/// A model to ask instead of one that does not answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged, expecting = "a fallback is the name of a profile, or a model with its provider")]
pub enum Fallback {
    /// The name of a profile, whose own fallback follows it.
    Profile(String),
    /// A model, with the options of the profile that names it.
    Model(FallbackModel),
}

/// A model without options of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FallbackModel {
    /// A provider's name, as in `CHAT_MODEL_PROVIDER`.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
}

/// A task that a deployment may give to a model of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ModelRole {
    /// Summarises older messages.
    Summarizer,
    /// Answers the user, and makes plans.
    Planner,
    /// Takes a step of a plan.
    Executor,
    /// Judges a plan.
    Reviewer,
    /// Writes the answer after a plan.
    Synthesizer,
}

crate::text_enum!(ModelRole);

/// A model of a profile, or of its fallback.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileModel {
    /// A provider's name.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// The options of the answer.
    pub options: ModelOptions,
}

const MAX_PROFILES: usize = 64;
const MAX_NAME_CHARS: usize = 64;
const MAX_FALLBACKS: usize = 8;
const MAX_MODEL_CHARS: usize = 200;

impl Profiles {
    /// Fails if a name, a provider or an option is not valid, or if there is no profile of a name.
    pub fn check(&self) -> Result<(), InvalidDefinition> {
        if self.profiles.len() > MAX_PROFILES {
            return Err(InvalidDefinition::new("profiles", format!("at most {MAX_PROFILES} profiles")));
        }
        for (name, profile) in &self.profiles {
            self.check_profile(name, profile)?;
        }
        for (role, profile) in &self.roles {
            self.expect_profile(profile, &format!("roles.{}", role.as_str()))?;
        }
        Ok(())
    }

    /// Fails if there is no profile of this name. `field` is where the name stands.
    pub fn expect_profile(&self, name: &str, field: &str) -> Result<(), InvalidDefinition> {
        if self.profiles.contains_key(name) {
            return Ok(());
        }
        let names: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
        let known = if names.is_empty() { "there is none".to_owned() } else { format!("one of {}", names.join(", ")) };
        Err(InvalidDefinition::new(field, format!("the name of a model profile, {known}")))
    }

    fn check_profile(&self, name: &str, profile: &Profile) -> Result<(), InvalidDefinition> {
        let at = |field: &str| format!("profiles.{name}.{field}");
        let is_name = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(is_name) {
            let problem = format!("names of 1 to {MAX_NAME_CHARS} letters, digits, - and _");
            return Err(InvalidDefinition::new("profiles", problem));
        }
        check_provider(&profile.provider).map_err(|problem| InvalidDefinition::new(at("provider"), problem))?;
        check_model(&profile.model).map_err(|problem| InvalidDefinition::new(at("model"), problem))?;
        profile.options.check(&at("options"))?;
        if profile.fallback.len() > MAX_FALLBACKS {
            return Err(InvalidDefinition::new(at("fallback"), format!("at most {MAX_FALLBACKS} models")));
        }
        for fallback in &profile.fallback {
            match fallback {
                Fallback::Profile(other) => self.expect_profile(other, &at("fallback"))?,
                Fallback::Model(FallbackModel { provider, model }) => {
                    check_provider(provider)
                        .map_err(|problem| InvalidDefinition::new(at("fallback.provider"), problem))?;
                    check_model(model).map_err(|problem| InvalidDefinition::new(at("fallback.model"), problem))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the models of a profile in the order in which the worker asks them, each profile once. `None` if there is no
    /// profile of this name.
    pub fn models(&self, name: &str) -> Option<Vec<ProfileModel>> {
        let mut models = Vec::new();
        self.add_models(name, &mut BTreeSet::new(), &mut models)?;
        Some(models)
    }

    fn add_models<'a>(
        &'a self,
        name: &'a str,
        seen: &mut BTreeSet<&'a str>,
        models: &mut Vec<ProfileModel>,
    ) -> Option<()> {
        let profile = self.profiles.get(name)?;
        if !seen.insert(name) {
            return Some(());
        }
        let options = &profile.options;
        let model = |provider: &String, model: &String| ProfileModel {
            provider: provider.clone(),
            model: model.clone(),
            options: options.clone(),
        };
        models.push(model(&profile.provider, &profile.model));
        for fallback in &profile.fallback {
            match fallback {
                Fallback::Profile(other) => self.add_models(other, seen, models)?,
                Fallback::Model(other) => models.push(model(&other.provider, &other.model)),
            }
        }
        Some(())
    }
}

fn check_model(name: &str) -> Result<(), String> {
    let length = name.chars().count();
    if (1..=MAX_MODEL_CHARS).contains(&length) && !name.trim().is_empty() && !name.contains(char::is_control) {
        return Ok(());
    }
    Err(format!("the provider's name of a model, of 1 to {MAX_MODEL_CHARS} characters without control characters"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn profiles(document: Value) -> Profiles {
        serde_json::from_value(document).unwrap()
    }

    fn models(profiles: &Profiles, name: &str) -> Vec<String> {
        let models = profiles.models(name).unwrap();
        models
            .iter()
            .map(|model| format!("{}/{} {:?}", model.provider, model.model, model.options.max_tokens))
            .collect()
    }

    #[test]
    fn a_fallback_brings_its_own_fallback_and_no_profile_comes_twice() {
        let all = profiles(json!({
            "profiles": {
                "fast": {"provider": "openai", "model": "small", "options": {"max_tokens": 9},
                    "fallback": [{"provider": "ollama", "model": "tiny"}, "good"]},
                "good": {"provider": "anthropic", "model": "large", "fallback": ["fast", "spare"]},
                "spare": {"provider": "gemini", "model": "spare"}
            },
            "roles": {"summarizer": "fast"}
        }));
        all.check().unwrap();
        let expected = ["openai/small Some(9)", "ollama/tiny Some(9)", "anthropic/large None", "gemini/spare None"];
        assert_eq!(models(&all, "fast"), expected);
        assert!(all.models("slow").is_none());
    }

    #[test]
    fn the_reason_names_the_wrong_field() {
        let check = |document: Value, field: &str| {
            let error = profiles(document).check().expect_err("it was accepted");
            assert_eq!(error.field, field);
        };
        let with = |name: &str, profile: Value| json!({"profiles": {name: profile}});
        check(with("a b", json!({"provider": "openai", "model": "m"})), "profiles");
        check(with("a", json!({"provider": "acme", "model": "m"})), "profiles.a.provider");
        let options = json!({"provider": "openai", "model": "m", "options": {"temperature": 3}});
        check(with("a", options), "profiles.a.options.temperature");
        check(with("a", json!({"provider": "openai", "model": ""})), "profiles.a.model");
        check(with("a", json!({"provider": "openai", "model": "m\0"})), "profiles.a.model");
        check(with("a", json!({"provider": "openai", "model": "m".repeat(MAX_MODEL_CHARS + 1)})), "profiles.a.model");
        check(with("a", json!({"provider": "openai", "model": "m", "fallback": ["b"]})), "profiles.a.fallback");
        let nine = vec![json!({"provider": "openai", "model": "m"}); MAX_FALLBACKS + 1];
        check(with("a", json!({"provider": "openai", "model": "m", "fallback": nine})), "profiles.a.fallback");
        check(json!({"roles": {"summarizer": "b"}}), "roles.summarizer");
        let many: serde_json::Map<_, _> = (0..=MAX_PROFILES)
            .map(|n| (format!("p{n}"), json!({"provider": "scripted", "model": "scripted"})))
            .collect();
        check(json!({"profiles": many}), "profiles");
    }
}
