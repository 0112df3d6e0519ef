//! Checks of definitions before they are stored: the model is asked once, each MCP server lists its tools, and the answer names
//! what does not work.

use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    in_both_modes, in_either_mode,
    support::{Client, Deployment, ScaledOut, tools::ToolServer, until, upstream::TestUpstream},
};

in_both_modes!(
    a_definition_that_works_has_no_problems_and_is_not_stored,
    each_problem_has_its_field_a_code_and_the_reason_without_secrets,
);

in_either_mode!(a_second_check_of_a_model_waits_for_the_first, a_definition_that_cannot_be_stored_is_refused_alike);

fn asking(deployment: Deployment, base_url: &str) -> Deployment {
    deployment
        .with("CHAT_MODEL_PROVIDER", "openai")
        .with("CHAT_MODEL_NAME", "gpt-4o")
        .with("OPENAI_BASE_URL", base_url)
        .with("OPENAI_API_KEY", "secret-key")
}

async fn check(client: &Client, definition: Value) -> Value {
    client.post("/v1/agents/check", definition).await.unwrap()
}

async fn a_definition_that_works_has_no_problems_and_is_not_stored(deployment: Deployment) {
    let (provider, server) = (TestUpstream::start(&["Yes"]).await, ToolServer::start().await);
    let mut deployment = asking(deployment, &provider.base_url);
    let client = deployment.client();
    let definition = json!({"name": "a", "model": {"max_tokens": 9000}, "mcp_servers": [server.describe()]});
    assert_eq!(check(&client, definition).await, json!({"ok": true, "problems": []}));
    let requests = provider.requests();
    assert_eq!((requests.len(), &requests[0]["max_tokens"]), (1, &json!(16)), "{requests:?}");
    assert!(!server.has_arrivals(), "no tool was called");
    let agents = client.get("/v1/agents").await.unwrap();
    assert!(agents["items"].as_array().unwrap().iter().all(|agent| agent["origin"] == "builtin"), "{agents}");
    assert_eq!(client.get("/v1/conversations").await.unwrap()["items"], json!([]));
}

async fn each_problem_has_its_field_a_code_and_the_reason_without_secrets(deployment: Deployment) {
    let deployment = deployment.own();
    let provider = TestUpstream::refusing("yes", &[]).await;
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let server = ToolServer::start().await;
    let mut deployment = asking(deployment, &provider.base_url);
    let client = deployment.client();
    let away = json!({"name": "away", "transport": "rpc", "url": format!("http://{unused}/"),
        "auth": {"bearer": "hunter2hunter2"}});
    let definition = json!({"name": "a", "mcp_servers": [server.describe(), away]});
    let report = check(&client, definition.clone()).await;
    let problems: Vec<_> = report["problems"].as_array().unwrap().iter().collect();
    let places: Vec<_> = problems.iter().map(|problem| (&problem["field"], &problem["code"])).collect();
    let expected =
        [("model", "model_refused"), ("mcp_servers.away", "server_unavailable")].map(|(f, c)| (json!(f), json!(c)));
    assert_eq!((&report["ok"], places), (&json!(false), expected.iter().map(|(f, c)| (f, c)).collect()));
    let words = problems.iter().map(|problem| problem["message"].as_str().unwrap()).collect::<Vec<_>>();
    assert!(words[0].contains("refused") && words[1].contains("could not be reached"), "{words:?}");
    for secret in ["secret-key", "hunter2"] {
        assert!(!report.to_string().contains(secret) && !deployment.log().contains(secret), "{secret} is shown");
    }
}

async fn a_second_check_of_a_model_waits_for_the_first(deployment: Deployment) {
    let provider = TestUpstream::with_permits(&["Yes"]).await;
    let mut deployment = asking(deployment, &provider.base_url);
    let client = deployment.client();
    let first = tokio::spawn({
        let client = client.clone();
        async move { check(&client, json!({"name": "a"})).await }
    });
    until("the first check", || async { (!provider.requests().is_empty()).then_some(()) }).await;
    let refused = client.post("/v1/agents/check", json!({"name": "b"})).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (429, "too_many_checks"));
    provider.permit_words(9);
    assert_eq!(first.await.unwrap()["ok"], true);
    assert_eq!(check(&client, json!({"name": "b"})).await["ok"], true);
}

async fn a_definition_that_cannot_be_stored_is_refused_alike(mut deployment: Deployment) {
    let client = deployment.client();
    let stdio = json!({"name": "a", "mcp_servers": [{"name": "s", "transport": "stdio", "command": "true"}]});
    for (definition, status, code) in [
        (stdio, 403, "stdio_not_allowed"),
        (json!({"name": ""}), 400, "invalid_agent"),
        (json!({"name": "a", "model": {"profile": "none"}}), 400, "invalid_agent"),
        (json!({"name": "a", "colour": "red"}), 400, "invalid_body"),
    ] {
        for path in ["/v1/agents", "/v1/agents/check"] {
            let refused = client.post(path, definition.clone()).await.unwrap_err();
            assert_eq!((refused.status, refused.code.as_str()), (status, code), "{path} {definition}");
        }
    }
}

#[tokio::test]
async fn of_two_workers_one_makes_a_check_and_without_a_worker_there_is_none() {
    let provider = TestUpstream::start(&["Yes"]).await;
    let scaled = ScaledOut::new()
        .with("CHAT_MODEL_PROVIDER", "openai")
        .with("CHAT_MODEL_NAME", "gpt-4o")
        .with("OPENAI_BASE_URL", &provider.base_url)
        .with("OPENAI_API_KEY", "secret-key");
    let mut api = scaled.api();
    let client = api.client();
    let refused = client.post("/v1/agents/check", json!({"name": "a"})).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (503, "no_worker"));
    let _workers = [scaled.worker(), scaled.worker()];
    assert_eq!(check(&client, json!({"name": "a"})).await["ok"], true);
    assert_eq!(provider.requests().len(), 1);
}
