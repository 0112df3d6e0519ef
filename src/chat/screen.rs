//! Printing. Answers go to standard output, and nothing else does; the prompt and all that is said besides go to
//! standard error.
//!
//! Where standard output is no terminal, an answer appears in one piece once it is stored: what a pipe has taken cannot
//! be taken back, and text may be superseded until then.

use std::io::{self, IsTerminal, Write};

use super::fold::Show;

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Standard output and standard error.
pub struct Screen {
    /// Whether somebody types, and wants to be asked.
    interactive: bool,
    /// Whether answers are shown as they come.
    streams: bool,
    /// Whether reasoning may be dimmed.
    dims_reasoning: bool,
    /// Whether notices may be dimmed.
    dims_notices: bool,
    position: OutputPosition,
}

/// Where standard output stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputPosition {
    LineStart,
    InText,
    InReasoning,
    /// A line of ours has come between the text before and the text to come.
    Interrupted,
    /// Standard error ends with a question, and the answer is to be typed behind it.
    AtQuestion,
}

impl Screen {
    pub fn new() -> Self {
        // The convention of no-color.org.
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            interactive: io::stdin().is_terminal(),
            streams: io::stdout().is_terminal(),
            dims_reasoning: io::stdout().is_terminal() && !plain,
            dims_notices: io::stderr().is_terminal() && !plain,
            position: OutputPosition::LineStart,
        }
    }

    pub fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// Says something to whoever types; a pipe is not greeted.
    pub fn greet(&mut self, text: &str) -> io::Result<()> {
        if self.interactive { self.notice(text) } else { Ok(()) }
    }

    pub fn prompt(&mut self) -> io::Result<()> {
        if !self.interactive {
            return Ok(());
        }
        self.break_line()?;
        write!(io::stderr(), "> ")
    }

    /// Puts a question to whoever types; to be followed by `ask`.
    pub fn question(&mut self, text: &str) -> io::Result<()> {
        self.error(text)
    }

    /// Asks for the answer to a question, again if something has been shown since.
    pub fn ask(&mut self, prompt: &str) -> io::Result<()> {
        if self.position == OutputPosition::AtQuestion {
            return Ok(());
        }
        self.break_line()?;
        self.position = OutputPosition::AtQuestion;
        write!(io::stderr(), "{prompt}")
    }

    /// The reader's Enter has ended the line of the question.
    pub fn note_enter(&mut self) {
        self.position = OutputPosition::Interrupted;
    }

    /// Leaves a line that the reader's Enter has not ended.
    pub fn end_line(&mut self) -> io::Result<()> {
        match self.position {
            OutputPosition::LineStart if self.interactive => writeln!(io::stderr()),
            OutputPosition::LineStart
            | OutputPosition::InText
            | OutputPosition::InReasoning
            | OutputPosition::Interrupted
            | OutputPosition::AtQuestion => self.break_line(),
        }
    }

    pub fn show(&mut self, show: Show) -> io::Result<()> {
        match show {
            Show::Text(text) if self.streams => self.stream(&text, OutputPosition::InText),
            Show::Reasoning(text) if self.streams => self.stream(&text, OutputPosition::InReasoning),
            Show::Aside(text) if self.streams => self.notice(&format!("[{text}]")),
            Show::Answer(text) if !self.streams => {
                let mut out = io::stdout().lock();
                writeln!(out, "{}", printable(&text))?;
                out.flush()
            }
            Show::Notice(text) => self.notice(&format!("[{text}]")),
            Show::Conversation(id) => self.greet(&format!("conversation {id}")),
            Show::Error(text) => self.error(&text),
            Show::Text(_) | Show::Reasoning(_) | Show::Aside(_) | Show::Answer(_) => Ok(()),
        }
    }

    /// A dim line that is not part of an answer.
    pub fn notice(&mut self, text: &str) -> io::Result<()> {
        self.interrupt()?;
        let text = printable(text);
        match self.dims_notices {
            true => writeln!(io::stderr(), "{DIM}{text}{PLAIN}"),
            false => writeln!(io::stderr(), "{text}"),
        }
    }

    pub fn error(&mut self, text: &str) -> io::Result<()> {
        self.interrupt()?;
        writeln!(io::stderr(), "{}", printable(text))
    }

    /// Sets the answer apart from what comes next.
    pub fn end_answer(&mut self) -> io::Result<()> {
        self.break_line()?;
        self.position = OutputPosition::LineStart;
        if self.streams { writeln!(io::stdout()) } else { Ok(()) }
    }

    fn stream(&mut self, text: &str, kind: OutputPosition) -> io::Result<()> {
        let mut text = printable(text);
        if matches!(self.position, OutputPosition::Interrupted | OutputPosition::AtQuestion) {
            // The blank lines between two steps would be a hole under the lines of the calls.
            text.drain(..text.len() - text.trim_start_matches('\n').len());
        }
        if text.is_empty() {
            return Ok(());
        }
        if self.position != kind {
            self.break_line()?;
        }
        let mut out = io::stdout().lock();
        // Back to plain at once: whoever ends the process in between finds the terminal as it was.
        match kind == OutputPosition::InReasoning && self.dims_reasoning {
            true => write!(out, "{DIM}{text}{PLAIN}")?,
            false => write!(out, "{text}")?,
        }
        self.position = if text.ends_with('\n') { OutputPosition::LineStart } else { kind };
        out.flush()
    }

    /// Ends the line that text or a question stands in, for a line of ours.
    fn interrupt(&mut self) -> io::Result<()> {
        self.break_line()?;
        self.position = OutputPosition::Interrupted;
        Ok(())
    }

    fn break_line(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.position, OutputPosition::LineStart) {
            OutputPosition::LineStart | OutputPosition::Interrupted => Ok(()),
            OutputPosition::InText | OutputPosition::InReasoning => writeln!(io::stdout()),
            OutputPosition::AtQuestion => writeln!(io::stderr()),
        }
    }
}

/// The text without anything that a terminal obeys: no control characters but newline and tab, and of whole control
/// sequences nothing. A sequence that is cut in two leaves harmless letters behind.
fn printable(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        let len = control_sequence_len(rest).unwrap_or(char.len_utf8());
        if char == '\n' || char == '\t' || !char.is_control() {
            visible.push(char);
        }
        rest = &rest[len..];
    }
    visible
}

/// Length of the control sequence (ECMA-48, 5.4) that the text begins with.
fn control_sequence_len(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[").or_else(|| text.strip_prefix('\u{9b}'))?;
    let end = parameters.find(|char| !(' '..='?').contains(&char))?;
    parameters[end..].starts_with(|char| ('@'..='~').contains(&char)).then(|| text.len() - parameters.len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_printed() {
        let check = |text: &str, expected: &str| assert_eq!(printable(text), expected, "{text:?}");
        check("two\n\tlines, ünïcode 🦀", "two\n\tlines, ünïcode 🦀");
        check("\x1b[31mred\x1b[0m\x1b[2J\x1b[1;1H", "red");
        check("\u{9b}31mred", "red");
        check("\x1b]0;title\x07\x1b]52;c;aGk=\x1b\\", "]0;title]52;c;aGk=\\");
        check("a\rb\x08\x7f\0\u{85}c", "abc");
        check("\x1b", "");
        check("\x1b[31", "[31");
        check("\x1b[3\x1b[1mx", "[3x");
        check("\x1b\x1b[1m[31mx", "[31mx");
    }

    #[test]
    fn no_split_lets_a_control_character_through() {
        let text = "a\x1b[31mb\u{9b}1mc\x1b]0;d\x07e";
        for (split, _) in text.char_indices() {
            let printed = printable(&text[..split]) + &printable(&text[split..]);
            assert!(!printed.contains(|char: char| char.is_control()), "split at {split}: {printed:?}");
        }
    }
}
