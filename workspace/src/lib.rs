//! The workspace of a user: the projects that people and agents work on.
//!
//! Reading order: [`kind`] lists the kinds of entities with their fields, [`entity`] is one of them, and [`input`] reads what
//! a caller writes about it. [`change`] is a record of one change by an [`author`]. [`storage`] keeps all of it, for one owner
//! at a time. [`tools`] are those of agents. Nothing here knows HTTP.

mod author;
mod change;
mod contents;
mod entity;
mod input;
mod kind;
mod likeness;
mod storage;
mod tools;

pub use author::{Author, AuthorCall};
pub use change::{Action, Change};
pub use contents::{MAX_CONTENTS, RELATIONSHIPS};
pub use entity::Entity;
pub use input::{InvalidField, NewEntity, Patch};
pub use kind::{Field, Form, Kind};
pub use storage::{Filter, Found, Outcome, Search, TaskOrder, Undo, Undone, Workspace, filter_name, statement_texts};
pub use tools::{
    Call, Category, EntityReference, Merge, Merger, Notice, ProjectContents, TASKS, ToolFailure, ToolOutput, ToolScope,
    WebSearch, WorkspaceTool, is_help,
};
