//! The kinds of entities, and the fields of each. Tables, routes and checks follow these lists.

use serde::{Deserialize, Serialize};

/// A kind of entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = EntityKind)]
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
    /// A relation between two entities of a project.
    Edge,
    /// The contents that new projects of a sort begin with.
    Template,
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
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words; the first is that of a new entity.
    State(&'static [&'static str]),
    /// A whole number in this range, inclusive.
    Number(i64, i64),
    /// A point in time, RFC 3339.
    Time,
    /// The id of an entity of this kind in the same project.
    Id(Kind),
    /// The id of an entity in the same project, or of the project, whose kind is the value of this field.
    IdOf(&'static str),
    /// A JSON object of at most this many bytes.
    Object(usize),
}

/// Longest name or title, and longest description, in characters.
const NAME: Form = Form::Text(200);
const DESCRIPTION: Form = Form::Text(10_000);
/// Longest word of the owner's own, in characters.
const WORD: Form = Form::Text(100);
/// Longest body, in bytes.
const BODY: Form = Form::Body(1024 * 1024);
/// Longest contents of a template, in bytes of JSON.
const CONTENTS: Form = Form::Object(64 * 1024);
const PHASES: Form = Form::State(&["draft", "active", "done"]);
const TEXT_STATES: Form = Form::State(&["draft", "in_review", "published"]);

/// Kinds that relations connect.
const ENDS: Form = Form::Word(&["project", "task", "plan", "goal", "document", "output"]);

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
    required("state", Form::State(&["planning", "active", "paused", "done", "archived"])),
    optional("start_at", Form::Time),
    optional("end_at", Form::Time),
];

const TASK: &[Field] = &[
    required("title", NAME),
    optional("description", DESCRIPTION),
    required("state", Form::State(&["todo", "in_progress", "blocked", "done", "cancelled"])),
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
    required("state", Form::State(&["open", "achieved", "dropped"])),
    optional("target_date", Form::Time),
];

const DOCUMENT: &[Field] =
    &[required("title", NAME), optional("body", BODY), optional("type", WORD), required("state", TEXT_STATES)];

const OUTPUT: &[Field] =
    &[required("name", NAME), optional("kind", WORD), optional("body", BODY), required("state", TEXT_STATES)];

const EDGE: &[Field] = &[
    required("from_kind", ENDS),
    required("from_id", Form::IdOf("from_kind")),
    required("relation", Form::Word(RELATIONS)),
    required("to_kind", ENDS),
    required("to_id", Form::IdOf("to_kind")),
];

/// The relations, each of its first end to its second one.
pub const RELATIONS: &[&str] = &["has", "supports", "depends_on", "blocks", "documents", "produces", "relates_to"];

const TEMPLATE: &[Field] = &[
    required("name", NAME),
    optional("key", WORD),
    optional("kind", WORD),
    optional("description", DESCRIPTION),
    optional("body", CONTENTS),
    required("state", Form::State(&["draft", "requested", "published"])),
];

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
            Self::Edge => EDGE,
            Self::Template => TEMPLATE,
        }
    }

    /// Returns a field by its name.
    pub fn field(self, name: &str) -> Option<&'static Field> {
        self.fields().iter().find(|field| field.name == name)
    }

    /// Returns whether entities of the kind belong to a project.
    pub const fn is_within_project(self) -> bool {
        !matches!(self, Self::Project | Self::Template)
    }

    /// Returns the name of the field by which people know an entity.
    pub const fn title_field(self) -> &'static str {
        match self {
            Self::Task | Self::Document => "title",
            Self::Edge => "relation",
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
            Self::Edge => "edges",
            Self::Template => "templates",
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

    /// The kinds of what a project has, without the relations between them.
    pub const CONTENTS: [Self; 5] = [Self::Goal, Self::Plan, Self::Task, Self::Document, Self::Output];

    /// The kinds that people look for by name.
    pub const SEARCHED: [Self; 6] = [Self::Project, Self::Goal, Self::Plan, Self::Task, Self::Document, Self::Output];
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
            Self::State(words) => Some(words[0]),
            _ => None,
        }
    }

    /// Returns a value that the form takes, as an example.
    pub fn example(self) -> String {
        match self {
            Self::Text(_) | Self::Body(_) => "\"Call the harbour master\"".to_owned(),
            Self::Word(words) | Self::State(words) => format!("{:?}", words[0]),
            Self::Number(least, _) => least.to_string(),
            Self::Time => "\"2026-12-01T09:00:00Z\"".to_owned(),
            Self::Object(_) => "{}".to_owned(),
            Self::Id(_) | Self::IdOf(_) => "\"01a20131-6243-7797-8616-20e98be7ff86\"".to_owned(),
        }
    }
}
