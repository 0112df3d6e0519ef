//! Lists of tasks in another order than that of their creation.

use holdfast_shared::{
    database::{Error, args},
    page::{Page, PageSize},
};
use uuid::Uuid;

use super::{
    Workspace,
    filter::Filter,
    page_of,
    rows::{EntityRow, entity},
};
use crate::{entity::Entity, kind::Kind};

/// The order of a list of tasks. Equal tasks have the newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskOrder {
    /// The most important first, those without a priority last; then those that are due first.
    Priority,
    /// Those that are due first, those without a date last; then the most important ones.
    Due,
}

impl TaskOrder {
    /// The values of `order` beside `newest`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "priority" => Some(Self::Priority),
            "due" => Some(Self::Due),
            _ => None,
        }
    }
}

/// The keys of an order, from a task under this name. The last moment stands for no date.
macro_rules! by_priority {
    ($task:literal) => {
        concat!("-coalesce(", $task, ".priority, 0), ", by_date!($task))
    };
}
macro_rules! by_due {
    ($task:literal) => {
        concat!(by_date!($task), ", -coalesce(", $task, ".priority, 0)")
    };
}
macro_rules! by_date {
    ($task:literal) => {
        concat!("coalesce(", $task, ".due_at, {time:'9999-12-31T23:59:59.999Z'})")
    };
}

/// Lists the owner's live tasks in the project `$2`, if given, that match one of the JSON objects `$3`, if there is one, after
/// the task `$4`.
macro_rules! ordered {
    ($keys:ident) => {
        concat!("
        with wanted as materialized (
            select 1 as one", wanted!(state word), wanted!(priority number), wanted!(due_at time),
                wanted!(plan_id uuid), wanted!(goal_id uuid), "
            from {each:$3}
        ),
        last as materialized (
            select t.id, t.priority, t.due_at
            from onto_tasks t
            where t.id = $4 and t.owner_id = $1
        )
        select e.id, e.project_id,
            {object}('props', {json:e.props}, 'title', e.title, 'description', e.description, 'state', e.state,
                'priority', e.priority, 'due_at', e.due_at, 'plan_id', {id text:e.plan_id},
                'goal_id', {id text:e.goal_id}) as fields,
            e.version, e.created_at, e.updated_at, e.deleted_at
        from onto_tasks e
        left join last l on true
        where e.owner_id = $1
          and e.deleted_at is null
          and (cast($2 as uuid) is null or e.project_id = $2)
          and (
              cast($4 as uuid) is null
              or (", $keys!("e"), ") > (", $keys!("l"), ")
              or (", $keys!("e"), ") = (", $keys!("l"), ") and e.id < l.id
          )
          and (
              not exists (select 1 from wanted)
              or exists (
                  select 1
                  from wanted w
                  where true", is_wanted!(state word), is_wanted!(priority number), is_wanted!(due_at time),
                      is_wanted!(plan_id uuid), is_wanted!(goal_id uuid), "
              )
          )
        order by ", $keys!("e"), ", e.id desc
        limit $5
        ")
    };
}

holdfast_shared::statements! {
    /// Lists tasks, the most important first.
    BY_PRIORITY = ordered!(by_priority),
    /// Lists tasks, those that are due first.
    BY_DUE = ordered!(by_due),
}

impl Workspace {
    /// Lists tasks in an order, after the task `cursor`.
    pub async fn ordered_tasks(
        &self,
        owner: &str,
        order: TaskOrder,
        filter: &Filter,
        cursor: Option<Uuid>,
        size: PageSize,
    ) -> Result<Page<Entity>, Error> {
        let statement = match order {
            TaskOrder::Priority => BY_PRIORITY,
            TaskOrder::Due => BY_DUE,
        };
        let args = args![owner, filter.project_id, filter.json(), cursor, size.items + 1];
        let rows = self.database.fetch_all::<EntityRow>("list tasks in an order", statement, args).await?;
        let tasks = rows.into_iter().map(|row| entity(Kind::Task, row)).collect();
        Ok(page_of(tasks, size, |task: &Entity| task.state().to_string().len(), |last| last.id.to_string()))
    }
}
