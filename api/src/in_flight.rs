//! Bytes that callers have in flight: a limit for each caller, then one for all. Request bodies and answers have one each.

use std::{fmt, net::IpAddr, sync::Arc};

use crate::{
    auth::{Caller, one_client},
    held::{Counts, Held},
};

pub struct InFlight {
    most: usize,
    most_per_caller: usize,
    all: Arc<Counts<()>>,
    callers: Arc<Counts<Reader>>,
}

/// The caller as limits know it. Anonymous callers can be somebody new with every request, but not from another address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reader {
    User(String),
    Address(IpAddr),
}

impl Reader {
    pub fn of(caller: &Caller) -> Self {
        if caller.is_stranger { Self::Address(one_client(caller.address)) } else { Self::User(caller.owner.clone()) }
    }
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(owner) => write!(f, "user:{owner}"),
            Self::Address(address) => write!(f, "address:{address}"),
        }
    }
}

/// Bytes in flight; they count until this is dropped.
pub struct Flight {
    _of_caller: Held<Reader>,
    _of_all: Option<Held<()>>,
}

/// The limit that refuses more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    OfCaller { most: usize },
    OfAll,
}

impl InFlight {
    pub fn new(most: usize, most_per_caller: usize) -> Self {
        Self { most, most_per_caller, all: Arc::default(), callers: Arc::default() }
    }

    /// Counts bytes. One thing is always taken, however large.
    pub fn take(&self, caller: &Caller, bytes: usize) -> Result<Flight, Full> {
        let of_caller = self.take_of_caller(caller, bytes)?;
        let of_all = self.all.take((), bytes, self.most).ok_or(Full::OfAll)?;
        Ok(Flight { _of_all: Some(of_all), ..of_caller })
    }

    /// Counts bytes for the caller alone.
    pub fn take_of_caller(&self, caller: &Caller, bytes: usize) -> Result<Flight, Full> {
        let most = self.most_per_caller;
        let of_caller = self.callers.take(Reader::of(caller), bytes, most).ok_or(Full::OfCaller { most })?;
        Ok(Flight { _of_caller: of_caller, _of_all: None })
    }

    /// Counts bytes beyond any limit.
    pub fn take_anyway(&self, caller: &Caller, bytes: usize) -> Flight {
        let most = usize::MAX;
        let never_full = "no count exceeds the largest number";
        let of_caller = self.callers.take(Reader::of(caller), bytes, most).expect(never_full);
        Flight { _of_caller: of_caller, _of_all: Some(self.all.take((), bytes, most).expect(never_full)) }
    }

    /// Refuses a caller for whom nothing more can be taken.
    pub fn expect_room(&self, caller: &Caller) -> Result<(), Full> {
        let most = self.most_per_caller;
        if self.callers.held_by(&Reader::of(caller)) >= most {
            return Err(Full::OfCaller { most });
        }
        if self.all.held_by(&()) >= self.most {
            return Err(Full::OfAll);
        }
        Ok(())
    }
}
