//! The program of docs/clients.md.

use futures::TryStreamExt;
use holdfast_client::{Answer, Client, DecisionBody, Error, NewRunBody, RunEvent, Verdict};
use serde_json::Value;

/// Returns the answer to a text. `may_call` decides about the calls that need an approval.
pub async fn ask(base: &str, text: &str, may_call: fn(&str, &Value) -> bool) -> Result<String, Error> {
    let client = Client::new(base);
    let run = client.start_run(&NewRunBody::of(text)).await?.run;
    let mut answer = Answer::default();
    let mut events = client.events(&run.id);
    while let Some(event) = events.try_next().await? {
        answer.apply(&event);
        if let RunEvent::ApprovalRequested(question) = &event.body {
            let verdict = if may_call(&question.name, &question.input) { Verdict::Approve } else { Verdict::Deny };
            client.decide(&run.id, &question.approval_id, &DecisionBody::of(verdict)).await?;
        }
    }
    Ok(answer.text())
}
