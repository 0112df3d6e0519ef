//! The author of changes: a user, or a call of a tool in a user's run.

use uuid::Uuid;

/// The author of a set of changes.
#[derive(Debug, Clone, Copy)]
pub struct Author<'a> {
    /// The owner of the workspace.
    pub owner: &'a str,
    /// The user who makes the changes, or has started the run.
    pub user: &'a str,
    /// The call, if a run makes the changes.
    pub call: Option<AuthorCall<'a>>,
    /// Whether the user is an operator, who may publish templates.
    pub is_operator: bool,
}

/// A call of a tool by an attempt at a run. Its changes are made once, however often it is repeated.
#[derive(Debug, Clone, Copy)]
pub struct AuthorCall<'a> {
    /// The run.
    pub run_id: Uuid,
    /// The attempt; one that does not hold the run any more changes nothing.
    pub attempt: u32,
    /// The call.
    pub call_id: &'a str,
}

impl<'a> Author<'a> {
    /// Returns a user as the author of changes of their own workspace.
    pub const fn user(owner: &'a str) -> Self {
        Self { owner, user: owner, call: None, is_operator: false }
    }

    /// Returns an operator as the author of changes of an owner's workspace.
    pub const fn operator(owner: &'a str, user: &'a str) -> Self {
        Self { owner, user, call: None, is_operator: true }
    }
}
