//! The changes of entities, newest first.

use chrono::{DateTime, Utc};
use holdfast_shared::{
    database::{Error, Json, args},
    page::{Page, PageSize},
};
use serde_json::Value;
use uuid::Uuid;

use super::{Workspace, page_of};
use crate::{
    change::{Action, Change},
    kind::Kind,
};

/// A row: id, set, kind, entity, action, the states before and after, user, run, time.
pub type ChangeRow =
    (Uuid, Uuid, String, Uuid, String, Option<Json<Value>>, Option<Json<Value>>, String, Option<Uuid>, DateTime<Utc>);

holdfast_shared::statements! {
    /// Lists the ids and sizes of the changes of an owner, of one entity of a kind if given, newest first.
    CHANGE_SIZES = "
        select id, bytes
        from onto_changes
        where owner_id = $1
          and (cast($2 as uuid) is null or entity_id = $2)
          and (cast($3 as text) is null or kind = $3)
          and (cast($4 as uuid) is null or id < $4)
        order by id desc
        limit $5
    ",
    /// Returns changes, newest first.
    CHANGES = "
        select id, change_set_id, kind, entity_id, action, before, after, user_id, run_id, created_at
        from onto_changes
        where owner_id = $1 and id {in:$2}
        order by id desc
    ",
}

impl Workspace {
    /// Lists the changes of an owner, of one entity if given, newest first, after the change `cursor`. A page has at most 20
    /// changes, because each has two states.
    pub async fn changes(
        &self,
        owner: &str,
        entity: Option<(Kind, Uuid)>,
        cursor: Option<Uuid>,
        size: PageSize,
    ) -> Result<Page<Change>, Error> {
        const DOING: &str = "list changes";
        let size = PageSize { items: size.items.min(20), ..size };
        let (kind, id) = entity.map_or((None, None), |(kind, id)| (Some(kind.as_str().to_owned()), Some(id)));
        let args = args![owner, id, kind, cursor, size.items + 1];
        // The states may be large, so only those of the page are read.
        let sizes = self.database.fetch_all::<(Uuid, i64)>(DOING, CHANGE_SIZES, args).await?;
        let page = page_of(sizes, size, |(_, bytes)| *bytes as usize, |(last, _)| last.to_string());
        let ids: Vec<Uuid> = page.items.into_iter().map(|(id, _)| id).collect();
        let rows = self.database.fetch_all::<ChangeRow>(DOING, CHANGES, args![owner, ids]).await?;
        Ok(Page { items: rows.into_iter().filter_map(change).collect(), next: page.next })
    }
}

/// Returns the change of a row; `None` if a later version has written it.
pub fn change(row: ChangeRow) -> Option<Change> {
    let (id, change_set_id, kind, entity_id, action, before, after, user_id, run_id, created_at) = row;
    let (kind, action): (Kind, Action) = (kind.parse().ok()?, action.parse().ok()?);
    let [before, after] = [before, after].map(|state| state.map(|state| state.0).filter(|state| !state.is_null()));
    Some(Change { id, change_set_id, kind, entity_id, action, before, after, user_id, run_id, created_at })
}
