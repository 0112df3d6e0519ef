//! Turns in which the model gives no answer: silence, a request that is too long, a file that the provider refuses. One of them ends
//! no conversation.

use std::sync::{Arc, Mutex};

use axum::{Json, Router, http::StatusCode, response::IntoResponse};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    files::{PIXEL, upload},
    in_both_modes, in_either_mode,
    support::{
        Client, Deployment, agent, frames_of, of_kind,
        tokens::{SECRET, claims, token},
        tools::ToolServer,
    },
};

in_both_modes!(only_operators_read_a_providers_words);

in_either_mode!(
    a_model_that_says_nothing_is_asked_once_more,
    a_model_that_says_nothing_twice_leaves_a_warning,
    results_that_exceed_the_models_context_are_shortened,
    older_messages_that_exceed_the_models_context_are_left_out,
    a_message_that_is_too_long_by_itself_fails_with_advice,
    a_refused_picture_is_named_and_stays_out_of_later_requests,
    a_picture_is_named_if_the_provider_takes_the_request_without_it,
    a_refused_picture_of_an_earlier_message_is_left_out_with_a_warning,
    a_refusal_that_files_do_not_explain_blames_none,
    the_reason_of_a_refusal_has_a_code_and_shows_no_secret,
);

/// An answer of the provider.
enum Judgement {
    Text(&'static str),
    Call,
    Silence,
    Refusal(u16, Value),
}

/// A provider that judges each request, and keeps it.
struct JudgingProvider {
    base_url: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl JudgingProvider {
    /// Starts a provider. `judge` gets each request and its number from 1.
    async fn start(judge: impl Fn(&Value, usize) -> Judgement + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, judge) = (Arc::clone(&requests), Arc::new(judge));
        let app = Router::new().fallback(move |Json(body): Json<Value>| {
            let (seen, judge) = (Arc::clone(&seen), Arc::clone(&judge));
            async move {
                let mut seen = seen.lock().unwrap();
                seen.push(body);
                stream_of(judge(seen.last().unwrap(), seen.len()))
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { base_url, requests }
    }

    fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }

    fn asked_by(&self, deployment: Deployment) -> Deployment {
        deployment
            .with("CHAT_MODEL_PROVIDER", "openai")
            .with("CHAT_MODEL_NAME", "gpt-4o")
            .with("OPENAI_BASE_URL", &self.base_url)
            .with("OPENAI_API_KEY", "secret-key")
    }
}

fn stream_of(reply: Judgement) -> impl IntoResponse {
    let call =
        json!([{"index": 0, "id": "c", "type": "function", "function": {"name": "kb__look", "arguments": "{}"}}]);
    let (delta, reason) = match reply {
        Judgement::Refusal(status, body) => {
            let headers = [("content-type", "application/json")];
            return (StatusCode::from_u16(status).unwrap(), headers, body.to_string());
        }
        Judgement::Text(text) => (json!({"content": text}), "stop"),
        Judgement::Call => (json!({"tool_calls": call}), "tool_calls"),
        Judgement::Silence => (json!({"content": ""}), "stop"),
    };
    let chunks = [
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 1}}),
    ];
    let body = chunks.map(|chunk| format!("data: {chunk}\n\n")).concat() + "data: [DONE]\n\n";
    (StatusCode::OK, [("content-type", "text/event-stream")], body)
}

fn refusal(status: u16, message: &str) -> Judgement {
    Judgement::Refusal(status, json!({"error": {"message": message, "type": "invalid_request_error"}}))
}

/// Refuses a request beyond this number of bytes, as a model with a small context does.
fn too_long(body: &Value, bytes: usize) -> Option<Judgement> {
    let error = json!({"error": {"message": "no", "code": "context_length_exceeded"}});
    (body["messages"].to_string().len() > bytes).then_some(Judgement::Refusal(400, error))
}

/// Starts a conversation, and returns its path and its run.
async fn open(client: &Client, input: Value) -> (String, Value) {
    let accepted = client.post("/v1/runs", json!({"input": input})).await.unwrap();
    let path = format!("/v1/conversations/{}/messages", accepted["conversation"]["id"].as_str().unwrap());
    (path, client.wait_for_run(accepted["run"]["id"].as_str().unwrap()).await)
}

async fn say(client: &Client, path: &str, content: Value) -> Value {
    let accepted = client.post(path, json!({"content": content})).await.unwrap();
    client.wait_for_run(accepted["run"]["id"].as_str().unwrap()).await
}

async fn warnings(client: &Client, run: &Value) -> Vec<String> {
    let frames = client.events(run["id"].as_str().unwrap(), None).await.rest().await;
    of_kind(&frames, "warning.raised").iter().map(|warning| warning["code"].as_str().unwrap().to_owned()).collect()
}

fn code(run: &Value) -> &str {
    run["error"]["code"].as_str().unwrap_or_default()
}

async fn a_model_that_says_nothing_is_asked_once_more(deployment: Deployment) {
    let provider =
        JudgingProvider::start(|_, n| if n == 1 { Judgement::Silence } else { Judgement::Text("Aye.") }).await;
    let mut deployment = provider.asked_by(deployment);
    let client = deployment.client();
    let (_, run) = open(&client, json!("hello")).await;
    assert_eq!((&run["status"], &run["output_message"]["content"]), (&json!("completed"), &json!("Aye.")));
    assert_eq!((provider.requests().len(), &run["usage"]["input_tokens"]), (2, &json!(14)), "both answers cost tokens");
    assert!(warnings(&client, &run).await.is_empty());
}

async fn a_model_that_says_nothing_twice_leaves_a_warning(deployment: Deployment) {
    let silent = |body: &Value, _| {
        let is_silent =
            body["messages"].to_string().contains("hello") && !body["messages"].to_string().contains("again");
        if is_silent { Judgement::Silence } else { Judgement::Text("Aye.") }
    };
    let provider = JudgingProvider::start(silent).await;
    let mut deployment = provider.asked_by(deployment);
    let client = deployment.client();
    let (path, run) = open(&client, json!("hello")).await;
    assert_eq!((&run["status"], provider.requests().len()), (&json!("completed"), 2));
    assert_eq!(warnings(&client, &run).await, ["empty_answer"]);
    assert_eq!(say(&client, &path, json!("again")).await["status"], "completed");
    let requests = provider.requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap();
    let is_blank = |message: &Value| message["content"].as_str().is_some_and(|text| text.trim().is_empty());
    assert!(!messages.iter().any(is_blank), "no blank answer goes back: {messages:?}");
}

async fn results_that_exceed_the_models_context_are_shortened(deployment: Deployment) {
    let judge = |body: &Value, n| {
        too_long(body, 16_000).unwrap_or(if n < 16 { Judgement::Call } else { Judgement::Text("Aye.") })
    };
    let provider = JudgingProvider::start(judge).await;
    let tools = ToolServer::returning(json!([{"type": "text", "text": "y".repeat(3_000)}])).await;
    let mut deployment = provider.asked_by(deployment);
    let client = deployment.client();
    let effects = json!({"tools": {"kb__look": {"effect": "read_only"}}, "limits": {"max_tool_calls": 30}});
    let id = agent(&client, json!([tools.describe()]), effects).await;
    let frames = frames_of(&client, &id, "look").await;
    assert_eq!(frames.last().unwrap().event, "run.completed", "{:?}", frames.last().unwrap().data);
    let told: Vec<&Value> = of_kind(&frames, "warning.raised").iter().map(|warning| &warning["code"]).collect();
    assert_eq!(told, ["context_shortened"], "once");
    let requests = provider.requests();
    let refused = requests.iter().filter(|body| too_long(body, 16_000).is_some()).count();
    assert!((1..=2).contains(&refused), "{refused} of {} requests were too long", requests.len());
    let last = requests.last().unwrap()["messages"].to_string();
    assert!(last.contains("[cut: the first 500 of 3000 characters]") && last.contains(&"y".repeat(3_000)));
}

async fn older_messages_that_exceed_the_models_context_are_left_out(deployment: Deployment) {
    let judge = |body: &Value, _| too_long(body, 10_000).unwrap_or(Judgement::Text("Aye."));
    let provider = JudgingProvider::start(judge).await;
    let mut deployment = provider.asked_by(deployment);
    let client = deployment.client();
    let (path, run) = open(&client, json!("first ".repeat(700))).await;
    assert_eq!(run["status"], "completed");
    assert_eq!(say(&client, &path, json!("second ".repeat(600))).await["status"], "completed");
    let run = say(&client, &path, json!("third ".repeat(700))).await;
    assert_eq!((&run["status"], code(&run)), (&json!("completed"), ""));
    assert_eq!(warnings(&client, &run).await, ["context_shortened"]);
    let last = newest_question(&provider);
    assert!(!last.contains("first") && last.contains("third"));

    // The summary after the answer has the messages that were left out, and the next question keeps to the length that is known now.
    let refused = provider.requests().iter().filter(|body| too_long(body, 10_000).is_some()).count();
    let run = say(&client, &path, json!("fourth")).await;
    assert_eq!((&run["status"], warnings(&client, &run).await), (&json!("completed"), Vec::new()));
    let last = newest_question(&provider);
    assert!(last.contains("[Summary of the conversation so far]\\nAye.") && last.contains("third"), "{last}");
    assert!(!last.contains("first") && !last.contains("second"));
    assert_eq!(provider.requests().iter().filter(|body| too_long(body, 10_000).is_some()).count(), refused);
}

/// Returns the messages of the newest request for an answer.
fn newest_question(provider: &JudgingProvider) -> String {
    let mut requests = provider.requests().into_iter().map(|body| body["messages"].to_string());
    requests.rfind(|messages| !messages.contains("Summarise our")).unwrap()
}

async fn a_message_that_is_too_long_by_itself_fails_with_advice(deployment: Deployment) {
    let judge = |body: &Value, _| too_long(body, 2_000).unwrap_or(Judgement::Text("Aye."));
    let provider = JudgingProvider::start(judge).await;
    let mut deployment = provider.asked_by(deployment);
    let client = deployment.client();
    let (path, run) = open(&client, json!("long ".repeat(1_000))).await;
    assert_eq!(code(&run), "model_context_exceeded");
    let message = run["error"]["message"].as_str().unwrap();
    assert!(message.contains("shorten it"), "{message}");
    assert_eq!(provider.requests().len(), 1, "nothing is left to shorten");
    let run = say(&client, &path, json!("short")).await;
    assert_eq!((&run["status"], &run["output_message"]["content"]), (&json!("completed"), &json!("Aye.")));
}

fn shows_picture(body: &Value) -> bool {
    body["messages"].to_string().contains("image_url")
}

async fn picture(client: &Client, text: &str) -> Value {
    let file = upload(client, "pier.png", PIXEL).await;
    json!([{"type": "text", "text": text}, {"type": "image", "file_id": file["id"]}])
}

async fn a_refused_picture_is_named_and_stays_out_of_later_requests(deployment: Deployment) {
    check_named_and_left_out(deployment, "Could not process image", 1).await;
}

async fn a_picture_is_named_if_the_provider_takes_the_request_without_it(deployment: Deployment) {
    check_named_and_left_out(deployment, "no", 2).await;
}

/// Checks the conversation after a message whose picture the provider refuses with these words, and the number of requests that
/// the message takes.
async fn check_named_and_left_out(deployment: Deployment, words: &'static str, requests: usize) {
    let judge = move |body: &Value, _| if shows_picture(body) { refusal(400, words) } else { Judgement::Text("Four.") };
    let provider = JudgingProvider::start(judge).await;
    let mut deployment = provider.asked_by(deployment);
    let client = deployment.client();
    let (path, run) = open(&client, picture(&client, "look").await).await;
    assert_eq!((code(&run), provider.requests().len()), ("file_refused", requests));
    assert!(run["error"]["message"].as_str().unwrap().contains("the file \"pier.png\""), "{run}");
    let run = say(&client, &path, json!("forget it: what is 2 + 2?")).await;
    assert_eq!((&run["status"], &run["output_message"]["content"]), (&json!("completed"), &json!("Four.")));
    assert_eq!(provider.requests().len(), requests + 1, "the file is left out at once");
    let messages = provider.requests().last().unwrap()["messages"].to_string();
    assert!(messages.contains("[The file pier.png (image/png, "), "{messages}");
    assert!(messages.contains("is left out: the model cannot read it]"), "{messages}");
}

async fn a_refused_picture_of_an_earlier_message_is_left_out_with_a_warning(deployment: Deployment) {
    let judge =
        |body: &Value, n| if n > 1 && shows_picture(body) { refusal(400, "no") } else { Judgement::Text("Four.") };
    let provider = JudgingProvider::start(judge).await;
    let mut deployment = provider.asked_by(deployment);
    let client = deployment.client();
    let (path, run) = open(&client, picture(&client, "look").await).await;
    assert_eq!(run["status"], "completed");
    let run = say(&client, &path, json!("what is 2 + 2?")).await;
    assert_eq!((&run["status"], &run["output_message"]["content"]), (&json!("completed"), &json!("Four.")));
    assert_eq!(warnings(&client, &run).await, ["file_refused"]);
    let run = say(&client, &path, json!("and 3 + 1?")).await;
    assert!(warnings(&client, &run).await.is_empty());
    assert_eq!(provider.requests().len(), 4, "the third message has no refused request");
}

async fn a_refusal_that_files_do_not_explain_blames_none(deployment: Deployment) {
    let judge = |body: &Value, _| {
        let is_bad = body["messages"].to_string().contains("BAD");
        if is_bad { refusal(400, "no") } else { Judgement::Text("A pixel.") }
    };
    let provider = JudgingProvider::start(judge).await;
    let mut deployment = provider.asked_by(deployment);
    let client = deployment.client();
    let (_, run) = open(&client, picture(&client, "BAD").await).await;
    assert_eq!((code(&run), provider.requests().len()), ("model_refused", 2));
    let (_, run) = open(&client, picture(&client, "good").await).await;
    assert_eq!(run["status"], "completed", "the model still sees pictures");
}

async fn the_reason_of_a_refusal_has_a_code_and_shows_no_secret(deployment: Deployment) {
    let judge = |body: &Value, _| {
        let text = body["messages"].to_string();
        let said = |word: &str| text.rsplit("\"content\"").next().unwrap().contains(word);
        if said("key") {
            refusal(401, "Incorrect API key provided: secret-key")
        } else if said("credit") {
            Judgement::Refusal(429, json!({"error": {"message": "pay", "code": "insufficient_quota"}}))
        } else if said("model") {
            Judgement::Refusal(404, json!({"error": {"message": "no", "code": "model_not_found"}}))
        } else {
            refusal(403, "Country, region, or territory not supported")
        }
    };
    let provider = JudgingProvider::start(judge).await;
    let mut deployment = provider.asked_by(deployment);
    let client = deployment.client();
    for (text, expected, words) in [
        (
            "key",
            "model_key_refused",
            "OpenAI refused the server's key (Incorrect API key provided: [key] (status 401))",
        ),
        ("credit", "model_no_credit", "account at OpenAI has no credit (pay (status 429))"),
        ("model", "model_not_found", "OpenAI does not offer the model \"gpt-4o\""),
        ("region", "model_region_refused", "OpenAI does not serve the server's region"),
    ] {
        let (_, run) = open(&client, json!(text)).await;
        assert_eq!(code(&run), expected);
        let message = run["error"]["message"].as_str().unwrap();
        assert!(message.contains(words) && !message.contains("secret-key"), "{message}");
    }
    assert_eq!(provider.requests().len(), 4, "none of them is tried again");
}

async fn only_operators_read_a_providers_words(deployment: Deployment) {
    let deployment = deployment.own();
    let words = "Incorrect API key provided: secret-key. See account org-1234";
    let provider = JudgingProvider::start(move |_, _| refusal(401, words)).await;
    let mut deployment = provider.asked_by(deployment).with("HOLDFAST_JWT_KEY", SECRET);
    let client = deployment.client();
    let failed = async |claims: Value| {
        let client = client.token(&token(&claims));
        let (path, run) = open(&client, json!("hi")).await;
        let events = client.events(run["id"].as_str().unwrap(), None).await.rest().await;
        let events: String = events.iter().map(|frame| frame.raw.clone()).collect();
        let mut others = vec![json!(events)];
        for path in ["/v1/runs", path.as_str(), "/v1/users/me"] {
            others.push(client.get(path).await.unwrap());
        }
        let waited = client.get(&format!("/v1/runs/{}/wait", run["id"].as_str().unwrap())).await.unwrap();
        assert_eq!(waited, run);
        (run, json!(others).to_string())
    };
    for (caller, is_operator) in
        [(claims("ann", json!({})), false), (claims("olga", json!({"role": "operator"})), true)]
    {
        let (run, others) = failed(caller).await;
        let sentence = json!({"code": "model_key_refused", "message": "OpenAI refused the server's key"});
        assert_eq!(run["error"], sentence);
        let details = "the credentials for openai model \"gpt-4o\" are refused: \
            Incorrect API key provided: [key]. See account org-1234 (status 401)";
        assert_eq!(run.get("error_details"), is_operator.then(|| json!(details)).as_ref());
        assert!(!others.contains("org-1234") && !others.contains("secret-key"), "{others}");
    }
    let log = deployment.log();
    assert!(log.contains("See account org-1234") && !log.contains("secret-key"), "{log}");
}
