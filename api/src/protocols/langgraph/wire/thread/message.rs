//! The model's message in blocks: texts, reasonings and calls of tools. A block ends before the next one begins, but that of a call
//! whose arguments are incomplete.

use serde_json::{Map, Value, json};

use super::{channels::Channel, writer::ThreadWriter};

/// The message that the model writes.
#[derive(Debug, Clone)]
pub struct OpenMessage {
    pub id: String,
    /// The number of blocks.
    blocks: usize,
    /// The last block, if it is a text or a reasoning that has not ended.
    text: Option<OpenTextBlock>,
    /// The calls whose blocks have not ended.
    calls: Vec<OpenCallBlock>,
}

#[derive(Debug, Clone)]
struct OpenTextBlock {
    index: usize,
    kind: TextKind,
    text: String,
}

/// A kind of text that the model writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    Text,
    Reasoning,
}

#[derive(Debug, Clone)]
struct OpenCallBlock {
    index: usize,
    id: String,
    name: String,
    /// JSON text, perhaps incomplete.
    arguments: String,
}

impl OpenMessage {
    /// Begins a message.
    pub fn begin(writer: &mut ThreadWriter, id: String) -> Self {
        writer.event(Channel::Messages, || json!({"event": "message-start", "role": "ai", "id": id}));
        Self { id, blocks: 0, text: None, calls: Vec::new() }
    }

    /// Appends to the text or the reasoning, in a block of its own after one of another kind.
    pub fn push_text(&mut self, writer: &mut ThreadWriter, kind: TextKind, piece: &str) {
        if self.text.as_ref().is_none_or(|open| open.kind != kind) {
            self.end_block(writer);
            let index = self.next_index();
            writer.event(
                Channel::Messages,
                || json!({"event": "content-block-start", "index": index, "content": kind.content("")}),
            );
            self.text = Some(OpenTextBlock { index, kind, text: String::new() });
        }
        let open = self.text.as_mut().expect("a block was just begun");
        open.text.push_str(piece);
        let index = open.index;
        writer.event(
            Channel::Messages,
            || json!({"event": "content-block-delta", "index": index, "delta": kind.delta(piece)}),
        );
    }

    /// Appends to the arguments of a call. Its block begins with the first piece, and ends with the complete arguments.
    pub fn push_arguments(&mut self, writer: &mut ThreadWriter, call_id: &str, name: Option<&str>, piece: &str) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == call_id) {
            call.arguments.push_str(piece);
        } else if let Some(name) = name {
            self.begin_call(writer, call_id, name, piece.to_owned());
        }
    }

    /// Ends the block of a call with its complete arguments, or adds one.
    pub fn set_call(&mut self, writer: &mut ThreadWriter, call_id: &str, name: &str, arguments: String) {
        if !self.has_open(call_id) {
            self.begin_call(writer, call_id, name, String::new());
        }
        let place = self.calls.iter().position(|call| call.id == call_id).expect("the call was just begun");
        OpenCallBlock { arguments, ..self.calls.remove(place) }.end(writer);
    }

    /// Returns whether the block of the call has begun and not ended.
    pub fn has_open(&self, call_id: &str) -> bool {
        self.calls.iter().any(|call| call.id == call_id)
    }

    fn begin_call(&mut self, writer: &mut ThreadWriter, call_id: &str, name: &str, arguments: String) {
        self.end_block(writer);
        let index = self.next_index();
        writer.event(Channel::Messages, || {
            let content = json!({"type": "tool_call_chunk", "id": call_id, "name": name, "args": "", "index": index});
            json!({"event": "content-block-start", "index": index, "content": content})
        });
        self.calls.push(OpenCallBlock { index, id: call_id.to_owned(), name: name.to_owned(), arguments });
    }

    const fn next_index(&mut self) -> usize {
        self.blocks += 1;
        self.blocks - 1
    }

    /// Ends the last block before the next one.
    fn end_block(&mut self, writer: &mut ThreadWriter) {
        if let Some(OpenTextBlock { index, kind, text }) = self.text.take() {
            writer.event(
                Channel::Messages,
                || json!({"event": "content-block-finish", "index": index, "content": kind.content(&text)}),
            );
        }
        if self.calls.last().is_some_and(|call| call.is_complete()) {
            self.calls.pop().into_iter().for_each(|call| call.end(writer));
        }
    }

    /// Ends the message. A call whose arguments are incomplete is an invalid one.
    pub fn end(mut self, writer: &mut ThreadWriter) {
        self.end_block(writer);
        self.calls.drain(..).for_each(|call| call.end(writer));
        writer.event(Channel::Messages, || json!({"event": "message-finish"}));
    }
}

impl OpenCallBlock {
    fn is_complete(&self) -> bool {
        serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok()
    }

    fn end(self, writer: &mut ThreadWriter) {
        let Self { index, id, name, arguments } = self;
        writer.event(Channel::Messages, || {
            let content = match serde_json::from_str::<Map<String, Value>>(&arguments) {
                Ok(args) => json!({"type": "tool_call", "id": id, "name": name, "args": args, "index": index}),
                Err(_) => {
                    let error = "The arguments are incomplete.";
                    json!({"type": "invalid_tool_call", "id": id, "name": name, "args": arguments, "error": error, "index": index})
                }
            };
            json!({"event": "content-block-finish", "index": index, "content": content})
        });
    }
}

impl TextKind {
    fn content(self, text: &str) -> Value {
        match self {
            Self::Text => json!({"type": "text", "text": text}),
            Self::Reasoning => json!({"type": "reasoning", "reasoning": text}),
        }
    }

    fn delta(self, piece: &str) -> Value {
        match self {
            Self::Text => json!({"type": "text-delta", "text": piece}),
            Self::Reasoning => json!({"type": "reasoning-delta", "reasoning": piece}),
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_shared::event_id::EventId;
    use uuid::Uuid;

    use super::{super::channels::Channels, *};

    #[test]
    fn calls_that_the_model_writes_in_turns_end_with_their_own_arguments() {
        let mut writer = ThreadWriter::new(Channels::of(["messages"]), Uuid::nil(), 1, 0);
        writer.begin(EventId::first_of(1), 0);
        let mut message = OpenMessage::begin(&mut writer, "m".to_owned());
        message.push_text(&mut writer, TextKind::Reasoning, "hm");
        message.push_text(&mut writer, TextKind::Text, "I ");
        message.push_text(&mut writer, TextKind::Text, "call.");
        message.push_arguments(&mut writer, "a", Some("echo"), "{\"n\":");
        message.push_arguments(&mut writer, "b", Some("echo"), "{\"n\":2}");
        message.push_arguments(&mut writer, "a", None, "1}");
        message.push_arguments(&mut writer, "c", Some("echo"), "{\"n");
        message.push_arguments(&mut writer, "unknown", None, "{}");
        message.set_call(&mut writer, "d", "echo", "{\"n\":4}".to_owned());
        message.end(&mut writer);
        let text = String::from_utf8(writer.take()).unwrap();
        let events: Vec<Value> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str::<Value>(data).unwrap()["params"]["data"].take())
            .collect();
        let of_kind = |kind: &str| -> Vec<&Value> { events.iter().filter(|data| data["event"] == kind).collect() };
        let started: Vec<&Value> = of_kind("content-block-start").into_iter().map(|data| &data["index"]).collect();
        assert_eq!(started, [0, 1, 2, 3, 4, 5]);
        let mut finished: Vec<(u64, Value)> = of_kind("content-block-finish")
            .into_iter()
            .map(|data| (data["index"].as_u64().unwrap(), data["content"].clone()))
            .collect();
        finished.sort_by_key(|(index, _)| *index);
        let contents: Vec<&Value> = finished.iter().map(|(_, content)| content).collect();
        assert_eq!((&contents[0]["reasoning"], &contents[1]["text"]), (&json!("hm"), &json!("I call.")));
        for (content, n) in [(2, 1), (3, 2), (5, 4)] {
            let content = contents[content];
            assert_eq!((&content["type"], &content["args"]), (&json!("tool_call"), &json!({"n": n})));
        }
        assert_eq!((&contents[4]["type"], contents.len()), (&json!("invalid_tool_call"), 6));
        let ends: Vec<&Value> =
            [events.first(), events.last()].into_iter().flatten().map(|data| &data["event"]).collect();
        assert_eq!(ends, ["message-start", "message-finish"]);
    }
}
