//! Tests against real servers.
