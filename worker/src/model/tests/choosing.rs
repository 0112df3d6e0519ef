//! The model that an agent gets.

use std::sync::Arc;

use futures::StreamExt;
use holdfast_shared::agent::ModelSettings;

use super::{FakeProvider, Models, config, request, wires::openai};

fn settings(provider: Option<&str>, name: Option<&str>) -> ModelSettings {
    ModelSettings { provider: provider.map(str::to_owned), name: name.map(str::to_owned), ..ModelSettings::default() }
}

#[test]
fn each_model_is_set_up_once() {
    let models = Models::new(&config(&["--ollama-base-url=http://127.0.0.1:1"])).unwrap();
    let own = models.get(None).unwrap();
    assert_eq!(own.choice.to_string(), r#"scripted model "scripted""#);
    let same = |settings: ModelSettings| Arc::ptr_eq(&models.get(Some(&settings)).unwrap().model, &own.model);
    assert!(same(settings(None, None)) && same(settings(Some("scripted"), None)));
    let llama = settings(Some("ollama"), Some("llama"));
    let (first, second) = (models.get(Some(&llama)).unwrap(), models.get(Some(&llama)).unwrap());
    assert!(Arc::ptr_eq(&first.model, &second.model));
    assert_eq!(first.choice.to_string(), r#"ollama model "llama""#);
    let warmer = ModelSettings { temperature: Some(1.0), ..llama.clone() };
    assert!(Arc::ptr_eq(&models.get(Some(&warmer)).unwrap().model, &first.model), "options make no other model");
    let other = settings(Some("ollama"), Some("other"));
    assert!(!Arc::ptr_eq(&models.get(Some(&other)).unwrap().model, &first.model));
}

#[test]
fn a_missing_key_address_or_name_is_named_and_leaves_other_models_usable() {
    let models = Models::new(&config(&[])).unwrap();
    let check = |provider, name, parts: &[&str]| {
        let error = models.get(Some(&settings(Some(provider), name))).err().expect("it cannot be set up").to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    };
    check("openai", Some("gpt"), &["OPENAI_API_KEY", "openai"]);
    check("anthropic", Some("claude"), &["ANTHROPIC_API_KEY", "anthropic"]);
    check("gemini", None, &["GEMINI_API_KEY", "gemini"]);
    check("vertex", Some("gemini-x"), &["VERTEX_PROJECT_ID", "vertex"]);
    check("ollama", None, &["model.name", "ollama", "llama3.2"]);
    check("acme", None, &["model.provider", "acme", "ollama"]);
    assert!(models.get(None).is_ok());
    let error = Models::new(&config(&["--chat-model-provider=openai"])).err().expect("there is no key");
    assert!(error.to_string().contains("OPENAI_API_KEY"), "{error}");
}

#[tokio::test]
async fn an_agents_model_is_asked_by_its_name_with_the_deployments_key() {
    let provider = FakeProvider::start(vec![openai().complete_reply()]).await;
    let models = Models::new(&openai().config(&provider.url, &[])).unwrap();
    for (named, sent) in [(None, "some-model"), (Some("its-model"), "its-model")] {
        let chosen = models.get(Some(&settings(None, named))).unwrap();
        let mut answer = chosen.model.ask(&request()).await.unwrap_or_else(|error| panic!("{error}"));
        while answer.next().await.is_some() {}
        let request = provider.requests().pop().unwrap();
        assert_eq!(request.body["model"], sent);
        assert!(request.head.contains("bearer secret-key"));
    }
}
