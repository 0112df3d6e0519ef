//! Third-party linters, generators and a fuzzer check `/openapi.json`.

use serde_json::{Value, json};

use crate::support::{ClientProgram, Embedded};

/// Time-out of the fuzzer in seconds. It makes its findings within a minute.
const FUZZED: u64 = 60;

async fn check_with(program: &str, parameters: Value) {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let (mut verdicts, _) = ClientProgram::start(program, &holdfast.base(), parameters).await.rest().await;
    verdicts.retain(|verdict| verdict["verdict"] != "at work");
    for verdict in &verdicts {
        let text = verdict["verdict"].as_str().unwrap();
        assert_eq!(text, "accepted", "{}: {text}", verdict["name"]);
    }
    assert_eq!(verdicts.len(), 4, "{verdicts:?}");
}

#[tokio::test]
async fn linters_accept_the_document_and_typescript_is_made_of_it() {
    check_with("openapi-node", json!({})).await;
}

#[tokio::test]
async fn a_python_client_is_made_of_the_document_and_a_fuzzer_finds_nothing() {
    check_with("openapi-python", json!({"seconds": FUZZED})).await;
}
