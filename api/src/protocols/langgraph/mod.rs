//! The protocol of the SDKs of LangGraph: its routes and its wire.

pub mod problem;
pub mod routes;
pub mod wire;
