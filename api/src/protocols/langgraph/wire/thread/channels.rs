//! The channels of a thread's stream: the events that a client wants.

/// A channel of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Whether a run of the thread runs, waits, or how it has ended.
    Lifecycle,
    /// The questions that wait for the client.
    Input,
    /// All messages after each step.
    Values,
    /// Messages while they are written.
    Messages,
    /// Calls of tools.
    Tools,
    /// The states that a later run may begin at.
    Checkpoints,
    /// Events of the log that the protocol has no channel for.
    Custom,
}

const NAMES: [(&str, Channel); 7] = [
    ("lifecycle", Channel::Lifecycle),
    ("input", Channel::Input),
    ("values", Channel::Values),
    ("messages", Channel::Messages),
    ("tools", Channel::Tools),
    ("checkpoints", Channel::Checkpoints),
    ("custom", Channel::Custom),
];

/// The prefix of a channel with the custom events of one name.
const NAMED: &str = "custom:";

/// Longest name of a custom event; no event has a longer one.
const MAX_NAME: usize = 64;

/// Several channels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Channels {
    bits: u8,
    /// Names of custom events that the client wants, if it does not want all.
    named: Vec<String>,
}

impl Channels {
    /// Returns the channels of these names. A channel without events here, such as `updates`, or of a later protocol, is none.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        names.into_iter().fold(Self::default(), |mut channels, name| {
            if let Some((_, channel)) = NAMES.iter().find(|(known, _)| *known == name) {
                channels.bits |= channel.bit();
            } else if let Some(name) = name.strip_prefix(NAMED).filter(|name| name.len() <= MAX_NAME) {
                channels.named.push(name.to_owned());
            }
            channels
        })
    }

    pub const fn has(&self, channel: Channel) -> bool {
        self.bits & channel.bit() != 0
    }

    /// Returns whether the client wants the custom events of this name.
    pub fn has_custom(&self, name: &str) -> bool {
        self.has(Channel::Custom) || self.named.iter().any(|named| named == name)
    }
}

impl Channel {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_have_names() {
        for (name, channel) in NAMES {
            assert!(Channels::of([name]).has(channel), "{name}");
            assert!(!Channels::of(["updates"]).has(channel), "{name}");
        }
        let named = Channels::of(["custom:agent.state", "video"]);
        assert!(named.has_custom("agent.state") && !named.has_custom("plan.created") && !named.has(Channel::Custom));
        assert!(Channels::of(["custom"]).has_custom("plan.created"));
    }
}
