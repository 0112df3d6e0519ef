//! The changes of entities, newest first.

use chrono::{DateTime, Utc};
use holdfast_shared::{
    database::{Error, Json, args},
    page::{Page, PageSize},
};
use serde_json::Value;
use uuid::Uuid;

use super::Workspace;
use crate::{
    change::{Action, Change},
    kind::Kind,
};

/// A row: id, set, kind, entity, action, the states before and after, user, run, time.
pub type ChangeRow =
    (Uuid, Uuid, String, Uuid, String, Option<Json<Value>>, Option<Json<Value>>, String, Option<Uuid>, DateTime<Utc>);

holdfast_shared::statements! {
    /// Lists the changes of an owner, of one entity if given, newest first.
    CHANGES = "
        select id, change_set_id, kind, entity_id, action, before, after, user_id, run_id, created_at
        from onto_changes
        where owner_id = $1
          and (cast($2 as uuid) is null or entity_id = $2)
          and (cast($3 as uuid) is null or id < $3)
        order by id desc
        limit $4
    ",
}

impl Workspace {
    /// Lists the changes of an owner, of one entity if given, newest first, after the change `cursor`. A page has at most 20
    /// changes, because each has two states.
    pub async fn changes(
        &self,
        owner: &str,
        entity: Option<Uuid>,
        cursor: Option<Uuid>,
        size: PageSize,
    ) -> Result<Page<Change>, Error> {
        let most = size.items.min(20);
        let args = args![owner, entity, cursor, most + 1];
        let rows = self.database.fetch_all::<ChangeRow>("list changes", CHANGES, args).await?;
        let changes = rows.into_iter().filter_map(change).collect();
        Ok(Page::of(changes, most, |last: &Change| last.id.to_string()))
    }
}

/// Returns the change of a row; `None` if a later version has written it.
pub fn change(row: ChangeRow) -> Option<Change> {
    let (id, change_set_id, kind, entity_id, action, before, after, user_id, run_id, created_at) = row;
    let (kind, action): (Kind, Action) = (kind.parse().ok()?, action.parse().ok()?);
    let [before, after] = [before, after].map(|state| state.map(|state| state.0).filter(|state| !state.is_null()));
    Some(Change { id, change_set_id, kind, entity_id, action, before, after, user_id, run_id, created_at })
}
