//! Files: uploads, quotas, shared contents, the conversations that name them, and their end.

use std::time::Duration;

use bytes::Bytes;
use clap::Parser;
use holdfast_shared::{
    config::{FilesConfig, Stores},
    event_id::EventId,
    file::{PART_BYTES, StoredFile, ToolFile, UserContent},
    file_store::{self, FileStore},
    idempotency::IdempotencyKey,
    page::PageSize,
    quotas::{FileQuotas, Quotas},
    storage::{
        BeginResult, CallState, Erasure, FlushOutcome, MessageFilter, MessageInput, NewFile, NewRun, Progress,
        SubmitOutcome, Target, UploadOutcome, UploadedContents,
    },
    tool::ToolCallStatus,
};
use uuid::Uuid;

use crate::{
    backends::{ALL, LEASE, NO_QUOTAS, TestBackends, new_run},
    conversations::checkpoint_of,
    on_each_backend,
    waiting::{call, chunk},
};

on_each_backend!(
    equal_contents_of_one_owner_are_stored_once_and_go_with_the_last_file,
    a_key_names_one_upload,
    files_and_their_bytes_have_quotas,
    an_upload_that_rests_reserves_only_what_has_arrived,
    a_message_keeps_its_files_and_its_conversation_names_them,
    files_go_when_nothing_names_them,
    a_run_names_the_files_of_its_tools,
    files_move_with_their_owner_and_are_erased_with_it,
    an_upload_continues_after_a_move_and_its_contents_stay,
    a_removal_that_is_noted_again_is_not_forgotten,
    parts_are_stored_and_removed,
);

const NO_GRACE: Duration = Duration::ZERO;

fn new_file(bytes: u64) -> NewFile {
    NewFile { name: "a.png".into(), bytes, key: None }
}

fn with_key(key: &str, name: &str) -> NewFile {
    NewFile { key: Some(IdempotencyKey::new(key.into(), &[name])), ..new_file(3) }
}

async fn begun(backends: &TestBackends, owner: &str, new: &NewFile) -> StoredFile {
    match backends.storage.begin_upload(owner, new, FileQuotas::default()).await.unwrap() {
        UploadOutcome::Begun(file) => file,
        other => panic!("{other:?}"),
    }
}

fn contents(media_type: &str, sha256: &str, same: Option<Uuid>) -> UploadedContents {
    UploadedContents { media_type: media_type.into(), bytes: 3, sha256: sha256.into(), same }
}

pub async fn stored(backends: &TestBackends, owner: &str, sha256: &str) -> StoredFile {
    let file = begun(backends, owner, &new_file(3)).await;
    backends.storage.complete_upload(&file, &contents("image/png", sha256, None)).await.unwrap().unwrap()
}

async fn removals(backends: &TestBackends) -> Vec<Uuid> {
    let noted = backends.storage.take_removals(NO_GRACE).await.unwrap();
    noted.into_iter().map(|removal| removal.content_id).collect()
}

async fn forget_all(backends: &TestBackends) {
    for removal in backends.storage.take_removals(NO_GRACE).await.unwrap() {
        backends.storage.forget_removal(removal).await.unwrap();
    }
}

async fn names(backends: &TestBackends, owner: &str) -> Vec<Uuid> {
    let page = backends.storage.files(owner, PageSize::ALL, None).await.unwrap().unwrap();
    page.items.into_iter().map(|file| file.id).collect()
}

async fn equal_contents_of_one_owner_are_stored_once_and_go_with_the_last_file(backends: TestBackends) {
    let (first, other) = (stored(&backends, "ann", "aa").await, stored(&backends, "ann", "bb").await);
    let again = begun(&backends, "ann", &new_file(3)).await;
    let own = again.content_id;
    let same = backends.storage.file_with_contents("ann", "aa").await.unwrap().map(|file| file.content_id);
    let again = backends.storage.complete_upload(&again, &contents("image/png", "aa", same)).await.unwrap().unwrap();
    assert_eq!((again.content_id, removals(&backends).await), (first.content_id, vec![own]));
    let of_bob = stored(&backends, "bob", "aa").await;
    assert_ne!(of_bob.content_id, first.content_id, "another owner learns nothing of it");
    forget_all(&backends).await;
    assert!(!backends.storage.delete_file("bob", first.id).await.unwrap());
    assert!(backends.storage.delete_file("ann", first.id).await.unwrap());
    assert!(removals(&backends).await.is_empty());
    assert!(backends.storage.delete_file("ann", again.id).await.unwrap());
    assert_eq!(removals(&backends).await, [first.content_id]);
    assert_eq!(names(&backends, "ann").await, [other.id]);
    assert!(backends.storage.file("ann", of_bob.id).await.unwrap().is_none());
    let late = backends.storage.complete_upload(&first, &contents("image/png", "aa", None)).await.unwrap();
    assert!(late.is_none(), "a deleted file does not come back");
}

async fn a_key_names_one_upload(backends: TestBackends) {
    let storage = &backends.storage;
    let first = begun(&backends, "ann", &with_key("k", "a")).await;
    let again = begun(&backends, "ann", &with_key("k", "a")).await;
    assert_eq!(again.id, first.id, "it begins again");
    assert_ne!(again.content_id, first.content_id, "bytes of the first try are none of it");
    assert!(!storage.note_received(&first, 1).await.unwrap(), "the first try is no longer the writer");
    assert!(storage.complete_upload(&first, &contents("image/png", "aa", None)).await.unwrap().is_none());
    let begin = |new: NewFile| async move { storage.begin_upload("ann", &new, FileQuotas::default()).await.unwrap() };
    assert_eq!(begin(with_key("k", "b")).await, UploadOutcome::KeyReused);
    assert_ne!(begun(&backends, "bob", &with_key("k", "b")).await.id, first.id);
    let file = storage.complete_upload(&again, &contents("image/png", "aa", None)).await.unwrap().unwrap();
    storage.give_up_upload("ann", &first).await.unwrap();
    assert_eq!(begin(with_key("k", "a")).await, UploadOutcome::Repeated(file));
}

async fn files_and_their_bytes_have_quotas(backends: TestBackends) {
    let quotas = FileQuotas { files: Some(2), bytes: Some(10) };
    let begin = |bytes: u64| {
        let (storage, new) = (backends.storage.clone(), new_file(bytes));
        async move { storage.begin_upload("ann", &new, quotas).await.unwrap() }
    };
    assert_eq!(begin(11).await, UploadOutcome::TooManyBytes(10));
    assert!(matches!(begin(10).await, UploadOutcome::Begun(_)));
    assert_eq!(begin(1).await, UploadOutcome::TooManyBytes(10), "an upload reserves what it may bring");
    let [id] = names(&backends, "ann").await[..] else { panic!("one file") };
    let file = backends.storage.file("ann", id).await.unwrap().unwrap();
    let four = UploadedContents { bytes: 4, ..contents("text/plain", "aa", None) };
    backends.storage.complete_upload(&file, &four).await.unwrap().unwrap();
    assert!(matches!(begin(6).await, UploadOutcome::Begun(_)));
    assert_eq!(begin(0).await, UploadOutcome::TooManyFiles(2));
    assert!(backends.storage.delete_file("ann", id).await.unwrap());
    assert!(matches!(begin(4).await, UploadOutcome::Begun(_)));
}

async fn an_upload_that_rests_reserves_only_what_has_arrived(backends: TestBackends) {
    let Some(mut raw) = backends.raw().await else { return };
    let (storage, quotas) = (&backends.storage, FileQuotas { files: None, bytes: Some(10) });
    let begin = |new: NewFile| async move { storage.begin_upload("ann", &new, quotas).await.unwrap() };
    let UploadOutcome::Begun(promised) = begin(NewFile { bytes: 10, ..with_key("k", "a") }).await else {
        panic!("there is room")
    };
    assert!(storage.note_received(&promised, 2).await.unwrap());
    assert_eq!(begin(new_file(1)).await, UploadOutcome::TooManyBytes(10));
    raw.execute(
        "update files set touched_at = now() - interval '11 minutes'",
        "update files set touched_at = strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now', '-11 minutes')",
    )
    .await;
    assert_eq!(begin(new_file(9)).await, UploadOutcome::TooManyBytes(10), "two bytes have arrived");
    let UploadOutcome::Begun(other) = begin(new_file(8)).await else { panic!("the reservation has expired") };
    let resume = || async { storage.continue_upload("ann", promised.id, 2, quotas).await.unwrap() };
    assert_eq!(resume().await, Some(UploadOutcome::TooManyBytes(10)), "the room is taken");
    let again = begin(NewFile { bytes: 10, ..with_key("k", "a") }).await;
    assert_eq!(again, UploadOutcome::TooManyBytes(10), "nor does it begin again");
    assert!(storage.delete_file("ann", other.id).await.unwrap());
    assert!(matches!(resume().await, Some(UploadOutcome::Begun(file)) if file.id == promised.id));
    assert_eq!(begin(new_file(1)).await, UploadOutcome::TooManyBytes(10), "it is reserved again");
    assert_eq!(storage.continue_upload("bob", promised.id, 2, quotas).await.unwrap(), None);
}

/// Returns a message of ann with a file between two texts.
fn message(target: Target, file: &StoredFile) -> NewRun {
    let mut content = UserContent::default();
    content.push_text("before");
    content.push_file(file);
    content.push_text("after");
    NewRun { input: MessageInput::New(content), ..new_run(target, "") }
}

async fn submit(backends: &TestBackends, new: &NewRun) -> (Uuid, Uuid) {
    match backends.storage.submit("ann", &NO_QUOTAS, new).await.unwrap() {
        SubmitOutcome::Accepted(accepted) => (accepted.conversation.id, accepted.run.id),
        _ => panic!("the message was not accepted"),
    }
}

async fn a_message_keeps_its_files_and_its_conversation_names_them(backends: TestBackends) {
    let (first, second) = (stored(&backends, "ann", "aa").await, stored(&backends, "ann", "bb").await);
    let (conversation, run) = submit(&backends, &message(Target::New { agent_id: None }, &first)).await;
    submit(&backends, &message(Target::Existing(conversation), &second)).await;
    let page = backends.storage.messages("ann", conversation, MessageFilter::Current, 10, None).await.unwrap().unwrap();
    let shown: Vec<(Uuid, usize)> =
        page.items.iter().flat_map(|message| &message.attachments).map(|file| (file.file_id, file.offset)).collect();
    assert_eq!(shown, [(first.id, 6), (second.id, 6)]);
    let [claim] = &backends.claim(1).await[..] else { panic!("one claim") };
    assert_eq!(claim.run_id, run);
    let BeginResult::Executing(start) = backends.storage.begin(claim, ALL).await.unwrap() else { panic!("fenced") };
    assert_eq!(start.history.input.attachments, page.items[0].attachments);
    assert_eq!(backends.storage.delete_unnamed_files(NO_GRACE).await.unwrap(), (0, false));
}

async fn files_go_when_nothing_names_them(backends: TestBackends) {
    let (named, unnamed) = (stored(&backends, "ann", "aa").await, stored(&backends, "ann", "bb").await);
    let left = begun(&backends, "ann", &new_file(PART_BYTES)).await;
    let (conversation, _) = submit(&backends, &message(Target::New { agent_id: None }, &named)).await;
    let sweep = |grace: Duration| backends.storage.delete_unnamed_files(grace);
    assert_eq!(sweep(Duration::from_secs(3600)).await.unwrap(), (0, false), "they may be named within the time");
    assert_eq!(sweep(NO_GRACE).await.unwrap(), (2, false));
    assert_eq!(names(&backends, "ann").await, [named.id]);
    let mut gone = [unnamed.content_id, left.content_id];
    gone.sort();
    let mut removals = removals(&backends).await;
    removals.sort();
    assert_eq!(removals, gone);
    backends.storage.delete_conversation("ann", conversation).await.unwrap().unwrap();
    assert_eq!(sweep(NO_GRACE).await.unwrap(), (1, false));
}

async fn a_run_names_the_files_of_its_tools(backends: TestBackends) {
    let storage = &backends.storage;
    let (run_id, conversation) = backends.submit(Target::New { agent_id: None }, "draw").await;
    let [claim] = &backends.claim(1).await[..] else { panic!("one claim") };
    let (file, other) = (stored(&backends, "ann", "aa").await, stored(&backends, "ann", "bb").await);
    let with = |files: Vec<ToolFile>| CallState { files, ..call("c1", ToolCallStatus::Completed, None) };
    let outcome = |n: u32, state: CallState| {
        chunk(claim, n, Progress { calls: vec![state], resume_at: Some(EventId::new(1, n)), ..Progress::default() })
    };
    let sweep = || storage.delete_unnamed_files(NO_GRACE);
    let called = outcome(2, call("c1", ToolCallStatus::Called, None));
    storage.flush(claim, &called, LEASE).await.unwrap();
    let completed = outcome(3, with(vec![ToolFile::from(&file)]));
    for _ in 0..2 {
        assert_eq!(storage.flush(claim, &completed, LEASE).await.unwrap(), FlushOutcome::Durable);
    }
    assert_eq!(storage.tool_calls(run_id).await.unwrap()[0].files, [ToolFile::from(&file)]);
    // A stale attempt names nothing.
    backends.expire(run_id).await;
    let [later] = &backends.take_over().await[..] else { panic!("one claim") };
    let stale = outcome(4, with(vec![ToolFile::from(&other)]));
    assert_eq!(storage.flush(claim, &stale, LEASE).await.unwrap(), FlushOutcome::Fenced);
    assert_eq!(sweep().await.unwrap(), (1, false));
    assert_eq!(names(&backends, "ann").await, [file.id]);
    let BeginResult::Executing(start) = storage.begin(later, ALL).await.unwrap() else { panic!("fenced") };
    assert_eq!(start.calls[0].files, [ToolFile::from(&file)], "the next attempt has them");
    // A fork names them too.
    let checkpoint = checkpoint_of(&backends, later).await;
    let fork = storage.fork_conversation("ann", conversation, checkpoint).await.unwrap().unwrap().id;
    storage.delete_conversation("ann", conversation).await.unwrap().unwrap();
    assert_eq!(sweep().await.unwrap(), (0, false));
    storage.delete_conversation("ann", fork).await.unwrap().unwrap();
    assert_eq!(sweep().await.unwrap(), (1, false));
}

async fn files_move_with_their_owner_and_are_erased_with_it(backends: TestBackends) {
    let storage = &backends.storage;
    let keyed = begun(&backends, "anon", &with_key("k", "a")).await;
    begun(&backends, "ann", &with_key("k", "a")).await;
    let file = stored(&backends, "anon", "aa").await;
    storage.move_owner("anon", "ann", &Quotas::default(), FileQuotas::default().into()).await.unwrap();
    assert!(names(&backends, "anon").await.is_empty());
    let of_ann = names(&backends, "ann").await;
    assert!(of_ann.contains(&file.id) && of_ann.contains(&keyed.id) && of_ann.len() == 3);
    while !storage.erase_some("ann", Erasure::Wanted).await.unwrap().is_done {}
    assert!(names(&backends, "ann").await.is_empty());
    assert_eq!(removals(&backends).await.len(), 3);
}

async fn an_upload_continues_after_a_move_and_its_contents_stay(backends: TestBackends) {
    let storage = &backends.storage;
    let file = begun(&backends, "anon", &new_file(3)).await;
    let one = FileQuotas { files: Some(0), bytes: None };
    assert!(
        storage.move_owner("anon", "ann", &Quotas::default(), one.into()).await.is_err(),
        "the new owner has no room"
    );
    storage.move_owner("anon", "ann", &Quotas::default(), FileQuotas::default().into()).await.unwrap();
    storage.discard_contents(file.content_id).await.unwrap();
    assert!(removals(&backends).await.is_empty(), "a file has them");
    let done = storage.complete_upload(&file, &contents("image/png", "aa", None)).await.unwrap().unwrap();
    assert_eq!(storage.file("ann", file.id).await.unwrap(), Some(done));
}

async fn a_removal_that_is_noted_again_is_not_forgotten(backends: TestBackends) {
    let storage = &backends.storage;
    let content_id = Uuid::now_v7();
    storage.discard_contents(content_id).await.unwrap();
    let hour = Duration::from_secs(3600);
    let taken = storage.take_removals(Duration::from_secs(60)).await.unwrap();
    assert_eq!(taken.len(), 1);
    assert!(storage.take_removals(hour).await.unwrap().is_empty(), "another process has them");
    storage.discard_contents(content_id).await.unwrap();
    storage.forget_removal(taken[0]).await.unwrap();
    assert_eq!(removals(&backends).await, [content_id]);
    forget_all(&backends).await;
    assert!(removals(&backends).await.is_empty());
}

/// Returns the database's own store, and one in a folder.
fn stores_of(backends: &TestBackends) -> (FileStore, FileStore, tempfile::TempDir) {
    #[derive(Parser)]
    struct FilesArgs {
        #[command(flatten)]
        files: FilesConfig,
    }
    let config = FilesArgs::parse_from(["files"]).files;
    let folder = tempfile::tempdir().unwrap();
    let in_folder =
        FilesConfig { files_url: Some(format!("file://{}/files", folder.path().display())), ..config.clone() };
    let connect =
        |config: &FilesConfig| file_store::connect(&Stores::EmbeddedInMemory, config, &backends.storage).unwrap();
    let most = FilesConfig { max_file_bytes: 9, max_database_file_bytes: 5, ..config.clone() };
    assert_eq!((connect(&config).max_bytes(&most), connect(&in_folder).max_bytes(&most)), (5, 9));
    (connect(&config), connect(&in_folder), folder)
}

async fn parts_are_stored_and_removed(backends: TestBackends) {
    let (in_database, in_folder, folder) = stores_of(&backends);
    for store in [in_database, in_folder] {
        let (content, other) = (Uuid::now_v7(), Uuid::now_v7());
        let part = |byte: u8, bytes: usize| Bytes::from(vec![byte; bytes]);
        store.put(content, 0, part(9, 5)).await.unwrap();
        store.put(content, 0, part(1, PART_BYTES as usize)).await.unwrap();
        store.put(content, 1, part(2, 3)).await.unwrap();
        store.put(other, 0, part(3, 1)).await.unwrap();
        let whole = store.read(content, PART_BYTES + 3, u64::MAX).await.unwrap();
        assert_eq!((whole.len() as u64, whole[0], whole[PART_BYTES as usize]), (PART_BYTES + 3, 1, 2));
        assert_eq!(store.read(content, PART_BYTES + 3, 2).await.unwrap(), [1, 1]);
        let missing = format!("part 1 of the contents {content} is missing");
        assert_eq!(store.get(content, 1, PART_BYTES + 4).await.unwrap_err().to_string(), missing, "it is cut");
        store.remove(content).await.unwrap();
        store.remove(content).await.unwrap();
        assert_eq!(store.get(content, 1, PART_BYTES + 3).await.unwrap_err().to_string(), missing);
        assert_eq!(store.get(other, 0, 1).await.unwrap(), part(3, 1));
    }
    assert_eq!(std::fs::read_dir(folder.path().join("files")).unwrap().count(), 1, "the folder went with its parts");
}
