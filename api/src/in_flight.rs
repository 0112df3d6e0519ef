//! Bytes in flight: a limit per caller, then one for all anonymous callers, then one for the process. `bodies` has two instances, and
//! `unread_answers` one.

use std::{fmt, net::IpAddr, sync::Arc};

use crate::{
    auth::{Caller, one_client},
    counts::{CountGuard, Counts},
};

#[derive(Clone)]
pub struct InFlight {
    most: usize,
    most_per_caller: usize,
    /// Bytes of each item that count for its caller alone.
    free: usize,
    all: Arc<Counts<()>>,
    anonymous: Arc<Counts<()>>,
    callers: Arc<Counts<LimitKey>>,
}

/// The key under which limits count a caller. An anonymous caller counts by address, because each of its requests can
/// claim to be a new user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LimitKey {
    User(String),
    Address(IpAddr),
}

impl LimitKey {
    pub fn of(caller: &Caller) -> Self {
        if caller.is_unnamed { Self::Address(one_client(caller.address)) } else { Self::User(caller.owner.clone()) }
    }
}

impl fmt::Display for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(owner) => write!(f, "user:{owner}"),
            Self::Address(address) => write!(f, "address:{address}"),
        }
    }
}

/// Counts bytes in flight until it is dropped.
pub struct InFlightGuard {
    of_caller: CountGuard<LimitKey>,
    of_anonymous: Option<CountGuard<()>>,
    of_all: Option<CountGuard<()>>,
}

/// The limit that refuses more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitExceeded {
    OfCaller { most: usize },
    OfAll,
}

impl InFlight {
    pub fn new(most: usize, most_per_caller: usize) -> Self {
        let (all, anonymous, callers) = Default::default();
        Self { most, most_per_caller, free: 0, all, anonymous, callers }
    }

    /// Has so many bytes of each item count for its caller alone, so that other callers' large items refuse no small one.
    pub fn with_free(self, free: usize) -> Self {
        Self { free, ..self }
    }

    /// Counts bytes for the caller and the process. Fails beyond either limit; the first item always fits, however
    /// large.
    pub fn count(&self, caller: &Caller, bytes: usize) -> Result<InFlightGuard, LimitExceeded> {
        let of_caller = self.count_for_caller(caller, bytes)?;
        let bytes = bytes.saturating_sub(self.free);
        let of_anonymous = if caller.is_unnamed {
            Some(self.anonymous.take((), bytes, self.most / 2).ok_or(LimitExceeded::OfAll)?)
        } else {
            None
        };
        let of_all = self.all.take((), bytes, self.most).ok_or(LimitExceeded::OfAll)?;
        Ok(InFlightGuard { of_anonymous, of_all: Some(of_all), ..of_caller })
    }

    /// Counts more bytes for a guard of this. Fails beyond either limit; an item that is alone always fits, however large.
    pub fn count_more(&self, guard: &mut InFlightGuard, bytes: usize) -> Result<(), LimitExceeded> {
        let (most, before) = (self.most_per_caller, guard.of_caller.amount());
        if !Counts::grow(&mut guard.of_caller, bytes, most) {
            return Err(LimitExceeded::OfCaller { most });
        }
        let shared = guard.of_caller.amount().saturating_sub(self.free) - before.saturating_sub(self.free);
        let fits = |count: &mut Option<CountGuard<()>>, most: usize| {
            shared == 0 || count.as_mut().is_none_or(|count| Counts::grow(count, shared, most))
        };
        if fits(&mut guard.of_anonymous, self.most / 2) && fits(&mut guard.of_all, self.most) {
            return Ok(());
        }
        Err(LimitExceeded::OfAll)
    }

    /// Counts bytes for the caller alone. Fails beyond the caller's limit.
    pub fn count_for_caller(&self, caller: &Caller, bytes: usize) -> Result<InFlightGuard, LimitExceeded> {
        let most = self.most_per_caller;
        let of_caller = self.callers.take(LimitKey::of(caller), bytes, most).ok_or(LimitExceeded::OfCaller { most })?;
        Ok(InFlightGuard { of_caller, of_anonymous: None, of_all: None })
    }

    /// Counts bytes without checking a limit.
    pub fn count_beyond_limits(&self, caller: &Caller, bytes: usize) -> InFlightGuard {
        let most = usize::MAX;
        let never_full = "no count exceeds the largest number";
        let of_caller = self.callers.take(LimitKey::of(caller), bytes, most).expect(never_full);
        InFlightGuard {
            of_caller,
            of_anonymous: caller.is_unnamed.then(|| self.anonymous.take((), bytes, most).expect(never_full)),
            of_all: Some(self.all.take((), bytes, most).expect(never_full)),
        }
    }

    /// Fails if the caller has reached its own limit.
    pub fn expect_room_of_caller(&self, caller: &Caller) -> Result<(), LimitExceeded> {
        let most = self.most_per_caller;
        let is_full = self.callers.count_of(&LimitKey::of(caller)) >= most;
        if is_full { Err(LimitExceeded::OfCaller { most }) } else { Ok(()) }
    }

    /// Fails if the caller, all anonymous callers or the process have reached their limit.
    pub fn expect_room(&self, caller: &Caller) -> Result<(), LimitExceeded> {
        self.expect_room_of_caller(caller)?;
        let is_full =
            self.all.count_of(&()) >= self.most || caller.is_unnamed && self.anonymous.count_of(&()) >= self.most / 2;
        if is_full { Err(LimitExceeded::OfAll) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anonymous(address: [u8; 4]) -> Caller {
        let mut caller = Caller::test("anonymous");
        (caller.is_unnamed, caller.address) = (true, address.into());
        caller
    }

    #[test]
    fn large_items_of_others_refuse_no_small_one() {
        let in_flight = InFlight::new(100, 100).with_free(10);
        let mut large = in_flight.count(&Caller::test("ann"), 0).unwrap();
        in_flight.count_more(&mut large, 110).unwrap();
        let mut small = in_flight.count(&Caller::test("bob"), 0).unwrap();
        in_flight.count_more(&mut small, 10).unwrap();
        assert_eq!(in_flight.count_more(&mut small, 1), Err(LimitExceeded::OfAll));
        assert!(in_flight.expect_room_of_caller(&Caller::test("bob")).is_ok());
    }

    #[test]
    fn all_anonymous_callers_together_leave_half() {
        let in_flight = InFlight::new(100, 40);
        let _first = in_flight.count(&anonymous([192, 0, 2, 1]), 40).unwrap();
        let _second = in_flight.count(&anonymous([192, 0, 2, 2]), 10).unwrap();
        let third = anonymous([192, 0, 2, 3]);
        assert_eq!(in_flight.count(&third, 1).err(), Some(LimitExceeded::OfAll));
        assert_eq!(in_flight.expect_room(&third), Err(LimitExceeded::OfAll));
        assert!(in_flight.count(&Caller::test("ann"), 40).is_ok());
    }
}
