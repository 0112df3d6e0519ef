//! Lines from standard input.

use std::{
    collections::VecDeque,
    io::{self, BufRead},
};

use tokio::sync::mpsc;

/// Longest queue of lines that the reader types while an answer arrives.
const AHEAD: usize = 64;

/// A line that begins so corrects the answer under way.
const STEER: &str = "/steer ";

/// The use that a line may have during an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedLine {
    /// It answers the open question.
    Answer,
    /// It corrects the answer, if it begins with `/steer`.
    Correction,
    /// It is a message for later.
    Message,
}

/// A line with a use during an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum TypedLine {
    Answer(String),
    Correction(String),
    /// The input has ended without the expected answer.
    End,
}

/// The lines of standard input, in order.
pub struct InputLines {
    lines: mpsc::Receiver<String>,
    /// Lines that the reader typed before a question; they are messages.
    ahead: VecDeque<String>,
}

impl InputLines {
    /// Starts a thread that reads lines. A read from a terminal cannot be interrupted, so it must block neither Ctrl-C nor
    /// the end of the process.
    pub fn read() -> Self {
        let (sender, lines) = mpsc::channel(AHEAD);
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
            while let Some(line) = next_line(&mut input) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines, ahead: VecDeque::new() }
    }

    /// Returns the next message, or `None` at the end of the input.
    pub async fn message(&mut self) -> Option<String> {
        match self.ahead.pop_front() {
            Some(line) => Some(line),
            None => self.lines.recv().await,
        }
    }

    /// Returns the next line with a use during an answer. The others are messages for later. A dropped future loses no line.
    pub async fn during_answer(&mut self, expected: ExpectedLine) -> TypedLine {
        match expected {
            ExpectedLine::Answer => self.lines.recv().await.map_or(TypedLine::End, TypedLine::Answer),
            ExpectedLine::Correction => TypedLine::Correction(self.correction().await),
            ExpectedLine::Message => std::future::pending().await,
        }
    }

    async fn correction(&mut self) -> String {
        while self.ahead.len() < AHEAD
            && let Some(line) = self.lines.recv().await
        {
            match steering_text(&line) {
                Some(text) => return text.to_owned(),
                None => self.ahead.push_back(line),
            }
        }
        std::future::pending().await
    }

    /// Moves the lines that the reader has typed so far to the messages. A line that precedes a question must not answer it.
    pub fn set_aside(&mut self) {
        self.ahead.extend(std::iter::from_fn(|| self.lines.try_recv().ok()));
    }
}

/// Returns the text of a line that corrects an answer under way.
pub fn steering_text(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix(STEER).map(str::trim).filter(|text| !text.is_empty())
}

/// Returns the next line without its line break, or `None` at the end of the input. It replaces bytes that are no UTF-8.
fn next_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    match input.read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_line_typed_before_a_question_does_not_answer_it() {
        let (sender, lines) = mpsc::channel(AHEAD);
        let mut lines = InputLines { lines, ahead: VecDeque::new() };
        for line in ["y", "a message"] {
            sender.send(line.to_owned()).await.unwrap();
        }
        lines.set_aside();
        sender.send("n".to_owned()).await.unwrap();
        assert_eq!(lines.during_answer(ExpectedLine::Answer).await, TypedLine::Answer("n".into()));
        assert_eq!((lines.message().await.unwrap(), lines.message().await.unwrap()), ("y".into(), "a message".into()));
    }

    #[tokio::test]
    async fn a_correction_overtakes_the_messages_typed_before_it() {
        let (sender, lines) = mpsc::channel(AHEAD);
        let mut lines = InputLines { lines, ahead: VecDeque::new() };
        for line in ["later", "/steer  shorter ", "/steer", "last"] {
            sender.send(line.to_owned()).await.unwrap();
        }
        let correction = TypedLine::Correction("shorter".into());
        assert_eq!(lines.during_answer(ExpectedLine::Correction).await, correction);
        drop(sender);
        assert!(lines.during_answer(ExpectedLine::Correction).now_or_never().is_none());
        let messages: [_; 4] =
            [lines.message().await, lines.message().await, lines.message().await, lines.message().await];
        assert_eq!(messages.map(Option::unwrap_or_default), ["later", "/steer", "last", ""]);
    }

    #[test]
    fn lines_are_read_with_any_content() {
        let mut input = &b"a\r\n\n\xff b \nlast"[..];
        let lines: Vec<String> = std::iter::from_fn(|| next_line(&mut input)).collect();
        assert_eq!(lines, ["a", "", "\u{fffd} b ", "last"]);
    }
}
