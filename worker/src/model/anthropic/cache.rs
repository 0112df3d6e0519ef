//! The marks of the prompt's cache. Up to a mark, the provider keeps what it has read, and a later request that begins with the
//! same blocks reads it for a tenth of the price.
//!
//! Four marks are allowed: after the tools, after the system prompt, after the newest message, and after the message of the user
//! before it. The last one finds what the step before has written, however many blocks came since: by itself the provider
//! looks back over 20 blocks only.

use serde_json::{Value, json};

/// Marks the blocks. A single message without tools gets no mark of its own, because no step follows that would read it.
pub fn mark(tools: &mut [Value], system: &mut [Value], messages: &mut [Value]) {
    let continues = !tools.is_empty() || messages.len() > 1;
    let of_user =
        messages.iter_mut().rev().filter(|message| message["role"] == "user").take(if continues { 2 } else { 0 });
    let newest = of_user.filter_map(|message| message["content"].as_array_mut()?.last_mut());
    for block in tools.last_mut().into_iter().chain(system.last_mut()).chain(newest) {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}
