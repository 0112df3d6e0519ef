//! The protocols of clients, a room each: its routes, its requests, its wire and its words for problems.
//!
//! A protocol imports the relay, the answers and the app, and never another protocol. `problem_form` chooses the form of problems by
//! the path.

pub mod a2a;
pub mod ag_ui;
pub mod agent;
pub mod ai_sdk;
pub mod chat;
pub mod durable_streams;
pub mod langgraph;
pub mod mcp;
pub mod native;
pub mod openai;
pub mod problem_form;
pub mod text;
