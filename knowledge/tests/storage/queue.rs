//! The runs of documents in the queue.

use std::collections::BTreeSet;

use holdfast_shared::{quotas::Quotas, storage::SubmitOutcome};
use uuid::Uuid;

use crate::{
    backends::{ANN, TestKnowledge, new_run, terms},
    on_both_databases,
};

on_both_databases!(documents_leave_slots_for_conversations);

async fn documents_leave_slots_for_conversations(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let mut documents = Vec::new();
    for _ in 0..4 {
        documents.push(test.submit(ANN, collection).await.2);
    }
    let message = new_run(false);
    let submitted = test.storage.submit(ANN, &Quotas::default(), &message).await.unwrap();
    assert!(matches!(submitted, SubmitOutcome::Accepted(_)));
    let claimed = async |places, limit| -> BTreeSet<Uuid> {
        let claims = test.storage.claim_queued(&terms(places), limit).await.unwrap();
        claims.iter().map(|claim| claim.run_id).collect()
    };
    assert_eq!(claimed(2, 1).await, BTreeSet::from([documents[0]]), "the oldest comes first");
    assert_eq!(claimed(1, 10).await, BTreeSet::from([documents[1], message.run_id]), "one place is free");
    assert!(claimed(0, 10).await.is_empty());
    assert_eq!(claimed(3, 10).await, BTreeSet::from([documents[2], documents[3]]));
}
