//! Azure OpenAI: OpenAI's reasoning models under a name of the operator's, so that the name tells nothing.

use serde_json::{Value, json};

use super::{
    Fake, ProviderRefusal, ProviderRequest,
    chat_stream::{ChatStream, nothing, usual_id},
    openai,
};

pub const AZURE: Fake = Fake {
    name: "azure",
    model: "our-deployment",
    takes_pictures: true,
    rule,
    too_long: Some(|| {
        let message = "Your input exceeds the context window of this model. Please adjust your input and try again.";
        ProviderRefusal::of_openai(400, message, json!("input"), json!("context_length_exceeded"))
    }),
    content_type: "text/event-stream",
    write: |parts| STREAM.write(parts),
    settings: |url| openai::settings("our-deployment", url),
};

/// The first chunk has no choices, but the results of the filter for the prompt.
const STREAM: ChatStream = ChatStream {
    reasoning: |_| json!({}),
    call_id: usual_id,
    opening: "data: {\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{}}]}\n\n",
    with_calls: nothing,
};

fn rule(request: &ProviderRequest) -> Result<(), ProviderRefusal> {
    openai::endpoint(request)?;
    let body = &request.body;
    openai::parameters_of_a_reasoning_model(body)?;
    if body.get("parallel_tool_calls").is_some() && body.get("tools").is_none() {
        let message = "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.";
        return Err(ProviderRefusal::of_openai(400, message, json!("parallel_tool_calls"), Value::Null));
    }
    openai::tools(body)?;
    openai::messages(body)
}
