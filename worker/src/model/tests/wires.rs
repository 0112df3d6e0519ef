//! One answer in the format of each provider: "hm" as reasoning, then "Hello " and "wörld", then the end.

use holdfast_shared::{config::ModelConfig, finish_reason::FinishReason, usage::Usage};

use super::{AnswerDelta, Reply, config};

#[derive(Clone)]
pub struct ProviderWire {
    pub provider: &'static str,
    pub model: &'static str,
    /// The provider whose messages the wire carries; Vertex AI has no messages of its own.
    pub format: &'static str,
    pub content_type: &'static str,
    /// The beginning of the answer, up to and with the first piece of text.
    pub begin: Vec<String>,
    /// The rest, without the end.
    pub rest: Vec<String>,
    pub end: Vec<String>,
    pub usage: Usage,
    /// A malformed chunk.
    pub malformed: String,
    /// The chunk by which the provider reports an error in mid-stream.
    pub error_chunk: String,
    /// The body, with status 404, by which it reports an unknown model.
    pub unknown_model: &'static str,
}

impl ProviderWire {
    /// Returns the settings for a provider at this address; `flags` replace or complete the usual ones.
    pub fn config(&self, url: &str, flags: &[&str]) -> ModelConfig {
        let provider = format!("--chat-model-provider={}", self.provider);
        let url = format!("--{}-base-url={url}", self.provider);
        let key = format!("--{}-api-key=secret-key", self.provider);
        let model = format!("--chat-model-name={}", self.model);
        let mut all = vec![provider.as_str(), url.as_str(), model.as_str(), "--model-retry-ms=1"];
        if self.provider == "vertex" {
            all.push("--vertex-project-id=a-project");
        }
        if self.provider != "ollama" {
            all.push(&key);
        }
        fn name(flag: &str) -> &str {
            flag.split('=').next().unwrap_or_default()
        }
        all.retain(|usual| flags.iter().all(|flag| name(flag) != name(usual)));
        config(&[&all[..], flags].concat())
    }

    pub fn deltas(&self) -> Vec<AnswerDelta> {
        let mut deltas = self.first_deltas();
        deltas.extend([AnswerDelta::Text("wörld".to_owned()), AnswerDelta::End(self.usage, FinishReason::Stop)]);
        deltas
    }

    /// Returns the deltas of `begin`.
    pub fn first_deltas(&self) -> Vec<AnswerDelta> {
        vec![AnswerDelta::Reasoning("hm".to_owned()), AnswerDelta::Text("Hello ".to_owned())]
    }

    pub fn reply(&self) -> Reply {
        Reply::new(200, self.content_type)
    }

    pub fn complete_reply(&self) -> Reply {
        self.reply().chunks(&self.begin).chunks(&self.rest).chunks(&self.end)
    }
}

pub fn wires() -> [ProviderWire; 6] {
    [openai(), anthropic(), gemini(), ollama(), vertex_gemini(), vertex_claude()]
}

pub fn vertex_gemini() -> ProviderWire {
    ProviderWire { provider: "vertex", model: "gemini-some-model", ..gemini() }
}

pub fn vertex_claude() -> ProviderWire {
    ProviderWire { provider: "vertex", model: "claude-some-model", ..anthropic() }
}

pub fn openai() -> ProviderWire {
    let chunk = |fields: &str| format!("data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",{fields}}}\n\n");
    let delta =
        |delta: &str| chunk(&format!(r#""choices":[{{"index":0,"delta":{delta},"finish_reason":null}}],"usage":null"#));
    ProviderWire {
        provider: "openai",
        model: "some-model",
        format: "openai",
        content_type: "text/event-stream; charset=utf-8",
        begin: vec![
            ": keep-alive\n\n".to_owned(),
            delta(r#"{"role":"assistant","content":""}"#),
            delta(r#"{"reasoning_content":"hm"}"#),
            delta(r#"{"content":"Hello "}"#),
        ],
        rest: vec![delta(r#"{"content":"wörld"}"#)],
        end: vec![
            chunk(r#""choices":[{"index":0,"delta":{},"finish_reason":"stop"}]"#),
            chunk(
                r#""choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}"#,
            ),
            "data: [DONE]\n\n".to_owned(),
        ],
        usage: Usage { input_tokens: 9, output_tokens: 7, cached_tokens: 4, reasoning_tokens: 2 },
        malformed: "data: {\"choices\":[{\n\n".to_owned(),
        error_chunk: "data: {\"error\":{\"message\":\"out of luck\",\"type\":\"some_error\"}}\n\n".to_owned(),
        unknown_model: r#"{"error":{"message":"no such thing","type":"invalid_request_error","code":"model_not_found"}}"#,
    }
}

pub fn anthropic() -> ProviderWire {
    let event = |kind: &str, fields: &str| format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{fields}}}\n\n");
    let delta = |delta: &str| event("content_block_delta", &format!(r#""index":0,"delta":{delta}"#));
    ProviderWire {
        provider: "anthropic",
        model: "some-model",
        format: "anthropic",
        content_type: "text/event-stream; charset=utf-8",
        begin: vec![
            event(
                "message_start",
                r#""message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":5,"cache_read_input_tokens":4,"output_tokens":1}}"#,
            ),
            event(
                "content_block_start",
                r#""index":0,"content_block":{"type":"thinking","thinking":"","signature":""}"#,
            ),
            event("ping", r#""x":0"#),
            delta(r#"{"type":"thinking_delta","thinking":"hm"}"#),
            delta(r#"{"type":"signature_delta","signature":"c2ln"}"#),
            event("content_block_stop", r#""index":0"#),
            event("content_block_start", r#""index":1,"content_block":{"type":"text","text":""}"#),
            delta(r#"{"type":"text_delta","text":"Hello "}"#),
        ],
        rest: vec![delta(r#"{"type":"text_delta","text":"wörld"}"#)],
        end: vec![
            event("content_block_stop", r#""index":1"#),
            event("message_delta", r#""delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}"#),
            event("message_stop", r#""x":0"#),
        ],
        usage: Usage { input_tokens: 9, output_tokens: 7, cached_tokens: 4, reasoning_tokens: 0 },
        malformed: "event: content_block_delta\ndata: {\"delta\":{\n\n".to_owned(),
        error_chunk: event("error", r#""error":{"type":"some_error","message":"out of luck"}"#),
        unknown_model: r#"{"type":"error","error":{"type":"not_found_error","message":"model: no such thing"}}"#,
    }
}

pub fn gemini() -> ProviderWire {
    let part = |part: &str| {
        format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{part}],\"role\":\"model\"}}}}]}}\r\n\r\n")
    };
    ProviderWire {
        provider: "gemini",
        model: "some-model",
        format: "gemini",
        content_type: "text/event-stream",
        begin: vec![part(r#"{"text":"hm","thought":true}"#), part(r#"{"text":"Hello "}"#)],
        rest: vec![part(r#"{"text":"wörld"}"#)],
        end: vec![
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}]},\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":5,\"thoughtsTokenCount\":2,\"cachedContentTokenCount\":4,\"totalTokenCount\":16}}\r\n\r\n"
                .to_owned(),
        ],
        usage: Usage { input_tokens: 9, output_tokens: 7, cached_tokens: 4, reasoning_tokens: 2 },
        malformed: "data: {\"candidates\":[{\r\n\r\n".to_owned(),
        error_chunk: "data: {\"error\":{\"code\":400,\"message\":\"out of luck\",\"status\":\"FAILED_PRECONDITION\"}}\r\n\r\n"
            .to_owned(),
        unknown_model: r#"{"error":{"code":404,"message":"models/x is no such thing","status":"NOT_FOUND"}}"#,
    }
}

pub fn ollama() -> ProviderWire {
    let line = |fields: &str| format!("{{\"model\":\"x\",\"created_at\":\"t\",{fields}}}\n");
    ProviderWire {
        provider: "ollama",
        model: "some-model",
        format: "ollama",
        content_type: "application/x-ndjson",
        begin: vec![
            line(r#""message":{"role":"assistant","content":"","thinking":"hm"},"done":false"#),
            line(r#""message":{"role":"assistant","content":"Hello "},"done":false"#),
        ],
        rest: vec![line(r#""message":{"role":"assistant","content":"wörld"},"done":false"#)],
        end: vec![line(
            r#""message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"prompt_eval_count":9,"prompt_eval_cached_count":4,"eval_count":7"#,
        )],
        usage: Usage { input_tokens: 9, output_tokens: 7, cached_tokens: 4, reasoning_tokens: 0 },
        malformed: "{\"message\":{\n".to_owned(),
        error_chunk: "{\"error\":\"out of luck\"}\n".to_owned(),
        unknown_model: r#"{"error":"model 'x' not found: no such thing"}"#,
    }
}
