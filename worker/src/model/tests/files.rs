//! The files of a user's turn, in the format of each provider.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    ModelFile, Reply, Request, ToolRequest, Turn, UserPart, ask_with, assistant, request, user,
    wires::{ProviderWire, anthropic, gemini, ollama, openai, vertex_claude, vertex_gemini},
};

fn file(name: &str, media_type: &str, data: &str) -> UserPart {
    let (name, media_type, data) = (name.into(), media_type.into(), data.into());
    UserPart::File(Arc::new(ModelFile { name, media_type, data, instead: None }))
}

/// Returns the messages of a request with a picture between two texts, an answer, and a PDF alone.
async fn sent(wire: &ProviderWire, messages: &str) -> Value {
    let text = |text: &str| UserPart::Text(text.into());
    let turns = vec![
        Turn::User(vec![text("Compare"), file("a.png", "image/png", "aW1n"), text("with this:")]),
        assistant("Which?"),
        Turn::User(vec![file("b.pdf", "application/pdf", "cGRm")]),
    ];
    let request = Request { turns, ..Request::default() };
    let mut outcome = ask_with(&request, wire, &[], vec![wire.complete_reply()]).await;
    assert!(outcome.error.is_none(), "{outcome:?}");
    outcome.requests.remove(0).body[messages].clone()
}

/// Returns the messages of a request after two outcomes of tools, of which the first has a picture.
async fn sent_after_outcomes(wire: &ProviderWire, messages: &str) -> Vec<Value> {
    let call =
        |id: &str| ToolRequest { id: id.into(), name: "kb__draw".into(), input: json!({}), ..ToolRequest::default() };
    let outcome = |id: &str| Turn::Tool {
        call_id: id.into(),
        name: "kb__draw".into(),
        text: format!("result {id}"),
        is_error: id == "c2",
    };
    let turns = vec![
        user("Draw"),
        Turn::Assistant { text: String::new(), calls: vec![call("c1"), call("c2")] },
        outcome("c1"),
        outcome("c2"),
        Turn::Files(vec![UserPart::Text("[Result of kb__draw]".into()), file("a.png", "image/png", "aW1n")]),
        user("Hurry"),
    ];
    let request = Request { turns, ..Request::default() };
    let mut outcome = ask_with(&request, wire, &[], vec![wire.complete_reply()]).await;
    assert!(outcome.error.is_none(), "{outcome:?}");
    outcome.requests.remove(0).body[messages].as_array().unwrap().clone()
}

#[tokio::test]
async fn files_of_tools_follow_all_outcomes_as_a_users_turn() {
    let roles = |messages: &[Value]| {
        let roles = messages.iter().map(|message| message["role"].as_str().unwrap().to_owned());
        roles.filter(|role| role != "system").collect::<Vec<_>>()
    };
    let messages = sent_after_outcomes(&openai(), "messages").await;
    assert_eq!(roles(&messages), ["user", "assistant", "tool", "tool", "assistant", "user"]);
    assert_eq!(
        messages[5]["content"],
        json!([
            {"type": "text", "text": "[Result of kb__draw]"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}},
            {"type": "text", "text": "Hurry"},
        ])
    );
    let messages = sent_after_outcomes(&anthropic(), "messages").await;
    assert_eq!(roles(&messages), ["user", "assistant", "user"]);
    let kinds = |message: &Value| {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks.map(|block| block["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&messages[2]), ["tool_result", "tool_result", "text", "image", "text"]);
    let contents = sent_after_outcomes(&gemini(), "contents").await;
    assert_eq!(roles(&contents), ["user", "model", "user"]);
    assert_eq!(contents[2]["parts"].as_array().unwrap().len(), 5);
    assert!(contents[2]["parts"][1]["functionResponse"].is_object(), "{}", contents[2]);
    let messages = sent_after_outcomes(&ollama(), "messages").await;
    assert_eq!(roles(&messages), ["user", "assistant", "tool", "tool", "user", "user"]);
    assert_eq!(messages[4]["images"], json!(["aW1n"]));
}

#[tokio::test]
async fn openai_gets_data_urls() {
    let messages = sent(&openai(), "messages").await;
    assert_eq!(
        messages[0]["content"],
        json!([
            {"type": "text", "text": "Compare"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}},
            {"type": "text", "text": "with this:"},
        ])
    );
    let pdf = json!({"filename": "b.pdf", "file_data": "data:application/pdf;base64,cGRm"});
    assert_eq!(messages[2]["content"], json!([{"type": "file", "file": pdf}]));
}

#[tokio::test]
async fn anthropic_gets_images_and_documents() {
    for wire in [anthropic(), vertex_claude()] {
        let messages = sent(&wire, "messages").await;
        let source = |media_type: &str, data: &str| json!({"type": "base64", "media_type": media_type, "data": data});
        assert_eq!(
            messages[0]["content"],
            json!([
                {"type": "text", "text": "Compare"},
                {"type": "image", "source": source("image/png", "aW1n")},
                {"type": "text", "text": "with this:", "cache_control": {"type": "ephemeral"}},
            ])
        );
        assert_eq!(messages[2]["content"][0]["type"], "document");
        assert_eq!(messages[2]["content"][0]["source"], source("application/pdf", "cGRm"));
    }
}

#[tokio::test]
async fn gemini_gets_inline_data() {
    for wire in [gemini(), vertex_gemini()] {
        let contents = sent(&wire, "contents").await;
        let inline = |kind: &str, data: &str| json!({"inlineData": {"mimeType": kind, "data": data}});
        let spelled = contents.to_string().replace("inline_data", "inlineData").replace("mime_type", "mimeType");
        let contents: Value = serde_json::from_str(&spelled).unwrap();
        let parts = json!([{"text": "Compare"}, inline("image/png", "aW1n"), {"text": "with this:"}]);
        assert_eq!(contents[0]["parts"], parts);
        assert_eq!(contents[2]["parts"], json!([inline("application/pdf", "cGRm")]));
    }
}

#[tokio::test]
async fn ollama_gets_images() {
    let messages = sent(&ollama(), "messages").await;
    assert_eq!(messages[0]["images"], json!(["aW1n"]));
    let text = messages[0]["content"].as_str().unwrap();
    assert!(text.contains("Compare") && text.contains("with this:"), "{text}");
}

#[tokio::test]
async fn a_refusal_spelled_as_one_of_a_file_is_another_one_without_a_file() {
    let refused = |status| Reply::json(status, r#"{"error":{"message":"This model does not support images."}}"#);
    let with_file = Request { turns: vec![Turn::User(vec![file("a.png", "image/png", "aW1n")])], ..Request::default() };
    let in_stream = Reply::new(200, "text/event-stream")
        .chunk("data: {\"error\":{\"code\":400,\"message\":\"This model does not support images.\"}}\n\n");
    for reply in [refused(400), refused(404), in_stream] {
        for (asked, code) in [(&with_file, "file_refused"), (&request(), "model_refused")] {
            let outcome = ask_with(asked, &openai(), &[], vec![reply.clone()]).await;
            assert_eq!(outcome.code(), Some(code), "{outcome:?}");
            assert!(outcome.message().contains("does not support images"), "{}", outcome.message());
        }
    }
}
