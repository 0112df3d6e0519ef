//! Lines of a child's output, with a maximum length.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use super::intake::SMALL_BYTES;

pub struct LineReader<R> {
    reader: BufReader<R>,
    limit: usize,
    line: Vec<u8>,
    /// Set once the reader has learned that the line is large.
    is_large: bool,
    /// Set from the limit until the end of a line that is too long.
    discarding: bool,
}

pub enum OutputLine {
    Complete(Vec<u8>),
    /// The line has more than `SMALL_BYTES` so far, and continues.
    Large,
    /// The line was longer than the limit and was dropped.
    TooLong,
    End,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(source: R, limit: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(64 * 1024, source),
            limit,
            line: Vec::new(),
            is_large: false,
            discarding: false,
        }
    }

    /// Returns the next line, without its end. Dropping the future loses no bytes: `self` keeps the bytes read so far.
    pub async fn next(&mut self) -> OutputLine {
        loop {
            let Ok(read) = self.take_more().await else {
                return OutputLine::End;
            };
            match read {
                Read::Nothing => return OutputLine::End,
                Read::Part if self.line.len() > SMALL_BYTES && !std::mem::replace(&mut self.is_large, true) => {
                    return OutputLine::Large;
                }
                Read::Part => {}
                Read::Rest => {
                    self.is_large = false;
                    if std::mem::take(&mut self.discarding) {
                        return OutputLine::TooLong;
                    }
                    return OutputLine::Complete(std::mem::take(&mut self.line));
                }
            }
        }
    }

    async fn take_more(&mut self) -> io::Result<Read> {
        let available = self.reader.fill_buf().await?;
        if available.is_empty() {
            return Ok(Read::Nothing);
        }
        let end = memchr::memchr(b'\n', available);
        let part = &available[..end.unwrap_or(available.len())];
        if self.discarding || self.line.len() + part.len() > self.limit {
            self.discarding = true;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(part);
        }
        let taken = part.len() + usize::from(end.is_some());
        self.reader.consume(taken);
        Ok(if end.is_some() { Read::Rest } else { Read::Part })
    }
}

enum Read {
    Part,
    Rest,
    Nothing,
}
