//! Printing. Standard output has only answers; prompts, notices and errors go to standard error.
//!
//! Where standard output is no terminal, the screen prints an answer at once when it is stored. A pipe cannot take text back,
//! and until then a later attempt may supersede it.

use std::io::{self, IsTerminal, Write};

use super::fold::DisplayItem;

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// Standard output and standard error.
pub struct Screen {
    /// Whether standard input is a terminal, so that a person can answer questions.
    interactive: bool,
    /// Whether the screen prints answers piece by piece.
    streams: bool,
    /// Whether reasoning may be dimmed.
    dims_reasoning: bool,
    /// Whether notices may be dimmed.
    dims_notices: bool,
    position: OutputPosition,
}

/// The position of the terminal's cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputPosition {
    LineStart,
    InText,
    InReasoning,
    /// A notice has interrupted the text.
    Interrupted,
    /// Standard error ends with a prompt, and the reader types the answer after it.
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

    /// Prints a notice, but only if a person types.
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

    /// Prints a question; the caller must call `ask` next.
    pub fn question(&mut self, text: &str) -> io::Result<()> {
        self.error(text)
    }

    /// Prints the prompt of a question, again if other output came in between.
    pub fn ask(&mut self, prompt: &str) -> io::Result<()> {
        if self.position == OutputPosition::AtQuestion {
            return Ok(());
        }
        self.break_line()?;
        self.position = OutputPosition::AtQuestion;
        write!(io::stderr(), "{prompt}")
    }

    /// Notes that the reader's Enter has ended the line of the prompt.
    pub fn note_enter(&mut self) {
        self.position = OutputPosition::Interrupted;
    }

    /// Ends a line that the reader's Enter has not ended.
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

    pub fn show(&mut self, item: DisplayItem) -> io::Result<()> {
        match item {
            DisplayItem::Text(text) if self.streams => self.stream(&text, OutputPosition::InText),
            DisplayItem::Reasoning(text) if self.streams => self.stream(&text, OutputPosition::InReasoning),
            DisplayItem::Aside(text) if self.streams => self.notice(&format!("[{text}]")),
            DisplayItem::Answer(text) if !self.streams => {
                let mut out = io::stdout().lock();
                writeln!(out, "{}", printable(&text))?;
                out.flush()
            }
            DisplayItem::Notice(text) => self.notice(&format!("[{text}]")),
            DisplayItem::Conversation(id) => self.greet(&format!("conversation {id}")),
            DisplayItem::Error(text) => self.error(&text),
            DisplayItem::Text(_) | DisplayItem::Reasoning(_) | DisplayItem::Aside(_) | DisplayItem::Answer(_) => Ok(()),
        }
    }

    /// Prints a dim line that is not part of an answer.
    pub fn notice(&mut self, text: &str) -> io::Result<()> {
        self.interrupt()?;
        let text = printable(text);
        if self.dims_notices { writeln!(io::stderr(), "{DIM}{text}{PLAIN}") } else { writeln!(io::stderr(), "{text}") }
    }

    pub fn error(&mut self, text: &str) -> io::Result<()> {
        self.interrupt()?;
        writeln!(io::stderr(), "{}", printable(text))
    }

    /// Ends the answer with a blank line.
    pub fn end_answer(&mut self) -> io::Result<()> {
        self.break_line()?;
        self.position = OutputPosition::LineStart;
        if self.streams { writeln!(io::stdout()) } else { Ok(()) }
    }

    fn stream(&mut self, text: &str, kind: OutputPosition) -> io::Result<()> {
        let mut text = printable(text);
        if matches!(self.position, OutputPosition::Interrupted | OutputPosition::AtQuestion) {
            // Without this, the line breaks between two steps would leave blank lines after the notices of calls.
            text.drain(..text.len() - text.trim_start_matches('\n').len());
        }
        if text.is_empty() {
            return Ok(());
        }
        if self.position != kind {
            self.break_line()?;
        }
        let mut out = io::stdout().lock();
        // The plain style returns at once, so that the terminal is as before if the process is killed in between.
        if kind == OutputPosition::InReasoning && self.dims_reasoning {
            write!(out, "{DIM}{text}{PLAIN}")?
        } else {
            write!(out, "{text}")?
        }
        self.position = if text.ends_with('\n') { OutputPosition::LineStart } else { kind };
        out.flush()
    }

    /// Ends the current line before a notice or an error.
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

/// Returns the text without terminal control: it has no control characters but newline and tab, and no complete control
/// sequences. A sequence that is split over two texts leaves harmless letters.
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

/// Returns the length of the control sequence (ECMA-48, 5.4) that the text starts with.
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
