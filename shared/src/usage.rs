//! Token counts of model calls.

use std::{iter::Sum, ops::AddAssign};

use serde::{Deserialize, Serialize};

/// Tokens of one or more model calls, as the provider reports them. An unreported count is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Usage {
    /// Tokens of the prompt, cached tokens included.
    pub input_tokens: u64,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: u64,
    /// Part of `input_tokens` that the provider read from its cache.
    pub cached_tokens: u64,
    /// Part of `output_tokens` that is reasoning.
    pub reasoning_tokens: u64,
}

/// A provider's report is foreign data, so absurd sums saturate.
impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
    }
}

impl Usage {
    /// Returns the tokens beyond those of `other`.
    #[must_use]
    pub const fn beyond(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(other.cached_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_sub(other.reasoning_tokens),
        }
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), |mut sum, usage| {
            sum += usage;
            sum
        })
    }
}
