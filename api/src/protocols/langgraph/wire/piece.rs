//! Pieces of the model's message. The pieces of a message differ in one field each, so the rest of their frames is encoded once.

use serde::Serialize;
use serde_json::json;

/// Something that the model has added to its message.
pub enum MessagePiece<'a> {
    Text(&'a str),
    Reasoning(&'a str),
    Call(CallPiece<'a>),
    /// A text or a call is complete. LangGraph's models say so too, and some clients close the part only then.
    End,
}

/// A piece of a call's arguments. The first piece of a call has its id and its name, and no arguments.
#[derive(Serialize)]
pub struct CallPiece<'a> {
    pub args: &'a str,
    pub id: Option<&'a str>,
    /// The number of the call in its step.
    pub index: usize,
    pub name: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl<'a> CallPiece<'a> {
    pub const fn new(index: usize, id: Option<&'a str>, name: Option<&'a str>, args: &'a str) -> Self {
        Self { args, id, index, name, kind: "tool_call_chunk" }
    }
}

/// The data of a frame with a piece of one message, without that piece.
#[derive(Debug)]
pub struct PieceFrame {
    /// The text between the content and what is known of the response.
    middle: String,
    /// The text after the pieces of calls.
    end: String,
}

impl PieceFrame {
    /// Encodes what all pieces of a message have in common: its id, and the node and the step that write it.
    pub fn new(id: &str, node: &str, step: u32) -> Self {
        let (id, about) = (json!(id), about(node, step));
        let middle = format!(r#","id":{id},"response_metadata":"#);
        Self { middle, end: format!(r#","type":"AIMessageChunk"}},{about}]"#) }
    }

    /// Appends the data of a frame with this piece.
    pub fn write(&self, buffer: &mut Vec<u8>, piece: &MessagePiece<'_>) {
        buffer.extend_from_slice(br#"[{"additional_kwargs":"#);
        match piece {
            MessagePiece::Reasoning(text) => {
                buffer.extend_from_slice(br#"{"reasoning_content":"#);
                append(buffer, text);
                buffer.push(b'}');
            }
            MessagePiece::Text(_) | MessagePiece::Call(_) | MessagePiece::End => buffer.extend_from_slice(b"{}"),
        }
        buffer.extend_from_slice(br#","content":"#);
        match piece {
            MessagePiece::Text(text) => append(buffer, text),
            MessagePiece::Reasoning(_) | MessagePiece::Call(_) | MessagePiece::End => {
                buffer.extend_from_slice(br#""""#);
            }
        }
        buffer.extend_from_slice(self.middle.as_bytes());
        // `stop` also after a call: @ag-ui/langgraph closes a call by no other word.
        let response: &[u8] = if matches!(piece, MessagePiece::End) { br#"{"finish_reason":"stop"}"# } else { b"{}" };
        buffer.extend_from_slice(response);
        buffer.extend_from_slice(br#","tool_call_chunks":"#);
        match piece {
            MessagePiece::Call(call) => append(buffer, &[call]),
            MessagePiece::Text(_) | MessagePiece::Reasoning(_) | MessagePiece::End => buffer.extend_from_slice(b"[]"),
        }
        buffer.extend_from_slice(self.end.as_bytes());
    }
}

/// Returns what a frame says about its message.
pub fn about(node: &str, step: u32) -> serde_json::Value {
    json!({"langgraph_node": node, "langgraph_step": step})
}

fn append<T: Serialize + ?Sized>(buffer: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(buffer, value).expect("a value is always valid JSON");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_piece_is_a_message_with_one_field_and_what_is_known_about_it() {
        let frame = PieceFrame::new("a \"b\".2", "agent", 3);
        let data = |piece: MessagePiece<'_>| {
            let mut buffer = Vec::new();
            frame.write(&mut buffer, &piece);
            serde_json::from_slice::<Value>(&buffer).unwrap()
        };
        let with = |field: &str, value: Value| {
            let mut message = json!({
                "type": "AIMessageChunk", "id": "a \"b\".2", "content": "", "additional_kwargs": {}, "response_metadata": {},
                "tool_call_chunks": [],
            });
            message[field] = value;
            json!([message, {"langgraph_node": "agent", "langgraph_step": 3}])
        };
        assert_eq!(data(MessagePiece::Text("\"hi\"\n")), with("content", json!("\"hi\"\n")));
        let reasoning = json!({"reasoning_content": "\\"});
        assert_eq!(data(MessagePiece::Reasoning("\\")), with("additional_kwargs", reasoning));
        assert_eq!(data(MessagePiece::End), with("response_metadata", json!({"finish_reason": "stop"})));
        let call = CallPiece::new(1, Some("c"), Some("echo"), "{\"");
        let chunk = json!({"name": "echo", "args": "{\"", "id": "c", "index": 1, "type": "tool_call_chunk"});
        assert_eq!(data(MessagePiece::Call(call)), with("tool_call_chunks", json!([chunk])));
    }
}
