//! The approvals that a caller may decide: of its own runs, and of runs whose agent names it as an approver.
//!
//! `access` decides about one run by the same rule, and `answer` stores a decision.

use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error, Storage,
    pages::{PageRow, page_of, page_query},
    rows::{ApprovalRow, approval_columns},
    sql::{args, statements},
};
use crate::{
    agent::{Approvers, CallerRights},
    approval::PendingApproval,
    page::{Page, PageSize},
};

#[derive(FromRow)]
struct OpenRow {
    #[sqlx(flatten)]
    approval: ApprovalRow,
    place: Uuid,
    agent_id: Option<Uuid>,
    conversation_id: Option<Uuid>,
}

/// The condition of a run `r` and its approval `a` on which a decision counts now.
macro_rules! is_open {
    () => {
        "r.status = 'waiting'
                  and a.status = 'pending'
                  and a.expires_at >= {now}
                  and exists (
                      select 1
                      from chat_conversations c
                      where c.id = r.conversation_id and c.deleted_at is null
                  )"
    };
}

statements! {
    /// Lists the approvals that a caller may decide now: of its own runs, and of the definitions in `$2`.
    OPEN_APPROVALS = page_query!(
        concat!("
            select ", approval_columns!(), ", id as place, agent_id, conversation_id,
                octet_length(cast(input as text)) + 600 as page_bytes
            from (
                select a.*, r.agent_definition_id as agent_id,
                    coalesce(top.conversation_id, r.conversation_id) as conversation_id
                from agent_runs r
                join agent_run_approvals a on a.run_id = r.id
                left join agent_runs top on top.id = r.top_run_id
                left join agent_definition_versions v
                    on v.agent_definition_id = r.agent_definition_id and v.version = r.agent_version
                where r.owner_id = $1
                  and r.finished_at is null
                  and coalesce(v.definition ->> 'approvers', 'owner') = 'owner'
                  and ", is_open!(), "
                union all
                select a.*, r.agent_definition_id,
                    case
                        when r.owner_id = $1
                        then coalesce(
                            (
                                select top.conversation_id
                                from agent_runs top
                                where top.id = r.top_run_id
                            ),
                            r.conversation_id
                        )
                    end
                from {each:$2}
                join agent_runs r
                    on r.agent_definition_id = {uuid:value->>'agent'}
                    and r.agent_version = cast(value->>'version' as bigint)
                join agent_run_approvals a on a.run_id = r.id
                where ", is_open!(), "
            ) pending
            where ($3 is null or id > $3)
            order by id
            limit $4
        "),
        "id",
        "$5",
    ),
    /// Returns the definitions with approvers that have waiting runs.
    ENTRUSTED = "
        select v.agent_definition_id, v.version, v.definition -> 'approvers'
        from agent_definition_versions v
        where (v.definition ->> 'approvers') is not null
          and exists (
              select 1
              from agent_runs r
              where r.agent_definition_id = v.agent_definition_id
                and r.agent_version = v.version
                and r.status = 'waiting'
          )
    ",
}

impl Storage {
    /// Returns a page of the approvals that the caller may decide now, oldest first. `None` for an unknown cursor.
    pub async fn open_approvals(
        &self,
        caller: CallerRights<'_>,
        size: PageSize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<PendingApproval>>, Error> {
        let Ok(after) = cursor.map(str::parse::<Uuid>).transpose() else { return Ok(None) };
        let entrusted = self.entrusted_to(caller).await?;
        let args = args![caller.owner, entrusted, after, size.items + 1, size.bytes];
        let rows = self
            .database
            .fetch_all::<PageRow<OpenRow>>("list the approvals that a caller may decide", OPEN_APPROVALS, args)
            .await?;
        Ok(Some(page_of(rows, size, |last| last.place.simple().to_string())))
    }

    /// Returns the definitions with waiting runs that name the caller as an approver, as `[{agent, version}]`.
    async fn entrusted_to(&self, caller: CallerRights<'_>) -> Result<Value, Error> {
        let waiting = self
            .database
            .fetch_all::<(Uuid, i64, Json<Value>)>("look for definitions that name approvers", ENTRUSTED, args![])
            .await?;
        let entrusted = waiting.into_iter().filter_map(|(agent, version, Json(approvers))| {
            // No owner has the empty id. So a definition with the approver `owner` entrusts its runs to no other
            // caller.
            let is_named = Approvers::deserialize(&approvers).is_ok_and(|approvers| approvers.include(caller, ""));
            is_named.then(|| json!({"agent": agent.simple(), "version": version}))
        });
        Ok(entrusted.collect())
    }
}

impl From<OpenRow> for PendingApproval {
    fn from(row: OpenRow) -> Self {
        Self { approval: row.approval.into(), agent_id: row.agent_id, conversation_id: row.conversation_id }
    }
}
