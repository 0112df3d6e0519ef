//! `/v1/collections` and `/v1/documents`: what agents answer from.

pub mod collections;
pub mod documents;
