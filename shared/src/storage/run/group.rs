//! Groups: the writes of several runs in one transaction.
//!
//! While one commit is under way, the next group gathers, and a lone write waits for no other. `tests/model/src/group.rs`
//! has the rules: each member has its own fence, a group leaves out locked rows, and a refused group is split. The second
//! and the third leave members to be written alone.

use tokio::sync::{mpsc, oneshot};

/// Most members of a group, so that its statement holds locks for a short time.
const MAX_MEMBERS: usize = 32;

/// Most bytes that a member brings to a group. A larger one would delay the others.
pub const MAX_BYTES: usize = 128 * 1024;

/// A writer that groups its members; cheap to clone.
pub struct Group<T, R> {
    pending: mpsc::UnboundedSender<(T, oneshot::Sender<Option<R>>)>,
}

impl<T, R> Clone for Group<T, R> {
    fn clone(&self) -> Self {
        Self { pending: self.pending.clone() }
    }
}

impl<T: Send + 'static, R: Send + 'static> Group<T, R> {
    /// Starts the writer, which ends with the last clone. `write` writes a group, and returns the result of each member;
    /// `None` for members that are to be written alone.
    pub fn start<F>(write: impl Fn(Vec<T>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Vec<Option<R>>> + Send,
    {
        let (pending, mut members) = mpsc::unbounded_channel::<(T, oneshot::Sender<Option<R>>)>();
        tokio::spawn(async move {
            let mut gathered = Vec::new();
            while members.recv_many(&mut gathered, MAX_MEMBERS).await > 0 {
                let (group, callers): (Vec<_>, Vec<_>) = gathered.drain(..).unzip();
                for (result, caller) in write(group).await.into_iter().zip(callers) {
                    // A caller that has given up needs no result.
                    let _ = caller.send(result);
                }
            }
        });
        Self { pending }
    }

    /// Writes a member with its group. If it returns `None`, the member is perhaps not written. Its caller writes it alone,
    /// and finds its own work if there is some.
    pub async fn write(&self, member: T) -> Option<R> {
        let (caller, result) = oneshot::channel();
        // The writer ends only with the process.
        let _ = self.pending.send((member, caller));
        result.await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::sync::Notify;

    use super::Group;

    #[tokio::test]
    async fn members_gather_while_a_group_is_written_and_a_lone_one_waits_for_none() {
        let (groups, commit) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let (written, committed) = (Arc::clone(&groups), Arc::clone(&commit));
        let group = Group::start(move |members: Vec<u32>| {
            let (written, committed) = (Arc::clone(&written), Arc::clone(&committed));
            async move {
                let results = members.iter().map(|member| (member % 2 == 0).then_some(*member)).collect();
                written.lock().unwrap().push(members);
                committed.notified().await;
                results
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
        assert_eq!(first.await.unwrap(), Some(0));
        assert_eq!((second.await.unwrap(), third.await.unwrap()), (None, Some(2)));
        assert_eq!(groups.lock().unwrap()[0], [0]);
        assert_eq!(groups.lock().unwrap().concat(), [0, 1, 2]);
    }
}
