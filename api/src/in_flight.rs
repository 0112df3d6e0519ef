//! Bytes in flight: a limit per caller, then one for the process. `bodies` and `unread_answers` have one instance each.

use std::{fmt, net::IpAddr, sync::Arc};

use crate::{
    auth::{Caller, one_client},
    counts::{CountGuard, Counts},
};

pub struct InFlight {
    most: usize,
    most_per_caller: usize,
    all: Arc<Counts<()>>,
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
        Self { most, most_per_caller, all: Arc::default(), callers: Arc::default() }
    }

    /// Counts bytes for the caller and the process. Fails beyond either limit; the first item always fits, however
    /// large.
    pub fn count(&self, caller: &Caller, bytes: usize) -> Result<InFlightGuard, LimitExceeded> {
        let of_caller = self.count_for_caller(caller, bytes)?;
        let of_all = self.all.take((), bytes, self.most).ok_or(LimitExceeded::OfAll)?;
        Ok(InFlightGuard { of_all: Some(of_all), ..of_caller })
    }

    /// Counts more bytes for a guard of this. Fails beyond either limit; an item that is alone always fits, however large.
    pub fn count_more(&self, guard: &mut InFlightGuard, bytes: usize) -> Result<(), LimitExceeded> {
        let most = self.most_per_caller;
        if !Counts::grow(&mut guard.of_caller, bytes, most) {
            return Err(LimitExceeded::OfCaller { most });
        }
        let fits = guard.of_all.as_mut().is_none_or(|of_all| Counts::grow(of_all, bytes, self.most));
        if fits { Ok(()) } else { Err(LimitExceeded::OfAll) }
    }

    /// Counts bytes for the caller alone. Fails beyond the caller's limit.
    pub fn count_for_caller(&self, caller: &Caller, bytes: usize) -> Result<InFlightGuard, LimitExceeded> {
        let most = self.most_per_caller;
        let of_caller = self.callers.take(LimitKey::of(caller), bytes, most).ok_or(LimitExceeded::OfCaller { most })?;
        Ok(InFlightGuard { of_caller, of_all: None })
    }

    /// Counts bytes without checking a limit.
    pub fn count_beyond_limits(&self, caller: &Caller, bytes: usize) -> InFlightGuard {
        let most = usize::MAX;
        let never_full = "no count exceeds the largest number";
        let of_caller = self.callers.take(LimitKey::of(caller), bytes, most).expect(never_full);
        InFlightGuard { of_caller, of_all: Some(self.all.take((), bytes, most).expect(never_full)) }
    }

    /// Fails if the caller or the process has reached its limit.
    pub fn expect_room(&self, caller: &Caller) -> Result<(), LimitExceeded> {
        let most = self.most_per_caller;
        if self.callers.count_of(&LimitKey::of(caller)) >= most {
            return Err(LimitExceeded::OfCaller { most });
        }
        if self.all.count_of(&()) >= self.most {
            return Err(LimitExceeded::OfAll);
        }
        Ok(())
    }
}
