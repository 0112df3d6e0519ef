//! The modes of a stream: which frames a client wants.

/// A mode of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LangMode {
    /// All messages after each step.
    Values,
    /// The messages that a step adds.
    Updates,
    /// Messages while they are written.
    Messages,
    /// Events of the log that the protocol has no frame for.
    Custom,
    /// Calls of tools, as tasks.
    Tasks,
    /// Calls of tools, as the SDK's `onToolEvent` reads them.
    Tools,
    /// Accepted, and without frames.
    Unused,
}

/// Several modes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LangModes(u8);

/// The modes by their names.
const NAMES: [(&str, LangMode); 10] = [
    ("values", LangMode::Values),
    ("updates", LangMode::Updates),
    ("messages-tuple", LangMode::Messages),
    ("messages", LangMode::Messages),
    ("custom", LangMode::Custom),
    ("tasks", LangMode::Tasks),
    ("tools", LangMode::Tools),
    ("events", LangMode::Unused),
    ("debug", LangMode::Unused),
    ("checkpoints", LangMode::Unused),
];

impl LangModes {
    /// Returns the names that a client may give.
    pub fn known() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// Returns modes with one more, by its name; `None` for an unknown name.
    pub fn with(self, name: &str) -> Option<Self> {
        let (_, mode) = NAMES.iter().find(|(known, _)| *known == name)?;
        Some(Self(self.0 | mode.bit()))
    }

    /// Returns a name of each mode.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let mut last = None;
        NAMES
            .iter()
            .filter(move |(_, mode)| self.has(*mode) && last.replace(*mode) != Some(*mode))
            .map(|(name, _)| *name)
    }

    pub const fn has(self, mode: LangMode) -> bool {
        self.0 & mode.bit() != 0
    }
}

impl LangMode {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_names() {
        let modes = LangModes::default().with("values").and_then(|modes| modes.with("messages-tuple")).unwrap();
        assert!(modes.has(LangMode::Values) && modes.has(LangMode::Messages) && !modes.has(LangMode::Updates));
        assert_eq!(modes.with("video"), None);
        for (name, mode) in NAMES {
            assert!(LangModes::default().with(name).unwrap().has(mode), "{name}");
        }
    }
}
