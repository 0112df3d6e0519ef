//! The conversations about a project of the workspace.
//!
//! A conversation's context is the metadata of its newest run, or of the checkpoint that a run has left, so no column has
//! it. A page therefore looks at the contexts of a limited number of conversations, and has those of the project.

use sqlx::FromRow;
use uuid::Uuid;

use super::{
    Error, Storage,
    newest_first::NewestFirst,
    rows::{ConversationRow, conversation_columns},
    sql::{args, statements},
};
use crate::{conversation::Conversation, page::Page};

/// A page looks at the contexts of so many conversations.
const LOOKED_AT: usize = 200;

#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    conversation: ConversationRow,
    /// The newest run, and the project of its own context; empty for a context without a project.
    newest_run: Option<Uuid>,
    own_project: Option<String>,
    /// The run of the newest checkpoint, and the project of the context that it has kept.
    kept_run: Option<Uuid>,
    kept_project: Option<String>,
}

impl Row {
    /// Returns the project of the context. A checkpoint of the newest run has that run's context, perhaps changed.
    fn project(&self) -> Option<&str> {
        let own = self.own_project.as_deref().filter(|_| self.newest_run != self.kept_run);
        own.or(self.kept_project.as_deref())
    }
}

/// The project of the context in `metadata`; null without a context.
macro_rules! project_of_context {
    () => {
        "case
                    when metadata->'agent_context' is not null
                    then coalesce(
                        metadata->'agent_context'->'projectFocus'->>'projectId',
                        metadata->'agent_context'->>'entity_id',
                        ''
                    )
                end"
    };
}

/// A value of the newest row of a conversation `c`.
macro_rules! of_newest {
    ($value:expr, $table:literal, $order:literal) => {
        concat!(
            "(
                select ",
            $value,
            "
                from ",
            $table,
            "
                where conversation_id = c.id
                order by ",
            $order,
            " desc
                limit 1
            )"
        )
    };
}

statements! {
    /// Lists an owner's conversations with the projects of their contexts, newest activity first.
    CONVERSATIONS_WITH_PROJECTS = concat!("
        select ", conversation_columns!(), ",
            ", of_newest!("id", "agent_runs", "position"), " as newest_run,
            ", of_newest!(project_of_context!(), "agent_runs", "position"), " as own_project,
            ", of_newest!("run_id", "agent_run_checkpoints", "id"), " as kept_run,
            ", of_newest!(project_of_context!(), "agent_run_checkpoints", "id"), " as kept_project
        from chat_conversations c
        where c.owner_id = $1
          and c.deleted_at is null
          and c.parent_run_id is null
          and not c.hidden
          and ($2 is null or (c.activity_at, c.id) < ($2, $3))
        order by c.activity_at desc, c.id desc
        limit $4
    "),
}

impl Storage {
    /// Returns a page of the owner's conversations whose context names the project, newest activity first. A page may have
    /// fewer items than `limit`, and a next page. `None` for an unknown cursor.
    pub async fn conversations_of_project(
        &self,
        owner: &str,
        project: Uuid,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Conversation>>, Error> {
        let Ok(before) = NewestFirst::parse(cursor) else { return Ok(None) };
        let args = args![owner, before.at(), before.id(), LOOKED_AT];
        let rows = self.database.fetch_all::<Row>("list conversations", CONVERSATIONS_WITH_PROJECTS, args).await?;
        let project = project.to_string();
        let looked_at = rows.len();
        let mut items = Vec::new();
        for (index, row) in rows.into_iter().enumerate() {
            let is_last = index + 1 == LOOKED_AT;
            let after = NewestFirst::cursor_after(row.conversation.activity_at, row.conversation.id);
            if row.project() == Some(&project) {
                items.push(Conversation::from(row.conversation));
            }
            if is_last || items.len() == limit && index + 1 < looked_at {
                return Ok(Some(Page { items, next: Some(after) }));
            }
        }
        Ok(Some(Page { items, next: None }))
    }
}
