//! The context of a run: what the model is asked.

use holdfast_shared::{
    message::{Message, Role},
    storage::History,
};

use crate::model::{Request, Speaker, Turn};

/// Earlier messages, oldest first, then the run's own input. Only what users and assistants said is ever sent.
pub fn request_of(history: History) -> Request {
    let turns = history.earlier.into_iter().chain([history.input]).filter_map(turn_of).collect();
    Request { system: None, turns }
}

fn turn_of(message: Message) -> Option<Turn> {
    let speaker = match message.role {
        Role::User => Speaker::User,
        Role::Assistant => Speaker::Assistant,
        Role::System => return None,
    };
    // An answer of no words is nothing to a model, and an error to some providers.
    (!message.content.is_empty()).then_some(Turn { speaker, text: message.content })
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
        let said: Vec<_> = request.turns.iter().map(|turn| (turn.speaker, turn.text.as_str())).collect();
        assert_eq!(said, [(Speaker::User, "a"), (Speaker::Assistant, "b"), (Speaker::User, "c")]);
        assert_eq!(request.system, None);
    }
}
