//! Tools: what a model can do besides talking.
//!
//! `Toolbox` has the tools of one run under the names that the model knows: those of MCP servers (`mcp`), those that the
//! client executes, and the scripted model's own (`scripted`).

pub mod mcp;
mod scripted;
mod toolbox;

pub use toolbox::{Tool, Toolbox, UnavailableServer};
