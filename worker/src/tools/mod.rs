//! Tools: what a model can do besides talking.
//!
//! `Toolbox` has the tools of one run under the names that the model knows: those of MCP servers (`mcp`), those that the
//! client executes, and the scripted model's own (`scripted`). `excerpt` cuts what is too long.

mod excerpt;
pub mod mcp;
mod scripted;
mod toolbox;

pub use excerpt::{bytes, chars};
pub use toolbox::{Missing, Tool, Toolbox};
