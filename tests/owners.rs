//! The data of owners: sign-in of anonymous users, removal, and expiry.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::interval;

use crate::{
    in_both_modes,
    support::{
        Client, Deployment, Embedded, EventStream, answer,
        tokens::{SECRET, claims, token},
    },
};

in_both_modes!(
    an_anonymous_users_data_moves_to_the_account_and_streams_continue,
    a_caller_removes_all_that_it_has_while_a_run_is_at_work,
);

fn user_named(client: &Client, subject: &str) -> Client {
    client.token(&token(&claims(subject, json!({}))))
}

async fn count_conversations(client: &Client) -> usize {
    client.get("/v1/conversations").await.unwrap()["items"].as_array().unwrap().len()
}

async fn an_anonymous_users_data_moves_to_the_account_and_streams_continue(mut deployment: Deployment) {
    deployment = deployment.with("HOLDFAST_JWT_KEY", SECRET);
    let client = deployment.client();
    let made = client.post("/v1/users/anonymous", json!({})).await.unwrap();
    let secret = made["token"].as_str().unwrap().to_owned();
    let (anonymous_user, ann) = (client.token(&secret), user_named(&client, "ann"));
    let cookie = format!("__Host-holdfast_user={secret}");
    let me = async || answer(ann.request(Method::GET, "/v1/users/me").header("cookie", &cookie)).await.unwrap();
    assert_eq!(me().await.get("claimable"), None);

    let session = anonymous_user.request(Method::POST, "/v1/runs").header("x-session-id", "harbour");
    answer(session.json(&json!({"input": "[tokens=1]"}))).await.unwrap();
    let own = ann.request(Method::POST, "/v1/runs").header("x-session-id", "harbour");
    let own = answer(own.json(&json!({"input": "[tokens=1]"}))).await.unwrap();
    ann.wait_for_run(own["run"]["id"].as_str().unwrap()).await;
    let mut stream = anonymous_user.stream("[tokens=60] [delay=20] hi").await;
    let run = stream.run_id.clone();
    stream.up_to("message.delta").await;
    assert_eq!(me().await["claimable"], json!({"conversations": 2}));

    let claim = |client: &Client| client.request(Method::POST, "/v1/users/me/claim");
    for (request, status, code) in [
        (claim(&anonymous_user), 403, "token_needed"),
        (claim(&ann), 400, "no_anonymous_user"),
        (claim(&ann).json(&json!({"anonymous_token": "x"})), 400, "no_anonymous_user"),
        (claim(&ann).json(&json!({"other": "x"})), 400, "invalid_body"),
    ] {
        let failure = answer(request).await.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (status, code));
    }
    assert_eq!(answer(claim(&ann).header("cookie", &cookie)).await.unwrap(), json!({"conversations": 2}));
    let again = claim(&ann).json(&json!({"anonymous_token": secret}));
    assert_eq!(answer(again).await.unwrap(), json!({"conversations": 0}));
    assert_eq!(me().await.get("claimable"), None);

    let mut followed = ann.events(&run, None).await;
    followed.up_to("message.delta").await;
    let rest = stream.rest().await;
    assert_eq!(rest.last().unwrap().event, "run.completed", "an open stream continues");
    assert_eq!(followed.rest().await.last().unwrap().event, "run.completed");
    assert_eq!(ann.wait_for_run(&run).await["status"], "completed");
    assert_eq!((count_conversations(&ann).await, count_conversations(&anonymous_user).await), (3, 0));
    assert_eq!(anonymous_user.get(&format!("/v1/runs/{run}")).await.unwrap_err().code, "run_not_found");
    let history = ann.get("/v1/sessions/harbour/messages").await.unwrap();
    assert_eq!(history["items"].as_array().unwrap().len(), 2, "a session that the account had is as it was");
}

async fn a_caller_removes_all_that_it_has_while_a_run_is_at_work(mut deployment: Deployment) {
    deployment = deployment.with("HOLDFAST_WORKER_CONCURRENCY", 1);
    let client = deployment.client();
    let (ann, bob) = (client.user("ann"), client.user("bob"));
    let done = ann.start("[tokens=3]").await;
    ann.wait_for_run(done["run"]["id"].as_str().unwrap()).await;
    let other = bob.start("[tokens=3]").await;
    bob.wait_for_run(other["run"]["id"].as_str().unwrap()).await;
    let mut stream: EventStream = ann.stream("[tokens=1000] [delay=20] hi").await;
    stream.up_to("message.delta").await;
    let run = stream.run_id.clone();
    assert_eq!(ann.delete("/v1/users/me").await.unwrap(), Value::Null);
    assert_eq!(stream.rest().await.last().unwrap().event, "run.cancelled");
    assert_eq!((count_conversations(&ann).await, count_conversations(&bob).await), (0, 1));
    for path in [format!("/v1/runs/{run}"), format!("/v1/runs/{run}/events")] {
        assert_eq!(ann.get(&path).await.unwrap_err().code, "run_not_found", "{path}");
    }
    ann.delete("/v1/users/me").await.expect("a repeated erasure finds nothing");
    // The worker's only slot is free again.
    let next = ann.start("[tokens=3]").await;
    assert_eq!(ann.wait_for_run(next["run"]["id"].as_str().unwrap()).await["status"], "completed");
}

#[tokio::test]
async fn an_anonymous_user_that_does_not_return_is_forgotten() {
    let embedded = Embedded::new()
        .with("HOLDFAST_JWT_KEY", SECRET)
        .with("HOLDFAST_SWEEP_MS", "100")
        .with("HOLDFAST_ANONYMOUS_RETENTION_MS", "3000");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let ann = user_named(&client, "ann");
    let anonymous = async || {
        let made = client.post("/v1/users/anonymous", json!({})).await.unwrap();
        client.token(made["token"].as_str().unwrap())
    };
    let (absent, present) = (anonymous().await, anonymous().await);
    for client in [&absent, &present, &ann] {
        client.post("/v1/conversations", json!({})).await.unwrap();
    }
    // Callers without an account may make 600 reads per minute from one address.
    let mut visits = interval(Duration::from_millis(200));
    while !holdfast.log_so_far().contains("removed an absent anonymous user") {
        visits.tick().await;
        assert_eq!(count_conversations(&present).await, 1, "a user that reads is active");
    }
    assert_eq!(
        (count_conversations(&absent).await, count_conversations(&present).await, count_conversations(&ann).await),
        (0, 1, 1)
    );
}
