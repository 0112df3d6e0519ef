//! The limits of one extraction, and how a child receives them.

use std::time::Duration;

/// The limits of one extraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractionLimits {
    /// Time for the document's parsing, without the time that its contents need to arrive.
    pub time: Duration,
    /// Memory of the child beyond the memory that it has at its start.
    pub memory_bytes: u64,
    /// Longest text in UTF-8.
    pub text_bytes: u64,
    /// Most pages, slides or sheets.
    pub pages: u32,
}

impl ExtractionLimits {
    /// Returns the limits as arguments, which `from_arguments` reads.
    pub(crate) fn to_arguments(self) -> [String; 4] {
        let time = u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX);
        [time.to_string(), self.memory_bytes.to_string(), self.text_bytes.to_string(), self.pages.to_string()]
    }

    pub(crate) fn from_arguments(arguments: &[String]) -> Option<Self> {
        let [time, memory, text, pages] = arguments else {
            return None;
        };
        Some(Self {
            time: Duration::from_millis(time.parse().ok()?),
            memory_bytes: memory.parse().ok()?,
            text_bytes: text.parse().ok()?,
            pages: pages.parse().ok()?,
        })
    }

    /// Returns the time in whole seconds, and at least one.
    pub(crate) const fn seconds(&self) -> u64 {
        let seconds = self.time.as_millis().div_ceil(1000) as u64;
        if seconds == 0 { 1 } else { seconds }
    }

    pub(crate) const fn memory_mib(&self) -> u64 {
        self.memory_bytes.div_ceil(1024 * 1024)
    }
}
