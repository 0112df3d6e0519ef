//! A span as other processes know it: the `traceparent` of W3C Trace Context, in a request's header and in a run's row.

use std::{fmt, str::FromStr};

/// The ids of a span and its trace, and whether the trace is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traceparent {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    pub(super) sampled: bool,
}

/// The text is no `traceparent`.
#[derive(Debug, thiserror::Error)]
#[error("no W3C traceparent")]
pub struct MalformedTraceparent;

impl Traceparent {
    /// Returns whether the trace is recorded.
    pub const fn is_sampled(self) -> bool {
        self.sampled
    }

    /// Returns the trace's id as 32 hexadecimal digits, if the trace is recorded.
    pub fn trace_id(self) -> Option<String> {
        self.sampled.then(|| format!("{:032x}", self.trace_id))
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled))
    }
}

impl FromStr for Traceparent {
    type Err = MalformedTraceparent;

    /// Reads the known parts of a later version, as the specification requires.
    fn from_str(text: &str) -> Result<Self, MalformedTraceparent> {
        let mut parts = text.split('-');
        let version = hexadecimal(parts.next(), 2)?;
        let trace_id = hexadecimal(parts.next(), 32)?;
        let span_id = hexadecimal(parts.next(), 16)? as u64;
        let flags = hexadecimal(parts.next(), 2)?;
        let is_known = version == 0 && parts.next().is_none() || (1..0xff).contains(&version);
        if is_known && trace_id != 0 && span_id != 0 {
            Ok(Self { trace_id, span_id, sampled: flags & 1 == 1 })
        } else {
            Err(MalformedTraceparent)
        }
    }
}

fn hexadecimal(part: Option<&str>, digits: usize) -> Result<u128, MalformedTraceparent> {
    let part = part.filter(|part| part.len() == digits).ok_or(MalformedTraceparent)?;
    let is_plain = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_plain {
        return Err(MalformedTraceparent);
    }
    u128::from_str_radix(part, 16).map_err(|_| MalformedTraceparent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_traceparent_can_be_read() {
        for text in [
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-0000000000000000000000000000000a-000000000000000b-00",
        ] {
            assert_eq!(text.parse::<Traceparent>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn only_a_recorded_trace_shows_its_id() {
        let read = |text: &str| text.parse::<Traceparent>().unwrap().trace_id();
        let recorded = read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        assert_eq!(recorded.as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_eq!(read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"), None);
    }

    #[test]
    fn a_traceparent_against_the_specification_is_refused() {
        let refused = [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ];
        for text in refused {
            assert!(text.parse::<Traceparent>().is_err(), "{text:?} was read");
        }
        assert!("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more".parse::<Traceparent>().is_ok());
    }
}
