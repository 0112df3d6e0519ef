//! Quotas beside parallel writes: no owner exceeds one, whichever writes come together.

use futures::future::join_all;
use holdfast_shared::{
    briefing::Briefing,
    conversation::Handle,
    quotas::{Account, Exceeded, Quotas},
    storage::{Error, NewBriefing, Submitted, Target},
};
use uuid::Uuid;

use crate::{
    briefings::stored,
    conversations::{agent, checkpoint_of, claim_of},
    on_each_backend,
    places::{Places, briefing, new_run},
};

on_each_backend!(
    of_twenty_writes_at_once_the_quota_of_bytes_accepts_exactly_as_many_as_fit,
    writes_of_different_kinds_at_once_keep_to_the_quota_of_bytes,
    a_refused_fork_leaves_nothing_behind,
    a_fork_counts_all_that_it_copies,
    a_move_keeps_to_the_quotas_of_the_new_owner,
    a_move_beside_new_runs_keeps_to_the_quota_of_runs,
);

const NEW: Target = Target::New { agent_id: None };
const AT_ONCE: usize = 20;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Conversation,
    Handle,
    Briefing,
    Card,
    Fork,
    Message,
    MessageInPlace,
}

const KINDS: [Kind; 7] =
    [Kind::Conversation, Kind::Handle, Kind::Briefing, Kind::Card, Kind::Fork, Kind::Message, Kind::MessageInPlace];

/// What the writes of ann need.
struct Desk {
    places: Places,
    agent_id: Uuid,
    conversation: Uuid,
    checkpoint: Uuid,
    briefings: Vec<Briefing>,
}

impl Desk {
    async fn of(places: Places) -> Self {
        let agent_id = agent(&places).await;
        let (run, conversation) = places.submit(NEW, &"x".repeat(300)).await;
        let checkpoint = checkpoint_of(&places, &claim_of(&places, run).await).await;
        let mut briefings = Vec::new();
        for _ in 0..2 * AT_ONCE {
            briefings.push(stored(&places, briefing(agent_id, "about")).await);
        }
        Self { places, agent_id, conversation, checkpoint, briefings }
    }

    async fn kept(&self) -> usize {
        self.places.storage.kept_bytes("ann").await.unwrap()
    }

    /// Writes something of this kind; returns whether the quota accepts it.
    async fn write(&self, kind: Kind, index: usize, max_bytes: Option<usize>) -> bool {
        let storage = &self.places.storage;
        let account = Account { owner: "ann", max_bytes };
        let message = |target| new_run(target, &"x".repeat(300));
        let quotas = Quotas { runs: None, bytes: max_bytes };
        let submitted = match kind {
            Kind::Conversation => {
                return accepts(storage.create_conversation(account, Uuid::now_v7(), None, None).await);
            }
            Kind::Handle => {
                let handle = Handle::Session(format!("session {index}"));
                return accepts(storage.conversation_by_handle(account, &handle).await);
            }
            Kind::Briefing => {
                let new = NewBriefing { summary: "x".repeat(300), ..briefing(self.agent_id, "about") };
                return accepts(storage.create_briefing(account, new).await.map(Some));
            }
            Kind::Card => {
                return accepts(storage.add_card(account, self.conversation, self.briefings[index].clone()).await);
            }
            Kind::Fork => {
                return accepts(storage.fork_conversation(account, self.conversation, self.checkpoint).await);
            }
            Kind::Message => storage.submit("ann", &quotas, &message(NEW)).await,
            Kind::MessageInPlace => storage.submit("ann", &quotas, &message(Target::Existing(self.conversation))).await,
        };
        match submitted.unwrap() {
            Submitted::Accepted(_) => true,
            Submitted::QuotaExceeded(_) => false,
            _ => panic!("the quota alone refuses"),
        }
    }
}

fn accepts<T>(written: Result<Option<T>, Error>) -> bool {
    match written {
        Ok(Some(_)) => true,
        Err(Error::Quota { exceeded: Exceeded::Bytes(_), .. }) => false,
        Ok(None) => panic!("there is nothing to write to"),
        Err(error) => panic!("{error}"),
    }
}

async fn of_twenty_writes_at_once_the_quota_of_bytes_accepts_exactly_as_many_as_fit(places: Places) {
    let desk = Desk::of(places).await;
    for kind in KINDS {
        let before = desk.kept().await;
        assert!(desk.write(kind, AT_ONCE, None).await);
        let kept = desk.kept().await;
        let bytes = kept - before;
        let max = kept + 7 * bytes + bytes / 2;
        let written = join_all((0..AT_ONCE).map(|index| desk.write(kind, index, Some(max)))).await;
        let accepted = written.into_iter().filter(|accepted| *accepted).count();
        assert_eq!((accepted, desk.kept().await), (7, kept + 7 * bytes), "{kind:?}");
    }
}

async fn writes_of_different_kinds_at_once_keep_to_the_quota_of_bytes(places: Places) {
    let desk = Desk::of(places).await;
    let max = desk.kept().await + 5_000;
    let kinds = KINDS.into_iter().cycle().take(2 * AT_ONCE).enumerate();
    let written = join_all(kinds.map(|(index, kind)| desk.write(kind, index, Some(max)))).await;
    let refused = written.iter().filter(|accepted| !**accepted).count();
    let kept = desk.kept().await;
    assert!(refused > 0 && kept <= max, "{refused} refused, {kept} of {max} bytes kept");
}

async fn a_refused_fork_leaves_nothing_behind(places: Places) {
    let desk = Desk::of(places).await;
    let (kept, conversations) = (desk.kept().await, desk.places.storage.count_conversations("ann").await.unwrap());
    assert!(!desk.write(Kind::Fork, 0, Some(kept + 256 + 299)).await);
    assert_eq!(desk.kept().await, kept);
    assert_eq!(desk.places.storage.count_conversations("ann").await.unwrap(), conversations);
    assert!(desk.write(Kind::Fork, 0, Some(kept + 256 + 300)).await);
}

async fn a_fork_counts_all_that_it_copies(places: Places) {
    let desk = Desk::of(places).await;
    let kept = desk.kept().await;
    assert!(desk.write(Kind::Fork, 0, None).await);
    assert_eq!(desk.kept().await, kept + 256 + 300);
}

async fn a_move_keeps_to_the_quotas_of_the_new_owner(places: Places) {
    for _ in 0..2 {
        places.submit_as("anonymous_a", NEW, "hi").await;
        places.submit_as("ann", NEW, "hi").await;
    }
    let together = 4 * (256 + "hi".len());
    let shift = async |quotas: Quotas| places.storage.move_owner("anonymous_a", "ann", &quotas).await;
    let refused = async |quotas: Quotas| match shift(quotas).await {
        Err(Error::Quota { exceeded, .. }) => exceeded,
        other => panic!("{other:?}"),
    };
    let short = Quotas { runs: None, bytes: Some(together - 1) };
    assert_eq!(refused(short).await, Exceeded::Bytes(together - 1));
    assert_eq!(refused(Quotas { runs: Some(3), bytes: None }).await, Exceeded::Runs(3));
    for (owner, conversations) in [("anonymous_a", 2), ("ann", 2)] {
        assert_eq!(places.storage.count_conversations(owner).await.unwrap(), conversations, "{owner} keeps its own");
    }
    let enough = Quotas { runs: Some(4), bytes: Some(together) };
    assert_eq!(shift(enough).await.unwrap(), 2);
    let nothing = Quotas { runs: Some(1), bytes: Some(1) };
    assert_eq!(shift(nothing).await.unwrap(), 0, "a move that brings nothing exceeds nothing");
}

async fn a_move_beside_new_runs_keeps_to_the_quota_of_runs(places: Places) {
    for round in 0..3 {
        let (from, to) = (format!("anonymous_{round}"), format!("ann{round}"));
        for _ in 0..3 {
            places.submit_as(&from, NEW, "hi").await;
        }
        let quotas = Quotas { runs: Some(10), bytes: None };
        let new: Vec<_> = (0..AT_ONCE).map(|_| new_run(NEW, "hi")).collect();
        let submits = join_all(new.iter().map(|new| places.storage.submit(&to, &quotas, new)));
        let (submitted, moved) = tokio::join!(submits, places.storage.move_owner(&from, &to, &quotas));
        let accepted = submitted.into_iter().filter(|one| matches!(one.as_ref().unwrap(), Submitted::Accepted(_)));
        let moved = match moved {
            Ok(moved) => moved,
            Err(Error::Quota { exceeded: Exceeded::Runs(10), .. }) => 0,
            Err(error) => panic!("{error}"),
        };
        let runs = accepted.count() + moved;
        assert!((8..=10).contains(&runs), "{runs} unfinished runs");
    }
}
