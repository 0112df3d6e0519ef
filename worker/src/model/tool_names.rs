//! The names of tools, as every provider takes them: `^[a-zA-Z0-9_-]{1,64}$`.
//!
//! Other names are replaced in a request, and the names of the answer's calls are replaced back.

use std::collections::HashMap;

use futures::StreamExt;
use holdfast_shared::tool_choice::ToolMode;
use sha2::{Digest, Sha256};

use super::{AnswerDelta, AnswerStream, Error, Request, Turn};

/// Longest name that all providers take.
const MAX_BYTES: usize = 64;

/// Bytes of the digest that tell replaced names apart.
const DIGEST_BYTES: usize = 4;

/// The original names by those that replace them.
#[derive(Default)]
pub(super) struct ReplacedNames(HashMap<String, String>);

impl ReplacedNames {
    /// Replaces the names of the request that a provider may refuse.
    pub fn replace_in(request: &mut Request) -> Self {
        let mut replaced = Self::default();
        for tool in &mut request.tools {
            replaced.replace(&mut tool.name);
        }
        if let ToolMode::Named(name) = &mut request.tool_mode {
            replaced.replace(name);
        }
        for turn in &mut request.turns {
            match turn {
                Turn::Assistant { calls, .. } => calls.iter_mut().for_each(|call| replaced.replace(&mut call.name)),
                Turn::Tool { name, .. } => replaced.replace(name),
                Turn::User(_) | Turn::Files(_) => {}
            }
        }
        replaced
    }

    fn replace(&mut self, name: &mut String) {
        if !is_taken(name) {
            let original = std::mem::take(name);
            *name = replacement(&original);
            self.0.insert(name.clone(), original);
        }
    }

    /// Returns the answer with the original names.
    pub fn restore_in(self, answer: AnswerStream) -> AnswerStream {
        if self.0.is_empty() {
            return answer;
        }
        let restore = move |mut delta: Result<AnswerDelta, Error>| {
            if let Ok(AnswerDelta::Call(call)) = &mut delta
                && let Some(original) = call.name.as_ref().and_then(|name| self.0.get(name))
            {
                call.name = Some(original.clone());
            }
            delta
        };
        answer.map(restore).boxed()
    }
}

fn is_taken(name: &str) -> bool {
    (1..=MAX_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Returns the name of such a tool in all requests, whatever other tools there are.
fn replacement(name: &str) -> String {
    let digest = hex::encode(&Sha256::digest(name)[..DIGEST_BYTES]);
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
    let kept: String = plain.take(MAX_BYTES - digest.len() - 1).collect();
    format!("{kept}_{digest}")
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use serde_json::json;

    use super::*;
    use crate::model::{CallDelta, ToolRequest, ToolSpec};

    #[tokio::test]
    async fn names_are_replaced_in_the_request_and_back_in_the_answer() {
        let long = "x".repeat(65);
        let names = ["kb__count", "weather.get", "weather_get", "naïve/tool", "", long.as_str()];
        let tool = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
        };
        let call = ToolRequest { name: "weather.get".into(), ..ToolRequest::default() };
        let outcome = Turn::Tool { call_id: "c".into(), name: "weather.get".into(), text: "x".into(), is_error: false };
        let turns = vec![Turn::Assistant { text: String::new(), calls: vec![call] }, outcome];
        let tool_mode = ToolMode::Named("weather.get".into());
        let mut request = Request { turns, tools: names.iter().map(tool).collect(), tool_mode, ..Request::default() };
        let replaced = ReplacedNames::replace_in(&mut request);
        let sent: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert!(sent.iter().all(|name| is_taken(name)), "{sent:?}");
        assert_eq!(request.tool_mode, ToolMode::Named(sent[1].to_owned()));
        assert_eq!((sent[0], sent[2]), ("kb__count", "weather_get"));
        assert!(sent[1].starts_with("weather_get_"), "{sent:?}");
        let [Turn::Assistant { calls, .. }, Turn::Tool { name, .. }] = &request.turns[..] else { panic!() };
        assert_eq!((calls[0].name.as_str(), name.as_str()), (sent[1], sent[1]));

        let calls = sent.iter().enumerate().map(|(index, name)| {
            Ok(AnswerDelta::Call(CallDelta { index, name: Some((*name).to_owned()), ..CallDelta::default() }))
        });
        let calls: Vec<_> = calls.collect();
        let answer: Vec<_> = replaced.restore_in(stream::iter(calls).boxed()).collect().await;
        let restored: Vec<String> = answer
            .into_iter()
            .map(|delta| match delta.unwrap() {
                AnswerDelta::Call(call) => call.name.unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(restored, names);
    }
}
