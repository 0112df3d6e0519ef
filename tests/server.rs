//! The description of the server that a page shows.

use std::fs;

use serde_json::json;

use crate::support::{Embedded, ScaledOut};

#[tokio::test]
async fn an_embedded_server_names_its_model_and_its_storage() {
    let mut holdfast = Embedded::new().start();
    let server = holdfast.client().get("/v1/server").await.unwrap();
    let model = json!({"provider": "scripted", "name": "scripted", "is_real": false});
    let expected = json!({"version": env!("CARGO_PKG_VERSION"), "model": model, "storage": "sqlite", "composer": "open", "warning": null});
    assert_eq!(server, expected);
    let real = Embedded::new().with("CHAT_MODEL_PROVIDER", "ollama").with("CHAT_MODEL_NAME", "llama3.2");
    let server = real.with("CHAT_MEMORY_BACKEND", "memory").start().client().get("/v1/server").await.unwrap();
    assert_eq!(server["model"], json!({"provider": "ollama", "name": "llama3.2", "is_real": true}));
    assert_eq!((&server["storage"], &server["warning"]), (&json!("memory"), &json!(null)));
}

#[tokio::test]
async fn a_server_that_fell_back_to_memory_warns_its_users() {
    let embedded = Embedded::new().with("CHAT_MEMORY_FALLBACK", "true");
    fs::write(embedded.data_dir(), "a file where the folder should be").unwrap();
    let mut holdfast = embedded.start();
    let server = holdfast.client().get("/v1/server").await.unwrap();
    assert_eq!(server["storage"], "memory");
    assert!(server["warning"].as_str().unwrap().contains("lost when the server stops"), "{server}");
}

#[tokio::test]
async fn an_api_alone_names_the_model_of_the_newest_worker() {
    let scaled = ScaledOut::new();
    let mut api = scaled.api();
    let client = api.client();
    let model = async || client.get("/v1/server").await.unwrap()["model"].clone();
    assert_eq!(model().await, json!(null), "no worker has started");
    scaled.worker().wait_for_log("worker started");
    assert_eq!(model().await, json!({"provider": "scripted", "name": "scripted", "is_real": false}));
    let real = scaled.with("CHAT_MODEL_PROVIDER", "ollama").with("CHAT_MODEL_NAME", "llama3.2");
    real.worker().wait_for_log("worker started");
    assert_eq!(model().await, json!({"provider": "ollama", "name": "llama3.2", "is_real": true}));
}
