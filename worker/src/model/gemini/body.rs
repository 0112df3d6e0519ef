//! The body of a request.

use holdfast_shared::{
    agent::{ModelOptions, ReasoningEffort},
    config::ModelChoice,
    overrides::Sampling,
    tool_choice::ToolMode,
};
use serde_json::{Map, Value, json};

use super::{
    rules::{self, FOREIGN_SIGNATURE, GeminiRules, GeminiThinking},
    schema,
};
use crate::model::{
    AnswerForm, Request, ToolRequest, ToolSpec, UserPart,
    alternation::{AnsweredCall, SideMessage, alternating},
};

/// Returns the body. `max_tokens` applies if the request sets no limit.
pub fn write(choice: &ModelChoice, request: &Request, max_tokens: Option<u32>) -> Value {
    let rules = rules::of(&choice.name);
    let contents: Vec<Value> = alternating(&request.turns).iter().map(|side| content(side, choice, rules)).collect();
    let mut body = json!({"contents": contents});
    if let Some(system) = request.system.as_deref().filter(|text| !text.trim().is_empty()) {
        body["systemInstruction"] = json!({"parts": [{"text": system}]});
    }
    if !request.tools.is_empty() {
        let functions: Vec<Value> = request.tools.iter().map(function).collect();
        body["tools"] = json!([{"functionDeclarations": functions}]);
        if let Some(calling) = calling(&request.tool_mode) {
            body["toolConfig"] = json!({"functionCallingConfig": calling});
        }
    }
    let mut config = options(&request.options, max_tokens);
    config.extend(sampling(&request.sampling));
    config
        .extend(thinking(request.options.reasoning_effort, rules).map(|thinking| ("thinkingConfig".into(), thinking)));
    if request.tools.is_empty() || rules.joins_json_and_tools {
        config.extend(form(&request.form));
    }
    if !config.is_empty() {
        body["generationConfig"] = Value::Object(config);
    }
    body
}

fn content(side: &SideMessage<'_>, choice: &ModelChoice, rules: GeminiRules) -> Value {
    match side {
        SideMessage::User { outcomes, parts } => {
            let parts: Vec<Value> = outcomes.iter().map(function_response).chain(parts.iter().map(part)).collect();
            json!({"role": "user", "parts": parts})
        }
        SideMessage::Assistant { text, calls } => {
            let text = (!text.is_empty()).then(|| json!({"text": text}));
            let calls = calls.iter().enumerate().map(|(n, call)| {
                let signature = signature(call, choice)
                    .or_else(|| (n == 0 && rules.demands_signatures).then_some(FOREIGN_SIGNATURE));
                function_call(call, signature)
            });
            json!({"role": "model", "parts": text.into_iter().chain(calls).collect::<Vec<_>>()})
        }
    }
}

fn signature<'a>(call: &'a ToolRequest, choice: &ModelChoice) -> Option<&'a str> {
    call.signature_for(choice).and_then(Value::as_str)
}

fn function_call(call: &ToolRequest, signature: Option<&str>) -> Value {
    let mut part = json!({"functionCall": {"id": call.id, "name": call.name, "args": call.arguments()}});
    if let Some(signature) = signature {
        part["thoughtSignature"] = json!(signature);
    }
    part
}

fn function_response(outcome: &AnsweredCall<'_>) -> Value {
    let field = if outcome.is_error { "error" } else { "output" };
    json!({"functionResponse": {"id": outcome.call_id, "name": outcome.name, "response": {field: outcome.text}}})
}

fn part(part: &UserPart) -> Value {
    match part {
        UserPart::Text(text) | UserPart::Speaker(text) => json!({"text": text}),
        UserPart::File(file) => json!({"inlineData": {"mimeType": file.media_type, "data": &*file.data}}),
    }
}

fn function(tool: &ToolSpec) -> Value {
    let parameters = schema::parameters(&tool.input_schema);
    json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": parameters})
}

/// Returns whether the model must call a tool. The protocol cannot limit the calls of an answer.
fn calling(mode: &ToolMode) -> Option<Value> {
    match mode {
        ToolMode::Auto => None,
        ToolMode::None => Some(json!({"mode": "NONE"})),
        ToolMode::Required => Some(json!({"mode": "ANY"})),
        ToolMode::Named(name) => Some(json!({"mode": "ANY", "allowedFunctionNames": [name]})),
    }
}

fn options(options: &ModelOptions, max_tokens: Option<u32>) -> Map<String, Value> {
    let mut config = Map::new();
    let stop = (!options.stop.is_empty()).then(|| json!(options.stop));
    let fields = [
        ("temperature", options.temperature.map(|temperature| json!(temperature))),
        ("topP", options.top_p.map(|top_p| json!(top_p))),
        ("maxOutputTokens", options.max_tokens.or(max_tokens).map(|tokens| json!(tokens))),
        ("stopSequences", stop),
    ];
    config.extend(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    config
}

fn sampling(sampling: &Sampling) -> impl Iterator<Item = (String, Value)> {
    let fields = [
        ("seed", sampling.seed.map(|seed| json!(seed))),
        ("presencePenalty", sampling.presence_penalty.map(|penalty| json!(penalty))),
        ("frequencyPenalty", sampling.frequency_penalty.map(|penalty| json!(penalty))),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

/// Returns the field for the effort. With it, the model shows its thoughts, because a silent provider looks like one that hangs.
fn thinking(effort: Option<ReasoningEffort>, rules: GeminiRules) -> Option<Value> {
    let effort = effort?;
    let (field, value) = match (rules.thinking, effort) {
        (GeminiThinking::Never, _) => return None,
        (GeminiThinking::Level, ReasoningEffort::Low) => ("thinkingLevel", json!("LOW")),
        (GeminiThinking::Level, ReasoningEffort::Medium) => ("thinkingLevel", json!("MEDIUM")),
        (GeminiThinking::Level, ReasoningEffort::High) => ("thinkingLevel", json!("HIGH")),
        (GeminiThinking::Budget, ReasoningEffort::Low) => ("thinkingBudget", json!(1_024)),
        (GeminiThinking::Budget, ReasoningEffort::Medium) => ("thinkingBudget", json!(8_000)),
        (GeminiThinking::Budget, ReasoningEffort::High) => ("thinkingBudget", json!(24_000)),
    };
    Some(json!({field: value, "includeThoughts": true}))
}

/// Returns the fields for an answer in JSON.
fn form(form: &AnswerForm) -> Vec<(String, Value)> {
    let AnswerForm::Json(format) = form else { return Vec::new() };
    let schema = format.schema.as_ref().map(|schema| ("responseJsonSchema".to_owned(), schema::taken(schema)));
    [("responseMimeType".to_owned(), json!("application/json"))].into_iter().chain(schema).collect()
}
