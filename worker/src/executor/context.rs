//! The context of a run: what the model is asked.

use holdfast_shared::{
    message::{Message, Role},
    storage::History,
};

use crate::model::{Request, Turn};

/// Earlier messages, oldest first, then the run's own input. Only what users and assistants said is ever sent.
pub fn request_of(history: History) -> Request {
    let turns = history.earlier.into_iter().chain([history.input]).filter_map(turn_of).collect();
    Request { turns, ..Request::default() }
}

fn turn_of(message: Message) -> Option<Turn> {
    // An answer of no words is nothing to a model, and an error to some providers.
    if message.content.is_empty() {
        return None;
    }
    match message.role {
        Role::User => Some(Turn::User(message.content)),
        Role::Assistant => Some(Turn::Assistant { text: message.content, calls: Vec::new() }),
        Role::System => None,
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use holdfast_shared::message::MessageStatus;
    use uuid::Uuid;

    use super::*;

    fn message(role: Role, content: &str) -> Message {
        Message {
            id: Uuid::nil(),
            conversation_id: Uuid::nil(),
            run_id: Uuid::nil(),
            role,
            content_type: "text".into(),
            content: content.into(),
            status: MessageStatus::Complete,
            created_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn the_model_sees_what_was_said_and_nothing_else() {
        let earlier = vec![
            message(Role::System, "stored"),
            message(Role::User, "a"),
            message(Role::Assistant, ""),
            message(Role::Assistant, "b"),
        ];
        let request = request_of(History { earlier, input: message(Role::User, "c") });
        let (user, assistant) = (
            |text: &str| Turn::User(text.to_owned()),
            |text: &str| Turn::Assistant { text: text.to_owned(), calls: Vec::new() },
        );
        assert_eq!(request.turns, [user("a"), assistant("b"), user("c")]);
        assert_eq!(request.system, None);
    }
}
