//! The events of an event stream, as the dialects of Anthropic and Gemini send them.
//!
//! Lenient: servers in between drop empty lines, put a byte order mark before the first line, or answer a request for a
//! stream with one JSON document, which becomes the body's `document`.

use serde::de::IgnoredAny;

use super::{StreamFlaw, lines::LineBuffer};

/// Most bytes of an answer that is one document.
const DOCUMENT_BYTES: usize = 16 * 1024 * 1024;

/// One event.
pub struct StreamEvent<'a> {
    /// Empty if the event has no name.
    pub name: &'a str,
    pub data: &'a [u8],
}

/// The events of a body.
#[derive(Default)]
pub struct EventBuffer {
    lines: LineBuffer,
    open: OpenEvent,
}

#[derive(Default)]
struct OpenEvent {
    name: String,
    data: Vec<u8>,
    has_begun: bool,
    /// The body so far, if it is no event stream.
    document: Option<Vec<u8>>,
}

impl EventBuffer {
    /// Calls `each` with every event that the next bytes complete.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(StreamEvent<'_>) -> Result<(), StreamFlaw>,
    ) -> Result<(), StreamFlaw> {
        let Self { lines, open } = self;
        lines.feed(bytes, |line| open.read(line, &mut each))
    }

    /// Calls `each` with the last event, although no empty line followed it. Returns the body instead if it was no event stream.
    pub fn finish(
        &mut self,
        mut each: impl FnMut(StreamEvent<'_>) -> Result<(), StreamFlaw>,
    ) -> Result<Option<Vec<u8>>, StreamFlaw> {
        let Self { lines, open } = self;
        lines.finish(|line| open.read(line, &mut each))?;
        open.dispatch(&mut each)?;
        Ok(open.document.take())
    }
}

impl OpenEvent {
    fn read(
        &mut self,
        line: &[u8],
        each: &mut impl FnMut(StreamEvent<'_>) -> Result<(), StreamFlaw>,
    ) -> Result<(), StreamFlaw> {
        let line = if self.has_begun { line } else { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line) };
        if !self.has_begun && matches!(line.trim_ascii_start().first(), Some(b'{' | b'[' | b'<')) {
            self.document = Some(Vec::new());
        }
        self.has_begun |= !line.trim_ascii().is_empty();
        if let Some(document) = &mut self.document {
            if document.len() + line.len() >= DOCUMENT_BYTES {
                return Err(StreamFlaw::LongLine);
            }
            document.extend_from_slice(line);
            document.push(b'\n');
            return Ok(());
        }
        if line.is_empty() {
            return self.dispatch(each);
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"event" => {
                self.dispatch(each)?;
                self.name = String::from_utf8_lossy(value).trim().to_owned();
            }
            b"data" if self.data.is_empty() => self.data.extend_from_slice(value),
            b"data" => {
                // Without an empty line between them, two documents are two events.
                if serde_json::from_slice::<IgnoredAny>(&self.data).is_ok() {
                    self.dispatch(each)?;
                } else {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            // A document between events, such as an error of a server in between.
            _ if line.starts_with(b"{") => {
                self.dispatch(each)?;
                each(StreamEvent { name: "", data: line })?;
            }
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, each: &mut impl FnMut(StreamEvent<'_>) -> Result<(), StreamFlaw>) -> Result<(), StreamFlaw> {
        let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        let data = data.trim_ascii();
        if data.is_empty() { Ok(()) } else { each(StreamEvent { name: &name, data }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the events as `name=data`, and the document.
    fn read(body: &str) -> (Vec<String>, Option<String>) {
        let (mut buffer, mut events) = (EventBuffer::default(), Vec::new());
        let mut note = |event: StreamEvent<'_>| {
            events.push(format!("{}={}", event.name, String::from_utf8_lossy(event.data)));
            Ok(())
        };
        buffer.feed(body.as_bytes(), &mut note).unwrap();
        let document = buffer.finish(&mut note).unwrap();
        (events, document.map(|bytes| String::from_utf8(bytes).unwrap()))
    }

    #[test]
    fn events_are_read_as_servers_write_them() {
        let check = |body: &str, expected: &[&str]| assert_eq!(read(body).0, expected, "{body:?}");
        check("event: a\ndata: {}\n\n: comment\n\ndata:{\"x\":1}\r\n\r\n", &["a={}", "={\"x\":1}"]);
        check("\u{feff}data: 1\n\n", &["=1"]);
        check("id: 5\nretry: 1\ndata: {\"a\":\ndata: 1}\n\n", &["={\"a\":\n1}"]);
        check("event: a\ndata: {}\nevent: b\ndata: {}\ndata: []", &["a={}", "b={}", "=[]"]);
        check("event: a\n\ndata: {}\n\n", &["={}"]);
        check("data: 1\n\n{\"error\":1}\n", &["=1", "={\"error\":1}"]);
        check("no stream at all", &[]);
    }

    #[test]
    fn a_body_that_is_one_document_is_no_stream() {
        assert_eq!(read("{\n \"a\": 1\n}"), (Vec::new(), Some("{\n \"a\": 1\n}\n".to_owned())));
        assert_eq!(read("\n<html>").1.as_deref(), Some("<html>\n"));
        assert_eq!(read("data: {}\n\n<html>").1, None);
    }
}
