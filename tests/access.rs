//! Which callers may use an agent, which callers may decide its approvals, and which tools receive the caller's name.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{
        Client, Deployment, ErrorResponse, of_kind, stream_of,
        tokens::{SECRET, claims, token},
        tools::ToolServer,
    },
};

in_both_modes!(
    an_agent_looks_unknown_to_callers_that_it_does_not_admit,
    an_agent_that_admits_fewer_than_before_takes_no_message_of_the_others,
    approvers_decide_and_the_owner_does_not,
    each_caller_finds_the_approvals_that_it_may_decide_and_no_others,
);

in_either_mode!(
    a_wire_that_finds_agents_by_name_tells_of_no_other_callers_agent,
    a_briefing_for_an_owner_that_the_agent_does_not_admit_is_refused,
    undeclared_tools_ask_anonymous_callers,
    a_server_learns_the_caller_only_where_its_definition_says_so,
);

/// A deployment that authenticates callers and has no rate limit.
fn with_authentication(deployment: Deployment) -> Deployment {
    deployment.with("HOLDFAST_JWT_KEY", SECRET).with("CHAT_RATE_LIMIT", 0)
}

fn user(client: &Client, subject: &str) -> Client {
    client.token(&token(&claims(subject, json!({}))))
}

fn operator_user(client: &Client) -> Client {
    client.token(&token(&claims("olga", json!({"role": "operator"}))))
}

async fn new_anonymous_user(client: &Client) -> Client {
    let made = client.post("/v1/users/anonymous", json!({})).await.unwrap();
    client.token(made["token"].as_str().unwrap())
}

/// Creates an agent; returns its id.
async fn create_agent(operator_user: &Client, more: Value) -> String {
    let mut definition = json!({"name": "helper"});
    definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    operator_user.post("/v1/agents", definition).await.unwrap()["id"].as_str().unwrap().to_owned()
}

/// Returns the statuses of all routes that show an agent or start its runs.
async fn statuses(client: &Client, agent_id: &str) -> Vec<(u16, String)> {
    let briefing = json!({"agent_id": agent_id, "title": "t", "summary": "s"});
    let chat = json!({"agentDefinitionId": agent_id, "message": "[tokens=1] hi"});
    let requests = [
        client.request(Method::GET, &format!("/v1/agents/{agent_id}")),
        client.request(Method::PUT, &format!("/v1/agents/{agent_id}/conversation")),
        client.request(Method::POST, "/v1/conversations").json(&json!({"agent_id": agent_id})),
        client.request(Method::POST, "/v1/runs").json(&json!({"agent_id": agent_id, "input": "[tokens=1] hi"})),
        client.request(Method::POST, "/v1/briefings").json(&briefing),
        client.request(Method::POST, "/api/chat/stream").json(&chat),
    ];
    let mut outcomes = Vec::new();
    for request in requests {
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body: Value = response.json().await.unwrap_or_default();
        outcomes.push((status, body["code"].as_str().unwrap_or_default().to_owned()));
    }
    outcomes
}

async fn an_agent_looks_unknown_to_callers_that_it_does_not_admit(mut deployment: Deployment) {
    deployment = with_authentication(deployment);
    let client = deployment.client();
    let olga = operator_user(&client);
    let (anonymous_user, ann, bob) = (new_anonymous_user(&client).await, user(&client, "ann"), user(&client, "bob"));
    let unknown = "00000000-0000-4000-8000-000000000000";
    for (access, is_admitted) in [
        (json!("everybody"), [true, true, true, true]),
        (json!("users"), [false, true, true, true]),
        (json!("operators"), [false, false, false, true]),
        (json!(["ann"]), [false, true, false, true]),
    ] {
        let agent_id = create_agent(&olga, json!({"access": access})).await;
        for (client, is_admitted) in [&anonymous_user, &ann, &bob, &olga].into_iter().zip(is_admitted) {
            let (outcomes, of_unknown) = (statuses(client, &agent_id).await, statuses(client, unknown).await);
            assert!(of_unknown.iter().all(|(_, code)| code == "agent_not_found"), "{of_unknown:?}");
            if is_admitted {
                assert!(outcomes.iter().all(|(status, _)| *status < 300), "{access}: {outcomes:?}")
            } else {
                assert_eq!(outcomes, of_unknown, "{access}")
            }
            let list = client.get("/v1/agents").await.unwrap();
            let is_listed = list["items"].as_array().unwrap().iter().any(|agent| agent["id"] == *agent_id);
            assert_eq!(is_listed, is_admitted, "{access}");
        }
    }
}

/// Returns the answers of all routes that find an agent by its name, without that name.
async fn answers_about(client: &Client, name: &str) -> Vec<(u16, String)> {
    let ag_ui = json!({"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "hi"}]});
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]});
    let a2a = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}});
    let requests = [
        client.request(Method::POST, &format!("/ag-ui/agents/{name}")).json(&ag_ui),
        client.request(Method::POST, &format!("/a2a/agents/{name}")).header("a2a-version", "1.0").json(&a2a),
        client.request(Method::GET, &format!("/a2a/agents/{name}/.well-known/agent-card.json")),
        client.request(Method::GET, &format!("/langgraph/assistants/{name}")),
        client.request(Method::POST, "/openai/v1/responses").json(&json!({"model": name, "input": "hi"})),
    ];
    let mut answers = Vec::new();
    for request in requests {
        let response = request.send().await.unwrap();
        answers.push((response.status().as_u16(), response.text().await.unwrap().replace(name, "…")));
    }
    answers
}

async fn a_wire_that_finds_agents_by_name_tells_of_no_other_callers_agent(mut deployment: Deployment) {
    deployment = with_authentication(deployment);
    let client = deployment.client();
    create_agent(&operator_user(&client), json!({"name": "hidden", "access": ["ann"]})).await;
    let bob = user(&client, "bob");
    assert_eq!(answers_about(&bob, "hidden").await, answers_about(&bob, "absent").await);
}

async fn an_agent_that_admits_fewer_than_before_takes_no_message_of_the_others(mut deployment: Deployment) {
    deployment = with_authentication(deployment);
    let client = deployment.client();
    let (olga, ann) = (operator_user(&client), user(&client, "ann"));
    let agent_id = create_agent(&olga, json!({})).await;
    let submission = ann.post("/v1/runs", json!({"agent_id": agent_id, "input": "[tokens=1] hi"})).await.unwrap();
    ann.wait_for_run(submission["run"]["id"].as_str().unwrap()).await;
    olga.patch(&format!("/v1/agents/{agent_id}"), json!({"access": "operators"})).await.unwrap();
    let again = json!({"conversation_id": submission["conversation"]["id"], "input": "[tokens=1] and now?"});
    let failure = ann.post("/v1/runs", again.clone()).await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (400, "agent_not_found"));
    olga.patch(&format!("/v1/agents/{agent_id}"), json!({"access": ["ann"]})).await.unwrap();
    ann.post("/v1/runs", again).await.unwrap();
}

async fn approvers_decide_and_the_owner_does_not(mut deployment: Deployment) {
    deployment = with_authentication(deployment);
    let client = deployment.client();
    let olga = operator_user(&client);
    let (ann, bob, carl) = (user(&client, "ann"), user(&client, "bob"), user(&client, "carl"));
    for (approvers, decider, name, outsider) in
        [(json!("operators"), &olga, "olga", &carl), (json!(["carl"]), &carl, "carl", &olga)]
    {
        let agent_id = create_agent(&olga, json!({"approvers": approvers})).await;
        let mut stream = stream_of(&ann, &agent_id, "[approval] [tokens=1]").await;
        let approval_id = stream.up_to("approval.requested").await;
        let approval_id = approval_id.last().unwrap().data["approval_id"].as_str().unwrap().to_owned();
        let path = format!("/v1/runs/{}/approvals", stream.run_id);
        let decide =
            async |client: &Client| client.post(&format!("{path}/{approval_id}"), json!({"decision": "approve"})).await;
        let refused = |result: Result<Value, ErrorResponse>| result.map_err(|failure| (failure.status, failure.code));
        assert_eq!(refused(decide(&ann).await).unwrap_err(), (403, "approver_needed".to_owned()));
        for client in [&bob, outsider] {
            assert_eq!(refused(decide(client).await).unwrap_err(), (404, "run_not_found".to_owned()));
            assert_eq!(refused(client.get(&path).await).unwrap_err(), (404, "run_not_found".to_owned()));
        }
        for (client, may_decide) in [(&ann, false), (decider, true)] {
            let found_approval = client.get(&path).await.unwrap();
            assert_eq!(
                (&found_approval["may_decide"], &found_approval["items"][0]["id"]),
                (&json!(may_decide), &json!(approval_id))
            );
        }
        // The response shows neither the owner's messages nor the answers.
        let decided = decide(decider).await.unwrap();
        assert_eq!([&decided["metadata"], &decided["usage"], &decided["output_message"]], [&Value::Null; 3]);
        assert_eq!(stream.rest().await.last().unwrap().event, "run.completed");
        assert_eq!(ann.get(&path).await.unwrap()["items"][0]["decided_by"], name);
    }
}

async fn each_caller_finds_the_approvals_that_it_may_decide_and_no_others(mut deployment: Deployment) {
    deployment = with_authentication(deployment);
    let client = deployment.client();
    let olga = operator_user(&client);
    let [ann, bob, carl] = ["ann", "bob", "carl"].map(|name| user(&client, name));
    let anonymous_user = new_anonymous_user(&client).await;
    let approvals =
        async |client: &Client| client.get("/v1/approvals").await.unwrap()["items"].as_array().unwrap().clone();
    assert!(approvals(&ann).await.is_empty());
    let mut requested = Vec::new();
    for (owner, definition) in [
        (&ann, json!({})),
        (&ann, json!({"approvers": "operators"})),
        (&ann, json!({"approvers": ["carl"]})),
        (&ann, json!({})),
        (&anonymous_user, json!({})),
    ] {
        let agent_id = create_agent(&olga, definition).await;
        let mut stream = stream_of(owner, &agent_id, "[approval] [tokens=1]").await;
        let approval = stream.up_to("agent.state").await;
        let approval = approval.iter().find(|frame| frame.event == "approval.requested").unwrap();
        requested.push((approval.data["approval_id"].clone(), agent_id, stream));
    }
    let ids = async |client: &Client| approvals(client).await.iter().map(|one| one["id"].clone()).collect::<Vec<_>>();
    let [own, of_operators, of_carl, own_too, of_anonymous] = [0, 1, 2, 3, 4].map(|index| requested[index].0.clone());
    assert_eq!(ids(&ann).await, [own.clone(), own_too.clone()], "an owner decides unless the agent names others");
    assert_eq!(ids(&olga).await, [of_operators]);
    assert_eq!(ids(&carl).await, [of_carl]);
    assert_eq!(ids(&anonymous_user).await, [of_anonymous]);
    assert!(ids(&bob).await.is_empty() && ids(&new_anonymous_user(&client).await).await.is_empty());

    let (mine, entrusted) = (approvals(&ann).await.remove(0), approvals(&carl).await.remove(0));
    assert!(mine["conversation_id"].is_string(), "{mine}");
    assert_eq!((&entrusted["agent_id"], &entrusted["conversation_id"]), (&json!(requested[2].1), &json!(null)));
    let of_the_run = format!("/v1/runs/{}/approvals", requested[2].2.run_id);
    let mut readable = carl.get(&of_the_run).await.unwrap()["items"][0].clone();
    for name in ["agent_id", "conversation_id"] {
        readable[name] = entrusted[name].clone();
    }
    assert_eq!(entrusted, readable, "the list tells an approver no more than the run does");

    let first = ann.get("/v1/approvals?limit=1").await.unwrap();
    assert_eq!(first["items"][0]["id"], own);
    let next = first["next"].as_str().unwrap();
    let second = ann.get(&format!("/v1/approvals?limit=1&cursor={next}")).await.unwrap();
    assert_eq!((&second["items"][0]["id"], &second["next"]), (&own_too, &json!(null)));
    ann.post(
        &format!("/v1/runs/{}/approvals/{}", requested[0].2.run_id, own.as_str().unwrap()),
        json!({"decision": "deny"}),
    )
    .await
    .unwrap();
    assert_eq!(ids(&ann).await, [own_too], "a decided approval is no longer listed");
    let refused = ann.get("/v1/approvals?cursor=x").await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (400, "invalid_cursor"));
}

async fn a_briefing_for_an_owner_that_the_agent_does_not_admit_is_refused(mut deployment: Deployment) {
    deployment = with_authentication(deployment);
    let client = deployment.client();
    let olga = operator_user(&client);
    let agents = [json!({"access": ["ann"]}), json!({"access": "users"}), json!({"access": "operators"})];
    for (access, owner, is_accepted) in [
        (0, "ann", true),
        (0, "bob", false),
        (1, "bob", true),
        (1, "anonymous_34b1fb3ca1db1166f770e621b693d42d", false),
        (2, "bob", true),
    ] {
        let agent_id = create_agent(&olga, agents[access].clone()).await;
        let briefing = json!({"agent_id": agent_id, "title": "t", "summary": "s", "owner_id": owner});
        let briefing_result = olga.post("/v1/briefings", briefing).await;
        let expected = if is_accepted { None } else { Some((400, "owner_not_admitted".to_owned())) };
        assert_eq!(
            briefing_result.err().map(|failure| (failure.status, failure.code)),
            expected,
            "{owner}, {}",
            agents[access]
        );
    }
}

async fn undeclared_tools_ask_anonymous_callers(mut deployment: Deployment) {
    let server = ToolServer::answering_at_once().await;
    deployment = with_authentication(deployment);
    let client = deployment.client();
    let (olga, ann, anonymous_user) = (operator_user(&client), user(&client, "ann"), new_anonymous_user(&client).await);
    let servers = json!([server.describe()]);
    let undeclared = create_agent(&olga, json!({"mcp_servers": servers})).await;
    let declared = json!({"mcp_servers": servers, "tools": {"kb__count": {"effect": "once"}}});
    let declared = create_agent(&olga, declared).await;
    let allowed = create_agent(&olga, json!({"mcp_servers": servers, "approval": "never"})).await;
    for (client, agent_id, last) in [
        (&ann, &undeclared, "run.completed"),
        (&anonymous_user, &declared, "run.completed"),
        (&anonymous_user, &allowed, "run.completed"),
        (&anonymous_user, &undeclared, "approval.requested"),
    ] {
        let mut stream = stream_of(client, agent_id, "[tokens=1] [call=kb__count]").await;
        let frames = stream.up_to(last).await;
        assert_eq!(of_kind(&frames, "approval.requested").len(), usize::from(last == "approval.requested"));
    }
}

async fn a_server_learns_the_caller_only_where_its_definition_says_so(mut deployment: Deployment) {
    let mut server = ToolServer::start().await;
    deployment = with_authentication(deployment);
    let client = deployment.client();
    let (olga, ann) = (operator_user(&client), user(&client, "ann"));
    for (wish, in_meta, in_header) in [
        (json!({}), Value::Null, ""),
        (json!({"caller": true}), json!("ann"), ""),
        (json!({"caller_header": "X-Caller"}), json!("ann"), "ann"),
    ] {
        let mut described = server.describe();
        described.as_object_mut().unwrap().extend(wish.as_object().unwrap().clone());
        let agent_id = create_agent(&olga, json!({"mcp_servers": [described]})).await;
        let stream = stream_of(&ann, &agent_id, "[tokens=1] [call=kb__count]").await;
        let call = server.arrival().await;
        assert_eq!((&call.meta["holdfast/caller"], call.caller.as_str()), (&in_meta, in_header), "{wish}");
        call.answer("counted");
        stream.rest().await;
    }
}
