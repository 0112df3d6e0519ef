//! The expressions of a column in the statements of [`super::tables`], by the form of its values.

/// The expression that reads a column into the JSON of an entity.
macro_rules! read {
    ($column:ident uuid) => {
        concat!(", '", stringify!($column), "', {id text:e.", stringify!($column), "}")
    };
    ($column:ident object) => {
        concat!(", '", stringify!($column), "', {json:e.", stringify!($column), "}")
    };
    ($column:ident $form:ident) => {
        concat!(", '", stringify!($column), "', e.", stringify!($column))
    };
}

/// The expression of a column's value in a filter.
macro_rules! wanted {
    ($column:ident word) => {
        concat!(", value->>'", stringify!($column), "' as ", stringify!($column))
    };
    ($column:ident number) => {
        concat!(", cast(value->>'", stringify!($column), "' as bigint) as ", stringify!($column))
    };
    ($column:ident uuid) => {
        concat!(", {uuid:value->>'", stringify!($column), "'} as ", stringify!($column))
    };
    ($column:ident time) => {
        concat!(", {time:value->>'", stringify!($column), "'} as ", stringify!($column))
    };
    ($column:ident $form:ident) => {
        ""
    };
}

/// The condition that a column has the value of a filter; a time is before it.
macro_rules! is_wanted {
    ($column:ident time) => {
        is_wanted!(@ $column " < ")
    };
    ($column:ident word) => {
        is_wanted!(@ $column " = ")
    };
    ($column:ident number) => {
        is_wanted!(@ $column " = ")
    };
    ($column:ident uuid) => {
        is_wanted!(@ $column " = ")
    };
    ($column:ident $form:ident) => {
        ""
    };
    (@ $column:ident $operator:literal) => {
        concat!(
            " and (w.", stringify!($column), " is null or e.", stringify!($column), $operator, "w.", stringify!($column), ")"
        )
    };
}

/// The expression for a list, which leaves out bodies.
macro_rules! read_brief {
    ($column:ident body) => {
        ""
    };
    ($column:ident object) => {
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
    ($column:ident object) => {
        concat!(", nullif(value->'", stringify!($column), "', 'null')")
    };
    ($column:ident $form:ident) => {
        concat!(", value->>'", stringify!($column), "'")
    };
}

/// The expression that reads a column into the facts of an entity, which have no texts.
macro_rules! read_fact {
    ($column:ident uuid) => {
        read!($column uuid)
    };
    ($column:ident word) => {
        read!($column word)
    };
    ($column:ident $form:ident) => {
        ""
    };
}

/// The bytes of a column, which the database knows without its text.
macro_rules! bytes_of {
    ($column:ident object) => {
        concat!(" + coalesce({json bytes:e.", stringify!($column), "}, 0)")
    };
    ($column:ident text) => {
        concat!(" + coalesce(octet_length(e.", stringify!($column), "), 0)")
    };
    ($column:ident body) => {
        bytes_of!($column text)
    };
    ($column:ident $form:ident) => {
        ""
    };
}
