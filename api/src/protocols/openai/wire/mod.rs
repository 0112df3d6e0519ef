//! OpenAI's protocol: the Responses API (`fold`) and chat completions (`completion`).
//!
//! A response is the output of a run up to a pause: a run that waits for its client's answer continues in another response. Events
//! have a number in their response, and a frame id. `output` has the items of a response, `item` one of them, `response` the whole,
//! `ids` the protocol's ids, `step_usage` the tokens, and `sender` writes frames.

mod completion;
mod fold;
mod ids;
mod item;
mod output;
mod response;
mod sender;
mod step_usage;

pub use completion::{CompletionFold, CompletionHead, CompletionView, completion_usage};
pub use fold::{ResponseFold, ResponseView};
pub use ids::{
    ResponseId, call_id, conversation_id, event_of_item, flat_name, is_id_of_call, parse_approval_id,
    parse_conversation_id, run_of_call, run_of_item, split_name,
};
pub use item::{ItemBody, OutputItem};
pub use response::{ResponseHead, ResponseState};
