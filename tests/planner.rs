//! A planner's input, as the model's provider receives it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{
        Client, Deployment, EventFrame, EventStream, agent, answer, of_kind, stream_of, until, upstream::TestUpstream,
    },
};

in_both_modes!(
    a_plan_survives_ten_summaries_byte_for_byte,
    an_edit_runs_a_step_again_and_those_that_need_it,
    a_planner_that_works_makes_an_accepted_edit_even_after_its_workers_death,
    each_role_has_the_model_of_its_profile,
);

in_either_mode!(
    a_planner_reads_the_users_profile,
    a_planner_reads_the_project_of_its_context,
    the_program_has_a_planner_that_no_client_can_change,
    a_model_judges_a_project_whose_words_decide_nothing,
    questions_are_counted_and_kept_with_the_history,
);

/// Returns a deployment that uses this provider.
fn asking(deployment: Deployment, upstream: &TestUpstream) -> Deployment {
    deployment
        .with("CHAT_MODEL_PROVIDER", "openai")
        .with("CHAT_MODEL_NAME", "m")
        .with("OPENAI_BASE_URL", &upstream.base_url)
}

/// Returns the instructions of each request to answer a user.
fn instructions(upstream: &TestUpstream) -> Vec<String> {
    let requests = upstream.requests();
    let system = |request: &Value| request["messages"][0].clone();
    let texts = requests.iter().map(system).filter(|message| message["role"] == "system");
    texts.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

async fn wait_for_draft(client: &Client, run_id: &str) {
    until("the run asks", || async {
        let listed = client.get(&format!("/v1/runs/{run_id}/approvals")).await.unwrap();
        (listed["items"][0]["status"] == "pending").then_some(())
    })
    .await;
}

async fn a_plan_survives_ten_summaries_byte_for_byte(deployment: Deployment) {
    let upstream = TestUpstream::start(&["ok"]).await;
    let mut deployment = asking(deployment, &upstream);
    let client = deployment.client();
    let definition =
        json!({"name": "plans", "kind": "planner", "context_tokens": 300, "model": {"provider": "scripted"}});
    let agent_id = agent(&client, json!([]), definition).await;
    let steps: Vec<Value> =
        (1..=10).map(|number| json!({"step_number": number, "description": format!("step {number} – 步骤")})).collect();
    let plan = json!({"goal": "ten steps", "execution_mode": "draft_only", "steps": steps});
    let stream = stream_of(&client, &agent_id, &format!("[plan={plan}]")).await;
    wait_for_draft(&client, &stream.run_id).await;
    let conversation = client.run(&stream.run_id).await["conversation_id"].as_str().unwrap().to_owned();
    client.patch(&format!("/v1/agents/{agent_id}"), json!({"model": null})).await.unwrap();
    let mut summaries = 0;
    for n in 0..20 {
        let content = format!("{n} {}", "word ".repeat(150));
        let path = format!("/v1/conversations/{conversation}/messages");
        let posted = client.post(&path, json!({"content": content})).await.unwrap();
        let run_id = posted["run"]["id"].as_str().unwrap();
        assert_eq!(client.wait_for_run(run_id).await["status"], "completed");
        let frames = client.rest_after(run_id, "0-0").await;
        summaries += usize::from(of_kind(&frames, "context.usage")[0]["compressed"] == true);
    }
    assert!(summaries >= 10, "{summaries}");
    let plans: Vec<String> = instructions(&upstream)
        .iter()
        .map(|text| text.split("The plan, as it is now:").nth(1).expect("the plan is there").to_owned())
        .collect();
    assert!(plans.len() == 20 && plans.iter().all(|plan| *plan == plans[0]), "{plans:?}");
    assert!(plans[0].contains("step 10 – 步骤"));
}

async fn a_planner_reads_the_users_profile(deployment: Deployment) {
    let upstream = TestUpstream::start(&["ok"]).await;
    let mut deployment = asking(deployment, &upstream);
    let client = deployment.client();
    let path = "/v1/users/me/profile";
    let put = async |profile: Value| answer(client.request(Method::PUT, path).json(&json!({"profile": profile}))).await;
    assert_eq!(client.get(path).await.unwrap(), json!({"profile": null, "time_zone": null}));
    assert_eq!(put(json!("x".repeat(4097))).await.unwrap_err().code, "invalid_profile");
    put(json!("y".repeat(4096))).await.unwrap();
    put(json!("I keep bees.")).await.unwrap();
    let agent_id = agent(&client, json!([]), json!({"name": "plans", "kind": "planner"})).await;
    stream_of(&client, &agent_id, "hi").await.rest().await;
    assert!(instructions(&upstream)[0].contains("I keep bees."));
    put(Value::Null).await.unwrap();
    assert_eq!(client.get(path).await.unwrap(), json!({"profile": null, "time_zone": null}));
    put(json!("I keep ants.")).await.unwrap();
    client.delete("/v1/users/me").await.unwrap();
    assert_eq!(client.get(path).await.unwrap(), json!({"profile": null, "time_zone": null}));
}

async fn an_edit_runs_a_step_again_and_those_that_need_it(mut deployment: Deployment) {
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({"name": "plans", "kind": "planner"})).await;
    let plan = json!({"goal": "g", "steps": [
        {"step_number": 1, "description": "[tokens=1] first", "executor_required": true},
        {"step_number": 2, "description": "[tokens=2] second", "executor_required": true, "depends_on": [1]},
        {"step_number": 3, "description": "[tokens=900] [delay=50] third", "executor_required": true, "depends_on": [2]},
        {"step_number": 4, "description": "[tokens=4] fourth", "executor_required": true},
    ]});
    let mut stream = stream_of(&client, &agent_id, &format!("[plan={plan}] [tokens=1]")).await;
    let mut frames = stream.up_to_nth("plan_step.started", 4).await;
    let run_id = stream.run_id.clone();
    let plans = client.get(&format!("/v1/runs/{run_id}/plans")).await.unwrap();
    let path = format!("/v1/plans/{}", plans["items"][0]["id"].as_str().unwrap());
    let steps = json!({"steps": [
        {"step_number": 2, "description": "[tokens=3] better"}, {"step_number": 3, "description": "[tokens=1] short"}
    ]});
    assert_eq!(client.patch(&path, json!({"steps": [{"step_number": 9}]})).await.unwrap_err().code, "invalid_plan");
    assert_eq!(client.user("bob").patch(&path, steps.clone()).await.unwrap_err().code, "plan_not_found");
    let edited = client.patch(&path, steps.clone()).await.unwrap();
    assert_eq!(
        (&edited["steps"][1]["status"], &edited["steps"][0]["status"]),
        (&json!("pending"), &json!("completed"))
    );
    frames.extend(stream.rest().await);
    assert_eq!(frames.last().unwrap().event, "run.completed");
    let mut begun: Vec<u64> = of_kind(&frames, "plan_step.started")
        .iter()
        .map(|started| started["step"]["step_number"].as_u64().unwrap())
        .collect();
    begun.sort_unstable();
    assert_eq!(begun, [1, 2, 2, 3, 3, 4]);
    let third = of_kind(&frames, "subagent.started").iter().find(|started| started["step_number"] == 3).unwrap()["child_run_id"].clone();
    assert_eq!(client.wait_for_run(third.as_str().unwrap()).await["status"], "cancelled");
    let ended = client.get(&path).await.unwrap();
    assert_eq!((&ended["status"], &ended["steps"][1]["result"]), (&json!("completed"), &json!("This is Holdfast's")));
    assert_eq!(client.patch(&path, steps).await.unwrap_err().code, "plan_not_executing");
}

async fn a_planner_that_works_makes_an_accepted_edit_even_after_its_workers_death(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({"name": "plans", "kind": "planner"})).await;
    let plan = json!({"goal": "g", "steps": [
        {"step_number": 1, "description": "[tokens=900] [delay=50] first", "executor_required": true},
        {"step_number": 2, "description": "[tokens=60] [delay=20] second"},
        {"step_number": 3, "description": "[tokens=2] third", "depends_on": [2]},
    ]});
    let mut stream = stream_of(&client, &agent_id, &format!("[plan={plan}] [tokens=1]")).await;
    let run_id = stream.run_id.clone();
    let started = stream.up_to_nth("plan_step.started", 2).await;
    stream.up_to("message.delta").await;
    let path = format!("/v1/plans/{}", of_kind(&started, "plan.created")[0]["plan"]["id"].as_str().unwrap());
    let steps = |steps: Value| client.request(Method::PATCH, &path).json(&json!({ "steps": steps })).send();
    let own = steps(json!([{"step_number": 2, "description": "x"}])).await.unwrap();
    assert_eq!(own.status(), 400, "the planner takes this step");
    let better = json!([{"step_number": 1, "description": "[tokens=4] short"}, {"step_number": 3, "description": "[tokens=3] better"}]);
    let accepted = steps(better).await.unwrap();
    assert_eq!(accepted.status(), 202);
    let accepted: Value = accepted.json().await.unwrap();
    assert_eq!(
        (&accepted["steps"][0]["status"], &accepted["steps"][1]["status"]),
        (&json!("pending"), &json!("executing"))
    );
    deployment.kill_worker();
    let client = deployment.client();
    let run = client.wait_for_run(&run_id).await;
    assert_eq!(run["status"], "completed");
    let plan = client.get(&path).await.unwrap();
    let of_step = |number: usize, field: &str| plan["steps"][number - 1][field].as_str().unwrap().to_owned();
    assert_eq!(
        (of_step(1, "description"), of_step(1, "result")),
        ("[tokens=4] short".into(), "This is Holdfast's scripted".into())
    );
    assert_eq!((of_step(3, "description"), plan["metadata"]["edits"].as_u64()), ("[tokens=3] better".into(), Some(1)));
    // The replaced executor is cancelled.
    let children = of_kind(&client.events(&run_id, None).await.rest().await, "subagent.started")
        .iter()
        .map(|started| started["child_run_id"].as_str().unwrap().to_owned())
        .collect::<Vec<_>>();
    assert_eq!(client.wait_for_run(&children[0]).await["status"], "cancelled");
}

async fn the_program_has_a_planner_that_no_client_can_change(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let agents = client.get("/v1/agents").await.unwrap();
    let [planner] = agents["items"].as_array().unwrap().as_slice() else { panic!("{agents}") };
    let field = |name: &str| planner[name].as_str().unwrap();
    assert_eq!((field("name"), field("origin"), field("kind")), ("planner", "builtin", "planner"));
    let path = format!("/v1/agents/{}", field("id"));
    for refused in [client.patch(&path, json!({"description": "d"})).await, client.delete(&path).await] {
        let refused = refused.unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (409, "agent_builtin"));
    }
}

async fn each_role_has_the_model_of_its_profile(deployment: Deployment) {
    let upstream = TestUpstream::start(&["ok"]).await;
    let mut deployment = asking(deployment, &upstream);
    let client = deployment.client();
    let profile = |provider: &str, model: &str| json!({"provider": provider, "model": model});
    let profiles = json!({
        "profiles": {"plan": profile("scripted", "s"), "fast": profile("openai", "fast"), "fine": profile("openai", "fine")},
        "roles": {"planner": "plan", "executor": "fast", "synthesizer": "fine"},
    });
    answer(client.request(Method::PUT, "/v1/profiles").json(&profiles)).await.unwrap();
    let agent_id = agent(&client, json!([]), json!({"name": "plans", "kind": "planner"})).await;
    let steps = json!([
        {"step_number": 1, "description": "one", "executor_required": true},
        {"step_number": 2, "description": "[tokens=1] two", "depends_on": [1]},
    ]);
    let plan = json!({"goal": "g", "steps": steps});
    let frames = stream_of(&client, &agent_id, &format!("[plan={plan}]")).await.rest().await;
    let child = of_kind(&frames, "subagent.started")[0]["child_run_id"].as_str().unwrap();
    assert_eq!(client.run(child).await["model"], "openai/fast");
    let models: Vec<&Value> = of_kind(&frames, "step.completed").iter().map(|step| &step["model"]).collect();
    assert_eq!(models, ["scripted/scripted", "scripted/scripted", "openai/fine"]);
}

async fn a_model_judges_a_project_whose_words_decide_nothing(_: Deployment) {
    let analysis = |answer: &'static [&'static str]| async move {
        let upstream = TestUpstream::start(answer).await;
        let mut deployment = asking(Deployment::embedded(), &upstream);
        let client = deployment.client();
        let agent_id = agent(&client, json!([]), json!({"name": "plans", "kind": "planner"})).await;
        let body =
            json!({"agent_id": agent_id, "input": "a fitness app", "context": {"context_type": "project_create"}});
        let request = client.request(Method::POST, "/v1/runs").header("accept", "text/event-stream");
        let frames = EventStream::new(request.json(&body).send().await.unwrap()).rest().await;
        let questions = of_kind(&frames, "question.asked").first().map(|asked| asked["questions"].clone());
        (upstream.requests().len(), questions)
    };
    assert_eq!(analysis(&["{\"confidence\": 0.7, \"questions\": []}"]).await, (2, None), "the planner answers");
    let asks = &["{\"confidence\": 0.3, \"questions\": [\"For which phone?\"]}"];
    assert_eq!(analysis(asks).await, (1, Some(json!(["For which phone?"]))));
    let (_, by_words) = analysis(&["I cannot say"]).await;
    assert_eq!(by_words.unwrap()[0], "What should exist when the project is done?", "the words decide");
}

async fn questions_are_counted_and_kept_with_the_history(mut deployment: Deployment) {
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({"name": "plans", "kind": "planner"})).await;
    let first = stream_of(&client, &agent_id, "[questions=Which ship?|Which tide?]").await;
    let conversation = client.run(&first.run_id).await["conversation_id"].as_str().unwrap().to_owned();
    let round =
        |frames: Vec<EventFrame>| of_kind(&frames, "question.asked").first().map(|asked| asked["round"].clone());
    assert_eq!(round(first.rest().await), Some(json!(1)));
    for (content, expected) in
        [("[questions=And now?]", Some(json!(2))), ("[tokens=1]", None), ("[questions=Which one?]", Some(json!(1)))]
    {
        let path = format!("/v1/conversations/{conversation}/messages");
        let request = client.request(Method::POST, &path).header("accept", "text/event-stream");
        let response = request.json(&json!({"content": content})).send().await.unwrap();
        assert_eq!(round(EventStream::new(response).rest().await), expected, "{content}");
    }
    let history = client.get(&format!("/api/chat/{conversation}/messages")).await.unwrap();
    let parts = history[1]["parts"].as_array().unwrap().clone();
    let asked = parts.iter().find(|part| part["type"] == "data-questions").unwrap();
    assert_eq!(asked["data"], json!({"questions": ["Which ship?", "Which tide?"], "round": 1}));
}

async fn a_planner_reads_the_project_of_its_context(_: Deployment) {
    let upstream = TestUpstream::start(&["ok"]).await;
    let mut deployment = asking(Deployment::embedded(), &upstream);
    let client = deployment.client();
    let project = client.post("/v1/workspace/projects", json!({"name": "Harbour"})).await.unwrap();
    let task = json!({"project_id": project["id"], "title": "Call the harbour master", "priority": 5});
    client.post("/v1/workspace/tasks", task).await.unwrap();
    let agent_id = agent(&client, json!([]), json!({"name": "plans", "kind": "planner"})).await;
    for context in [
        json!({"context_type": "project", "entity_id": project["id"]}),
        json!({"context_type": "project_audit", "projectFocus":
            {"focusType": "project-wide", "projectId": project["id"], "projectName": "Harbour"}}),
    ] {
        let body = json!({"agent_id": agent_id, "input": "what is next?", "context": context});
        let run = client.post("/v1/runs", body).await.unwrap();
        client.wait_for_run(run["run"]["id"].as_str().unwrap()).await;
        let asked = instructions(&upstream).pop().unwrap();
        assert!(asked.contains("Call the harbour master (todo, priority 5)"), "{asked}");
    }
    // Another user's project is not read.
    let body = json!({"agent_id": agent_id, "input": "hi", "context": {"context_type": "project", "entity_id": project["id"]}});
    let bob = client.user("bob");
    let run = bob.post("/v1/runs", body).await.unwrap();
    bob.wait_for_run(run["run"]["id"].as_str().unwrap()).await;
    assert!(!instructions(&upstream).pop().unwrap().contains("harbour master"));
}
