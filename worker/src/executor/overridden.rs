//! The settings of a run's model where its request overrides them.

use holdfast_shared::{agent::ModelSettings, overrides::RunOverrides};

/// Returns the settings of the run's model: those of the agent, but for what the client overrides.
pub fn overridden(settings: Option<ModelSettings>, overrides: &RunOverrides) -> Option<ModelSettings> {
    let RunOverrides { profile, options, .. } = overrides;
    if profile.is_none() && options.is_default() {
        return settings;
    }
    let own = settings.unwrap_or_default();
    let base = match profile {
        Some(profile) => ModelSettings { profile: Some(profile.clone()), ..ModelSettings::default() },
        None => own.clone(),
    };
    let mut options = options.or(&own.options());
    // The limit of an agent bounds its costs, so a client can only lower it.
    options.max_tokens = options.max_tokens.map(|most| most.min(own.max_tokens.unwrap_or(most)));
    Some(base.with_options(options))
}
