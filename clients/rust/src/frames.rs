//! Server-sent events: bytes in, frames out.

/// No event of the server is longer, so a longer line is none of its own.
const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// A complete frame, or the server's wish for the next pause.
#[derive(Debug, PartialEq)]
pub enum Frame {
    Data(String),
    /// In milliseconds.
    Retry(u64),
}

/// The line of a stream has no end.
#[derive(Debug, PartialEq)]
pub struct LineTooLong;

/// Parses one connection. It drops an incomplete frame, which the next connection repeats. It splits lines at LF only, as the
/// server does.
#[derive(Default)]
pub struct FrameParser {
    rest: Vec<u8>,
    data: Option<String>,
}

impl FrameParser {
    /// Returns the frames that these bytes complete.
    pub fn feed(&mut self, received: &[u8]) -> Result<Vec<Frame>, LineTooLong> {
        let mut frames = Vec::new();
        // Only the new bytes can have the end of a line.
        let mut searched = self.rest.len();
        self.rest.extend_from_slice(received);
        let mut start = 0;
        while let Some(length) = self.rest[searched..].iter().position(|byte| *byte == b'\n') {
            let end = searched + length;
            let line = String::from_utf8_lossy(&self.rest[start..end]).into_owned();
            self.read(line.strip_suffix('\r').unwrap_or(&line), &mut frames);
            (start, searched) = (end + 1, end + 1);
        }
        self.rest.drain(..start);
        if self.rest.len() > MAX_LINE_BYTES { Err(LineTooLong) } else { Ok(frames) }
    }

    fn read(&mut self, line: &str, frames: &mut Vec<Frame>) {
        if line.is_empty() {
            frames.extend(self.data.take().map(Frame::Data));
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => *data = format!("{data}\n{value}"),
                None => self.data = Some(value.to_owned()),
            },
            "retry" => frames.extend(value.parse().ok().map(Frame::Retry)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_equal_however_the_network_splits_them() {
        let stream =
            "retry: 1000\n\nid: 0-1\nevent: x\ndata: {\"a\":\"ä\u{2028}\"}\n\n: hb\ndata: 1\r\ndata: 2\n\ndata: cut";
        let expected =
            [Frame::Retry(1000), Frame::Data("{\"a\":\"ä\u{2028}\"}".to_owned()), Frame::Data("1\n2".to_owned())];
        for size in 1..=stream.len() {
            let mut parser = FrameParser::default();
            let frames: Vec<Frame> =
                stream.as_bytes().chunks(size).flat_map(|piece| parser.feed(piece).expect("short lines")).collect();
            assert_eq!(frames, expected, "in pieces of {size} bytes");
        }
    }
}
