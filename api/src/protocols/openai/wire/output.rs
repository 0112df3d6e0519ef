//! The output of a response: its items, and the events that show them.

use std::{borrow::Cow, sync::Arc};

use holdfast_shared::event_id::EventId;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    item::{CallBody, ItemBody, ItemState, OutputItem, output_text, summary_text},
    sender::FrameSender,
};
use crate::wire::answer_text::AnswerText;

/// The items that a response has shown, without superseded ones. Clones share them until one changes.
#[derive(Debug, Clone)]
pub struct ResponseOutput {
    run_id: Uuid,
    items: Arc<Vec<Arc<OutputItem>>>,
    next_index: u32,
}

/// A text that is longer by `delta`.
#[derive(Serialize)]
struct TextDelta<'a> {
    item_id: &'a str,
    output_index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_index: Option<u32>,
    delta: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<[(); 0]>,
}

impl ResponseOutput {
    pub fn of_run(run_id: Uuid) -> Self {
        Self { run_id, items: Arc::default(), next_index: 0 }
    }

    /// Returns the items as the protocol has them.
    pub fn json(&self) -> Vec<Value> {
        self.items.iter().map(|item| item.json(self.run_id)).collect()
    }

    /// Returns the items.
    pub fn items(&self) -> impl Iterator<Item = &OutputItem> {
        self.items.iter().map(AsRef::as_ref)
    }

    /// Drops what events after `base` have brought.
    pub fn drop_after(&mut self, base: EventId) {
        let items = Arc::make_mut(&mut self.items);
        items.retain(|item| item.since <= base);
        items.iter_mut().for_each(|item| Arc::make_mut(item).supersede_after(base));
    }

    /// Continues the text of the answer.
    pub fn text(&mut self, sender: &mut FrameSender<'_>, event: EventId, delta: &str) {
        let is_open = self.open_text().is_some_and(|item| matches!(item.body, ItemBody::Message(_)));
        if !is_open {
            self.close(sender);
            let item = self.begin(sender, event, ItemBody::Message(AnswerText::default()));
            let fields =
                json!({"item_id": &*item.id, "output_index": item.index, "content_index": 0, "part": output_text("")});
            sender.send("response.content_part.added", &fields);
        }
        self.grow(sender, event, "response.output_text.delta", delta);
    }

    /// Continues the reasoning.
    pub fn reasoning(&mut self, sender: &mut FrameSender<'_>, event: EventId, delta: &str) {
        let is_open = self.open_text().is_some_and(|item| matches!(item.body, ItemBody::Reasoning(_)));
        if !is_open {
            self.close(sender);
            let item = self.begin(sender, event, ItemBody::Reasoning(AnswerText::default()));
            let fields =
                json!({"item_id": &*item.id, "output_index": item.index, "summary_index": 0, "part": summary_text("")});
            sender.send("response.reasoning_summary_part.added", &fields);
        }
        self.grow(sender, event, "response.reasoning_summary_text.delta", delta);
    }

    /// Begins a call whose arguments follow. A call of an earlier attempt gives way to it.
    pub fn begin_call(&mut self, sender: &mut FrameSender<'_>, event: EventId, body: ItemBody) {
        self.close(sender);
        let call_id = body.call().map(|call| call.call_id.clone());
        let is_same = |item: &OutputItem| {
            matches!(item.body, ItemBody::FunctionCall(_) | ItemBody::McpCall { .. })
                && item.body.call().map(|call| &call.call_id) == call_id.as_ref()
        };
        Arc::make_mut(&mut self.items).retain(|item| !is_same(item));
        self.begin(sender, event, body);
    }

    /// Continues the arguments of a call.
    pub fn arguments(&mut self, sender: &mut FrameSender<'_>, event: EventId, call_id: &str, delta: &str) {
        let Some(at) = self.open_call(call_id).filter(|_| !delta.is_empty()) else { return };
        let item = self.item_mut(at);
        item.body.text_mut().push(event, delta);
        sender.send(&format!("response.{}.delta", arguments_of(&item.body)), &fields_of_delta(item, delta));
    }

    /// Ends the arguments of a call that is open. Arguments that no event has brought before are sent at once.
    pub fn end_arguments(&mut self, sender: &mut FrameSender<'_>, event: EventId, call_id: &str, input: Cow<'_, str>) {
        let Some(at) = self.open_call(call_id) else { return };
        if self.items[at].body.call().is_some_and(|call| call.arguments.is_empty()) {
            self.arguments(sender, event, call_id, &input);
        }
        let item = self.item_mut(at);
        let CallBody { name, arguments, .. } = item.body.call().expect("the item is a call");
        let fields =
            json!({"item_id": &*item.id, "output_index": item.index, "name": name, "arguments": arguments.to_text()});
        sender.send(&format!("response.{}.done", arguments_of(&item.body)), &fields);
        if matches!(item.body, ItemBody::FunctionCall(_)) {
            self.end(sender, at, ItemState::Completed);
        } else {
            sender.send("response.mcp_call.in_progress", &json!({"item_id": &*item.id, "output_index": item.index}));
        }
    }

    /// Ends a call that the server has executed.
    pub fn end_call(&mut self, sender: &mut FrameSender<'_>, call_id: &str, result: Result<String, String>) {
        let Some(at) = self.open_call(call_id) else { return };
        let item = self.item_mut(at);
        let ItemBody::McpCall { output, error, .. } = &mut item.body else { return };
        let (state, kind) = match result {
            Ok(text) => {
                *output = Some(text);
                (ItemState::Completed, "response.mcp_call.completed")
            }
            Err(text) => {
                *error = Some(text);
                (ItemState::Failed, "response.mcp_call.failed")
            }
        };
        sender.send(kind, &json!({"item_id": &*item.id, "output_index": item.index}));
        self.end(sender, at, state);
    }

    /// Shows an item that is complete at once.
    pub fn show(&mut self, sender: &mut FrameSender<'_>, event: EventId, body: ItemBody) {
        self.close(sender);
        self.begin(sender, event, body);
        self.end(sender, self.items.len() - 1, ItemState::Completed);
    }

    /// Returns whether a call is open.
    pub fn is_open(&self, call_id: &str) -> bool {
        self.open_call(call_id).is_some()
    }

    /// Ends the text or the reasoning that is open.
    pub fn close(&mut self, sender: &mut FrameSender<'_>) {
        let Some(item) = self.open_text() else { return };
        let mut fields = json!({"item_id": &*item.id, "output_index": item.index});
        let is_message = matches!(item.body, ItemBody::Message(_));
        let (ItemBody::Message(text) | ItemBody::Reasoning(text)) = &item.body else { return };
        let text = text.to_text();
        let (index, kinds) = if is_message {
            ("content_index", ["response.output_text.done", "response.content_part.done"])
        } else {
            ("summary_index", ["response.reasoning_summary_text.done", "response.reasoning_summary_part.done"])
        };
        fields[index] = 0.into();
        let mut part = fields.clone();
        part["part"] = if is_message { output_text(&text) } else { summary_text(&text) };
        fields["text"] = text.into();
        if is_message {
            fields["logprobs"] = json!([]);
        }
        sender.send(kinds[0], &fields);
        sender.send(kinds[1], &part);
        self.end(sender, self.items.len() - 1, ItemState::Completed);
    }

    /// Ends everything that is open.
    pub fn close_all(&mut self, sender: &mut FrameSender<'_>) {
        self.close(sender);
        for at in 0..self.items.len() {
            if self.items[at].state == ItemState::Open {
                self.end(sender, at, ItemState::Incomplete);
            }
        }
    }

    fn begin(&mut self, sender: &mut FrameSender<'_>, since: EventId, body: ItemBody) -> &OutputItem {
        let (id, state) = (body.id(self.run_id, since).into(), ItemState::Open);
        let item = OutputItem { index: self.next_index, since, id, state, until: None, body };
        self.next_index += 1;
        let items = Arc::make_mut(&mut self.items);
        items.push(Arc::new(item));
        let item = &items[items.len() - 1];
        sender.send("response.output_item.added", &json!({"output_index": item.index, "item": item.json(self.run_id)}));
        item
    }

    fn end(&mut self, sender: &mut FrameSender<'_>, at: usize, state: ItemState) {
        let (run_id, event) = (self.run_id, sender.counts.next.event);
        let item = self.item_mut(at);
        (item.state, item.until) = (state, Some(event));
        sender.send("response.output_item.done", &json!({"output_index": item.index, "item": item.json(run_id)}));
    }

    fn grow(&mut self, sender: &mut FrameSender<'_>, event: EventId, kind: &str, delta: &str) {
        let Some(at) = self.items.len().checked_sub(1) else { return };
        let item = self.item_mut(at);
        item.body.text_mut().push(event, delta);
        sender.send(kind, &fields_of_delta(item, delta));
    }

    /// Returns an item for a change. Only this one is copied if another state shares it.
    fn item_mut(&mut self, at: usize) -> &mut OutputItem {
        Arc::make_mut(&mut Arc::make_mut(&mut self.items)[at])
    }

    /// Returns the text or the reasoning that is open, which is the newest item.
    fn open_text(&self) -> Option<&OutputItem> {
        let is_text = |item: &&OutputItem| matches!(item.body, ItemBody::Message(_) | ItemBody::Reasoning(_));
        self.items.last().map(AsRef::as_ref).filter(|item| item.state == ItemState::Open).filter(is_text)
    }

    fn open_call(&self, call_id: &str) -> Option<usize> {
        let is_open = |item: &OutputItem| item.state == ItemState::Open;
        let is_called = |item: &OutputItem| item.body.call().is_some_and(|call| call.call_id == call_id);
        self.items.iter().position(|item| is_open(item) && is_called(item))
    }
}

fn fields_of_delta<'a>(item: &'a OutputItem, delta: &'a str) -> TextDelta<'a> {
    let is_message = matches!(item.body, ItemBody::Message(_));
    TextDelta {
        item_id: &item.id,
        output_index: item.index,
        content_index: is_message.then_some(0),
        summary_index: matches!(item.body, ItemBody::Reasoning(_)).then_some(0),
        delta,
        logprobs: is_message.then_some([]),
    }
}

const fn arguments_of(body: &ItemBody) -> &'static str {
    match body {
        ItemBody::FunctionCall(_) => "function_call_arguments",
        _ => "mcp_call_arguments",
    }
}
