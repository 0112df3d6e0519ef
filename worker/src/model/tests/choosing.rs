//! The model that an agent gets.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use holdfast_shared::agent::{ModelSettings, Profiles};
use serde_json::json;

use super::{ConnectError, FakeProvider, Models, Reply, config, models, request, wires::openai};
use crate::model::{ChosenModel, TrialFailure};

fn settings(provider: Option<&str>, name: Option<&str>) -> ModelSettings {
    ModelSettings { provider: provider.map(str::to_owned), name: name.map(str::to_owned), ..ModelSettings::default() }
}

fn get(models: &Models, settings: Option<&ModelSettings>) -> Result<ChosenModel, ConnectError> {
    models.get(settings, &Profiles::default())
}

#[test]
fn each_model_is_set_up_once() {
    let models = models(&config(&["--ollama-base-url=http://127.0.0.1:1"])).unwrap();
    let own = get(&models, None).unwrap();
    assert_eq!(own.choice().to_string(), r#"scripted model "scripted""#);
    let same =
        |settings: ModelSettings| Arc::ptr_eq(&get(&models, Some(&settings)).unwrap().first.model, &own.first.model);
    assert!(same(settings(None, None)) && same(settings(Some("scripted"), None)));
    let llama = settings(Some("ollama"), Some("llama"));
    let (first, second) = (get(&models, Some(&llama)).unwrap(), get(&models, Some(&llama)).unwrap());
    assert!(Arc::ptr_eq(&first.first.model, &second.first.model));
    assert_eq!(first.choice().to_string(), r#"ollama model "llama""#);
    let warmer = ModelSettings { temperature: Some(1.0), ..llama.clone() };
    assert!(
        Arc::ptr_eq(&get(&models, Some(&warmer)).unwrap().first.model, &first.first.model),
        "options make no other model"
    );
    let other = settings(Some("ollama"), Some("other"));
    assert!(!Arc::ptr_eq(&get(&models, Some(&other)).unwrap().first.model, &first.first.model));
}

#[test]
fn a_missing_key_address_or_name_is_named_and_leaves_other_models_usable() {
    let models = models(&config(&[])).unwrap();
    let check = |provider, name, parts: &[&str]| {
        let error = get(&models, Some(&settings(Some(provider), name))).err().expect("it cannot be set up").to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    check("openai", Some("gpt"), &["OPENAI_API_KEY", "openai"]);
    check("anthropic", Some("claude"), &["ANTHROPIC_API_KEY", "anthropic"]);
    check("gemini", None, &["GEMINI_API_KEY", "gemini"]);
    check("vertex", Some("gemini-x"), &["VERTEX_PROJECT_ID", "vertex"]);
    check("ollama", None, &["model.name", "ollama", "llama3.2"]);
    check("acme", None, &["model.provider", "acme", "ollama"]);
    assert!(get(&models, None).is_ok());
    let error = super::models(&config(&["--chat-model-provider=openai"])).err().expect("there is no key");
    assert!(error.to_string().contains("OPENAI_API_KEY"), "{error}");
}

#[tokio::test]
async fn an_agents_model_is_asked_by_its_name_with_the_deployments_key() {
    let provider = FakeProvider::start(vec![openai().complete_reply()]).await;
    let models = models(&openai().config(&provider.url, &[])).unwrap();
    for (named, sent) in [(None, "some-model"), (Some("its-model"), "its-model")] {
        let chosen = get(&models, Some(&settings(None, named))).unwrap();
        let mut answer = chosen.ask(request()).await.unwrap_or_else(|error| panic!("{error}"));
        while answer.deltas.next().await.is_some() {}
        let request = provider.requests().pop().unwrap();
        assert_eq!(request.body["model"], sent);
        assert!(request.head.contains("bearer secret-key"));
    }
}

#[tokio::test]
async fn a_trial_asks_each_model_of_a_profile_once_for_a_few_tokens() {
    let busy = || Reply::json(503, r#"{"error":{"message":"later"}}"#);
    let provider = FakeProvider::start(vec![busy(), Reply::silence()]).await;
    let models = models(&openai().config(&provider.url, &["--model-retries=5"])).unwrap();
    let profiles: Profiles = serde_json::from_value(json!({"profiles": {
        "fast": {"provider": "openai", "model": "small", "options": {"max_tokens": 900}, "fallback": ["good"]},
        "good": {"provider": "openai", "model": "large", "fallback": [{"provider": "anthropic", "model": "claude"}]}
    }}))
    .unwrap();
    let failures = async |settings: ModelSettings| -> Vec<&'static str> {
        let failures = models.try_out(Some(&settings), &profiles, Duration::from_millis(300)).await;
        failures.iter().map(TrialFailure::code).collect()
    };
    let fast = ModelSettings { profile: Some("fast".to_owned()), ..ModelSettings::default() };
    let mut codes = failures(fast).await;
    codes.sort_unstable();
    assert_eq!(codes, ["model_not_configured", "model_timeout", "model_unavailable"]);
    let requests = provider.requests();
    let mut asked: Vec<_> = requests.iter().map(|request| request.body["model"].as_str().unwrap()).collect();
    asked.sort_unstable();
    assert_eq!(asked, ["large", "small"]);
    assert!(requests.iter().all(|request| request.body["max_tokens"] == 16), "{requests:?}");
    let unknown = ModelSettings { profile: Some("none".to_owned()), ..ModelSettings::default() };
    assert_eq!(failures(unknown).await, ["model_not_configured"]);
}
