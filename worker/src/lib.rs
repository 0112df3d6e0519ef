//! Executes runs.

pub mod model;
