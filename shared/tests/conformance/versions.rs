//! Versions of a message: what an edit or another answer replaced, and going back to it.

use holdfast_shared::{
    message::Message,
    run::SubmitMode,
    storage::{Accepted, Answer, Claim, Finished, MessageInput, NewRun, Restored, Submitted, Target, Which},
};
use uuid::Uuid;

use crate::{
    conversations::{checkpoint_of, claim_of, ids, shown, submitted, texts, told},
    on_each_backend,
    places::{ALL, NO_QUOTAS, Places, new_run},
};

on_each_backend!(
    an_edit_is_undone_and_done_again_with_all_that_followed,
    an_answer_that_was_made_again_is_a_version_of_the_first,
    edits_within_a_version_come_back_with_it,
    a_restoration_cancels_the_runs_that_it_supersedes,
    a_failed_second_answer_gives_way_to_the_first,
    a_late_answer_belongs_to_the_version_of_its_question,
    a_version_without_a_place_is_refused,
    a_current_message_stays_as_it_is,
    a_fork_of_either_version_has_what_its_run_went_on_from,
);

/// Posts a message, and completes its run.
async fn say(places: &Places, new: NewRun, text: &str) -> (Accepted, Claim) {
    let accepted = submitted(places, new).await;
    let claim = claim_of(places, accepted.run.id).await;
    complete(places, &claim, text).await;
    (accepted, claim)
}

async fn complete(places: &Places, claim: &Claim, text: &str) {
    let ending = holdfast_shared::ending::Ending::Completed;
    let answer = Answer { text: text.into(), ..Answer::default() };
    let finished = places.storage.finish(claim, None, claim.started.id, &answer, &ending).await.unwrap();
    assert!(matches!(finished, Finished::Ended { .. }));
}

fn edit(conversation: Uuid, replace_from: Uuid, content: &str) -> NewRun {
    NewRun {
        said: MessageInput::Edit { content: content.into(), replace_from },
        ..new_run(Target::Existing(conversation), "")
    }
}

fn again(conversation: Uuid, replace_from: Uuid) -> NewRun {
    NewRun { said: MessageInput::Again { replace_from }, ..new_run(Target::Existing(conversation), "") }
}

async fn restore(places: &Places, conversation: Uuid, id: Uuid) -> (Vec<Uuid>, Vec<Uuid>) {
    match places.storage.restore_message("ann", conversation, id).await.unwrap() {
        Restored::Done { message, ended, cancel_requested } => {
            assert_eq!((message.id, message.superseded_at), (id, None));
            (ended.iter().map(|run| run.run_id).collect(), cancel_requested)
        }
        refused => panic!("{refused:?}"),
    }
}

async fn current(places: &Places, conversation: Uuid) -> Vec<Message> {
    shown(places, conversation, Which::Current, 10).await
}

/// What a list says of each message: `2/3`, or nothing.
fn versions(messages: &[Message]) -> Vec<String> {
    let version = |message: &Message| message.version.map(|version| format!("{}/{}", version.number, version.count));
    messages.iter().map(|message| version(message).unwrap_or_default()).collect()
}

async fn an_edit_is_undone_and_done_again_with_all_that_followed(places: Places) {
    let (one, id) = places.submit(Target::New { agent_id: None }, "one").await;
    complete(&places, &claim_of(&places, one).await, "first").await;
    let (two, _) = say(&places, new_run(Target::Existing(id), "two"), "second").await;
    let (three, _) = say(&places, new_run(Target::Existing(id), "three"), "third").await;
    let (zwei, _) = say(&places, edit(id, two.message.id, "zwei"), "zweitens").await;
    let edited = current(&places, id).await;
    assert_eq!(texts(&edited), ["one", "first", "zwei", "zweitens"]);
    assert_eq!(versions(&edited), ["", "", "2/2", ""]);
    assert_eq!(edited[2].version.unwrap().previous, Some(two.message.id));

    restore(&places, id, two.message.id).await;
    let undone = current(&places, id).await;
    assert_eq!(texts(&undone), ["one", "first", "two", "second", "three", "third"]);
    assert_eq!(versions(&undone), ["", "", "1/2", "", "", ""]);
    assert_eq!(undone[2].version.unwrap().next, Some(zwei.message.id));
    assert_eq!(undone[4].id, three.message.id);
    let (four, _) = places.submit(Target::Existing(id), "four").await;
    let claim = claim_of(&places, four).await;
    let (_, context) = told(&places, &claim, ALL).await;
    assert_eq!(texts(&context), ["one", "first", "two", "second", "three", "third", "four"]);
    complete(&places, &claim, "fourth").await;

    restore(&places, id, zwei.message.id).await;
    assert_eq!(ids(&current(&places, id).await), ids(&edited));
    let (five, _) = places.submit(Target::Existing(id), "five").await;
    let (_, context) = told(&places, &claim_of(&places, five).await, ALL).await;
    assert_eq!(texts(&context), ["one", "first", "zwei", "zweitens", "five"]);
}

async fn an_answer_that_was_made_again_is_a_version_of_the_first(places: Places) {
    let (one, id) = places.submit(Target::New { agent_id: None }, "one").await;
    complete(&places, &claim_of(&places, one).await, "first").await;
    let [question, answer] = ids(&current(&places, id).await)[..] else { panic!("a question and its answer") };
    say(&places, again(id, answer), "second").await;
    // A client may also name the question.
    say(&places, again(id, question), "third").await;
    let said = current(&places, id).await;
    assert_eq!(
        (texts(&said), versions(&said)),
        (vec!["one".to_owned(), "third".to_owned()], vec![String::new(), "3/3".into()])
    );
    let second = said[1].version.unwrap().previous.unwrap();
    restore(&places, id, second).await;
    let said = current(&places, id).await;
    assert_eq!((texts(&said)[1].as_str(), versions(&said)[1].as_str()), ("second", "2/3"));
    assert_eq!(said[1].version.unwrap().previous, Some(answer));
    restore(&places, id, answer).await;
    let said = current(&places, id).await;
    assert_eq!((texts(&said)[1].as_str(), versions(&said)[1].as_str()), ("first", "1/3"));
}

async fn edits_within_a_version_come_back_with_it(places: Places) {
    let (one, id) = places.submit(Target::New { agent_id: None }, "one").await;
    complete(&places, &claim_of(&places, one).await, "first").await;
    let question = ids(&current(&places, id).await)[0];
    let (two, _) = say(&places, new_run(Target::Existing(id), "two"), "second").await;
    say(&places, edit(id, two.message.id, "zwei"), "zweitens").await;
    say(&places, edit(id, question, "eins"), "erstens").await;
    assert_eq!(texts(&current(&places, id).await), ["eins", "erstens"]);
    restore(&places, id, question).await;
    let said = current(&places, id).await;
    assert_eq!(texts(&said), ["one", "first", "zwei", "zweitens"]);
    assert_eq!(versions(&said), ["1/2", "", "2/2", ""]);
    restore(&places, id, two.message.id).await;
    assert_eq!(texts(&current(&places, id).await), ["one", "first", "two", "second"]);
}

async fn a_restoration_cancels_the_runs_that_it_supersedes(places: Places) {
    let (one, id) = places.submit(Target::New { agent_id: None }, "one").await;
    complete(&places, &claim_of(&places, one).await, "first").await;
    let question = ids(&current(&places, id).await)[0];
    let running = submitted(&places, edit(id, question, "eins")).await.run.id;
    let claim = claim_of(&places, running).await;
    let (queued, _) = places.submit(Target::Existing(id), "zwei").await;
    assert_eq!(restore(&places, id, question).await, (vec![queued], vec![running]));
    // Its worker was faster than the cancel.
    complete(&places, &claim, "erstens").await;
    assert_eq!(texts(&current(&places, id).await), ["one", "first"]);
    let eins = current(&places, id).await[0].version.unwrap().next.unwrap();
    restore(&places, id, eins).await;
    assert_eq!(texts(&current(&places, id).await), ["eins", "zwei", "erstens"]);
}

async fn a_failed_second_answer_gives_way_to_the_first(places: Places) {
    let (one, id) = places.submit(Target::New { agent_id: None }, "one").await;
    complete(&places, &claim_of(&places, one).await, "first").await;
    let answer = ids(&current(&places, id).await)[1];
    let accepted = submitted(&places, again(id, answer)).await;
    let failed = accepted.run.output_message_id;
    places.storage.request_cancel("ann", accepted.run.id).await.unwrap();
    assert_eq!(texts(&current(&places, id).await), ["one"]);
    let versions = places.storage.versions(id, vec![failed]).await.unwrap();
    assert_eq!((versions[&failed].number, versions[&failed].previous), (2, Some(answer)));
    restore(&places, id, answer).await;
    assert_eq!(texts(&current(&places, id).await), ["one", "first"]);
}

async fn a_late_answer_belongs_to_the_version_of_its_question(places: Places) {
    let (one, id) = places.submit(Target::New { agent_id: None }, "one").await;
    let claim = claim_of(&places, one).await;
    let question = ids(&current(&places, id).await)[0];
    say_later(&places, &claim, edit(id, question, "eins")).await;
    assert_eq!(texts(&current(&places, id).await), ["eins"]);
    restore(&places, id, question).await;
    assert_eq!(texts(&current(&places, id).await), ["one", "late"]);
}

/// Posts a message, and completes an earlier run after it.
async fn say_later(places: &Places, earlier: &Claim, new: NewRun) {
    submitted(places, new).await;
    complete(places, earlier, "late").await;
}

async fn a_version_without_a_place_is_refused(places: Places) {
    let (one, id) = places.submit(Target::New { agent_id: None }, "one").await;
    complete(&places, &claim_of(&places, one).await, "first").await;
    let (two, _) = places.submit(Target::Existing(id), "two").await;
    let claim = claim_of(&places, two).await;
    let rolled_back = ids(&current(&places, id).await)[2];
    submitted(&places, NewRun { mode: SubmitMode::Rollback, ..new_run(Target::Existing(id), "three") }).await;
    complete(&places, &claim, "half").await;
    let restored = async |owner: &str, conversation, message| {
        places.storage.restore_message(owner, conversation, message).await.unwrap()
    };
    assert!(matches!(restored("ann", id, rolled_back).await, Restored::NoPlace));
    assert!(matches!(restored("ann", id, Uuid::now_v7()).await, Restored::MessageNotFound));
    assert!(matches!(restored("bob", id, rolled_back).await, Restored::ConversationNotFound));
    let (_, other) = places.submit(Target::New { agent_id: None }, "elsewhere").await;
    assert!(matches!(restored("ann", other, rolled_back).await, Restored::MessageNotFound));
}

async fn a_current_message_stays_as_it_is(places: Places) {
    let (one, id) = places.submit(Target::New { agent_id: None }, "one").await;
    complete(&places, &claim_of(&places, one).await, "first").await;
    let (two, _) = places.submit(Target::Existing(id), "two").await;
    let question = ids(&current(&places, id).await)[0];
    assert_eq!(restore(&places, id, question).await, (Vec::new(), Vec::new()));
    assert_eq!(texts(&current(&places, id).await), ["one", "first", "two"]);
    assert_eq!(claim_of(&places, two).await.conversation_id, id);
}

async fn a_fork_of_either_version_has_what_its_run_went_on_from(places: Places) {
    let (one, id) = places.submit(Target::New { agent_id: None }, "one").await;
    complete(&places, &claim_of(&places, one).await, "first").await;
    let question = ids(&current(&places, id).await)[0];
    let checkpoint_after = async |new: NewRun| {
        let Submitted::Accepted(accepted) = places.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap() else {
            panic!("it was not accepted")
        };
        let claim = claim_of(&places, accepted.run.id).await;
        let checkpoint = checkpoint_of(&places, &claim).await;
        complete(&places, &claim, "answer").await;
        checkpoint
    };
    let two = checkpoint_after(new_run(Target::Existing(id), "two")).await;
    say(&places, edit(id, question, "eins"), "erstens").await;
    let zwei = checkpoint_after(new_run(Target::Existing(id), "zwei")).await;
    let forked = async |checkpoint| {
        let fork = places.storage.fork_conversation("ann", id, checkpoint).await.unwrap().unwrap();
        texts(&current(&places, fork.id).await)
    };
    let check = async || {
        assert_eq!(forked(two).await, ["one", "first", "two"]);
        assert_eq!(forked(zwei).await, ["eins", "erstens", "zwei"]);
    };
    check().await;
    restore(&places, id, question).await;
    check().await;
    let eins = current(&places, id).await[0].version.unwrap().next.unwrap();
    restore(&places, id, eins).await;
    check().await;
}
