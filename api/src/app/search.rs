//! Lists and searches of an owner's conversations.

use std::sync::Arc;

use holdfast_shared::{
    conversation::{Chat, Conversation},
    page::Page,
    storage::ChatFilter,
};

use uuid::Uuid;

use super::App;
use crate::{auth::Caller, problem::Problem};

impl App {
    /// Returns a page of the caller's conversations: all, or those that contain the words of `text`. `None` for an
    /// invalid cursor. Fails if no search turn becomes free in time.
    pub async fn conversations(
        self: &Arc<Self>,
        caller: &Caller,
        limit: usize,
        cursor: Option<String>,
        text: Option<&str>,
    ) -> Result<Option<Page<Conversation>>, Problem> {
        let Some(text) = text else {
            return Ok(self.storage.conversations(&caller.owner, limit, cursor.as_deref(), None).await?);
        };
        let turn = self.search_limit.begin(caller).await?;
        let (app, owner, text) = (Arc::clone(self), caller.owner.clone(), text.to_owned());
        // A client that hangs up does not end the statement, so the statement's task owns the turn.
        self.to_completion(async move {
            let found = app.storage.conversations(&owner, limit, cursor.as_deref(), Some(&text)).await;
            drop(turn);
            Ok(found?)
        })
        .await
    }

    /// Returns a page of the caller's conversations about a project. Fails if no search turn becomes free in time.
    pub async fn conversations_of_project(
        self: &Arc<Self>,
        caller: &Caller,
        project: Uuid,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<Option<Page<Conversation>>, Problem> {
        let turn = self.search_limit.begin(caller).await?;
        let (app, owner) = (Arc::clone(self), caller.owner.clone());
        self.to_completion(async move {
            let found = app.storage.conversations_of_project(&owner, project, limit, cursor.as_deref()).await;
            drop(turn);
            Ok(found?)
        })
        .await
    }

    /// Returns some of the caller's conversations that match. Fails if no search turn becomes free in time.
    pub async fn chats(
        self: &Arc<Self>,
        caller: &Caller,
        filter: ChatFilter,
        limit: usize,
        offset: usize,
    ) -> Result<Vec<Chat>, Problem> {
        let turn = self.search_limit.begin(caller).await?;
        let (app, owner) = (Arc::clone(self), caller.owner.clone());
        self.to_completion(async move {
            let found = app.storage.chats(&owner, filter, limit, offset).await;
            drop(turn);
            Ok(found?)
        })
        .await
    }

    /// Returns the number of the caller's conversations that match. Fails if no search turn becomes free in time.
    pub async fn count_chats(self: &Arc<Self>, caller: &Caller, filter: ChatFilter) -> Result<usize, Problem> {
        let turn = self.search_limit.begin(caller).await?;
        let (app, owner) = (Arc::clone(self), caller.owner.clone());
        self.to_completion(async move {
            let found = app.storage.count_chats(&owner, filter).await;
            drop(turn);
            Ok(found?)
        })
        .await
    }
}
