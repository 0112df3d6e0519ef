//! What agents call: tools of MCP servers.

pub mod mcp;
