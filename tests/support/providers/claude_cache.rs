//! Anthropic's cache of prompts, which counts as its documents say.

use std::collections::HashMap;

use serde_json::{Value, json};

/// Most blocks that a mark looks back over, itself included.
const LOOKBACK: usize = 20;
/// The least prefix that is kept, in tokens.
const LEAST_PREFIX: u64 = 1_024;

/// The cache of prompts, which keeps what ends at a mark.
#[derive(Default)]
pub struct ClaudeCache {
    /// The prefixes that were kept, with their tokens.
    kept: HashMap<String, u64>,
}

impl ClaudeCache {
    /// Returns the usage of a request, and keeps its marked prefixes. A token is four characters here.
    pub fn usage(&mut self, body: &Value) -> Value {
        let (mut prefix, mut prefixes) = (String::new(), Vec::new());
        for (mut block, place) in blocks_of(body) {
            let mark = block.as_object_mut().and_then(|block| block.remove("cache_control"));
            prefix += &format!("{place}{block}");
            prefixes.push((prefix.clone(), prefix.len() as u64 / 4, mark.is_some()));
        }
        let all = prefixes.last().map_or(0, |(_, tokens, _)| *tokens);
        let marks: Vec<usize> = (0..prefixes.len()).filter(|n| prefixes[*n].2).collect();
        let seen = marks.iter().flat_map(|mark| (mark + 1).saturating_sub(LOOKBACK)..=*mark);
        let read = seen.filter_map(|n| self.kept.get(&prefixes[n].0)).max().copied().unwrap_or(0);
        let mut written = read;
        for (prefix, tokens, _) in
            marks.into_iter().map(|mark| &prefixes[mark]).filter(|prefix| prefix.1 >= LEAST_PREFIX)
        {
            self.kept.insert(prefix.clone(), *tokens);
            written = written.max(*tokens);
        }
        json!({"input_tokens": all - written, "cache_creation_input_tokens": written - read, "cache_read_input_tokens": read})
    }
}

/// Returns the blocks in the order of the prompt: tools, system, messages.
fn blocks_of(body: &Value) -> Vec<(Value, String)> {
    let list = |blocks: &Value, place: &str| {
        let blocks = blocks.as_array().cloned().unwrap_or_default().into_iter();
        blocks.map(|block| (block, place.to_owned())).collect::<Vec<_>>()
    };
    let mut blocks = [list(&body["tools"], "tool"), list(&body["system"], "system")].concat();
    for (n, message) in body["messages"].as_array().into_iter().flatten().enumerate() {
        blocks.extend(list(&message["content"], &format!("{n} {}", message["role"])));
    }
    blocks
}
