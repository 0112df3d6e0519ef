//! Groups: the writes of several runs in one transaction.
//!
//! While one group is under way, the next gathers, and a lone write waits for no other. If no write is under way, a caller may
//! write alone, with a cheaper statement; no group waits for it. `tests/model/src/group.rs` has the rules: each member has
//! its own fence, a group leaves out locked rows, and a refused group is split. The second and the third leave members to
//! be written alone.
//!
//! A group that loses its connection may be committed, so its members fail as a lone write does then. The members that
//! wait behind it fail with it, because each group would wait for the same database in turn.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::{mpsc, oneshot};

use crate::storage::Error;

/// Most members of a group, so that its statement holds locks for a short time.
const MAX_MEMBERS: usize = 32;

/// Most bytes that a member brings to a group. A larger one would delay the others.
pub const MAX_BYTES: usize = 128 * 1024;

/// A writer that groups its members; cheap to clone.
pub struct Group<T, R> {
    /// Each waiting caller has one member here, and requests are limited before they write. A caller that gives up leaves its
    /// member until the next group.
    pending: mpsc::UnboundedSender<Member<T, R>>,
    under_way: WritesUnderWay,
}

/// The number of writes under way: a group, and lone callers.
#[derive(Clone, Default)]
struct WritesUnderWay(Arc<AtomicUsize>);

/// A write that counts as under way until it is dropped.
pub struct WriteUnderWay(WritesUnderWay);

impl WritesUnderWay {
    fn begin(&self) -> WriteUnderWay {
        self.0.fetch_add(1, Ordering::Relaxed);
        WriteUnderWay(self.clone())
    }

    fn begin_first(&self) -> Option<WriteUnderWay> {
        self.0.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        Some(WriteUnderWay(self.clone()))
    }
}

impl Drop for WriteUnderWay {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A write and its caller. `None` for the caller means that it writes the member alone.
type Member<T, R> = (T, oneshot::Sender<Result<Option<R>, Error>>);

impl<T, R> Clone for Group<T, R> {
    fn clone(&self) -> Self {
        Self { pending: self.pending.clone(), under_way: self.under_way.clone() }
    }
}

impl<T: Send + 'static, R: Send + 'static> Group<T, R> {
    /// Starts the writer, which ends with the last clone. `write` writes a group, and returns the result of each member;
    /// `None` for members that it left out.
    pub fn start<F>(write: impl Fn(Vec<T>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<Vec<Option<R>>, Error>> + Send + 'static,
    {
        let (pending, members) = mpsc::unbounded_channel();
        let under_way = WritesUnderWay::default();
        tokio::spawn(write_groups(write, members, under_way.clone()));
        Self { pending, under_way }
    }

    /// Begins a write that the caller makes alone. `None` if another write is under way: the caller joins the next group.
    pub fn begin_alone(&self) -> Option<WriteUnderWay> {
        self.under_way.begin_first()
    }

    /// Writes a member with its group. If it returns `None`, the member is not written, and its caller writes it alone.
    /// Fails like a lone write: the member may be written if the database was lost.
    pub async fn write(&self, member: T) -> Result<Option<R>, Error> {
        let (caller, result) = oneshot::channel();
        // The writer ends only with the process.
        let _ = self.pending.send((member, caller));
        result.await.unwrap_or(Ok(None))
    }
}

async fn write_groups<T, R, F>(
    write: impl Fn(Vec<T>) -> F,
    mut members: mpsc::UnboundedReceiver<Member<T, R>>,
    under_way: WritesUnderWay,
) where
    F: Future<Output = Result<Vec<Option<R>>, Error>>,
{
    let mut gathered = Vec::new();
    while members.recv_many(&mut gathered, MAX_MEMBERS).await > 0 {
        // A caller that has given up writes alone, or has lost its run.
        gathered.retain(|(_, caller)| !caller.is_closed());
        if gathered.is_empty() {
            continue;
        }
        let _write = under_way.begin();
        let (group, mut callers): (Vec<_>, Vec<_>) = gathered.drain(..).unzip();
        // A caller that has given up needs no result, so a failed send is none.
        match write(group).await {
            Ok(results) => {
                for (result, caller) in results.into_iter().zip(callers) {
                    let _ = caller.send(Ok(result));
                }
            }
            Err(error) if error.is_rolled_back() => {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(
                    members = callers.len(),
                    error,
                    "failed to write a group; its members are written alone"
                );
                callers.into_iter().for_each(|caller| drop(caller.send(Ok(None))));
            }
            Err(error) => {
                callers.extend(std::iter::from_fn(|| members.try_recv().ok()).map(|(_, caller)| caller));
                callers.into_iter().for_each(|caller| drop(caller.send(Err(error.for_another_caller()))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::{sync::Notify, task::JoinHandle};

    use super::Group;

    use crate::storage::Error;

    type Results = Result<Vec<Option<u32>>, Error>;

    /// A group that stores the members of each write, and waits for `commit` before it returns the results.
    struct TestGroup {
        group: Group<u32, u32>,
        written: Arc<Mutex<Vec<Vec<u32>>>>,
        commit: Arc<Notify>,
    }

    impl TestGroup {
        fn start(results: fn(&[u32]) -> Results) -> Self {
            let (written, commit) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
            let (groups, committed) = (Arc::clone(&written), Arc::clone(&commit));
            let group = Group::start(move |members: Vec<u32>| {
                let (groups, committed) = (Arc::clone(&groups), Arc::clone(&committed));
                async move {
                    let results = results(&members);
                    groups.lock().unwrap().push(members);
                    committed.notified().await;
                    results
                }
            });
            Self { group, written, commit }
        }

        fn write(&self, member: u32) -> JoinHandle<Result<Option<u32>, Error>> {
            let group = self.group.clone();
            tokio::spawn(async move { group.write(member).await })
        }

        /// Returns the members of all groups so far.
        fn groups(&self) -> Vec<Vec<u32>> {
            self.written.lock().unwrap().clone()
        }
    }

    async fn until(condition: impl Fn() -> bool) {
        while !condition() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn members_gather_while_a_group_is_written_and_a_lone_one_waits_for_none() {
        let group = TestGroup::start(|members| Ok(members.iter().map(|one| (one % 2 == 0).then_some(*one)).collect()));
        let first = group.write(0);
        until(|| !group.groups().is_empty()).await;
        let (second, third) = (group.write(1), group.write(2));
        // Both are sent when their tasks have run once.
        tokio::task::yield_now().await;
        group.commit.notify_one();
        until(|| group.groups().len() == 2).await;
        group.commit.notify_one();
        assert_eq!(first.await.unwrap().unwrap(), Some(0));
        assert_eq!((second.await.unwrap().unwrap(), third.await.unwrap().unwrap()), (None, Some(2)));
        assert_eq!(group.groups(), [vec![0], vec![1, 2]]);
    }

    #[tokio::test]
    async fn one_caller_writes_alone_while_nothing_is_under_way_and_no_group_waits_for_it() {
        let group = TestGroup::start(|members| Ok(members.iter().map(|one| Some(*one)).collect()));
        let alone = group.group.begin_alone().expect("nothing is under way");
        assert!(group.group.begin_alone().is_none(), "two callers wrote alone");
        let member = group.write(0);
        until(|| !group.groups().is_empty()).await;
        drop(alone);
        assert!(group.group.begin_alone().is_none(), "a group is under way");
        group.commit.notify_one();
        assert_eq!(member.await.unwrap().unwrap(), Some(0));
        until(|| group.group.begin_alone().is_some()).await;
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_is_no_member_of_the_next_group() {
        let group = TestGroup::start(|members| Ok(members.iter().map(|one| Some(*one)).collect()));
        let first = group.write(0);
        until(|| !group.groups().is_empty()).await;
        let (gone, second) = (group.write(1), group.write(2));
        tokio::task::yield_now().await;
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        group.commit.notify_one();
        until(|| group.groups().len() == 2).await;
        group.commit.notify_one();
        assert_eq!((first.await.unwrap().unwrap(), second.await.unwrap().unwrap()), (Some(0), Some(2)));
        assert_eq!(group.groups(), [[0], [2]]);
    }

    #[tokio::test]
    async fn members_of_a_lost_group_fail_together_with_those_that_wait() {
        let group = TestGroup::start(|_| Err(Error::doing("test")(sqlx::Error::PoolTimedOut)));
        let first = group.write(0);
        until(|| !group.groups().is_empty()).await;
        let others: Vec<_> = (1..100).map(|member| group.write(member)).collect();
        tokio::task::yield_now().await;
        group.commit.notify_one();
        for member in others.into_iter().chain([first]) {
            assert!(member.await.unwrap().unwrap_err().is_away());
        }
        assert_eq!(group.groups(), [[0]], "no other group waited for the database");
    }
}
