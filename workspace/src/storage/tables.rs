//! The tables of entities, one for each kind, and the statements that they have in common.

use holdfast_shared::database::Sql;

use crate::kind::Kind;

/// The statements of a kind's table.
pub struct Table {
    /// Returns entities of the owner `$1` with the ids `$2`.
    pub get: Sql,
    /// Lists the owner's live entities, newest first: those within `$2`, if given, that match one of the JSON objects `$3`, if
    /// there is one, after the entity `$4`.
    pub list: Sql,
    /// Counts the owner's live entities within `$2` by their state.
    pub count: Sql,
    /// Returns the ids of at most `$3` of the owner's live entities within `$2`.
    pub live_ids: Sql,
    /// Returns the ids of at most `$3` of the owner's entities within `$2` that were deleted at the time `$4`.
    pub deleted_ids: Sql,
    /// Returns the bytes of entities of the owner `$1` with the ids `$2`, roughly.
    pub bytes: Sql,
    /// Returns entities of the owner `$1` with the ids `$2`, without texts.
    pub facts: Sql,
    /// Stores the changes of the marks `$2` of the owner's entities: the set `$3`, at the time `$4`.
    pub record: Sql,
    /// Gives entities of the owner the marks `$2`, at the time `$3`.
    pub mark: Sql,
    /// Returns the fields that entities had at the changes of the owner `$1` with the ids `$2`, which have none of their own.
    pub contents: Sql,
    /// Returns the owner's live entities within `$2` and in the state `$3`, if given: lines of an id and the beginning of the
    /// folded name.
    pub search: Sql,
    /// Returns the owner's live entities with the ids `$2`: id, name, project and state.
    pub names: Sql,
    /// Stores entities with their current state.
    pub put: Sql,
    /// Removes entities of the owner `$1` with the ids `$2`.
    pub remove: Sql,
    /// Returns the ids and bytes of entities of the owner `$1` that were deleted before the time `$2`, and whose changes are
    /// forgotten.
    pub expired: Sql,
}

/// Declares the statements of a table. The first list has the column of the project: its name in an insertion, its expression
/// in a selection, its value in a write, and the condition that an entity is within `$2`. The second list has the expressions
/// of the name and the state.
macro_rules! table {
    (
        $module:ident, $table:literal, [$into:literal, $selected:literal, $value:literal, $is_within:literal],
        [$name:literal, $state:literal],
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
                    with wanted as materialized (
                        select 1 as one", $(wanted!($column $form)),+, "
                        from {each:$3}
                    )
                    select e.id, ", $selected, " as project_id,
                        {object}('props', {json:e.props}", $(read_brief!($column $form)),+, ") as fields,
                        e.version, e.created_at, e.updated_at, e.deleted_at
                    from ", $table, " e
                    where e.owner_id = $1
                      and e.deleted_at is null
                      and (cast($2 as uuid) is null or ", $is_within, ")
                      and (cast($4 as uuid) is null or e.id < $4)
                      and (
                          not exists (select 1 from wanted)
                          or exists (select 1 from wanted w where true", $(is_wanted!($column $form)),+, ")
                      )
                    order by e.id desc
                    limit $5
                "),
                /// Counts the entities within a project by their state.
                COUNT = concat!("
                    select ", $state, ", count(*)
                    from ", $table, " e
                    where e.owner_id = $1 and ", $is_within, " and e.deleted_at is null
                    group by ", $state, "
                "),
                /// Returns the ids of the live entities within a project.
                LIVE_IDS = concat!("
                    select e.id
                    from ", $table, " e
                    where e.owner_id = $1 and ", $is_within, " and e.deleted_at is null
                    limit $3
                "),
                /// Returns the ids of the entities within a project that were deleted together.
                DELETED_IDS = concat!("
                    select e.id
                    from ", $table, " e
                    where e.owner_id = $1
                      and ", $is_within, "
                      and e.deleted_at is not null
                      and e.deleted_at = {time:cast($4 as text)}
                    limit $3
                "),
                /// Returns the bytes of entities.
                BYTES = concat!("
                    select cast(
                            coalesce(sum(200 + {json bytes:e.props}", $(bytes_of!($column $form)),+, "), 0)
                            as bigint
                        )
                    from ", $table, " e
                    where e.owner_id = $1 and e.id {in:$2}
                "),
                /// Returns entities without texts.
                FACTS = concat!("
                    select e.id, ", $selected, " as project_id,
                        {object}('version', e.version", $(read_fact!($column $form)),+, ") as fields,
                        e.version, e.created_at, e.updated_at, e.deleted_at
                    from ", $table, " e
                    where e.owner_id = $1 and e.id {in:$2}
                "),
                /// Stores the changes of marks, with what differs between the states.
                RECORD = concat!("
                    insert into onto_changes (
                        id, owner_id, change_set_id, kind, entity_id, action, before, after, bytes, size,
                        user_id, undoes, run_id, call_id, number, created_at
                    )
                    select {uuid:value->>'change_id'}, e.owner_id, $3, $10, e.id, value->>'action',
                        {object}('version', e.version, 'updated_at', e.updated_at, 'deleted_at', e.deleted_at),
                        {object}('version', e.version + 1, 'updated_at', cast($4 as text),
                            'deleted_at', value->>'deleted_at'),
                        $5, 2 * (200 + {json bytes:e.props}", $(bytes_of!($column $form)),+, "),
                        $6, $7, $8, $9, cast(value->>'number' as bigint), {time:cast($4 as text)}
                    from {each:$2}
                    join ", $table, " e on e.id = {uuid:value->>'id'}
                    where e.owner_id = $1
                "),
                /// Marks entities as deleted, or as live.
                MARK = concat!("
                    update ", $table, " as e
                    set version = e.version + 1,
                        updated_at = {time:cast($3 as text)},
                        deleted_at = {time:value->>'deleted_at'}
                    from {each:$2}
                    where e.owner_id = $1 and e.id = {uuid:value->>'id'}
                "),
                /// Returns the fields that entities had at changes without fields: those before the next change that has them,
                /// or else the present ones.
                CONTENTS = concat!("
                    select c.id,
                        coalesce(
                            (
                                select n.before
                                from onto_changes n
                                where n.entity_id = c.entity_id
                                  and n.owner_id = c.owner_id
                                  and n.id > c.id
                                  and n.size is null
                                  and n.action <> 'create'
                                order by n.id
                                limit 1
                            ),
                            {object}('id', {id text:e.id}, 'project_id', {id text:", $selected, "},
                                'props', {json:e.props}, 'created_at', e.created_at",
                                $(read!($column $form)),+, ")
                        )
                    from onto_changes c
                    left join ", $table, " e on e.id = c.entity_id and e.owner_id = c.owner_id
                    where c.owner_id = $1 and c.id {in:$2}
                "),
                /// Returns the ids and the folded names of live entities, as lines of one text: a row for each would cost more than
                /// its name.
                SEARCH = concat!("
                    select string_agg({id text:e.id} || ' ' || substr(e.folded, 1, 200), '
')
                    from ", $table, " e
                    where e.owner_id = $1
                      and e.deleted_at is null
                      and (cast($2 as uuid) is null or ", $is_within, ")
                      and (cast($3 as text) is null or ", $state, " = $3)
                "),
                /// Returns the names, projects and states of live entities.
                NAMES = concat!("
                    select e.id, ", $name, ", ", $selected, " as project_id, ", $state, "
                    from ", $table, " e
                    where e.owner_id = $1 and e.id {in:$2} and e.deleted_at is null
                "),
                /// Stores entities with their current state.
                PUT = concat!("
                    insert into ", $table, " (
                        id, owner_id", $into, ", folded, props, version, created_at, updated_at, deleted_at",
                        $(", ", stringify!($column)),+, "
                    )
                    select {uuid:value->>'id'}, value->>'owner_id'", $value, ", value->>'folded', value->'props',
                        cast(value->>'version' as bigint), {time:value->>'created_at'},
                        {time:value->>'updated_at'}, {time:value->>'deleted_at'}", $(written!($column $form)),+, "
                    from {each:$1}
                    where true
                    on conflict (id) do update
                    set folded = excluded.folded,
                        props = excluded.props,
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
                /// Returns entities that were deleted long ago, and whose changes are forgotten.
                EXPIRED = concat!("
                    select e.id, cast(200 + {json bytes:e.props}", $(bytes_of!($column $form)),+, " as bigint)
                    from ", $table, " e
                    where e.owner_id = $1
                      and e.deleted_at < $2
                      and not exists (select 1 from onto_changes c where c.entity_id = e.id)
                    limit 100
                "),
            }

            pub const TABLE: super::Table = super::Table {
                get: GET,
                list: LIST,
                count: COUNT,
                live_ids: LIVE_IDS,
                deleted_ids: DELETED_IDS,
                bytes: BYTES,
                facts: FACTS,
                record: RECORD,
                mark: MARK,
                contents: CONTENTS,
                search: SEARCH,
                names: NAMES,
                put: PUT,
                remove: REMOVE,
                expired: EXPIRED,
            };
        }
    };
    ($module:ident, $table:literal, [$name:literal, $state:literal], $($column:ident $form:ident),+ $(,)?) => {
        table!(
            $module,
            $table,
            [", project_id", "e.project_id", ", {uuid:value->>'project_id'}", "e.project_id = $2"],
            [$name, $state],
            $($column $form),+
        );
    };
}

/// Declares the statements of the edges, within a project or at an entity.
macro_rules! edges {
    ($module:ident, $is_within:literal) => {
        table!(
            $module,
            "onto_edges",
            [", project_id", "e.project_id", ", {uuid:value->>'project_id'}", $is_within],
            ["e.relation", "cast(null as text)"],
            from_kind word,
            from_id uuid,
            relation word,
            to_kind word,
            to_id uuid,
        );
    };
}

table!(
    projects,
    "onto_projects",
    ["", "cast(null as uuid)", "", "e.id = $2"],
    ["e.name", "e.state"],
    name text,
    description text,
    type_key word,
    state word,
    start_at time,
    end_at time,
);
table!(
    tasks,
    "onto_tasks",
    ["e.title", "e.state"],
    title text,
    description text,
    state word,
    priority number,
    due_at time,
    plan_id uuid,
    goal_id uuid,
);
table!(
    plans,
    "onto_plans",
    ["e.name", "e.state"],
    name text,
    description text,
    state word,
    start_at time,
    end_at time,
);
table!(goals, "onto_goals", ["e.name", "e.state"], name text, description text, state word, target_date time);
table!(documents, "onto_documents", ["e.title", "e.state"], title text, body body, type word, state word);
table!(outputs, "onto_outputs", ["e.name", "e.state"], name text, kind word, body body, state word);
edges!(edges, "e.project_id = $2");
edges!(edges_of_entity, "(e.from_id = $2 or e.to_id = $2)");
table!(
    templates,
    "onto_templates",
    ["", "cast(null as uuid)", "", "e.id = $2"],
    ["e.name", "e.state"],
    name text,
    key word,
    kind word,
    description text,
    body object,
    state word,
);

/// The statements of all tables.
pub const STATEMENTS: &[&[Sql]] = &[
    projects::STATEMENTS,
    tasks::STATEMENTS,
    plans::STATEMENTS,
    goals::STATEMENTS,
    documents::STATEMENTS,
    outputs::STATEMENTS,
    edges::STATEMENTS,
    edges_of_entity::STATEMENTS,
    templates::STATEMENTS,
];

/// The table of edges, where an edge is within each of its ends.
pub const EDGES_OF_ENTITY: &Table = &edges_of_entity::TABLE;

/// Returns the table of a kind.
pub const fn table(kind: Kind) -> &'static Table {
    match kind {
        Kind::Project => &projects::TABLE,
        Kind::Task => &tasks::TABLE,
        Kind::Plan => &plans::TABLE,
        Kind::Goal => &goals::TABLE,
        Kind::Document => &documents::TABLE,
        Kind::Output => &outputs::TABLE,
        Kind::Edge => &edges::TABLE,
        Kind::Template => &templates::TABLE,
    }
}
