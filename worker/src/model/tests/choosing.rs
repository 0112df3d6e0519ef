//! The model that an agent gets.

use std::sync::Arc;

use futures::StreamExt;
use holdfast_shared::agent::{ModelSettings, Profiles};

use super::{ConnectError, FakeProvider, Models, config, models, request, wires::openai};
use crate::model::ChosenModel;

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
