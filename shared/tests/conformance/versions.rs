//! Versions of a message: an edit or another answer creates them, and a client restores one.

use holdfast_shared::{
    message::Message,
    run::SubmitMode,
    storage::{
        Answer, Claim, CommittedMessage, FinishOutcome, MessageFilter, MessageInput, NewRun, RestoreOutcome,
        SubmitOutcome, Summary, Target,
    },
    usage::Usage,
};
use uuid::Uuid;

use crate::{
    backends::{ALL, NO_QUOTAS, TestBackends, new_run},
    conversations::{checkpoint_of, claim_of, ids, model_history, shown, submitted, texts},
    on_each_backend,
    summaries::scope,
};

on_each_backend!(
    an_edit_is_undone_and_redone_with_all_later_messages,
    a_second_answer_is_a_version_of_the_first,
    a_restored_version_has_its_own_edits,
    a_restoration_cancels_the_runs_that_it_supersedes,
    a_failed_second_answer_gives_way_to_the_first,
    a_late_answer_belongs_to_the_version_of_its_question,
    a_version_without_a_place_is_refused,
    the_restoration_of_a_current_message_changes_nothing,
    a_fork_of_either_version_has_the_history_of_its_run,
    a_restored_answer_is_in_the_context_or_in_its_summary,
    a_rolled_back_turn_does_not_come_back_with_an_edit,
    the_last_run_is_of_the_restored_version,
);

/// Posts a message and completes its run.
async fn say(backends: &TestBackends, new: NewRun, text: &str) -> (CommittedMessage, Claim) {
    let accepted = submitted(backends, new).await;
    let claim = claim_of(backends, accepted.run.id).await;
    complete(backends, &claim, text).await;
    (accepted, claim)
}

async fn complete(backends: &TestBackends, claim: &Claim, text: &str) {
    let ending = holdfast_shared::ending::Ending::Completed;
    let answer = Answer { text: text.into(), ..Answer::default() };
    let finished = backends.storage.finish(claim, None, claim.started.id, &answer, &ending).await.unwrap();
    assert!(matches!(finished, FinishOutcome::Ended(_)));
}

fn edit(conversation: Uuid, replace_from: Uuid, content: &str) -> NewRun {
    NewRun {
        input: MessageInput::Edit { content: content.into(), replace_from },
        ..new_run(Target::Existing(conversation), "")
    }
}

fn again(conversation: Uuid, replace_from: Uuid) -> NewRun {
    NewRun { input: MessageInput::Again { replace_from }, ..new_run(Target::Existing(conversation), "") }
}

async fn restore(backends: &TestBackends, conversation: Uuid, id: Uuid) -> (Vec<Uuid>, Vec<Uuid>) {
    match backends.storage.restore_message("ann", conversation, id).await.unwrap() {
        RestoreOutcome::Done { message, ended, cancel_requested } => {
            assert_eq!((message.id, message.superseded_at), (id, None));
            (ended.iter().map(|run| run.run_id).collect(), cancel_requested)
        }
        refused => panic!("{refused:?}"),
    }
}

async fn current(backends: &TestBackends, conversation: Uuid) -> Vec<Message> {
    shown(backends, conversation, MessageFilter::Current, 10).await
}

/// Returns the version of each message in a list: `2/3`, or an empty text.
fn versions(messages: &[Message]) -> Vec<String> {
    let version = |message: &Message| message.version.map(|version| format!("{}/{}", version.number, version.count));
    messages.iter().map(|message| version(message).unwrap_or_default()).collect()
}

async fn an_edit_is_undone_and_redone_with_all_later_messages(backends: TestBackends) {
    let (one, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    complete(&backends, &claim_of(&backends, one).await, "first").await;
    let (two, _) = say(&backends, new_run(Target::Existing(id), "two"), "second").await;
    let (three, _) = say(&backends, new_run(Target::Existing(id), "three"), "third").await;
    let (zwei, _) = say(&backends, edit(id, two.message.id, "zwei"), "zweitens").await;
    let edited = current(&backends, id).await;
    assert_eq!(texts(&edited), ["one", "first", "zwei", "zweitens"]);
    assert_eq!(versions(&edited), ["", "", "2/2", ""]);
    assert_eq!(edited[2].version.unwrap().previous, Some(two.message.id));

    restore(&backends, id, two.message.id).await;
    let undone = current(&backends, id).await;
    assert_eq!(texts(&undone), ["one", "first", "two", "second", "three", "third"]);
    assert_eq!(versions(&undone), ["", "", "1/2", "", "", ""]);
    assert_eq!(undone[2].version.unwrap().next, Some(zwei.message.id));
    assert_eq!(undone[4].id, three.message.id);
    let (four, _) = backends.submit(Target::Existing(id), "four").await;
    let claim = claim_of(&backends, four).await;
    let (_, context) = model_history(&backends, &claim, ALL).await;
    assert_eq!(texts(&context), ["one", "first", "two", "second", "three", "third", "four"]);
    complete(&backends, &claim, "fourth").await;

    restore(&backends, id, zwei.message.id).await;
    assert_eq!(ids(&current(&backends, id).await), ids(&edited));
    let (five, _) = backends.submit(Target::Existing(id), "five").await;
    let (_, context) = model_history(&backends, &claim_of(&backends, five).await, ALL).await;
    assert_eq!(texts(&context), ["one", "first", "zwei", "zweitens", "five"]);
}

async fn a_second_answer_is_a_version_of_the_first(backends: TestBackends) {
    let (one, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    complete(&backends, &claim_of(&backends, one).await, "first").await;
    let [question, answer] = ids(&current(&backends, id).await)[..] else { panic!("a question and its answer") };
    say(&backends, again(id, answer), "second").await;
    // A client may also name the question.
    say(&backends, again(id, question), "third").await;
    let messages = current(&backends, id).await;
    assert_eq!(
        (texts(&messages), versions(&messages)),
        (vec!["one".to_owned(), "third".to_owned()], vec![String::new(), "3/3".into()])
    );
    let second = messages[1].version.unwrap().previous.unwrap();
    restore(&backends, id, second).await;
    let messages = current(&backends, id).await;
    assert_eq!((texts(&messages)[1].as_str(), versions(&messages)[1].as_str()), ("second", "2/3"));
    assert_eq!(messages[1].version.unwrap().previous, Some(answer));
    restore(&backends, id, answer).await;
    let messages = current(&backends, id).await;
    assert_eq!((texts(&messages)[1].as_str(), versions(&messages)[1].as_str()), ("first", "1/3"));
}

async fn a_restored_version_has_its_own_edits(backends: TestBackends) {
    let (one, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    complete(&backends, &claim_of(&backends, one).await, "first").await;
    let question = ids(&current(&backends, id).await)[0];
    let (two, _) = say(&backends, new_run(Target::Existing(id), "two"), "second").await;
    say(&backends, edit(id, two.message.id, "zwei"), "zweitens").await;
    say(&backends, edit(id, question, "eins"), "erstens").await;
    assert_eq!(texts(&current(&backends, id).await), ["eins", "erstens"]);
    restore(&backends, id, question).await;
    let messages = current(&backends, id).await;
    assert_eq!(texts(&messages), ["one", "first", "zwei", "zweitens"]);
    assert_eq!(versions(&messages), ["1/2", "", "2/2", ""]);
    restore(&backends, id, two.message.id).await;
    assert_eq!(texts(&current(&backends, id).await), ["one", "first", "two", "second"]);
}

async fn a_restoration_cancels_the_runs_that_it_supersedes(backends: TestBackends) {
    let (one, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    complete(&backends, &claim_of(&backends, one).await, "first").await;
    let question = ids(&current(&backends, id).await)[0];
    let running = submitted(&backends, edit(id, question, "eins")).await.run.id;
    let claim = claim_of(&backends, running).await;
    let (queued, _) = backends.submit(Target::Existing(id), "zwei").await;
    assert_eq!(restore(&backends, id, question).await, (vec![queued], vec![running]));
    // Its worker was faster than the cancel.
    complete(&backends, &claim, "erstens").await;
    assert_eq!(texts(&current(&backends, id).await), ["one", "first"]);
    let eins = current(&backends, id).await[0].version.unwrap().next.unwrap();
    restore(&backends, id, eins).await;
    assert_eq!(texts(&current(&backends, id).await), ["eins", "zwei", "erstens"]);
}

async fn a_failed_second_answer_gives_way_to_the_first(backends: TestBackends) {
    let (one, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    complete(&backends, &claim_of(&backends, one).await, "first").await;
    let answer = ids(&current(&backends, id).await)[1];
    let accepted = submitted(&backends, again(id, answer)).await;
    let failed = accepted.run.output_message_id;
    backends.storage.request_cancel("ann", accepted.run.id).await.unwrap();
    assert_eq!(texts(&current(&backends, id).await), ["one"]);
    let versions = backends.storage.versions(id, vec![failed]).await.unwrap();
    assert_eq!((versions[&failed].number, versions[&failed].previous), (2, Some(answer)));
    restore(&backends, id, answer).await;
    assert_eq!(texts(&current(&backends, id).await), ["one", "first"]);
}

async fn a_late_answer_belongs_to_the_version_of_its_question(backends: TestBackends) {
    let (one, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    let claim = claim_of(&backends, one).await;
    let question = ids(&current(&backends, id).await)[0];
    say_later(&backends, &claim, edit(id, question, "eins")).await;
    assert_eq!(texts(&current(&backends, id).await), ["eins"]);
    restore(&backends, id, question).await;
    assert_eq!(texts(&current(&backends, id).await), ["one", "late"]);
}

/// Posts a message, and then completes an earlier run.
async fn say_later(backends: &TestBackends, earlier: &Claim, new: NewRun) {
    submitted(backends, new).await;
    complete(backends, earlier, "late").await;
}

async fn a_version_without_a_place_is_refused(backends: TestBackends) {
    let (one, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    complete(&backends, &claim_of(&backends, one).await, "first").await;
    let (two, _) = backends.submit(Target::Existing(id), "two").await;
    let claim = claim_of(&backends, two).await;
    let rolled_back = ids(&current(&backends, id).await)[2];
    submitted(&backends, NewRun { mode: SubmitMode::Rollback, ..new_run(Target::Existing(id), "three") }).await;
    complete(&backends, &claim, "half").await;
    let restored = async |owner: &str, conversation, message| {
        backends.storage.restore_message(owner, conversation, message).await.unwrap()
    };
    assert!(matches!(restored("ann", id, rolled_back).await, RestoreOutcome::NoPlace));
    assert!(matches!(restored("ann", id, Uuid::now_v7()).await, RestoreOutcome::MessageNotFound));
    assert!(matches!(restored("bob", id, rolled_back).await, RestoreOutcome::ConversationNotFound));
    let (_, other) = backends.submit(Target::New { agent_id: None }, "elsewhere").await;
    assert!(matches!(restored("ann", other, rolled_back).await, RestoreOutcome::MessageNotFound));
}

async fn the_restoration_of_a_current_message_changes_nothing(backends: TestBackends) {
    let (one, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    complete(&backends, &claim_of(&backends, one).await, "first").await;
    let (two, _) = backends.submit(Target::Existing(id), "two").await;
    let question = ids(&current(&backends, id).await)[0];
    let conversation = backends.storage.conversation("ann", id).await.unwrap();
    assert_eq!(restore(&backends, id, question).await, (Vec::new(), Vec::new()));
    assert_eq!(backends.storage.conversation("ann", id).await.unwrap(), conversation);
    assert_eq!(texts(&current(&backends, id).await), ["one", "first", "two"]);
    assert_eq!(claim_of(&backends, two).await.conversation_id, id);
}

async fn a_fork_of_either_version_has_the_history_of_its_run(backends: TestBackends) {
    let (one, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    complete(&backends, &claim_of(&backends, one).await, "first").await;
    let question = ids(&current(&backends, id).await)[0];
    let checkpoint_after = async |new: NewRun| {
        let SubmitOutcome::Accepted(accepted) = backends.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap() else {
            panic!("it was not accepted")
        };
        let claim = claim_of(&backends, accepted.run.id).await;
        let checkpoint = checkpoint_of(&backends, &claim).await;
        complete(&backends, &claim, "answer").await;
        checkpoint
    };
    let two = checkpoint_after(new_run(Target::Existing(id), "two")).await;
    say(&backends, edit(id, question, "eins"), "erstens").await;
    let zwei = checkpoint_after(new_run(Target::Existing(id), "zwei")).await;
    let forked = async |checkpoint| {
        let fork = backends.storage.fork_conversation("ann", id, checkpoint).await.unwrap().unwrap();
        texts(&current(&backends, fork.id).await)
    };
    let check = async || {
        assert_eq!(forked(two).await, ["one", "first", "two"]);
        assert_eq!(forked(zwei).await, ["eins", "erstens", "zwei"]);
    };
    check().await;
    restore(&backends, id, question).await;
    check().await;
    let eins = current(&backends, id).await[0].version.unwrap().next.unwrap();
    restore(&backends, id, eins).await;
    check().await;
}

async fn a_restored_answer_is_in_the_context_or_in_its_summary(backends: TestBackends) {
    let (one, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    complete(&backends, &claim_of(&backends, one).await, "first").await;
    let answer = ids(&current(&backends, id).await)[1];
    say(&backends, again(id, answer), "second").await;
    let (two, _) = backends.submit(Target::Existing(id), "two").await;
    let claim = claim_of(&backends, two).await;
    // It covers the question without an answer, because the second answer is a turn of its own.
    let summary = Summary { up_to: 1, content: "one was asked".into() };
    backends.storage.keep_summary(&scope(&claim), &summary, Usage::default()).await.unwrap();
    complete(&backends, &claim, "zwei").await;
    restore(&backends, id, answer).await;
    let (three, _) = backends.submit(Target::Existing(id), "three").await;
    let (kept, history) = model_history(&backends, &claim_of(&backends, three).await, ALL).await;
    assert_eq!((kept, texts(&history)), (None, ["one", "first", "three"].map(str::to_owned).to_vec()));
}

async fn a_rolled_back_turn_does_not_come_back_with_an_edit(backends: TestBackends) {
    let (one, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    let claim = claim_of(&backends, one).await;
    let (two, _) = backends.submit(Target::Existing(id), "two").await;
    let question = ids(&current(&backends, id).await)[1];
    let instead = NewRun { mode: SubmitMode::Rollback, ..edit(id, question, "zwei") };
    let zwei = submitted(&backends, instead).await;
    complete(&backends, &claim, "late").await;
    assert_eq!(texts(&current(&backends, id).await), ["zwei"]);
    restore(&backends, id, question).await;
    assert_eq!(texts(&current(&backends, id).await), ["two"]);
    restore(&backends, id, zwei.message.id).await;
    assert_eq!(texts(&current(&backends, id).await), ["zwei"]);
    assert_ne!(zwei.run.id, two);
}

async fn the_last_run_is_of_the_restored_version(backends: TestBackends) {
    let (one, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    complete(&backends, &claim_of(&backends, one).await, "first").await;
    let answer = ids(&current(&backends, id).await)[1];
    let (second, _) = say(&backends, again(id, answer), "second").await;
    let last = async || backends.storage.last_run("ann", id).await.unwrap().unwrap().id;
    let newest = async || backends.storage.newest_run_id("ann", id).await.unwrap().unwrap();
    assert_eq!((last().await, newest().await), (second.run.id, second.run.id));
    restore(&backends, id, answer).await;
    assert_eq!((last().await, newest().await), (one, second.run.id));
}
