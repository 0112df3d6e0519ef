//! A statement's name and its text, and the macro that declares the statements of a file.

use super::dialect;

/// A statement: a name, and a text for both databases, for each of them, or for one of them.
#[derive(Debug, Clone, Copy)]
pub struct Sql {
    name: &'static str,
    postgres: Option<&'static str>,
    sqlite: Option<&'static str>,
}

impl Sql {
    /// Returns a statement without a text.
    pub const fn named(name: &'static str) -> Self {
        Self { name, postgres: None, sqlite: None }
    }

    /// Adds the text for both databases.
    pub const fn both(self, text: &'static str) -> Self {
        Self { postgres: Some(text), sqlite: Some(text), ..self }
    }

    /// Adds the text for PostgreSQL.
    pub const fn postgres(self, text: &'static str) -> Self {
        Self { postgres: Some(text), ..self }
    }

    /// Adds the text for SQLite.
    pub const fn sqlite(self, text: &'static str) -> Self {
        Self { sqlite: Some(text), ..self }
    }

    /// Returns the path of the statement's constant.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns whether the statement has a text for PostgreSQL.
    pub const fn is_for_postgres(self) -> bool {
        self.postgres.is_some()
    }

    /// Returns whether the statement has a text for SQLite.
    pub const fn is_for_sqlite(self) -> bool {
        self.sqlite.is_some()
    }

    /// Returns the text for PostgreSQL, with its dialect's words.
    pub fn for_postgres(self) -> String {
        dialect::postgres(self.text(self.postgres))
    }

    /// Returns the text for PostgreSQL, for a write whose fence has passed in an earlier statement.
    pub fn for_postgres_unfenced(self) -> String {
        dialect::unfenced(self.text(self.postgres))
    }

    /// Returns the text for SQLite, with its dialect's words.
    pub fn for_sqlite(self) -> String {
        dialect::sqlite(self.text(self.sqlite))
    }

    fn text(self, text: Option<&'static str>) -> &'static str {
        text.unwrap_or_else(|| panic!("{} is a statement of the other database", self.name))
    }
}

/// Declares the statements of a file as constants of type [`Sql`], and `STATEMENTS`, an array of all of them.
///
/// `NAME = "…",` declares a text for both databases. `NAME { postgres = "…", sqlite = "…" },` declares a text for each,
/// and one of the two may be missing. The file `dialect.rs` describes the words that a text may contain.
#[macro_export]
macro_rules! statements {
    (@declare [$($declared:ident)*] $(#[$doc:meta])* $name:ident = $text:expr, $($rest:tt)*) => {
        $(#[$doc])*
        pub(crate) const $name: $crate::database::Sql =
            $crate::database::Sql::named(concat!(module_path!(), "::", stringify!($name))).both($text);
        $crate::statements! { @declare [$($declared)* $name] $($rest)* }
    };
    (
        @declare [$($declared:ident)*]
        $(#[$doc:meta])* $name:ident { $($database:ident = $text:expr),+ $(,)? }, $($rest:tt)*
    ) => {
        $(#[$doc])*
        pub(crate) const $name: $crate::database::Sql =
            $crate::database::Sql::named(concat!(module_path!(), "::", stringify!($name)))$(.$database($text))+;
        $crate::statements! { @declare [$($declared)* $name] $($rest)* }
    };
    (@declare [$($declared:ident)*]) => {
        /// The statements of this file.
        pub(crate) const STATEMENTS: &[$crate::database::Sql] = &[$($declared),*];
    };
    ($($entries:tt)*) => {
        $crate::statements! { @declare [] $($entries)* }
    };
}
pub use crate::statements;
