//! Tracks whether a text of JSON is complete, without storing it.

/// The state after the text so far.
#[derive(Default)]
pub(super) struct JsonScan {
    started: bool,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl JsonScan {
    pub fn read(&mut self, piece: &[u8]) {
        for byte in piece {
            self.started |= !byte.is_ascii_whitespace();
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Returns whether anything but white space has come.
    pub fn has_started(&self) -> bool {
        self.started
    }

    pub fn is_open(&self) -> bool {
        self.depth > 0 || self.in_string
    }

    pub fn is_complete(&self) -> bool {
        self.started && !self.is_open()
    }
}
