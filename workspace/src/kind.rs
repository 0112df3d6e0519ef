//! The kinds of entities, and the fields of each. Tables, routes and checks follow these lists.

use serde::{Deserialize, Serialize};

/// A kind of entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// Something to bring about, with everything that belongs to it.
    Project,
    /// Future work of the user.
    Task,
    /// A phase of a project.
    Plan,
    /// A result that a project aims at.
    Goal,
    /// A text.
    Document,
    /// Something that a project produces.
    Output,
}

/// A field of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// The values that it takes.
    pub form: Form,
    /// Whether each entity must have a value.
    pub is_required: bool,
}

/// The values that a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A text of at most this many characters.
    Text(usize),
    /// A long text of at most this many bytes, which lists leave out.
    Body(usize),
    /// One of these words; the first is that of a new entity.
    Word(&'static [&'static str]),
    /// A whole number in this range, inclusive.
    Number(i64, i64),
    /// A point in time, RFC 3339.
    Time,
    /// The id of an entity of this kind in the same project.
    Id(Kind),
}

/// Longest name or title, and longest description, in characters.
const NAME: Form = Form::Text(200);
const DESCRIPTION: Form = Form::Text(10_000);
/// Longest word of the owner's own, in characters.
const WORD: Form = Form::Text(100);
/// Longest body, in bytes.
const BODY: Form = Form::Body(1024 * 1024);
const PHASES: Form = Form::Word(&["draft", "active", "done"]);
const TEXT_STATES: Form = Form::Word(&["draft", "in_review", "published"]);

const fn required(name: &'static str, form: Form) -> Field {
    Field { name, form, is_required: true }
}

const fn optional(name: &'static str, form: Form) -> Field {
    Field { name, form, is_required: false }
}

const PROJECT: &[Field] = &[
    required("name", NAME),
    optional("description", DESCRIPTION),
    optional("type_key", WORD),
    required("state", Form::Word(&["planning", "active", "paused", "done", "archived"])),
    optional("start_at", Form::Time),
    optional("end_at", Form::Time),
];

const TASK: &[Field] = &[
    required("title", NAME),
    optional("description", DESCRIPTION),
    required("state", Form::Word(&["todo", "in_progress", "blocked", "done", "cancelled"])),
    optional("priority", Form::Number(1, 5)),
    optional("due_at", Form::Time),
    optional("plan_id", Form::Id(Kind::Plan)),
    optional("goal_id", Form::Id(Kind::Goal)),
];

const PLAN: &[Field] = &[
    required("name", NAME),
    optional("description", DESCRIPTION),
    required("state", PHASES),
    optional("start_at", Form::Time),
    optional("end_at", Form::Time),
];

const GOAL: &[Field] = &[
    required("name", NAME),
    optional("description", DESCRIPTION),
    required("state", Form::Word(&["open", "achieved", "dropped"])),
    optional("target_date", Form::Time),
];

const DOCUMENT: &[Field] =
    &[required("title", NAME), optional("body", BODY), optional("type", WORD), required("state", TEXT_STATES)];

const OUTPUT: &[Field] =
    &[required("name", NAME), optional("kind", WORD), optional("body", BODY), required("state", TEXT_STATES)];

impl Kind {
    /// Returns the fields of the kind, without those that all kinds have.
    pub const fn fields(self) -> &'static [Field] {
        match self {
            Self::Project => PROJECT,
            Self::Task => TASK,
            Self::Plan => PLAN,
            Self::Goal => GOAL,
            Self::Document => DOCUMENT,
            Self::Output => OUTPUT,
        }
    }

    /// Returns a field by its name.
    pub fn field(self, name: &str) -> Option<&'static Field> {
        self.fields().iter().find(|field| field.name == name)
    }

    /// Returns whether entities of the kind belong to a project.
    pub const fn is_within_project(self) -> bool {
        !matches!(self, Self::Project)
    }

    /// Returns the name of the field by which people know an entity.
    pub const fn title_field(self) -> &'static str {
        match self {
            Self::Task | Self::Document => "title",
            _ => "name",
        }
    }

    /// Returns the word for several entities, as routes have it.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Project => "projects",
            Self::Task => "tasks",
            Self::Plan => "plans",
            Self::Goal => "goals",
            Self::Document => "documents",
            Self::Output => "outputs",
        }
    }

    /// Returns the kind of a plural.
    pub fn of_plural(plural: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.plural() == plural)
    }

    /// Returns the kind's name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// All kinds.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;
}

impl Field {
    /// Returns whether the field has a text of any length, which grows rather than changes.
    pub fn is_long(&self) -> bool {
        matches!(self.form, Form::Body(_)) || self.form == DESCRIPTION
    }
}

impl Form {
    /// Returns the value of a new entity that its author leaves out.
    pub const fn default(self) -> Option<&'static str> {
        match self {
            Self::Word(words) => Some(words[0]),
            _ => None,
        }
    }

    /// Returns a value that the form takes, as an example.
    pub fn example(self) -> String {
        match self {
            Self::Text(_) | Self::Body(_) => "\"Call the harbour master\"".to_owned(),
            Self::Word(words) => format!("{:?}", words[0]),
            Self::Number(least, _) => least.to_string(),
            Self::Time => "\"2026-12-01T09:00:00Z\"".to_owned(),
            Self::Id(_) => "\"01a20131-6243-7797-8616-20e98be7ff86\"".to_owned(),
        }
    }
}
