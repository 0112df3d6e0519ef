//! Lines from standard input.

use std::{
    collections::VecDeque,
    io::{self, BufRead},
};

use tokio::sync::mpsc;

/// Lines that may wait, which have been typed while an answer comes.
const AHEAD: usize = 64;

/// Lines in order, to the end of the input.
pub struct InputLines {
    lines: mpsc::Receiver<String>,
    /// Messages that were typed before a question was asked.
    ahead: VecDeque<String>,
}

impl InputLines {
    /// Reads on a thread of its own: a read from a terminal cannot be interrupted, and must keep neither an interrupt
    /// from being seen nor the process from ending.
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

    /// The next message.
    pub async fn message(&mut self) -> Option<String> {
        match self.ahead.pop_front() {
            Some(line) => Some(line),
            None => self.lines.recv().await,
        }
    }

    /// Sets aside what was typed before a question is asked: nobody agrees to what they have not seen.
    pub fn set_aside(&mut self) {
        self.ahead.extend(std::iter::from_fn(|| self.lines.try_recv().ok()));
    }

    /// What was typed after that.
    pub async fn answer(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}

/// The next line without its end, however it ends and whatever bytes are in it.
fn next_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    match input.read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(lines.answer().await.unwrap(), "n");
        assert_eq!((lines.message().await.unwrap(), lines.message().await.unwrap()), ("y".into(), "a message".into()));
    }

    #[test]
    fn lines_are_read_with_any_content() {
        let mut input = &b"a\r\n\n\xff b \nlast"[..];
        let lines: Vec<String> = std::iter::from_fn(|| next_line(&mut input)).collect();
        assert_eq!(lines, ["a", "", "\u{fffd} b ", "last"]);
    }
}
