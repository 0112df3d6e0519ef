//! The tables of entities, one for each kind, and the statements that they have in common.

use holdfast_shared::database::Sql;

use crate::kind::Kind;

/// The statements of a kind's table.
pub struct Table {
    /// Returns entities of the owner `$1` with the ids `$2`.
    pub get: Sql,
    /// Lists the owner's live entities, newest first: the project `$2` and the state `$3`, if given, after the entity `$4`.
    pub list: Sql,
    /// Returns the owner's entities of the project `$2`.
    pub of_project: Sql,
    /// Returns the bytes of JSON of the owner's entities of the project `$2`, roughly.
    pub bytes_of_project: Sql,
    /// Returns the ids of the owner's live entities of the project `$2`.
    pub live_ids: Sql,
    /// Stores entities with their current state.
    pub put: Sql,
    /// Removes entities of the owner `$1` with the ids `$2`.
    pub remove: Sql,
    /// Returns entities of the owner `$1` that were deleted, and changed last, before the time `$2`.
    pub expired: Sql,
}

/// The expression that reads a column into the JSON of an entity.
macro_rules! read {
    ($column:ident uuid) => {
        concat!(", '", stringify!($column), "', {id text:e.", stringify!($column), "}")
    };
    ($column:ident $form:ident) => {
        concat!(", '", stringify!($column), "', e.", stringify!($column))
    };
}

/// The expression for a list, which leaves out bodies.
macro_rules! read_brief {
    ($column:ident body) => {
        ""
    };
    ($column:ident $form:ident) => {
        read!($column $form)
    };
}

/// The expression that reads a column from the row of a write.
macro_rules! written {
    ($column:ident uuid) => {
        concat!(", {uuid:value->>'", stringify!($column), "'}")
    };
    ($column:ident time) => {
        concat!(", {time:value->>'", stringify!($column), "'}")
    };
    ($column:ident number) => {
        concat!(", cast(value->>'", stringify!($column), "' as bigint)")
    };
    ($column:ident $form:ident) => {
        concat!(", value->>'", stringify!($column), "'")
    };
}

/// Declares the statements of a table. The first list has the column of the project: its name in an insertion, its expression
/// in a selection, its value in a write, and the condition that it is `$2`.
macro_rules! table {
    (
        $module:ident, $table:literal, [$into:literal, $selected:literal, $value:literal, $is_of_project:literal],
        $($column:ident $form:ident),+ $(,)?
    ) => {
        mod $module {
            holdfast_shared::statements! {
                /// Returns entities by their ids.
                GET = concat!("
                    select e.id, ", $selected, " as project_id,
                        {object}('props', {json:e.props}", $(read!($column $form)),+, ") as fields,
                        e.version, e.created_at, e.updated_at, e.deleted_at
                    from ", $table, " e
                    where e.owner_id = $1 and e.id {in:$2}
                "),
                /// Lists entities, newest first.
                LIST = concat!("
                    select e.id, ", $selected, " as project_id,
                        {object}('props', {json:e.props}", $(read_brief!($column $form)),+, ") as fields,
                        e.version, e.created_at, e.updated_at, e.deleted_at
                    from ", $table, " e
                    where e.owner_id = $1
                      and e.deleted_at is null
                      and (cast($2 as uuid) is null or ", $is_of_project, ")
                      and (cast($3 as text) is null or e.state = $3)
                      and (cast($4 as uuid) is null or e.id < $4)
                    order by e.id desc
                    limit $5
                "),
                /// Returns the entities of a project.
                OF_PROJECT = concat!("
                    select e.id, ", $selected, " as project_id,
                        {object}('props', {json:e.props}", $(read!($column $form)),+, ") as fields,
                        e.version, e.created_at, e.updated_at, e.deleted_at
                    from ", $table, " e
                    where e.owner_id = $1 and ", $is_of_project, "
                "),
                /// Returns the bytes of the entities of a project.
                BYTES_OF_PROJECT = concat!("
                    select cast(
                            coalesce(sum(octet_length(cast({object}('props', {json:e.props}", $(read!($column $form)),+, ") as text))), 0)
                            as bigint
                        )
                    from ", $table, " e
                    where e.owner_id = $1 and ", $is_of_project, "
                "),
                /// Returns the ids of the live entities of a project.
                LIVE_IDS = concat!("
                    select e.id
                    from ", $table, " e
                    where e.owner_id = $1 and ", $is_of_project, " and e.deleted_at is null
                "),
                /// Stores entities with their current state.
                PUT = concat!("
                    insert into ", $table, " (
                        id, owner_id", $into, ", props, version, created_at, updated_at, deleted_at",
                        $(", ", stringify!($column)),+, "
                    )
                    select {uuid:value->>'id'}, value->>'owner_id'", $value, ", value->'props',
                        cast(value->>'version' as bigint), {time:value->>'created_at'},
                        {time:value->>'updated_at'}, {time:value->>'deleted_at'}", $(written!($column $form)),+, "
                    from {each:$1}
                    where true
                    on conflict (id) do update
                    set props = excluded.props,
                        version = excluded.version,
                        updated_at = excluded.updated_at,
                        deleted_at = excluded.deleted_at",
                        $(", ", stringify!($column), " = excluded.", stringify!($column)),+, "
                "),
                /// Removes entities.
                REMOVE = concat!("
                    delete from ", $table, "
                    where owner_id = $1 and id {in:$2}
                "),
                /// Returns entities that were deleted long ago.
                EXPIRED = concat!("
                    select e.id, ", $selected, " as project_id,
                        {object}('props', {json:e.props}", $(read!($column $form)),+, ") as fields,
                        e.version, e.created_at, e.updated_at, e.deleted_at
                    from ", $table, " e
                    where e.owner_id = $1 and e.deleted_at < $2 and e.updated_at < $2
                    limit 100
                "),
            }

            pub const TABLE: super::Table = super::Table {
                get: GET,
                list: LIST,
                of_project: OF_PROJECT,
                bytes_of_project: BYTES_OF_PROJECT,
                live_ids: LIVE_IDS,
                put: PUT,
                remove: REMOVE,
                expired: EXPIRED,
            };
        }
    };
    ($module:ident, $table:literal, $($column:ident $form:ident),+ $(,)?) => {
        table!(
            $module,
            $table,
            [", project_id", "e.project_id", ", {uuid:value->>'project_id'}", "e.project_id = $2"],
            $($column $form),+
        );
    };
}

table!(
    projects,
    "onto_projects",
    ["", "cast(null as uuid)", "", "e.id = $2"],
    name text,
    description text,
    type_key text,
    state text,
    start_at time,
    end_at time,
);
table!(
    tasks,
    "onto_tasks",
    title text,
    description text,
    state text,
    priority number,
    due_at time,
    plan_id uuid,
    goal_id uuid,
);
table!(plans, "onto_plans", name text, description text, state text, start_at time, end_at time);
table!(goals, "onto_goals", name text, description text, state text, target_date time);
table!(documents, "onto_documents", title text, body body, type text, state text);
table!(outputs, "onto_outputs", name text, kind text, body body, state text);

/// The statements of all tables.
pub const STATEMENTS: &[&[Sql]] = &[
    projects::STATEMENTS,
    tasks::STATEMENTS,
    plans::STATEMENTS,
    goals::STATEMENTS,
    documents::STATEMENTS,
    outputs::STATEMENTS,
];

/// Returns the table of a kind.
pub const fn table(kind: Kind) -> &'static Table {
    match kind {
        Kind::Project => &projects::TABLE,
        Kind::Task => &tasks::TABLE,
        Kind::Plan => &plans::TABLE,
        Kind::Goal => &goals::TABLE,
        Kind::Document => &documents::TABLE,
        Kind::Output => &outputs::TABLE,
    }
}
