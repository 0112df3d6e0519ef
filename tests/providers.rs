//! One conversation with each fake provider that enforces its rules: calls in parallel, reasoning, a message that steers, a
//! picture, a stop, a failed turn, an empty answer and an overflow, after each of which the next message is answered.
//! docs/providers.md has a line of each conversation.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    files::{PIXEL, upload},
    support::{
        Client, Embedded, EventStream, agent, of_kind,
        providers::{
            ANTHROPIC, AZURE, DEEPSEEK, Fake, GEMINI, MISTRAL, OLLAMA, OPENAI, OPENROUTER, Part, ProviderRefusal,
            RuledProvider, ScriptedReply, VLLM_STRICT,
        },
        stream_of,
        tools::ToolServer,
    },
};

/// Makes a test of the conversation with each fake, with the number of requests that it refuses until the worker knows what it takes.
macro_rules! on_each_provider {
    ($($name:ident: $fake:expr, $refused:expr;)+) => {
        $(#[tokio::test]
        async fn $name() {
            let line = converse($fake, $refused).await;
            let page = std::fs::read_to_string("docs/providers.md").unwrap();
            assert!(page.contains(&line), "docs/providers.md lacks the line:\n{line}");
        })+
    };
}

on_each_provider!(
    openai_takes_the_conversation: OPENAI, 0;
    // Its name tells nothing: the limit, the temperature and the stop text are refused once each.
    azure_takes_the_conversation: AZURE, 3;
    // It refuses the field that asks for the usage.
    mistral_takes_the_conversation: MISTRAL, 1;
    deepseek_takes_the_conversation: DEEPSEEK, 0;
    openrouter_takes_the_conversation: OPENROUTER, 0;
    anthropic_takes_the_conversation: ANTHROPIC, 0;
    gemini_takes_the_conversation: GEMINI, 0;
    ollama_takes_the_conversation: OLLAMA, 0;
    vllm_with_a_strict_template_takes_the_conversation: VLLM_STRICT, 0;
);

/// The conversation with a fake.
struct ProviderTalk {
    client: Client,
    provider: RuledProvider,
    /// The path of its messages.
    messages: String,
}

impl ProviderTalk {
    /// Posts a message. The provider answers its requests with these replies.
    async fn post(&self, message: Value, replies: impl IntoIterator<Item = ScriptedReply>) -> String {
        self.provider.reply_with(replies);
        let accepted = self.client.post(&self.messages, message).await.unwrap();
        accepted["run"]["id"].as_str().unwrap().to_owned()
    }

    /// Posts a message and returns its run.
    async fn ask(&self, content: impl Into<Value>, replies: impl IntoIterator<Item = ScriptedReply>) -> Value {
        let run = self.post(json!({"content": content.into()}), replies).await;
        self.client.wait_for_run(&run).await
    }

    /// Posts a message that must be answered.
    async fn expect_answer(&self, content: impl Into<Value>, text: &'static str) {
        let run = self.ask(content, [ScriptedReply::text(text)]).await;
        let answer = (run["status"].as_str(), run["output_message"]["content"].as_str());
        assert_eq!(answer, (Some("completed"), Some(text)), "{run}");
    }

    /// Returns the messages of the newest request that the provider took.
    fn newest_messages(&self) -> Vec<Value> {
        self.provider.taken().pop().unwrap().messages().as_array().unwrap().clone()
    }
}

fn call(tool: &'static str) -> Part {
    Part::Call { tool, arguments: json!({}) }
}

/// Has the conversation, and returns its line of docs/providers.md.
async fn converse(fake: Fake, refused: usize) -> String {
    let calls = ScriptedReply::Answer(vec![Part::Reasoning("I must count."), call("kb__count"), call("kb__look")]);
    let provider = RuledProvider::start(fake, [calls, ScriptedReply::text("There are two.")]).await;
    let mut embedded = Embedded::new().with("HOLDFAST_MODEL_FILES", if fake.takes_pictures { "image" } else { "none" });
    embedded.settings.extend(provider.settings());
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let mut tools = ToolServer::start().await;
    let model = json!({"temperature": 0.2, "max_tokens": 500, "stop": ["END"]});
    // No summary is asked for.
    let settings = json!({"model": model, "history_limit": 40});
    let agent_id = agent(&client, json!([tools.describe()]), settings).await;

    let stream = stream_of(&client, &agent_id, "How many?").await;
    let run = client.run(&stream.run_id).await;
    let messages = format!("/v1/conversations/{}/messages", run["conversation_id"].as_str().unwrap());
    let conversation = ProviderTalk { client, provider, messages };
    let reasoning = expect_two_calls(&conversation, &mut tools, stream, fake).await;
    steer(&conversation, &mut tools).await;
    let picture = if fake.takes_pictures { show_picture(&conversation).await } else { "not taken by the model" };
    stop(&conversation).await;
    fail(&conversation).await;
    conversation.ask("Say nothing", [ScriptedReply::Answer(Vec::new()), ScriptedReply::Answer(Vec::new())]).await;
    conversation.expect_answer("And after silence?", "Here I am.").await;

    let refusals = conversation.provider.refused();
    assert_eq!(refusals.len(), refused, "{:#?}", refusals.iter().map(|(_, refusal)| &refusal.body).collect::<Vec<_>>());
    let overflow = match fake.too_long {
        Some(_) => overflow(&conversation).await,
        None => "cut by the provider without a word".to_owned(),
    };
    let Fake { name, model, .. } = fake;
    let next = "next message answered";
    format!(
        "| {name} | `{model}` | {refused} | both answered | {reasoning} | read by the same run | {picture} | {next} | {next} | asked twice, {next} | {overflow} |"
    )
}

async fn show_picture(conversation: &ProviderTalk) -> &'static str {
    let file = upload(&conversation.client, "pixel.png", PIXEL).await;
    let content = json!([{"type": "text", "text": "What is it?"}, {"type": "file", "file_id": file["id"]}]);
    conversation.expect_answer(content, "A pixel.").await;
    assert!(json!(conversation.newest_messages()).to_string().contains("iVBORw0KGgo"), "the PNG in base64");
    "arrives"
}

/// Makes the conversation longer than the model's context, and expects an answer nonetheless.
async fn overflow(conversation: &ProviderTalk) -> String {
    conversation.expect_answer("Remember this: ".to_owned() + &"word ".repeat(2_000), "I do.").await;
    conversation.provider.narrow(json!(conversation.newest_messages()).to_string().len() - 3_000);
    // After the answer, the worker also asks for a summary of what the provider found too long.
    let refused = || {
        let refused = conversation.provider.refused();
        refused.iter().filter(|(request, _)| !request.messages().to_string().contains("Summarise our")).count()
    };
    let before = refused();
    let run = conversation.ask("What now?", [ScriptedReply::text("A shorter one.")]).await;
    assert_eq!(run["output_message"]["content"], "A shorter one.", "{run}");
    let frames = conversation.client.events(run["id"].as_str().unwrap(), None).await.rest().await;
    assert_eq!(of_kind(&frames, "warning.raised")[0]["code"], "context_shortened");
    match refused() - before {
        1 => "answered after 1 refusal".to_owned(),
        refusals => format!("answered after {refusals} refusals"),
    }
}

/// Expects two calls in one step, and that the model's reasoning shows and is no part of the answer. Returns what became of it.
async fn expect_two_calls(
    conversation: &ProviderTalk,
    tools: &mut ToolServer,
    stream: EventStream,
    fake: Fake,
) -> &'static str {
    for _ in 0..2 {
        let call = tools.arrival().await;
        call.take_effect();
        call.answer("2");
    }
    let run_id = stream.run_id.clone();
    let frames = stream.rest().await;
    let reasoning: String =
        of_kind(&frames, "reasoning.delta").iter().map(|delta| delta["text"].as_str().unwrap()).collect();
    let shows_reasoning = ![OPENAI.name, AZURE.name].contains(&fake.name);
    assert_eq!(reasoning.trim(), if shows_reasoning { "I must count." } else { "" });
    let run = conversation.client.run(&run_id).await;
    assert_eq!(run["output_message"]["content"], "There are two.", "{run}");
    let provider = (fake.settings)("").into_iter().find(|(name, _)| *name == "CHAT_MODEL_PROVIDER").unwrap().1;
    assert_eq!(run["model"], format!("{provider}/{}", fake.model));
    if shows_reasoning { "shown, no part of the answer" } else { "not sent by the provider" }
}

async fn steer(conversation: &ProviderTalk, tools: &mut ToolServer) {
    let replies = [ScriptedReply::call("kb__count", json!({})), ScriptedReply::text("Two.")];
    let run = conversation.post(json!({"content": "Count again, at length"}), replies).await;
    let call = tools.arrival().await;
    let steering = json!({"content": "Shorter, please", "mode": "steer"});
    conversation.client.post(&conversation.messages, steering).await.unwrap();
    call.take_effect();
    call.answer("2");
    let run = conversation.client.wait_for_run(&run).await;
    assert_eq!(run["output_message"]["content"], "Two.", "{run}");
    let messages = conversation.newest_messages();
    let newest = messages.last().unwrap();
    assert_eq!(newest["role"], "user");
    assert!(newest.to_string().contains("Shorter, please"), "{newest}");
}

async fn stop(conversation: &ProviderTalk) {
    let reply = ScriptedReply::Answer(vec![Part::Text("It was "), Part::Hold]);
    let run = conversation.post(json!({"content": "Tell a story"}), [reply]).await;
    conversation.client.events(&run, None).await.up_to("message.delta").await;
    conversation.client.cancel(&run).await;
    assert_eq!(conversation.client.wait_for_run(&run).await["status"], "cancelled");
    conversation.provider.release();
    conversation.expect_answer("Another one", "Once.").await;
}

async fn fail(conversation: &ProviderTalk) {
    let refusal = ProviderRefusal::of_openai(400, "The request is refused.", Value::Null, Value::Null);
    let run = conversation.ask("This fails", [ScriptedReply::Refuse(refusal)]).await;
    assert_eq!(run["status"], "failed");
    conversation.expect_answer("And now?", "Fine.").await;
    let messages = json!(conversation.newest_messages()).to_string();
    assert!(messages.contains("This fails") && messages.contains("And now?"), "{messages}");
}

#[tokio::test]
async fn openai_takes_any_schema_and_the_run_names_the_tools_that_are_left_out() {
    let provider = RuledProvider::start(OPENAI, [ScriptedReply::text("Fine.")]).await;
    let mut embedded = Embedded::new().with("HOLDFAST_MAX_CLIENT_TOOLS", 200);
    embedded.settings.extend(provider.settings());
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let schemas = [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"list": {"type": "array"}}}),
        json!({"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"type": "object"}]}),
    ];
    let tool = |n: usize| json!({"name": format!("tool-{n:03}"), "description": "", "input_schema": schemas[n % 3]});
    let body = json!({"input": "Hi", "client_tools": (0..130).map(tool).collect::<Vec<_>>()});
    let request = client.request(Method::POST, "/v1/runs").header("accept", "text/event-stream");
    let frames = EventStream::new(request.json(&body).send().await.unwrap()).rest().await;
    assert_eq!(frames.last().unwrap().event, "run.completed", "{:#?}", provider.refused());
    let warnings: Vec<(&Value, &Value)> =
        of_kind(&frames, "warning.raised").into_iter().map(|warning| (&warning["code"], &warning["message"])).collect();
    let message = "The model takes no more tools, so it answers without 2 of them: tool-128, tool-129.";
    assert_eq!(warnings, [(&json!("tools_left_out"), &json!(message))]);
    assert_eq!(provider.refused().len(), 0);
}
