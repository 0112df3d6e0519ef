//! Tools: the functions that a model can call.
//!
//! `Toolbox` has the tools of one run under the names that the model knows. They are the tools of MCP servers (`mcp`),
//! the client's tools, and the scripted model's own (`scripted`).

pub mod mcp;
mod scripted;
mod toolbox;
mod workspace;

pub use toolbox::{PlannerTool, Tool, Toolbox, UnavailableServer};
pub use workspace::{CallResult, WorkspaceOfRun};
