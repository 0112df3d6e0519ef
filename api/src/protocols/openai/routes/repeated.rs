//! The fields of a request that its response repeats.
//!
//! Short ones are in the run's metadata. Instructions, functions and a schema are not stored twice: the run's row has them, and the
//! metadata knows what is the request's own.

use std::collections::BTreeSet;

use holdfast_shared::{overrides::JsonFormat, run::Run, tool::ClientTool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{posting::REPEATED, request::ResponseRequest};
use crate::{
    app::App,
    problem::Problem,
    protocols::openai::wire::{ResponseId, split_name},
};

/// Most characters of a text that a response repeats.
const MAX_TEXT: usize = 512;

/// Most bytes of a choice of tools that a response repeats.
const MAX_CHOICE: usize = 4096;

/// The fields of a request that its run's metadata keeps.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RepeatedFields {
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_response_id: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<bool>,
    /// The client's own texts.
    pub metadata: Map<String, Value>,
    /// Fields that the response has as the request had them.
    #[serde(skip_serializing_if = "Map::is_empty")]
    fields: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verbosity: Option<Value>,
    /// Bytes of the run's instructions that are the request's own. Those of its input follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<usize>,
    /// The `strict` of each function.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    functions: Vec<Option<bool>>,
    /// The namespaces of functions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Whether the request has a form for the answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    has_format: bool,
}

impl RepeatedFields {
    /// Returns what a response repeats of a request. Fields with values that the protocol does not know are left out.
    pub fn of(request: &ResponseRequest, previous: Option<ResponseId>, metadata: Map<String, Value>) -> Self {
        let mut fields = Map::new();
        let mut repeat = |name: &str, value: Value| {
            if !value.is_null() {
                fields.insert(name.into(), value);
            }
        };
        let options = request.options();
        repeat("temperature", json!(options.temperature));
        repeat("top_p", json!(options.top_p));
        repeat("max_output_tokens", json!(options.max_tokens));
        repeat("parallel_tool_calls", json!(request.parallel_tool_calls.as_bool()));
        repeat("truncation", one_of(&request.truncation, &["auto", "disabled"]));
        repeat("tool_choice", tool_choice(&request.tool_choice));
        repeat("reasoning", reasoning(request.reasoning.as_ref()));
        for (name, value) in [
            ("user", &request.user),
            ("safety_identifier", &request.safety_identifier),
            ("prompt_cache_key", &request.prompt_cache_key),
        ] {
            let fits = |text: &&str| text.chars().count() <= MAX_TEXT;
            repeat(name, json!(value.as_str().filter(fits)));
        }
        let verbosity = request.text.as_ref().map(|text| one_of(&text["verbosity"], &["low", "medium", "high"]));
        Self {
            model: request.model.clone(),
            previous_response_id: previous.map(|id| id.to_string()),
            background: request.background == Some(true),
            store: request.store,
            metadata,
            fields,
            verbosity: verbosity.filter(|verbosity| !verbosity.is_null()),
            instructions: request.instructions.as_ref().map(String::len),
            functions: request.functions().map(|(_, function)| function["strict"].as_bool()).collect(),
            namespaces: namespaces(request),
            has_format: request.format().is_some(),
        }
    }

    /// Returns what the run of a completion keeps of its request.
    pub fn of_completion(model: Option<String>, metadata: Map<String, Value>) -> Self {
        Self { model, metadata, ..Self::default() }
    }

    /// Returns what a run's metadata has of its request. A run that another wire has started repeats nothing.
    pub fn of_run(run: &Run) -> Self {
        let repeated = run.metadata.as_ref().map(|metadata| &metadata[REPEATED]);
        repeated.and_then(|repeated| Self::deserialize(repeated).ok()).unwrap_or_default()
    }

    /// Returns what the later responses of the run repeat, after a request that answers it: that request's own fields.
    pub fn renewed(self, by: &Self) -> Self {
        let namespaces: BTreeSet<String> = self.namespaces.into_iter().chain(by.namespaces.clone()).collect();
        Self {
            model: by.model.clone().or(self.model),
            previous_response_id: self.previous_response_id,
            store: self.store,
            metadata: if by.metadata.is_empty() { self.metadata } else { by.metadata.clone() },
            namespaces: namespaces.into_iter().collect(),
            ..by.clone()
        }
    }

    /// Returns the instructions among the input of the request, of all those that its run has.
    pub fn instructions_of_input(&self, all: Option<&str>) -> Option<String> {
        let rest = all?.get(self.instructions.unwrap_or(0)..)?.trim_start_matches('\n');
        (!rest.is_empty()).then(|| rest.to_owned())
    }

    /// Returns all fields that the response has as the request had them.
    pub async fn fields(mut self, app: &App, run: &Run) -> Result<Map<String, Value>, Problem> {
        let mut format = json!({"type": "text"});
        if self.instructions.is_some() || !self.functions.is_empty() || self.has_format {
            let (tools, overrides) = app.storage().client_parts(run.id).await?;
            let own = |length: usize| overrides.instructions.as_ref()?.get(..length).map(str::to_owned);
            if let Some(instructions) = self.instructions.and_then(own) {
                self.fields.insert("instructions".into(), instructions.into());
            }
            if !self.functions.is_empty() {
                let strict = self.functions.iter().copied().chain(std::iter::repeat(None));
                let tools = tools.iter().zip(strict).map(|(tool, strict)| function(tool, strict));
                self.fields.insert("tools".into(), grouped(tools.collect(), &self.namespaces).into());
            }
            if let Some(given) = overrides.format {
                format = format_json(given);
            }
        }
        if self.has_format || self.verbosity.is_some() {
            let mut text = json!({"format": format});
            if let Some(verbosity) = self.verbosity {
                text["verbosity"] = verbosity;
            }
            self.fields.insert("text".into(), text);
        }
        Ok(self.fields)
    }
}

fn namespaces(request: &ResponseRequest) -> Vec<String> {
    let named = request.functions().filter_map(|(namespace, _)| namespace);
    named.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns the tools with those of each namespace in it again.
fn grouped(tools: Vec<Value>, namespaces: &[String]) -> Vec<Value> {
    let mut grouped: Vec<Value> = Vec::new();
    for mut tool in tools {
        let Some((namespace, name)) = split_name(tool["name"].as_str().unwrap_or_default(), namespaces) else {
            grouped.push(tool);
            continue;
        };
        let name = name.to_owned();
        tool["name"] = name.into();
        match grouped.iter_mut().find(|group| group["type"] == "namespace" && group["name"] == namespace) {
            Some(group) => group["tools"].as_array_mut().expect("a namespace has tools").push(tool),
            None => grouped.push(json!({"type": "namespace", "name": namespace, "tools": [tool]})),
        }
    }
    grouped
}

/// Returns a text that is one of these, or null.
fn one_of(value: &Value, known: &[&str]) -> Value {
    json!(value.as_str().filter(|text| known.contains(text)))
}

fn tool_choice(choice: &Value) -> Value {
    match choice["type"].as_str() {
        Some("function" | "allowed_tools") if choice.to_string().len() <= MAX_CHOICE => choice.clone(),
        _ => one_of(choice, &["none", "auto", "required"]),
    }
}

fn reasoning(reasoning: Option<&Value>) -> Value {
    let Some(reasoning) = reasoning.filter(|reasoning| reasoning.is_object()) else { return Value::Null };
    let effort = one_of(&reasoning["effort"], &["none", "minimal", "low", "medium", "high", "xhigh"]);
    json!({"effort": effort, "summary": one_of(&reasoning["summary"], &["auto", "concise", "detailed"])})
}

fn function(tool: &ClientTool, strict: Option<bool>) -> Value {
    let ClientTool { name, description, input_schema } = tool;
    let description = (!description.is_empty()).then_some(description);
    json!({"type": "function", "name": name, "description": description, "parameters": input_schema, "strict": strict})
}

fn format_json(format: JsonFormat) -> Value {
    let JsonFormat { name, schema, strict } = format;
    match schema {
        Some(schema) => {
            json!({"type": "json_schema", "name": name, "description": null, "schema": schema, "strict": strict})
        }
        None => json!({"type": "json_object"}),
    }
}
