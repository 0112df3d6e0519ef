//! The limit on request bodies in flight: bytes that this process reads for all callers, and for one.

use std::{net::IpAddr, sync::Arc};

use axum::http::{HeaderMap, header};

use crate::{
    auth::{Caller, one_client},
    held::{Counts, Held},
    problem::Problem,
};

pub struct Bodies {
    most: usize,
    most_per_caller: usize,
    most_per_body: usize,
    all: Arc<Counts<()>>,
    callers: Arc<Counts<Reader>>,
}

/// Anonymous callers can be somebody new with every request, but not from another address.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Reader {
    User(String),
    Address(IpAddr),
}

/// The right to read one body, until it is dropped.
pub struct Reading {
    _of_all: Held<()>,
    _of_caller: Held<Reader>,
}

impl Bodies {
    pub fn new(most: usize, most_per_caller: usize, most_per_body: usize) -> Self {
        Self { most, most_per_caller, most_per_body, all: Arc::default(), callers: Arc::default() }
    }

    /// Lets a body be read. One that does not say its length counts as the longest that is taken.
    pub fn read(&self, caller: &Caller, headers: &HeaderMap) -> Result<Reading, Problem> {
        let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let bytes = length.unwrap_or(self.most_per_body).min(self.most_per_body);
        let reader = match caller.is_stranger {
            true => Reader::Address(one_client(caller.address)),
            false => Reader::User(caller.owner.clone()),
        };
        let of_caller = self.callers.take(reader, bytes, self.most_per_caller);
        let of_caller = of_caller.ok_or_else(|| Problem::too_many_bodies(self.most_per_caller))?;
        let of_all = self.all.take((), bytes, self.most).ok_or_else(Problem::bodies_busy)?;
        Ok(Reading { _of_all: of_all, _of_caller: of_caller })
    }
}
