//! Wires: what a client's protocol makes of a run's log. A file per protocol.
//!
//! A wire is a pure projection: an event gives the same frames on every connection, so they are encoded once per run and
//! shared by all who watch.

pub mod native;

/// First on every stream: how long a client waits before it reconnects, in ms.
pub const RETRY: &[u8] = b"retry: 1000\n\n";

/// Sent when nothing else is. There is no blank line after it, which some clients would take for an event.
pub const HEARTBEAT: &[u8] = b": hb\n";
