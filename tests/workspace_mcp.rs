//! The workspace for other programs, by the Model Context Protocol.

use reqwest::Method;
use rmcp::{
    ServiceExt,
    model::CallToolRequestParams,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};

use crate::{
    in_either_mode,
    support::{Client, ClientProgram, Deployment, answer},
};

in_either_mode!(
    the_client_of_rmcp_uses_the_workspace,
    the_sdk_of_the_protocol_uses_the_workspace,
    the_conformance_suite_passes_where_it_applies,
    plain_json_rpc_needs_no_handshake,
    a_program_sees_its_callers_workspace_alone,
);

async fn project(client: &Client) -> Value {
    client.post("/v1/workspace/projects", json!({"name": "Harbour"})).await.unwrap()["id"].clone()
}

async fn the_client_of_rmcp_uses_the_workspace(mut deployment: Deployment) {
    let client = deployment.client();
    let project = project(&client).await;
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", client.base()));
    let session = ().serve(StreamableHttpClientTransport::from_config(config)).await.unwrap();
    let tools = session.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 38);
    let arguments = json!({"project_id": project, "title": "Measure the tide"}).as_object().unwrap().clone();
    let call = CallToolRequestParams::new("create_onto_task").with_arguments(arguments);
    let result = session.call_tool(call).await.unwrap();
    let structured = result.structured_content.unwrap();
    assert_eq!(structured["entitiesAccessed"][0]["name"], "Measure the tide");
    let tasks = client.get("/v1/workspace/tasks").await.unwrap();
    assert_eq!(tasks["items"][0]["title"], "Measure the tide");
    session.cancel().await.unwrap();
}

async fn the_sdk_of_the_protocol_uses_the_workspace(mut deployment: Deployment) {
    let client = deployment.client();
    let parameters = json!({"project": project(&client).await});
    let (reports, _) = ClientProgram::start("mcp", client.base(), parameters).await.rest().await;
    assert_eq!(reports[0]["tools"].as_array().unwrap().len(), 38);
    let texts: Vec<&str> = reports[1..].iter().map(|report| report["text"].as_str().unwrap()).collect();
    assert!(texts[0].contains("Call the harbour master (todo)"), "{}", texts[0]);
    assert_eq!(reports[2]["entities"].as_array().unwrap().len(), 2, "{}", texts[1]);
    assert!(texts[2].contains("merge_llm needs a model"), "{}", texts[2]);
    assert!(texts[3].contains("priority"), "{}", texts[3]);
    assert_eq!((&reports[3]["isError"], &reports[4]["isError"]), (&json!(true), &json!(true)));
}

/// The scenarios of the suite that apply; docs/mcp.md says why the others do not.
const SCENARIOS: [&str; 7] = [
    "server-initialize",
    "ping",
    "completion-complete",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
];

async fn the_conformance_suite_passes_where_it_applies(mut deployment: Deployment) {
    let client = deployment.client();
    let program = ClientProgram::start("mcp", client.base(), json!({"scenarios": SCENARIOS})).await;
    let (reports, _) = program.rest().await;
    assert_eq!(reports.len(), SCENARIOS.len());
    for report in reports {
        assert_eq!(report["passed"], true, "{report:#}");
    }
}

async fn rpc(client: &Client, message: Value) -> Value {
    answer(client.request(Method::POST, "/mcp/rpc").json(&message)).await.unwrap()
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

async fn plain_json_rpc_needs_no_handshake(mut deployment: Deployment) {
    let client = deployment.client();
    let listed = rpc(&client, json!({"jsonrpc": "2.0", "id": "a", "method": "tools/list"})).await;
    assert_eq!((listed["result"]["tools"].as_array().unwrap().len(), &listed["id"]), (38, &json!("a")));
    let search = listed["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "search_ontology");
    let facts = &search.unwrap()["_meta"]["holdfast/tool"];
    assert_eq!((&facts["category"], facts["contexts"].as_array().unwrap().len()), (&json!("search"), 4));
    let created = rpc(&client, call("create_onto_project", json!({"name": "Harbour"}))).await;
    assert_eq!(created["result"]["isError"], false);
    let unknown = rpc(&client, call("sink_ship", json!({}))).await;
    assert_eq!(unknown["error"]["code"], -32602);
    let project = created["result"]["structuredContent"]["entitiesAccessed"][0]["id"].clone();
    let task = json!({"project_id": project, "title": "Call", "due_at": "2026-12-01", "description": null});
    let task = rpc(&client, call("create_onto_task", task)).await;
    let task = task["result"]["structuredContent"]["entitiesAccessed"][0]["id"].clone();
    let cleared = rpc(&client, call("update_onto_task", json!({"task_id": task, "due_at": null}))).await;
    assert_eq!(
        cleared["result"]["content"][0]["text"],
        format!("Updated:\n- task {}: Call (todo)", task.as_str().unwrap())
    );
    let wrong = rpc(&client, call("list_onto_tasks", json!({"limit": "many"}))).await;
    assert_eq!(wrong["result"]["isError"], true);
    let unconfigured = rpc(&client, call("web_search", json!({"query": "tide"}))).await;
    assert!(unconfigured["result"]["content"][0]["text"].as_str().unwrap().contains("no provider"));
    let handshake = json!({
        "jsonrpc": "2.0", "id": 2, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    });
    assert_eq!(rpc(&client, handshake).await["result"]["serverInfo"]["name"], "holdfast");
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let noted = client.request(Method::POST, "/mcp/rpc").json(&notice).send().await.unwrap();
    assert_eq!(noted.status(), 202);
    for (body, code) in [("{", -32700), ("[]", -32600), ("{\"id\": 1}", -32600)] {
        let refused = client.request(Method::POST, "/mcp/rpc").header("content-type", "application/json").body(body);
        let refused = refused.send().await.unwrap();
        assert_eq!(refused.status(), 400);
        assert_eq!(refused.json::<Value>().await.unwrap()["error"]["code"], code, "{body}");
    }
    // A form of any page may send these types.
    for path in ["/mcp", "/mcp/rpc"] {
        for media_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
            let body = call("list_onto_tasks", json!({})).to_string();
            let request = client.request(Method::POST, path).header("content-type", media_type);
            let refused =
                request.header("accept", "application/json, text/event-stream").body(body).send().await.unwrap();
            assert_eq!(refused.status(), 415, "{path} {media_type}");
        }
    }
    assert_eq!(answer(client.request(Method::GET, "/mcp")).await.unwrap_err().status, 405);
}

async fn a_program_sees_its_callers_workspace_alone(mut deployment: Deployment) {
    let ann = deployment.client().user("ann");
    let bob = ann.user("bob");
    let project = project(&ann).await;
    let read = call("get_onto_project_details", json!({"project_id": project}));
    assert!(rpc(&ann, read.clone()).await["result"]["content"][0]["text"].as_str().unwrap().contains("Harbour"));
    let refused = rpc(&bob, read).await;
    let expected = format!("not_found: there is no project {}", project.as_str().unwrap());
    assert_eq!(refused["result"]["content"][0]["text"], expected);
}
