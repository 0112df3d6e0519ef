//! Tools: the functions that a model can call.
//!
//! `Toolbox` has the tools of one run under the names that the model knows (`server_tool_name`). They are the tools of MCP servers (`mcp`, as a run uses them: `run_servers`),
//! the client's tools, those of the memory (`memory`, whose results `ranking` orders), of documents (`knowledge`, with `question_vectors`), of files (`files`), of kept results
//! (`kept_results`) and of the workspace, and the scripted model's own (`scripted`, `drawing`). `returned` stores the files that tools return (`base64_text` finds those within texts), and `result_room`
//! bounds what the model reads of a result.

mod base64_text;
mod drawing;
mod files;
mod group_bytes;
mod kept_results;
mod knowledge;
pub mod mcp;
mod memory;
mod question_vectors;
mod ranking;
mod result_room;
mod returned;
mod run_servers;
mod scripted;
mod server_tool_name;
mod tool;
mod toolbox;
mod workspace;

pub use files::{FilesOfRun, READ_FILE};
pub use kept_results::{KeptResultsOfRun, words_of_outcome};
pub use knowledge::KnowledgeOfRun;
pub use mcp::ServerUser;
pub use memory::{MemoryOfRun, RecallResult};
pub use question_vectors::question_vectors;
pub use result_room::ResultRoom;
pub use returned::{FileKeeper, ReturnedData, ReturnedFile, names_file};
pub use run_servers::{RunServers, ServerState};
pub use tool::{PlannerTool, Tool};
pub use toolbox::Toolbox;
pub use workspace::{CallResult, WorkspaceOfRun};
