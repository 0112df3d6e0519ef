//! The turns of extractions: a document that is made to be slow delays its owner, and no other document waits for it.

use serde_json::{Value, json};

use crate::{
    extraction::documents::{docx, looping_pdf},
    files::{asking, upload},
    in_both_modes, in_either_mode,
    knowledge::{HARBOUR, add, collection, ingest},
    support::{Client, Deployment, until, upstream::TestUpstream},
};

in_both_modes!(a_slow_document_holds_no_place_while_it_waits_for_its_long_try);
in_either_mode!(a_chat_reads_its_document_beside_slow_ones);

/// Returns a deployment whose long tries outlast the test.
fn patient(deployment: Deployment, extractions: usize) -> Deployment {
    deployment
        .with("HOLDFAST_EXTRACTION_TRY_MS", 3_000)
        .with("HOLDFAST_EXTRACTION_MS", 600_000)
        .with("HOLDFAST_EXTRACTIONS", extractions)
}

/// Adds a slow document, and returns the path of its run.
async fn add_slow(client: &Client, collection: &str, name: &str) -> String {
    let added = add(client, collection, name, looping_pdf()).await;
    format!("/v1/runs/{}", added["run"]["id"].as_str().unwrap())
}

async fn until_put_off(client: &Client, runs: &[String]) {
    until("the workers have put all but two of the slow documents off", || async {
        let mut put_off = 0;
        for run in runs {
            let run = client.get(run).await.unwrap();
            put_off += usize::from(run["status"] == "queued" && run["attempt"].as_u64() > Some(0));
        }
        (put_off == runs.len() - 2).then_some(())
    })
    .await;
}

async fn a_slow_document_holds_no_place_while_it_waits_for_its_long_try(deployment: Deployment) {
    let mut deployment = patient(deployment, 2).with("HOLDFAST_INGESTIONS", 2);
    let client = deployment.client();
    let (ann, bob) = (client.user("ann"), client.user("bob"));
    let (hostile, harbours) = (collection(&ann, "Hostile").await, collection(&bob, "Harbours").await);
    let mut slow = Vec::new();
    for name in ["a.pdf", "b.pdf", "c.pdf", "d.pdf"] {
        slow.push(add_slow(&ann, &hostile, name).await);
    }
    // One has its long try, one waits for its own, and the others wait in the queue.
    until_put_off(&ann, &slow).await;
    let document = ingest(&bob, &harbours, "harbour.md", HARBOUR).await;
    assert_eq!(document["status"], "ready");
    for run in &slow {
        let run = ann.get(run).await.unwrap();
        assert_eq!(run["finished_at"], Value::Null, "{run}");
    }
    for run in &slow {
        ann.cancel(run.rsplit('/').next().unwrap()).await;
    }
}

async fn a_chat_reads_its_document_beside_slow_ones(deployment: Deployment) {
    let upstream = TestUpstream::start(&["Read."]).await;
    let mut deployment = patient(asking(deployment, &upstream), 1);
    let client = deployment.client();
    let (ann, bob) = (client.user("ann"), client.user("bob"));
    let hostile = collection(&ann, "Hostile").await;
    let slow = add_slow(&ann, &hostile, "a.pdf").await;
    until("the slow document has the turn of ingestions", || async {
        (ann.get(&slow).await.unwrap()["status"] == "running").then_some(())
    })
    .await;
    let letter = upload(&bob, "letter.docx", docx()).await;
    let input = json!([{"type": "file", "file_id": letter["id"]}]);
    let accepted = bob.post("/v1/runs", json!({ "input": input })).await.unwrap();
    bob.wait_for_run(accepted["run"]["id"].as_str().unwrap()).await;
    let request = &upstream.requests()[0];
    assert!(request["messages"].to_string().contains("First, read *this* text."), "{request}");
    let run = ann.get(&slow).await.unwrap();
    assert_eq!(run["finished_at"], Value::Null, "{run}");
    ann.cancel(run["id"].as_str().unwrap()).await;
}
