//! The words in which the two dialects differ.
//!
//! A text may contain these words:
//! - `{now}`: the time of the statement, by the database's clock, in whole milliseconds
//! - `{after:$n}`, `{before:$n}`: that time plus or minus `$n` milliseconds
//! - `{in:$n}`: membership in a list of ids, bound as `Value::Uuids`
//! - `{is:expression}`, `{is uuid:expression}`: equality with an id, or with that of a text, of another row, which PostgreSQL can only look up, whatever it knows of the tables
//! - `{ms since:column}`: milliseconds from that time to the statement's
//! - `{each:$n}`: a table of one column, `value`, with the elements of a JSON array; fields are `value->>'name'`
//! - `{field:column, name}`: the text of the field with any name in a JSON object; the name is an expression
//! - `{objects:'name', expression, …}`: the JSON array of an object for each row
//! - `{object}('name', expression, …)`: a JSON object
//! - `{id text:column}`, `{json:column}`: an id, or JSON, as a value of such an object
//! - `{json bytes:column}`: the bytes of a JSON text, roughly; SQLite does not read the text for them
//! - `{uuid:expression}`, `{time:expression}`, `{bytes:expression}`: the id, the time or the bytes of a text
//! - `{fenced}`, `{fenced:id}`: whether the fence let the write pass, or the row of this id ([`super::batch`])
//! - `{array type:$n}`: an array, for statements of PostgreSQL alone
//! - `{fence:table where condition}`: the row of the fence, or none; SQLite finds it by the condition
//! - `{for update}`, `{for share}`, `{skip locked}`, `{skip locked of r}`: row locks; SQLite needs none, because its
//!   transactions run alone

const SQLITE_TIME: &str = "'%Y-%m-%dT%H:%M:%f+00:00'";
const POSTGRES_NOW: &str = "date_trunc('milliseconds', statement_timestamp())";

/// Returns the text for PostgreSQL.
pub fn postgres(sql: &'static str) -> String {
    translate(sql, postgres_word)
}

/// Returns the text for PostgreSQL, for a write whose fence has passed in an earlier statement.
pub fn unfenced(sql: &'static str) -> String {
    translate(sql, |word, parameter| match word {
        "fenced" => "true".to_owned(),
        _ => postgres_word(word, parameter),
    })
}

fn postgres_word(word: &str, parameter: &str) -> String {
    match word {
        "now" => POSTGRES_NOW.to_owned(),
        "after" => format!("({POSTGRES_NOW} + {parameter} * interval '1 millisecond')"),
        "before" => format!("({POSTGRES_NOW} - {parameter} * interval '1 millisecond')"),
        "in" => format!("= any({parameter})"),
        // Such a condition is no join by hash or by order, so no plan reads the table to find these rows in it.
        "is" => format!("= any(array[{parameter}])"),
        "is uuid" => format!("= any(array[cast({parameter} as uuid)])"),
        "ms since" => format!("cast(extract(epoch from ({POSTGRES_NOW} - {parameter})) * 1000 as bigint)"),
        "each" => format!("jsonb_array_elements({parameter}) as each(value)"),
        "field" => {
            let (column, name) = field(parameter);
            format!("({column}->>({name}))")
        }
        "objects" => format!("jsonb_agg(jsonb_build_object({parameter}))"),
        "object" => "jsonb_build_object".to_owned(),
        "id text" | "json" => parameter.to_owned(),
        "json bytes" => format!("octet_length(cast({parameter} as text))"),
        "uuid" => format!("cast({parameter} as uuid)"),
        "time" => format!("cast({parameter} as timestamptz)"),
        "bytes" => format!("convert_to({parameter}, 'utf8')"),
        "fenced" if parameter.is_empty() => "exists (select 1 from fence)".to_owned(),
        // PostgreSQL hashes these ids. A join would compare each row with each of them.
        "fenced" => format!("coalesce({parameter} in (select fence.id from fence), false)"),
        word if word.starts_with("array ") => format!("cast({parameter} as {}[])", &word["array ".len()..]),
        "fence" => word.to_owned(),
        "for update" | "for share" => word.to_owned(),
        "skip locked" => "for update skip locked".to_owned(),
        "skip locked of r" => "for update of r skip locked".to_owned(),
        _ => panic!("unknown word {{{word}}} in SQL"),
    }
}

/// Returns the text for SQLite.
pub fn sqlite(sql: &'static str) -> String {
    translate(sql, |word, parameter| match word {
        "now" => format!("strftime({SQLITE_TIME}, 'now')"),
        "after" => format!("strftime({SQLITE_TIME}, 'now', ({parameter} / 1000.0) || ' seconds')"),
        "before" => format!("strftime({SQLITE_TIME}, 'now', (-{parameter} / 1000.0) || ' seconds')"),
        "in" => format!("in (select unhex(value) from json_each({parameter}))"),
        "is" => format!("= {parameter}"),
        "is uuid" => format!("= unhex({parameter})"),
        "ms since" => format!("cast(round((julianday('now') - julianday({parameter})) * 86400000) as integer)"),
        "each" => format!("json_each({parameter}) as each"),
        // SQLite's `->>` takes some names for paths, such as `$1`.
        "field" => {
            let (column, name) = field(parameter);
            format!("(select field.value from json_each({column}) as field where field.key = {name})")
        }
        "objects" => format!("json_group_array(json_object({parameter}))"),
        "object" => "json_object".to_owned(),
        "id text" => format!("case when {parameter} is not null then lower(hex({parameter})) end"),
        "json" => format!("json({parameter})"),
        "json bytes" => format!("octet_length({parameter})"),
        "uuid" => format!("unhex({parameter})"),
        "time" => parameter.to_owned(),
        "bytes" => format!("cast({parameter} as blob)"),
        "fenced" => "true".to_owned(),
        "fence" => parameter.to_owned(),
        "for update" | "for share" | "skip locked" | "skip locked of r" => String::new(),
        _ => panic!("unknown word {{{word}}} in SQL"),
    })
}

/// Returns the column and the name of `{field:column, name}`.
fn field(parameter: &str) -> (&str, &str) {
    parameter.split_once(", ").expect("a field has a column and a name")
}

/// Replaces each `{word}` or `{word:parameter}`.
fn translate(sql: &'static str, word: impl Fn(&str, &str) -> String) -> String {
    let mut text = String::with_capacity(sql.len() + 128);
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, after) = after.split_once('}').expect("a brace in SQL is closed");
        let (name, parameter) = inside.split_once(':').unwrap_or((inside, ""));
        text.push_str(before);
        text.push_str(&word(name, parameter));
        rest = after;
    }
    text.push_str(rest);
    text
}
