//! Vectors by each provider's protocol.

use clap::Parser;
use holdfast_shared::config::{EmbeddingConfig, ModelConfig};
use serde_json::{Value, json};

use super::provider::{FakeProvider, Reply};
use crate::model::Embedder;

#[derive(Parser)]
struct EmbeddingFlags {
    #[command(flatten)]
    embedding: EmbeddingConfig,
    #[command(flatten)]
    model: ModelConfig,
}

/// Asks a provider for the vectors of two texts. Returns them, the request line with the headers, and the body of the request.
async fn ask(flags: &[&str], answer: Value) -> (Vec<Vec<f32>>, String, Value) {
    let provider = FakeProvider::start(vec![Reply::json(200, &answer.to_string())]).await;
    let address = ["holdfast", "--embedding-model", "m", "--embedding-base-url", &provider.url];
    let flags = EmbeddingFlags::parse_from(address.iter().chain(flags));
    let embedder = Embedder::new(&flags.embedding, &flags.model).unwrap().unwrap();
    let vectors = embedder.embed(&["low water".into(), "high water".into()]).await.unwrap();
    let request = provider.requests().remove(0);
    (vectors, request.head, request.body)
}

#[tokio::test]
async fn openai_takes_all_texts_and_may_mix_their_vectors() {
    let answer = json!({"object": "list", "model": "m", "usage": {"prompt_tokens": 4, "total_tokens": 4}, "data": [
        {"object": "embedding", "index": 1, "embedding": [0.0, 2.0]},
        {"object": "embedding", "index": 0, "embedding": [3.0, 4.0]}
    ]});
    let (vectors, head, body) = ask(&["--embedding-provider", "openai", "--openai-api-key", "k"], answer).await;
    assert_eq!(vectors, [[0.6, 0.8], [0.0, 1.0]], "in the order of the texts, with length 1");
    assert!(head.starts_with("POST /embeddings ") && head.contains("authorization: bearer k"), "{head}");
    assert_eq!((&body["model"], &body["input"]), (&json!("m"), &json!(["low water", "high water"])));
}

#[tokio::test]
async fn gemini_gets_the_purpose_of_each_text() {
    let answer = json!({"embeddings": [{"values": [3.0, 4.0]}, {"values": [0.0, 2.0]}]});
    let (vectors, head, body) = ask(&["--embedding-provider", "gemini", "--gemini-api-key", "k"], answer).await;
    assert_eq!(vectors, [[0.6, 0.8], [0.0, 1.0]]);
    assert!(head.starts_with("POST /models/m:batchEmbedContents") && head.contains("x-goog-api-key: k"), "{head}");
    let second = &body["requests"][1];
    assert_eq!(second["content"]["parts"][0]["text"], "high water", "{body}");
    assert_eq!(second["taskType"], "RETRIEVAL_DOCUMENT", "{body}");
}

#[tokio::test]
async fn vertex_gets_an_instance_for_each_text() {
    let answer =
        json!({"predictions": [{"embeddings": {"values": [3.0, 4.0]}}, {"embeddings": {"values": [0.0, 2.0]}}]});
    let flags = ["--embedding-provider", "vertex", "--vertex-project-id", "p", "--vertex-api-key", "t"];
    let (vectors, head, body) = ask(&flags, answer).await;
    assert_eq!(vectors, [[0.6, 0.8], [0.0, 1.0]]);
    let path = "POST /v1/projects/p/locations/global/publishers/google/models/m:predict";
    assert!(head.starts_with(path) && head.contains("authorization: bearer t"), "{head}");
    assert_eq!(body["instances"][1], json!({"content": "high water", "task_type": "RETRIEVAL_DOCUMENT"}));
}

#[tokio::test]
async fn a_wrong_number_of_vectors_is_an_error() {
    for answer in [json!({"embeddings": [[3.0, 4.0]]}), json!({"embeddings": [[1.0], [1.0, 2.0]]}), json!({"x": 1})] {
        let provider = FakeProvider::start(vec![Reply::json(200, &answer.to_string())]).await;
        let flags = ["holdfast", "--embedding-model", "m", "--embedding-provider", "ollama", "--model-retries=0"];
        let flags = EmbeddingFlags::parse_from(flags.iter().chain(&["--embedding-base-url", &provider.url]));
        let embedder = Embedder::new(&flags.embedding, &flags.model).unwrap().unwrap();
        assert!(embedder.embed(&["a".into(), "b".into()]).await.is_err(), "{answer}");
    }
}

#[tokio::test]
async fn ollama_needs_no_key() {
    let answer = json!({"model": "m", "embeddings": [[3.0, 4.0], [0.0, 2.0]]});
    let (vectors, head, body) = ask(&["--embedding-provider", "ollama"], answer).await;
    assert_eq!(vectors, [[0.6, 0.8], [0.0, 1.0]]);
    assert!(head.starts_with("POST /api/embed "), "{head}");
    assert_eq!((&body["model"], &body["input"]), (&json!("m"), &json!(["low water", "high water"])));
}
