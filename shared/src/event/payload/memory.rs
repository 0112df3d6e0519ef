//! The event about memories that a model has read.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::memory::MemoryReference;

/// A call has shown memories of the user to the model. The event has no text, so that nothing of a deleted memory stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MemoryTold<'a> {
    /// The call of `recall`.
    #[serde(borrow)]
    pub call_id: Cow<'a, str>,
    /// The memories, most relevant first.
    pub memories: Vec<MemoryReference>,
}
