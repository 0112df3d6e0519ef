//! Joins the bytes of a body to lines, wherever the pieces of the body end.

use memchr::memchr;

use super::StreamFlaw;

/// Most bytes of one line; a longer line is a flaw.
pub const LINE_BYTES: usize = 16 * 1024 * 1024;

/// The lines of a body, without their ends.
#[derive(Default)]
pub struct LineBuffer {
    /// The beginning of a line whose end has not arrived.
    partial: Vec<u8>,
}

impl LineBuffer {
    /// Calls `each` with every line that the next bytes complete.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), StreamFlaw>,
    ) -> Result<(), StreamFlaw> {
        let mut rest = bytes;
        while let Some(end) = memchr(b'\n', rest) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if line.len() > LINE_BYTES {
                return Err(StreamFlaw::LongLine);
            }
            if self.partial.is_empty() {
                each(without_return(line))?;
            } else {
                self.buffer(line)?;
                let mut line = std::mem::take(&mut self.partial);
                each(without_return(&line))?;
                line.clear();
                self.partial = line;
            }
        }
        self.buffer(rest)
    }

    /// Calls `each` with the last line, if no end of a line followed it.
    pub fn finish(&mut self, each: impl FnOnce(&[u8]) -> Result<(), StreamFlaw>) -> Result<(), StreamFlaw> {
        let line = std::mem::take(&mut self.partial);
        if line.is_empty() { Ok(()) } else { each(without_return(&line)) }
    }

    fn buffer(&mut self, bytes: &[u8]) -> Result<(), StreamFlaw> {
        if self.partial.len() + bytes.len() > LINE_BYTES {
            return Err(StreamFlaw::LongLine);
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(pieces: &[&[u8]]) -> (Vec<String>, Result<(), StreamFlaw>) {
        let (mut buffer, mut lines) = (LineBuffer::default(), Vec::new());
        let mut note = |line: &[u8]| {
            lines.push(String::from_utf8_lossy(line).into_owned());
            Ok(())
        };
        let fed = pieces.iter().try_for_each(|piece| buffer.feed(piece, &mut note));
        let finished = fed.and_then(|()| buffer.finish(&mut note));
        (lines, finished)
    }

    #[test]
    fn lines_are_the_same_wherever_the_pieces_end() {
        let body = "one\r\n\nzwölf\nlast".as_bytes();
        for cut in 0..=body.len() {
            let (lines, end) = lines_of(&[&body[..cut], &body[cut..]]);
            assert_eq!((lines, end), (["one", "", "zwölf", "last"].map(str::to_owned).to_vec(), Ok(())), "{cut}");
        }
    }

    #[test]
    fn a_line_may_have_a_mebibyte_and_no_byte_more() {
        let line = vec![b'x'; LINE_BYTES];
        assert_eq!(lines_of(&[&line, b"\n"]).1, Ok(()));
        assert_eq!(lines_of(&[&line, b"x"]).1, Err(StreamFlaw::LongLine));
        assert_eq!(lines_of(&[&[&line[..], b"x\n"].concat()]).1, Err(StreamFlaw::LongLine));
    }
}
