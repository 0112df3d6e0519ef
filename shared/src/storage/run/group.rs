//! Groups: the writes of several runs in one transaction.
//!
//! While one commit is under way, the next group gathers, and a lone write waits for no other. `tests/model/src/group.rs`
//! has the rules: each member has its own fence, a group leaves out locked rows, and a refused group is split. The second
//! and the third leave members to be written alone.

use tokio::sync::{mpsc, oneshot};

/// Most members of a group, so that its statement holds locks for a short time.
const MAX_MEMBERS: usize = 64;

/// A writer that groups its members; cheap to clone.
pub struct Group<T> {
    pending: mpsc::UnboundedSender<(T, oneshot::Sender<GroupOutcome>)>,
}

/// The outcome of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupOutcome {
    /// It is committed.
    Written,
    /// It is perhaps not written. Its caller writes it alone, and finds its own work if there is some.
    Alone,
}

impl<T> Clone for Group<T> {
    fn clone(&self) -> Self {
        Self { pending: self.pending.clone() }
    }
}

impl<T: Send + 'static> Group<T> {
    /// Starts the writer, which ends with the last clone. `write` writes a group, and returns an outcome for each member.
    pub fn start<F>(write: impl Fn(Vec<T>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Vec<GroupOutcome>> + Send,
    {
        let (pending, mut members) = mpsc::unbounded_channel::<(T, oneshot::Sender<GroupOutcome>)>();
        tokio::spawn(async move {
            let mut gathered = Vec::new();
            while members.recv_many(&mut gathered, MAX_MEMBERS).await > 0 {
                let (group, callers): (Vec<_>, Vec<_>) = gathered.drain(..).unzip();
                for (outcome, caller) in write(group).await.into_iter().zip(callers) {
                    // A caller that has given up needs no outcome.
                    let _ = caller.send(outcome);
                }
            }
        });
        Self { pending }
    }

    /// Writes a member with its group.
    pub async fn write(&self, member: T) -> GroupOutcome {
        let (caller, outcome) = oneshot::channel();
        // The writer ends only with the process.
        let _ = self.pending.send((member, caller));
        outcome.await.unwrap_or(GroupOutcome::Alone)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::sync::Notify;

    use super::{Group, GroupOutcome};

    #[tokio::test]
    async fn members_gather_while_a_group_is_written_and_a_lone_one_waits_for_none() {
        let (groups, commit) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let (written, committed) = (Arc::clone(&groups), Arc::clone(&commit));
        let group = Group::start(move |members: Vec<u32>| {
            let (written, committed) = (Arc::clone(&written), Arc::clone(&committed));
            async move {
                let outcomes = members.iter().map(|member| match member % 2 {
                    0 => GroupOutcome::Written,
                    _ => GroupOutcome::Alone,
                });
                let outcomes = outcomes.collect();
                written.lock().unwrap().push(members);
                committed.notified().await;
                outcomes
            }
        });
        let write = |member| {
            let group = group.clone();
            tokio::spawn(async move { group.write(member).await })
        };
        let first = write(0);
        while groups.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let (second, third) = (write(1), write(2));
        while !second.is_finished() || !third.is_finished() {
            commit.notify_one();
            tokio::task::yield_now().await;
        }
        assert_eq!(first.await.unwrap(), GroupOutcome::Written);
        assert_eq!((second.await.unwrap(), third.await.unwrap()), (GroupOutcome::Alone, GroupOutcome::Written));
        assert_eq!(groups.lock().unwrap()[0], [0]);
        assert_eq!(groups.lock().unwrap().concat(), [0, 1, 2]);
    }
}
