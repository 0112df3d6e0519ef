//! Quotas and concurrent writes: no combination of writes exceeds a quota.

use futures::future::join_all;
use holdfast_shared::{
    briefing::Briefing,
    conversation::Handle,
    quotas::{Account, FileQuotas, QuotaExceeded, Quotas},
    storage::{Error, NewBriefing, SubmitOutcome, Target},
};
use uuid::Uuid;

use crate::{
    backends::{ROWS, TestBackends, briefing, new_run},
    briefings::stored,
    conversations::{agent, checkpoint_of, claim_of},
    on_each_backend,
};

on_each_backend!(
    a_quota_of_bytes_is_exact_for_twenty_concurrent_writes,
    concurrent_writes_of_different_kinds_keep_to_the_quota_of_bytes,
    a_refused_fork_leaves_no_conversation,
    a_fork_counts_each_copied_byte,
    a_move_keeps_to_the_quotas_of_the_new_owner,
    a_move_beside_new_runs_keeps_to_the_quota_of_runs,
);

const NEW: Target = Target::New { agent_id: None };
const AT_ONCE: usize = 20;

#[derive(Debug, Clone, Copy)]
enum WriteKind {
    Conversation,
    Handle,
    Briefing,
    Card,
    Fork,
    Message,
    MessageInPlace,
}

const KINDS: [WriteKind; 7] = [
    WriteKind::Conversation,
    WriteKind::Handle,
    WriteKind::Briefing,
    WriteKind::Card,
    WriteKind::Fork,
    WriteKind::Message,
    WriteKind::MessageInPlace,
];

/// The rows that the writes of ann need.
struct WriteFixture {
    backends: TestBackends,
    agent_id: Uuid,
    conversation: Uuid,
    checkpoint: Uuid,
    briefings: Vec<Briefing>,
}

impl WriteFixture {
    async fn of(backends: TestBackends) -> Self {
        let agent_id = agent(&backends).await;
        let (run, conversation) = backends.submit(NEW, &"x".repeat(300)).await;
        let checkpoint = checkpoint_of(&backends, &claim_of(&backends, run).await).await;
        let mut briefings = Vec::new();
        for _ in 0..2 * AT_ONCE {
            briefings.push(stored(&backends, briefing(agent_id, "about")).await);
        }
        Self { backends, agent_id, conversation, checkpoint, briefings }
    }

    async fn kept(&self) -> usize {
        self.backends.storage.kept_bytes("ann").await.unwrap()
    }

    /// Writes one row of this kind, and returns whether the quota accepts it.
    async fn write(&self, kind: WriteKind, index: usize, max_bytes: Option<usize>) -> bool {
        let storage = &self.backends.storage;
        let account = Account { owner: "ann", max_bytes };
        let message = |target| new_run(target, &"x".repeat(300));
        let quotas = Quotas { runs: None, bytes: max_bytes };
        let submitted = match kind {
            WriteKind::Conversation => {
                return accepts(storage.create_conversation(account, Uuid::now_v7(), None, None).await);
            }
            WriteKind::Handle => {
                let handle = Handle::Session(format!("session {index}"));
                return accepts(storage.conversation_by_handle(account, &handle).await);
            }
            WriteKind::Briefing => {
                let new = NewBriefing { summary: "x".repeat(300), ..briefing(self.agent_id, "about") };
                return accepts(storage.create_briefing(account, new).await.map(Some));
            }
            WriteKind::Card => {
                return accepts(storage.add_card(account, self.conversation, self.briefings[index].clone()).await);
            }
            WriteKind::Fork => {
                return accepts(storage.fork_conversation(account, self.conversation, self.checkpoint).await);
            }
            WriteKind::Message => storage.submit("ann", &quotas, &message(NEW)).await,
            WriteKind::MessageInPlace => {
                storage.submit("ann", &quotas, &message(Target::Existing(self.conversation))).await
            }
        };
        match submitted.unwrap() {
            SubmitOutcome::Accepted(_) => true,
            SubmitOutcome::QuotaExceeded(_) => false,
            _ => panic!("only the quota may refuse"),
        }
    }
}

fn accepts<T>(written: Result<Option<T>, Error>) -> bool {
    match written {
        Ok(Some(_)) => true,
        Err(Error::Quota { exceeded: QuotaExceeded::Bytes(_), .. }) => false,
        Ok(None) => panic!("the target does not exist"),
        Err(error) => panic!("{error}"),
    }
}

async fn a_quota_of_bytes_is_exact_for_twenty_concurrent_writes(backends: TestBackends) {
    let fixture = WriteFixture::of(backends).await;
    for kind in KINDS {
        let before = fixture.kept().await;
        assert!(fixture.write(kind, AT_ONCE, None).await);
        let kept = fixture.kept().await;
        let bytes = kept - before;
        let max = kept + 7 * bytes + bytes / 2;
        let written = join_all((0..AT_ONCE).map(|index| fixture.write(kind, index, Some(max)))).await;
        let accepted = written.into_iter().filter(|accepted| *accepted).count();
        assert_eq!((accepted, fixture.kept().await), (7, kept + 7 * bytes), "{kind:?}");
    }
}

async fn concurrent_writes_of_different_kinds_keep_to_the_quota_of_bytes(backends: TestBackends) {
    let fixture = WriteFixture::of(backends).await;
    let max = fixture.kept().await + 25_000;
    let kinds = KINDS.into_iter().cycle().take(2 * AT_ONCE).enumerate();
    let written = join_all(kinds.map(|(index, kind)| fixture.write(kind, index, Some(max)))).await;
    let refused = written.iter().filter(|accepted| !**accepted).count();
    let kept = fixture.kept().await;
    assert!(refused > 0 && kept <= max, "{refused} refused, {kept} of {max} bytes kept");
}

/// The bytes of the fixture's fork: a conversation, the copied text with its row, and the rows and the metadata of its checkpoint.
const FORK: usize = 256 + 512 + 300 + ROWS + "{}".len();

async fn a_refused_fork_leaves_no_conversation(backends: TestBackends) {
    let fixture = WriteFixture::of(backends).await;
    let (kept, conversations) =
        (fixture.kept().await, fixture.backends.storage.count_conversations("ann").await.unwrap());
    assert!(!fixture.write(WriteKind::Fork, 0, Some(kept + FORK - 1)).await);
    assert_eq!(fixture.kept().await, kept);
    assert_eq!(fixture.backends.storage.count_conversations("ann").await.unwrap(), conversations);
    assert!(fixture.write(WriteKind::Fork, 0, Some(kept + FORK)).await);
}

async fn a_fork_counts_each_copied_byte(backends: TestBackends) {
    let fixture = WriteFixture::of(backends).await;
    let kept = fixture.kept().await;
    assert!(fixture.write(WriteKind::Fork, 0, None).await);
    assert_eq!(fixture.kept().await, kept + FORK);
}

async fn a_move_keeps_to_the_quotas_of_the_new_owner(backends: TestBackends) {
    for _ in 0..2 {
        backends.submit_as("anonymous_a", NEW, "hi").await;
        backends.submit_as("ann", NEW, "hi").await;
    }
    let together = 4 * (256 + ROWS + "hi".len());
    let shift = async |quotas: Quotas| {
        backends.storage.move_owner("anonymous_a", "ann", &quotas, FileQuotas::default().into()).await
    };
    let refused = async |quotas: Quotas| match shift(quotas).await {
        Err(Error::Quota { exceeded, .. }) => exceeded,
        other => panic!("{other:?}"),
    };
    let short = Quotas { runs: None, bytes: Some(together - 1) };
    assert_eq!(refused(short).await, QuotaExceeded::Bytes(together - 1));
    assert_eq!(refused(Quotas { runs: Some(3), bytes: None }).await, QuotaExceeded::Runs(3));
    for (owner, conversations) in [("anonymous_a", 2), ("ann", 2)] {
        assert_eq!(backends.storage.count_conversations(owner).await.unwrap(), conversations, "{owner} keeps its own");
    }
    let enough = Quotas { runs: Some(4), bytes: Some(together) };
    assert_eq!(shift(enough).await.unwrap(), 2);
    let nothing = Quotas { runs: Some(1), bytes: Some(1) };
    assert_eq!(shift(nothing).await.unwrap(), 0, "an empty move exceeds no quota");
}

async fn a_move_beside_new_runs_keeps_to_the_quota_of_runs(backends: TestBackends) {
    for round in 0..3 {
        let (from, to) = (format!("anonymous_{round}"), format!("ann{round}"));
        for _ in 0..3 {
            backends.submit_as(&from, NEW, "hi").await;
        }
        let quotas = Quotas { runs: Some(10), bytes: None };
        let new: Vec<_> = (0..AT_ONCE).map(|_| new_run(NEW, "hi")).collect();
        let submits = join_all(new.iter().map(|new| backends.storage.submit(&to, &quotas, new)));
        let (submitted, moved) =
            tokio::join!(submits, backends.storage.move_owner(&from, &to, &quotas, FileQuotas::default().into()));
        let accepted = submitted.into_iter().filter(|one| matches!(one.as_ref().unwrap(), SubmitOutcome::Accepted(_)));
        let moved = match moved {
            Ok(moved) => moved,
            Err(Error::Quota { exceeded: QuotaExceeded::Runs(10), .. }) => 0,
            Err(error) => panic!("{error}"),
        };
        let runs = accepted.count() + moved;
        assert!((8..=10).contains(&runs), "{runs} unfinished runs");
    }
}
