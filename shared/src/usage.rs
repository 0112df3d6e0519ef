//! Tokens that a model has counted.

use serde::{Deserialize, Serialize};

/// Tokens of one or more model calls, as the provider reports them; what it does not report counts as 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Usage {
    /// Tokens of the prompt, cached ones included.
    pub input_tokens: u64,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: u64,
    /// Part of `input_tokens` that the provider had cached.
    pub cached_tokens: u64,
    /// Part of `output_tokens` that is reasoning.
    pub reasoning_tokens: u64,
}
