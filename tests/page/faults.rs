//! Answers that are streamed to their end, whatever breaks meanwhile.

use serde_json::json;

use super::{Visit, shows_the_only_run};
use crate::{in_both_modes, support::Deployment};

in_both_modes!(an_answer_is_shown_to_its_end);

async fn an_answer_is_shown_to_its_end(deployment: Deployment) {
    let visit = Visit::with(deployment, "streams", json!({"text": "[think] [tokens=120] [delay=10] hello"})).await;
    let (end, client, _deployment) = visit.ends().await;
    let run = shows_the_only_run(&client, &end).await;
    assert_eq!((&run["status"], &run["conversation_id"]), (&json!("completed"), &end["conversation"]));
}
