//! Lines from standard input.

use std::io::{self, BufRead};

use tokio::sync::mpsc;

/// Reads lines until the end of the input, which closes the channel.
///
/// On a thread of its own: a read from a terminal cannot be interrupted, and must keep neither an interrupt from being
/// seen nor the process from ending.
pub fn lines() -> mpsc::Receiver<String> {
    let (lines, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Some(line) = next_line(&mut input) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
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

    #[test]
    fn lines_are_read_whatever_is_in_them() {
        let mut input = &b"a\r\n\n\xff b \nlast"[..];
        let lines: Vec<String> = std::iter::from_fn(|| next_line(&mut input)).collect();
        assert_eq!(lines, ["a", "", "\u{fffd} b ", "last"]);
    }
}
