//! Messages without a run: clients add them after all others. And the rollback of one run, which takes its messages back.

use holdfast_shared::{
    ending::Ending,
    file::UserContent,
    message::Role,
    quotas::{Account, QuotaExceeded},
    run::RunStatus,
    storage::{
        AddOutcome, AddedMessage, Answer, CancelOutcome, Claim, Error, FinishOutcome, MessageFilter, MessageInput,
        NewRun, Target,
    },
};
use uuid::Uuid;

use crate::{
    backends::{ALL, TestBackends, new_run},
    conversations::{checkpoint_of, claim_of, model_history, shown, submitted, texts},
    on_each_backend,
};

on_each_backend!(
    later_runs_read_added_messages,
    an_edit_supersedes_added_messages,
    a_fork_has_the_messages_that_its_run_has_read,
    a_fork_of_a_fork_has_no_message_that_came_later,
    an_added_question_is_answered,
    an_unfinished_run_refuses_further_messages,
    a_message_with_a_known_id_is_refused,
    the_quota_refuses_all_messages_of_a_request,
    a_rollback_takes_the_message_and_the_answer_back,
    a_rollback_keeps_a_question_that_no_run_has_brought,
    a_rolled_back_run_has_no_newest_checkpoint,
    a_rollback_leaves_an_ended_run_as_it_is,
);

fn message(role: Role, text: &str) -> AddedMessage {
    AddedMessage { id: Uuid::now_v7(), client_id: None, role, content: UserContent::from(text.to_owned()) }
}

fn dialogue() -> [AddedMessage; 2] {
    [message(Role::User, "added question"), message(Role::Assistant, "added answer")]
}

async fn add(backends: &TestBackends, conversation: Uuid, messages: &[AddedMessage]) -> AddOutcome {
    backends.storage.add_messages("ann", conversation, messages).await.unwrap()
}

async fn current(backends: &TestBackends, conversation: Uuid) -> Vec<String> {
    texts(&shown(backends, conversation, MessageFilter::Current, 3).await)
}

async fn complete(backends: &TestBackends, claim: &Claim, text: &str) {
    let answer = Answer { text: text.into(), ..Answer::default() };
    let finished = backends.storage.finish(claim, None, claim.started.id, &answer, &Ending::Completed).await.unwrap();
    assert!(matches!(finished, FinishOutcome::Ended(_)));
}

/// Returns a conversation with a question and its answer.
async fn conversation(backends: &TestBackends) -> Uuid {
    let (run_id, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    complete(backends, &claim_of(backends, run_id).await, "first").await;
    id
}

async fn next_claim(backends: &TestBackends, conversation: Uuid, text: &str) -> Claim {
    let accepted = submitted(backends, new_run(Target::Existing(conversation), text)).await;
    claim_of(backends, accepted.run.id).await
}

async fn later_runs_read_added_messages(backends: TestBackends) {
    let id = conversation(&backends).await;
    assert_eq!(add(&backends, id, &dialogue()).await, AddOutcome::Added);
    let claim = next_claim(&backends, id, "two").await;
    let expected = ["one", "first", "added question", "added answer", "two"];
    assert_eq!(texts(&model_history(&backends, &claim, ALL).await.1), expected);
    assert_eq!(current(&backends, id).await, expected);
    let all = shown(&backends, id, MessageFilter::Current, 10).await;
    assert_eq!((all[2].role, all[3].role, all[2].run_id, all[3].run_id), (Role::User, Role::Assistant, None, None));
    let history = backends.storage.history("ann", id, holdfast_shared::page::PageSize::ALL).await.unwrap();
    assert_eq!(history[1].message.id, all[3].id);
    assert!(history[1].answer.is_none(), "no run wrote it");
    let empty = backends.storage.create_conversation("ann", Uuid::now_v7(), None, None).await.unwrap().unwrap();
    assert_eq!(add(&backends, empty.id, &dialogue()).await, AddOutcome::Added);
    let claim = next_claim(&backends, empty.id, "two").await;
    assert_eq!(texts(&model_history(&backends, &claim, ALL).await.1), ["added question", "added answer", "two"]);
}

async fn an_edit_supersedes_added_messages(backends: TestBackends) {
    let id = conversation(&backends).await;
    let question = shown(&backends, id, MessageFilter::Current, 10).await[0].id;
    let added = dialogue();
    add(&backends, id, &added).await;
    let edit = |replace_from: Uuid, content: &str| NewRun {
        input: MessageInput::Edit { content: content.into(), replace_from },
        ..new_run(Target::Existing(id), "")
    };
    let accepted = submitted(&backends, edit(added[1].id, "instead")).await;
    complete(&backends, &claim_of(&backends, accepted.run.id).await, "second").await;
    assert_eq!(current(&backends, id).await, ["one", "first", "added question", "instead", "second"]);
    add(&backends, id, &[message(Role::Assistant, "in the branch")]).await;
    submitted(&backends, edit(question, "eins")).await;
    assert_eq!(current(&backends, id).await, ["eins"]);
    backends.storage.restore_message("ann", id, question).await.unwrap();
    let expected = ["one", "first", "added question", "instead", "second", "in the branch"];
    assert_eq!(current(&backends, id).await, expected);
}

async fn a_fork_has_the_messages_that_its_run_has_read(backends: TestBackends) {
    let id = conversation(&backends).await;
    add(&backends, id, &dialogue()).await;
    let claim = next_claim(&backends, id, "two").await;
    let checkpoint = checkpoint_of(&backends, &claim).await;
    complete(&backends, &claim, "second").await;
    add(&backends, id, &[message(Role::User, "later")]).await;
    let fork = backends.storage.fork_conversation("ann", id, checkpoint).await.unwrap().unwrap();
    assert_eq!(current(&backends, fork.id).await, ["one", "first", "added question", "added answer", "two"]);
}

async fn a_fork_of_a_fork_has_no_message_that_came_later(backends: TestBackends) {
    let id = conversation(&backends).await;
    let claim = next_claim(&backends, id, "two").await;
    let checkpoint = checkpoint_of(&backends, &claim).await;
    complete(&backends, &claim, "second").await;
    let fork = backends.storage.fork_conversation("ann", id, checkpoint).await.unwrap().unwrap();
    let own = backends.storage.checkpoints("ann", fork.id, 1, None).await.unwrap().unwrap().items.remove(0);
    add(&backends, fork.id, &dialogue()).await;
    let copy = backends.storage.fork_conversation("ann", fork.id, own.id).await.unwrap().unwrap();
    assert_eq!(current(&backends, copy.id).await, ["one", "first", "two"]);
}

async fn an_added_question_is_answered(backends: TestBackends) {
    let id = conversation(&backends).await;
    let [question, _] = dialogue();
    add(&backends, id, std::slice::from_ref(&question)).await;
    let input = MessageInput::Again { replace_from: question.id };
    let accepted = submitted(&backends, NewRun { input, ..new_run(Target::Existing(id), "") }).await;
    assert_eq!(accepted.message.id, question.id);
    let claim = claim_of(&backends, accepted.run.id).await;
    assert_eq!(texts(&model_history(&backends, &claim, ALL).await.1), ["one", "first", "added question"]);
    complete(&backends, &claim, "second").await;
    assert_eq!(current(&backends, id).await, ["one", "first", "added question", "second"]);
}

async fn an_unfinished_run_refuses_further_messages(backends: TestBackends) {
    let (run_id, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    assert_eq!(add(&backends, id, &dialogue()).await, AddOutcome::Busy);
    let claim = claim_of(&backends, run_id).await;
    assert_eq!(add(&backends, id, &dialogue()).await, AddOutcome::Busy);
    complete(&backends, &claim, "first").await;
    assert_eq!(current(&backends, id).await, ["one", "first"]);
    assert_eq!(add(&backends, id, &dialogue()).await, AddOutcome::Added);
}

async fn a_message_with_a_known_id_is_refused(backends: TestBackends) {
    let id = conversation(&backends).await;
    let named = |text: &str| AddedMessage { client_id: Some("a".into()), ..message(Role::User, text) };
    assert_eq!(add(&backends, id, &[named("x")]).await, AddOutcome::Added);
    assert_eq!(add(&backends, id, &[message(Role::User, "y"), named("z")]).await, AddOutcome::MessageExists);
    assert_eq!(current(&backends, id).await, ["one", "first", "x"]);
    let of_bob = backends.storage.add_messages("bob", id, &dialogue()).await.unwrap();
    assert_eq!(of_bob, AddOutcome::ConversationNotFound);
}

async fn the_quota_refuses_all_messages_of_a_request(backends: TestBackends) {
    let id = conversation(&backends).await;
    let kept = backends.storage.kept_bytes("ann").await.unwrap();
    let long = [message(Role::User, "short"), message(Role::Assistant, &"x".repeat(10_000))];
    let account = Account { owner: "ann", max_bytes: Some(kept + 10_000) };
    let refused = backends.storage.add_messages(account, id, &long).await;
    assert!(matches!(refused, Err(Error::Quota { exceeded: QuotaExceeded::Bytes(_), .. })));
    assert_eq!(backends.storage.kept_bytes("ann").await.unwrap(), kept);
    assert_eq!(current(&backends, id).await, ["one", "first"]);
}

async fn a_rollback_takes_the_message_and_the_answer_back(backends: TestBackends) {
    let id = conversation(&backends).await;
    let claim = next_claim(&backends, id, "two").await;
    let queued = submitted(&backends, new_run(Target::Existing(id), "three")).await;
    let outcome = backends.storage.roll_back("ann", queued.run.id).await.unwrap();
    assert!(matches!(outcome, CancelOutcome::Ended(ended) if ended.status == RunStatus::Cancelled));
    assert_eq!(current(&backends, id).await, ["one", "first", "two"]);
    assert!(matches!(backends.storage.roll_back("bob", claim.run_id).await.unwrap(), CancelOutcome::NotFound));
    assert!(matches!(backends.storage.roll_back("ann", claim.run_id).await.unwrap(), CancelOutcome::Requested));
    let answer = Answer { text: "sec".into(), ..Answer::default() };
    backends.storage.finish(&claim, None, claim.started.id, &answer, &Ending::Cancelled).await.unwrap();
    assert_eq!(current(&backends, id).await, ["one", "first"]);
    let everything = shown(&backends, id, MessageFilter::SupersededToo, 10).await;
    assert_eq!(texts(&everything), ["one", "first", "two", "three", "sec"]);
    let last = backends.storage.last_run("ann", id).await.unwrap().unwrap();
    assert!(last.id < claim.run_id, "the conversation continues after the run before");
}

async fn a_rollback_keeps_a_question_that_no_run_has_brought(backends: TestBackends) {
    let id = conversation(&backends).await;
    let [question, _] = dialogue();
    add(&backends, id, std::slice::from_ref(&question)).await;
    let input = MessageInput::Again { replace_from: question.id };
    let accepted = submitted(&backends, NewRun { input, ..new_run(Target::Existing(id), "") }).await;
    let outcome = backends.storage.roll_back("ann", accepted.run.id).await.unwrap();
    assert!(matches!(outcome, CancelOutcome::Ended(_)));
    assert_eq!(current(&backends, id).await, ["one", "first", "added question"]);
}

async fn a_rolled_back_run_has_no_newest_checkpoint(backends: TestBackends) {
    let id = conversation(&backends).await;
    let claim = next_claim(&backends, id, "two").await;
    let checkpoint = checkpoint_of(&backends, &claim).await;
    let newest = async || backends.storage.newest_checkpoint("ann", id).await.unwrap().map(|newest| newest.id);
    assert_eq!(newest().await, Some(checkpoint));
    backends.storage.roll_back("ann", claim.run_id).await.unwrap();
    assert_eq!(newest().await, None);
    assert!(backends.storage.newest_checkpoint("bob", id).await.unwrap().is_none());
}

async fn a_rollback_leaves_an_ended_run_as_it_is(backends: TestBackends) {
    let id = conversation(&backends).await;
    let run = backends.storage.last_run("ann", id).await.unwrap().unwrap();
    assert!(matches!(backends.storage.roll_back("ann", run.id).await.unwrap(), CancelOutcome::Over));
    assert_eq!(current(&backends, id).await, ["one", "first"]);
}
