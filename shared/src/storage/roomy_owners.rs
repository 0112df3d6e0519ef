//! Owners with much room below their quota of bytes. Their messages need no sum of all that they keep, which takes longer
//! the more that is: 130,000 conversations take 60 ms.
//!
//! A measurement holds for some seconds. Meanwhile each process admits a sixteenth of the room, so that several of them,
//! and the answers of the runs, do not exceed it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{Error, Storage};
use crate::quotas::Quotas;

/// Time for which a measurement holds.
const HOLDS: Duration = Duration::from_secs(10);

/// Least room of a roomy owner. With less, each message is checked.
const LEAST: usize = 16 << 20;

/// The part of the room that one process admits per measurement.
const PART: usize = 16;

/// Most owners with a measurement. More are measured again.
const MAX_OWNERS: usize = 10_000;

/// The measured owners of this process; cheap to clone.
#[derive(Clone, Default)]
pub(super) struct RoomyOwners(Arc<Mutex<HashMap<String, OwnerRoom>>>);

struct OwnerRoom {
    measured_at: Instant,
    /// The bytes that this process may still admit.
    bytes: usize,
    /// Whether there was room at all.
    is_roomy: bool,
    /// Whether a caller measures again. The others use the old measurement meanwhile.
    is_being_measured: bool,
}

impl RoomyOwners {
    /// Takes bytes from an owner's room, and returns whether they were there. `None` if the caller must measure, because the
    /// measurement is old or its room is used up.
    fn take(&self, owner: &str, bytes: usize) -> Option<bool> {
        let mut owners = self.lock();
        let room = owners.get_mut(owner)?;
        let age = room.measured_at.elapsed();
        let has_room = bytes <= room.bytes;
        let is_due = age > HOLDS || room.is_roomy && !has_room;
        // A caller that gave up measures nothing.
        if is_due && (!room.is_being_measured || age > 2 * HOLDS) {
            room.is_being_measured = true;
            return None;
        }
        if has_room {
            room.bytes -= bytes;
        }
        Some(has_room)
    }

    fn set(&self, owner: &str, max: usize, kept: usize) {
        let mut owners = self.lock();
        if owners.len() >= MAX_OWNERS {
            owners.retain(|_, room| room.measured_at.elapsed() <= HOLDS);
        }
        if owners.len() >= MAX_OWNERS {
            owners.clear();
        }
        let free = max.saturating_sub(kept);
        let bytes = if free < LEAST { 0 } else { free / PART };
        let measured_at = Instant::now();
        owners
            .insert(owner.to_owned(), OwnerRoom { measured_at, bytes, is_roomy: bytes > 0, is_being_measured: false });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, OwnerRoom>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage {
    /// Returns the quotas that a message of `brings` bytes must be checked against: without bytes for a roomy owner.
    pub(super) async fn quotas_to_check(&self, owner: &str, quotas: Quotas, brings: usize) -> Result<Quotas, Error> {
        let Some(max) = quotas.bytes else { return Ok(quotas) };
        let is_roomy = match self.roomy_owners.take(owner, brings) {
            Some(is_roomy) => is_roomy,
            None => {
                self.roomy_owners.set(owner, max, self.kept_bytes(owner).await?);
                // A message that is larger than the room is checked.
                self.roomy_owners.take(owner, brings) == Some(true)
            }
        };
        Ok(if is_roomy { Quotas { bytes: None, ..quotas } } else { quotas })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_admits_a_part_of_the_room_and_none_if_it_is_small() {
        let owners = RoomyOwners::default();
        assert_eq!(owners.take("ann", 1), None);
        owners.set("ann", PART * LEAST, 0);
        assert_eq!(owners.take("ann", LEAST), Some(true));
        // The room is used up, so one caller measures it again.
        assert_eq!([owners.take("ann", 1), owners.take("ann", 1)], [None, Some(false)]);
        owners.set("ann", LEAST + 10, 10);
        assert_eq!(owners.take("ann", LEAST / PART), Some(true));
        owners.set("ann", LEAST + 9, 10);
        assert_eq!(owners.take("ann", 0), Some(true));
        assert_eq!(owners.take("ann", 1), Some(false));
    }

    #[test]
    fn strangers_fill_no_memory() {
        let owners = RoomyOwners::default();
        (0..3 * MAX_OWNERS).for_each(|n| owners.set(&n.to_string(), usize::MAX, 0));
        assert!(owners.lock().len() <= MAX_OWNERS);
    }
}
