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
    the_official_client_reads_all_of_a_result_as_fields,
    only_the_revision_with_batches_takes_them,
    what_is_declared_answers,
    pages_of_other_origins_are_refused,
    a_refused_client_learns_where_tokens_come_from,
);

async fn project(client: &Client) -> Value {
    client.post("/v1/workspace/projects", json!({"name": "Harbour"})).await.unwrap()["id"].clone()
}

async fn the_client_of_rmcp_uses_the_workspace(deployment: Deployment) {
    let mut deployment = deployment.own();
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
    assert_eq!((&structured["done"], &structured["items"][0]["name"]), (&json!("created"), &json!("Measure the tide")));
    assert_eq!(result.meta.unwrap()["entitiesAccessed"][0]["name"], "Measure the tide");
    let tasks = client.get("/v1/workspace/tasks").await.unwrap();
    assert_eq!(tasks["items"][0]["title"], "Measure the tide");
    session.cancel().await.unwrap();
}

async fn the_sdk_of_the_protocol_uses_the_workspace(deployment: Deployment) {
    let mut deployment = deployment.own();
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

async fn the_conformance_suite_passes_where_it_applies(deployment: Deployment) {
    let mut deployment = deployment.own();
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
    let project = created["result"]["_meta"]["entitiesAccessed"][0]["id"].clone();
    let task = json!({"project_id": project, "title": "Call", "due_at": "2026-12-01", "description": null});
    let task = rpc(&client, call("create_onto_task", task)).await;
    let task = task["result"]["structuredContent"]["items"][0]["id"].clone();
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

async fn the_official_client_reads_all_of_a_result_as_fields(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let calls = json!([
        ["create_onto_project", {"name": "Harbour", "goals": [{"name": "Calm", "key": "calm"}], "tasks": [{"title": "Call", "priority": 2}],
            "relationships": [{"from": "calm", "relation": "supports", "to": "project"}]}],
        ["list_onto_tasks", {}],
        ["list_onto_tasks", {"state": "done"}],
        ["get_onto_project_details", {"project_id": "{0}"}],
        ["search_ontology", {"query": "harbuor"}],
        ["get_entity_relationships", {"entity_id": "{0}"}],
        ["list_onto_templates", {}],
        ["create_onto_document", {"project_id": "{0}", "title": "Log", "body": "é".repeat(3000)}],
        ["get_field_info", {"entity_type": "task"}],
        ["get_buildos_overview", {}],
        ["web_search", {"query": "tide"}],
        ["delete_onto_task", {"task_id": "{1}"}],
    ]);
    for mode in ["legacy", "auto"] {
        let program = ClientProgram::start("mcp-python", client.base(), json!({"mode": mode, "calls": calls})).await;
        let (reports, _) = program.rest().await;
        assert_eq!(reports[0], json!({"tools": 38, "without_schema": []}), "{mode}");
        assert!(reports[1..].iter().all(|report| report["is_error"] == false), "{reports:#?}");
        let fields: Vec<&Value> = reports[1..].iter().map(|report| &report["fields"]).collect();
        assert_eq!((&fields[0]["done"], &fields[0]["relations"].as_array().unwrap().len()), (&json!("created"), &1));
        let task = &fields[1]["items"][0];
        assert_eq!((&task["name"], &task["state"], &task["priority"]), (&json!("Call"), &json!("todo"), &json!(2)));
        assert_eq!(fields[2], &json!({"items": []}));
        let contents = fields[3]["contents"].as_array().unwrap();
        assert_eq!(
            (&fields[3]["entity"]["name"], &contents[0]["items"][0]["name"]),
            (&json!("Harbour"), &json!("Call"))
        );
        assert_eq!(fields[4]["items"][0]["name"], "Harbour");
        assert_eq!(
            (&fields[5]["items"][0]["from"]["name"], &fields[5]["items"][0]["relation"]),
            (&json!("Calm"), &json!("supports"))
        );
        assert!(
            fields[6]["items"]
                .as_array()
                .unwrap()
                .iter()
                .any(|template| template["template_key"] == "software_product")
        );
        for text_only in [8, 9] {
            assert_eq!(fields[text_only]["text"], reports[text_only + 1]["text"]);
        }
        assert!(fields[10]["note"].as_str().unwrap().contains("no provider"), "{}", fields[10]);
        assert_eq!((&fields[11]["done"], &reports[12]["entities"][0]["name"]), (&json!("deleted"), &json!("Call")));
    }
}

async fn only_the_revision_with_batches_takes_them(mut deployment: Deployment) {
    let client = deployment.client();
    let send = async |revision: Option<&str>, batch: Value| {
        let request = client.request(Method::POST, "/mcp").header("accept", "application/json, text/event-stream");
        let request = revision.into_iter().fold(request, |request, one| request.header("mcp-protocol-version", one));
        let response = request.json(&batch).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap_or_default())
    };
    let ping = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for revision in [None, Some("2025-03-26")] {
        let batch = json!([ping(1), notice, call("list_onto_tasks", json!({})), {"id": 3}, ping(2)]);
        let (status, answers) = send(revision, batch).await;
        let ids: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
        assert_eq!((status, ids), (200, vec![&json!(1), &json!(1), &Value::Null, &json!(2)]), "{answers}");
        assert_eq!(answers[1]["result"]["structuredContent"], json!({"items": []}));
        assert_eq!(answers[2]["error"]["code"], -32600);
        assert_eq!(send(revision, json!([notice])).await.0, 202);
    }
    let handshake = json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {}});
    for (revision, batch, words) in [
        (Some("2025-06-18"), json!([ping(1)]), "the revision 2025-06-18 has no batches"),
        (Some("2025-11-25"), json!([ping(1)]), "the revision 2025-11-25 has no batches"),
        (None, json!([]), "1 to 50 messages, not 0"),
        (None, json!((0..51).map(ping).collect::<Vec<_>>()), "1 to 50 messages, not 51"),
        (None, json!([handshake]), "initialize is not part of a batch"),
    ] {
        let (status, refused) = send(revision, batch).await;
        assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32600)), "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(words), "{refused}");
    }
}

async fn what_is_declared_answers(mut deployment: Deployment) {
    let client = deployment.client();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let parameters = json!({
            "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}
        });
        let handshake = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters});
        let server = rpc(&client, handshake).await;
        assert_eq!(server["result"]["protocolVersion"], revision);
        assert_eq!(server["result"]["capabilities"], json!({"tools": {}}), "{revision}");
    }
    let ask = async |method: &str, parameters: Value| {
        rpc(&client, json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters})).await
    };
    assert_eq!(ask("tools/list", json!({})).await["result"]["tools"].as_array().unwrap().len(), 38);
    assert_eq!(ask("ping", json!({})).await["result"], json!({}));
    for (method, parameters) in [
        ("resources/read", json!({"uri": "a://b"})),
        ("resources/subscribe", json!({"uri": "a://b"})),
        ("prompts/get", json!({"name": "a"})),
        ("logging/setLevel", json!({"level": "info"})),
    ] {
        assert_eq!(ask(method, parameters).await["error"]["code"], -32601, "{method} is not declared");
    }
}

async fn pages_of_other_origins_are_refused(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_CORS_ORIGINS", "https://front.example");
    let client = deployment.client();
    let own = client.base().to_owned();
    for path in ["/mcp", "/mcp/rpc"] {
        for (origin, status) in
            [("https://evil.example", 403), ("null", 403), ("https://front.example", 200), (own.as_str(), 200)]
        {
            let request = client.request(Method::POST, path).header("origin", origin);
            let request = request.header("accept", "application/json, text/event-stream");
            let response = request.json(&call("list_onto_tasks", json!({}))).send().await.unwrap();
            assert_eq!(response.status(), status, "{path} {origin}");
        }
    }
}

async fn a_refused_client_learns_where_tokens_come_from(deployment: Deployment) {
    let mut deployment = deployment
        .with("HOLDFAST_JWT_KEY", "k".repeat(32))
        .with("HOLDFAST_JWT_ISSUERS", "https://login.example=,inner=in")
        .with("HOLDFAST_ANONYMOUS", false);
    let client = deployment.client();
    for path in ["/mcp", "/mcp/rpc"] {
        let request = client.request(Method::POST, path).header("accept", "application/json, text/event-stream");
        let refused = request.json(&call("list_onto_tasks", json!({}))).send().await.unwrap();
        assert_eq!(refused.status(), 401);
        let challenge = refused.headers()["www-authenticate"].to_str().unwrap();
        let place = format!("{}/.well-known/oauth-protected-resource", client.base());
        assert_eq!(challenge, format!("Bearer resource_metadata=\"{place}\""));
    }
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let expected = json!({
            "resource": format!("{}/mcp", client.base()), "resource_name": "Holdfast",
            "bearer_methods_supported": ["header"], "authorization_servers": ["https://login.example"]
        });
        assert_eq!(client.get(path).await.unwrap(), expected);
    }
}
