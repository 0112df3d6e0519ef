//! Models that the worker asks instead of one that does not answer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use holdfast_shared::agent::{ModelSettings, Profiles};
use serde_json::{Value, json};

use super::{
    AnswerDelta, Error, FakeProvider, ModelFile, Models, RecordedRequest, Reply, Request, Turn, UserPart, config,
    request,
    wires::{ollama, openai},
};
use crate::model::ModelAnswer;

/// The outcome of a request to a profile of an OpenAI model with a fallback.
struct FallbackOutcome {
    /// The model that has answered, and its deltas.
    answer: Result<(String, Vec<Result<AnswerDelta, Error>>), Error>,
    first_requests: Vec<RecordedRequest>,
    other_requests: Vec<RecordedRequest>,
}

fn profiles() -> Profiles {
    let profiles: Profiles = serde_json::from_value(json!({"profiles": {
        "good": {"provider": "openai", "model": "large", "options": {"max_tokens": 7}, "fallback": ["spare"]},
        "spare": {"provider": "ollama", "model": "small", "options": {"max_tokens": 8}}
    }}))
    .unwrap();
    profiles.check().unwrap();
    profiles
}

/// Asks the profile `good`, whose first model gives this reply.
async fn ask(first: Reply, flags: &[&str]) -> FallbackOutcome {
    let (openai, ollama) = (FakeProvider::start(vec![first]).await, FakeProvider::start(vec![ollama_reply()]).await);
    let models = models(&openai.url, &ollama.url, flags);
    let settings = ModelSettings { profile: Some("good".into()), temperature: Some(0.5), ..ModelSettings::default() };
    let answer = match models.get(Some(&settings), &profiles()).unwrap().ask(request()).await {
        Ok(ModelAnswer { by, deltas, .. }) => Ok((by.path(), deltas.collect().await)),
        Err(error) => Err(error),
    };
    FallbackOutcome { answer, first_requests: openai.requests(), other_requests: ollama.requests() }
}

fn ollama_reply() -> Reply {
    ollama().complete_reply()
}

fn models(openai: &str, ollama: &str, flags: &[&str]) -> Models {
    let addresses = [format!("--openai-base-url={openai}"), format!("--ollama-base-url={ollama}")];
    let usual = ["--model-retry-ms=1", &addresses[0], &addresses[1]];
    super::models(&config(&[&usual[..], flags].concat())).unwrap()
}

fn body(requests: &[RecordedRequest]) -> &Value {
    &requests.last().unwrap().body
}

#[tokio::test]
async fn a_failure_that_may_pass_gives_way_to_the_next_model() {
    for status in [429, 500, 503, 529] {
        let outcome = ask(Reply::json(status, "{}"), &[]).await;
        let (by, deltas) = outcome.answer.unwrap_or_else(|error| panic!("{status}: {error}"));
        assert_eq!((by.as_str(), outcome.first_requests.len(), outcome.other_requests.len()), ("ollama/small", 3, 1));
        let deltas: Vec<_> = deltas.into_iter().map(Result::unwrap).collect();
        assert_eq!(deltas, ollama().deltas(), "{status}");
        // Each model has the options of its own profile, below those of the agent.
        assert_eq!(
            (&body(&outcome.first_requests)["max_tokens"], &body(&outcome.first_requests)["temperature"]),
            (&json!(7), &json!(0.5))
        );
        assert_eq!(
            body(&outcome.other_requests)["options"],
            json!({"num_predict": 8, "num_ctx": 32_000, "temperature": 0.5})
        );
    }
}

#[tokio::test]
async fn a_silent_provider_gives_way_to_the_next_model() {
    let outcome = ask(Reply::silence(), &["--model-first-byte-ms=200", "--model-retries=0"]).await;
    assert_eq!(outcome.answer.unwrap().0, "ollama/small");
}

#[tokio::test]
async fn a_refused_connection_gives_way_to_the_next_model() {
    let ollama = FakeProvider::start(vec![ollama_reply()]).await;
    let models = models("http://127.0.0.1:1", &ollama.url, &[]);
    let settings = ModelSettings { profile: Some("good".into()), ..ModelSettings::default() };
    let answer = models.get(Some(&settings), &profiles()).unwrap().ask(request()).await;
    assert_eq!(answer.unwrap_or_else(|error| panic!("{error}")).by.path(), "ollama/small");
}

#[tokio::test]
async fn a_long_rate_limit_gives_way_at_once() {
    let asked_at = Instant::now();
    let outcome = ask(Reply::json(429, "{}").header("retry-after: 30"), &[]).await;
    assert_eq!((outcome.answer.unwrap().0.as_str(), outcome.first_requests.len()), ("ollama/small", 1));
    assert!(asked_at.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_refusal_is_final() {
    let outcome = ask(Reply::json(400, r#"{"error":{"message":"no"}}"#), &[]).await;
    assert_eq!(outcome.answer.err().map(|error| error.code()), Some("model_refused"));
    assert!(outcome.other_requests.is_empty());
}

#[tokio::test]
async fn nothing_follows_the_first_delta_of_another_model() {
    let wire = openai();
    let broken = wire.reply().chunks(&wire.begin).chunk(wire.error_chunk.clone());
    let (by, deltas) = ask(broken, &[]).await.answer.unwrap();
    assert_eq!(by, "openai/large");
    assert!(deltas.last().unwrap().is_err(), "{deltas:?}");
}

/// Asks a profile whose first model sees and is away, with these models of Ollama's as its fallback, about a picture.
async fn ask_about_picture(fallback: &[&str], instead: Option<&str>) -> FallbackOutcome {
    let openai = FakeProvider::start(vec![Reply::json(503, "{}")]).await;
    let ollama = FakeProvider::start(vec![ollama_reply()]).await;
    let models = models(&openai.url, &ollama.url, &["--model-retries=0"]);
    let others: Vec<_> = fallback.iter().map(|model| json!({"provider": "ollama", "model": model})).collect();
    let profile = json!({"provider": "openai", "model": "gpt-4o", "fallback": others});
    let profiles: Profiles = serde_json::from_value(json!({"profiles": {"good": profile}})).unwrap();
    let settings = ModelSettings { profile: Some("good".into()), ..ModelSettings::default() };
    let (name, media_type, data) = ("a.png".into(), "image/png".into(), "aW1n".into());
    let picture = UserPart::File(Arc::new(ModelFile { name, media_type, data, instead: instead.map(Into::into) }));
    let turns = vec![Turn::User(vec![UserPart::Text("What is this?".into()), picture])];
    let request = Request { turns, ..Request::default() };
    let answer = match models.get(Some(&settings), &profiles).unwrap().ask(request).await {
        Ok(ModelAnswer { by, deltas, .. }) => Ok((by.path(), deltas.collect().await)),
        Err(error) => Err(error),
    };
    FallbackOutcome { answer, first_requests: openai.requests(), other_requests: ollama.requests() }
}

#[tokio::test]
async fn a_fallback_that_takes_no_picture_of_the_message_is_left_out() {
    let outcome = ask_about_picture(&["blind", "llava"], None).await;
    assert_eq!((outcome.answer.unwrap().0.as_str(), outcome.other_requests.len()), ("ollama/llava", 1));
    assert_eq!(body(&outcome.other_requests)["messages"][0]["images"], json!(["aW1n"]));
    assert!(outcome.first_requests[0].text.contains("aW1n"));
    let outcome = ask_about_picture(&["blind"], None).await;
    let error = outcome.answer.expect_err("no model is left");
    assert_eq!((error.code(), outcome.other_requests.len()), ("model_unavailable", 0));
    let reason = "openai model \"gpt-4o\" cannot answer now; try again later; \
                  another model of its profile was not asked, because it takes no files of type image/png";
    assert_eq!(error.reason(), reason);
}

#[tokio::test]
async fn a_fallback_gets_a_line_for_an_earlier_picture_that_it_does_not_take() {
    let outcome = ask_about_picture(&["blind"], Some("[The file a.png is not shown here]")).await;
    assert_eq!(outcome.answer.unwrap().0, "ollama/blind");
    let message = &body(&outcome.other_requests)["messages"][0];
    let content = message["content"].as_str().unwrap();
    assert!(content.contains("What is this?") && content.contains("[The file a.png is not shown here]"), "{content}");
    assert!(message.get("images").is_none(), "{message}");
    let outcome = ask_about_picture(&["llava"], Some("[The file a.png is not shown here]")).await;
    assert_eq!(body(&outcome.other_requests)["messages"][0]["images"], json!(["aW1n"]));
}

#[test]
fn a_model_that_is_not_set_up_is_left_out_of_a_fallback_only() {
    let models = super::models(&config(&["--openai-base-url=http://127.0.0.1:1"])).unwrap();
    let profiles: Profiles = serde_json::from_value(json!({"profiles": {
        "good": {"provider": "openai", "model": "large", "fallback": [{"provider": "anthropic", "model": "other"}]},
        "bad": {"provider": "anthropic", "model": "other"}
    }}))
    .unwrap();
    let get = |profile: &str| {
        let settings = ModelSettings { profile: Some(profile.into()), ..ModelSettings::default() };
        models.get(Some(&settings), &profiles).map(|chosen| chosen.choice().path()).map_err(|error| error.to_string())
    };
    assert_eq!(get("good"), Ok("openai/large".to_owned()));
    assert!(get("bad").unwrap_err().contains("ANTHROPIC_API_KEY"));
    assert_eq!(get("none"), Err("there is no model profile \"none\"".to_owned()));
}
