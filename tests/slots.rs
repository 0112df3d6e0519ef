//! The slots of workers: a greedy owner leaves some to newcomers.

use serde_json::json;

use crate::{
    in_both_modes,
    support::{
        Deployment,
        tokens::{SECRET, claims, token},
    },
};

in_both_modes!(a_greedy_owner_leaves_slots_to_newcomers, anonymous_callers_of_one_address_share_the_slots_of_one_owner,);

async fn a_greedy_owner_leaves_slots_to_newcomers(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_WORKER_CONCURRENCY", 8);
    let client = deployment.client();
    let (ann, bob) = (client.user("ann"), client.user("bob"));
    let mut greedy = Vec::new();
    for _ in 0..9 {
        greedy.push(ann.start("[tokens=5000] [delay=20]").await["run"]["id"].as_str().unwrap().to_owned());
    }
    for run in &greedy[..7] {
        ann.events(run, None).await.up_to("message.delta").await;
    }
    // While all slots but the last are at work, a newcomer needs no end of another run.
    for _ in 0..3 {
        let run = bob.start("[tokens=1]").await["run"]["id"].as_str().unwrap().to_owned();
        assert_eq!(bob.wait_for_run(&run).await["status"], "completed");
    }
    let mut attempts = Vec::new();
    for run in &greedy {
        attempts.push(ann.run(run).await["attempt"].as_u64().unwrap());
    }
    assert_eq!(attempts, [1, 1, 1, 1, 1, 1, 1, 0, 0]);
    for run in &greedy {
        ann.cancel(run).await;
    }
}

async fn anonymous_callers_of_one_address_share_the_slots_of_one_owner(deployment: Deployment) {
    let mut deployment =
        deployment.with("HOLDFAST_JWT_KEY", SECRET).with("CHAT_RATE_LIMIT", 0).with("HOLDFAST_WORKER_CONCURRENCY", 8);
    let client = deployment.client();
    let mut greedy = Vec::new();
    for _ in 0..9 {
        let made = client.post("/v1/users/anonymous", json!({})).await.unwrap();
        let user = client.token(made["token"].as_str().unwrap());
        let run = user.start("[tokens=5000] [delay=20]").await["run"]["id"].as_str().unwrap().to_owned();
        greedy.push((user, run));
    }
    for (user, run) in &greedy[..7] {
        user.events(run, None).await.up_to("message.delta").await;
    }
    let ann = client.token(&token(&claims("ann", json!({}))));
    let run = ann.start("[tokens=1]").await["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(ann.wait_for_run(&run).await["status"], "completed");
    let mut attempts = Vec::new();
    for (user, run) in &greedy {
        attempts.push(user.run(run).await["attempt"].as_u64().unwrap());
    }
    assert_eq!(attempts, [1, 1, 1, 1, 1, 1, 1, 0, 0]);
    for (user, run) in &greedy {
        user.cancel(run).await;
    }
}
