//! The tools by which agents and other programs use the workspace. Each file has the declaration and the handler of some of
//! them; [`scope`] says which of them a context has, [`text`] words their results, and [`data`] has them as fields.

mod arguments;
mod create;
mod data;
mod declaration;
mod delete;
mod details;
mod guide;
mod list;
mod project;
mod relations;
mod scope;
mod search;
mod templates;
mod text;
mod update;
mod web_search;

use holdfast_shared::{
    context::CONTEXT_TYPES,
    storage::Error,
    tool::{Effect, ToolError},
};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    author::Author,
    entity::Entity,
    input::InvalidField,
    kind::Kind,
    storage::{Outcome, Workspace},
};

pub use declaration::Category;
pub use details::ProjectContents;
pub use guide::{TASKS, is_help};
pub use scope::ToolScope;
pub use update::{Merge, Merger};
pub use web_search::WebSearch;

use declaration::Declaration;

/// A tool of the workspace.
#[derive(Debug, Clone)]
pub struct WorkspaceTool {
    /// Its name.
    pub name: String,
    /// Its purpose, in a sentence.
    pub summary: String,
    /// Its description for the model, which begins with the summary.
    pub description: String,
    /// JSON schema of the arguments.
    pub input_schema: Value,
    /// JSON schema of [`ToolOutput::fields`].
    pub output_schema: Value,
    /// Its category.
    pub category: Category,
    /// The effect of a call. A change is made once under its call, so it may be repeated.
    pub effect: Effect,
    operation: Operation,
}

/// The work of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    List(Kind),
    Search(Kind),
    SearchAll,
    ListTemplates,
    ListTaskDocuments,
    Relationships,
    Details(Kind),
    CreateProject,
    Create(Kind),
    CreateTaskDocument,
    Update(Kind),
    Delete(Kind),
    RequestTemplate,
    SuggestTemplate,
    FieldInfo,
    WebSearch,
    Overview,
    UsageGuide,
}

/// A call with its surroundings.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The workspace.
    pub workspace: &'a Workspace,
    /// The author of changes; its owner is the reader.
    pub author: Author<'a>,
    /// The project of the context, to which `project_id` defaults.
    pub project: Option<Uuid>,
    /// Merges texts, where there is a model.
    pub merger: Option<&'a dyn Merger>,
    /// Searches the web, where a provider is configured.
    pub web_search: Option<&'a WebSearch>,
}

/// The reason why a call has no result.
#[derive(Debug)]
pub enum ToolFailure {
    /// The model reads why.
    Refused(ToolError),
    /// The database failed. The call may be repeated: a change that was made is not made again.
    Storage(Error),
}

impl From<ToolError> for ToolFailure {
    fn from(error: ToolError) -> Self {
        Self::Refused(error)
    }
}

impl From<Error> for ToolFailure {
    fn from(error: Error) -> Self {
        Self::Storage(error)
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOutput {
    /// The text for the model, at most 4,000 characters.
    pub text: String,
    /// The entities that the result is about.
    pub entities: Vec<EntityReference>,
    /// A fact for the user's front end, beside the result.
    pub notice: Option<Notice>,
    /// The content of the text as fields; `None` if the result is only a text.
    data: Option<Value>,
}

/// The kind, id and name of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityReference {
    /// Its kind.
    pub kind: Kind,
    /// The entity.
    pub id: Uuid,
    /// Its name or title.
    pub name: String,
}

/// A fact for the user's front end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The turn is about this project now.
    Project(EntityReference),
    /// A template was requested.
    TemplateRequested {
        /// The template.
        id: Uuid,
        /// The sort of project.
        kind: String,
        /// Why it is needed.
        reason: String,
        /// Wishes for its contents.
        hints: Option<String>,
    },
    /// A template is suggested to the user.
    TemplateSuggested {
        /// The sort of project.
        kind: String,
        /// Its name.
        name: String,
        /// Why it would help.
        rationale: String,
    },
}

impl ToolOutput {
    /// Returns all that the text says, in the form of the tool's `output_schema`.
    pub fn fields(&self) -> Value {
        self.data.clone().unwrap_or_else(|| serde_json::json!({"text": self.text}))
    }

    /// Returns a list without items, in words.
    fn of_nothing(text: impl Into<String>) -> Self {
        let data = data::of_items(Vec::new(), None, 0);
        Self { data: Some(data), ..Self::of_text(text) }
    }

    /// Returns a result that is about no entity.
    fn of_text(text: impl Into<String>) -> Self {
        Self { text: text::bounded(text.into()), ..Self::default() }
    }
}

impl WorkspaceTool {
    fn new(operation: Operation, has_project: bool) -> Self {
        let Declaration { name, summary, more, properties, required, category } = operation.declare(has_project);
        let mut schema = serde_json::json!({"type": "object", "properties": properties, "additionalProperties": false});
        if !required.is_empty() {
            schema["required"] = Value::from(required);
        }
        let changes = category == Category::Write || operation == Operation::RequestTemplate;
        let effect = if changes { Effect::Idempotent } else { Effect::ReadOnly };
        let description = format!("{summary} {more}").trim().to_owned();
        let output_schema = operation.output_schema();
        Self { name, summary, description, input_schema: schema, output_schema, category, effect, operation }
    }

    /// Returns whether the tool asks a provider of web searches.
    pub fn is_web_search(&self) -> bool {
        self.operation == Operation::WebSearch
    }

    /// Returns the arguments that the schema describes. A null stands for an absent argument, or clears a field.
    pub fn checkable(&self, input: &Value) -> Value {
        match input {
            Value::Object(fields) => fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            other => other.clone(),
        }
    }

    /// Returns the context types whose turns have the tool.
    pub fn contexts(&self) -> Vec<&'static str> {
        CONTEXT_TYPES
            .into_iter()
            .filter(|context| ToolScope::of(context).is_some_and(|scope| scope.has(self.operation)))
            .collect()
    }

    /// Returns what the tool does, in words for programs.
    pub fn capabilities(&self) -> Vec<&'static str> {
        match self.operation {
            Operation::List(_) | Operation::ListTemplates | Operation::ListTaskDocuments | Operation::Relationships => {
                vec!["list"]
            }
            Operation::Search(_) | Operation::SearchAll | Operation::WebSearch => vec!["search"],
            Operation::Details(_) => vec!["read"],
            Operation::CreateProject | Operation::Create(_) => vec!["create"],
            Operation::CreateTaskDocument => vec!["create", "relate"],
            Operation::Update(_) => vec!["replace", "append", "merge"],
            Operation::Delete(_) => vec!["delete"],
            Operation::RequestTemplate => vec!["request"],
            Operation::SuggestTemplate => vec!["suggest"],
            Operation::FieldInfo | Operation::Overview | Operation::UsageGuide => vec!["explain"],
        }
    }

    /// Calls the tool.
    pub async fn call(&self, call: Call<'_>, input: Value) -> Result<ToolOutput, ToolFailure> {
        let Value::Object(input) = input else {
            return Err(refused("invalid_arguments", "the arguments are no JSON object"));
        };
        // A call that was made before answers as it did then, whatever has changed since.
        if self.effect == Effect::Idempotent
            && let Some(changed) = call.workspace.changes_of_call(call.author).await?
        {
            return Ok(self.operation.repeated(&changed));
        }
        match self.operation {
            Operation::List(kind) => list::call(call, kind, input).await,
            Operation::Search(kind) => search::call(call, &[kind], &input).await,
            Operation::SearchAll => search::call_of_all(call, &input).await,
            Operation::ListTemplates => templates::list(call, &input).await,
            Operation::ListTaskDocuments => relations::documents_of_task(call, &input).await,
            Operation::Relationships => relations::relationships(call, &input).await,
            Operation::Details(kind) => details::call(call, kind, &input).await,
            Operation::CreateProject => project::call(call, input).await,
            Operation::Create(kind) => create::call(call, kind, input).await,
            Operation::CreateTaskDocument => relations::create_task_document(call, input).await,
            Operation::Update(kind) => update::call(call, kind, input).await,
            Operation::Delete(kind) => delete::call(call, kind, &input).await,
            Operation::RequestTemplate => templates::request(call, input).await,
            Operation::SuggestTemplate => templates::suggest(&input),
            Operation::FieldInfo => guide::field_info(&input),
            Operation::WebSearch => web_search::call(call, &input).await,
            Operation::Overview => guide::overview(call).await,
            Operation::UsageGuide => guide::usage(&input),
        }
    }
}

impl Operation {
    /// Returns the result of a call that has made these changes before.
    fn repeated(self, changed: &[Entity]) -> ToolOutput {
        match self {
            Self::CreateProject => project::created(changed),
            Self::Update(_) => text::of_change("Updated", changed),
            Self::Delete(_) => changed.last().map(delete::deleted).unwrap_or_default(),
            Self::RequestTemplate => changed.first().map(templates::requested).unwrap_or_default(),
            _ => text::of_change("Created", changed),
        }
    }

    fn declare(self, has_project: bool) -> Declaration {
        match self {
            Self::List(kind) => list::declare(kind),
            Self::Search(kind) => search::declare(kind),
            Self::SearchAll => search::declare_all(),
            Self::ListTemplates => templates::declare_list(),
            Self::ListTaskDocuments => relations::declare_documents_of_task(),
            Self::Relationships => relations::declare_relationships(),
            Self::Details(kind) => details::declare(kind, has_project),
            Self::CreateProject => project::declare(),
            Self::Create(kind) => create::declare(kind, has_project),
            Self::CreateTaskDocument => relations::declare_create_task_document(),
            Self::Update(kind) => update::declare(kind, has_project),
            Self::Delete(kind) => delete::declare(kind),
            Self::RequestTemplate => templates::declare_request(),
            Self::SuggestTemplate => templates::declare_suggest(),
            Self::FieldInfo => guide::declare_field_info(),
            Self::WebSearch => web_search::declare(),
            Self::Overview => guide::declare_overview(),
            Self::UsageGuide => guide::declare_usage(),
        }
    }
}

impl EntityReference {
    pub(crate) fn of(entity: &Entity) -> Self {
        Self { kind: entity.kind, id: entity.id, name: entity.title().to_owned() }
    }
}

/// Returns the result of a change, or the error that the model reads.
fn result<T>(outcome: Result<Outcome<T>, Error>, kind: Kind, id: Uuid) -> Result<T, ToolFailure> {
    match outcome? {
        Outcome::Changed(result) => Ok(result),
        Outcome::NotFound => Err(not_found(kind, id)),
        Outcome::Conflict(version) => Err(conflict(kind, version)),
        Outcome::Invalid(invalid) => Err(invalid_arguments(invalid)),
        Outcome::Full(limit) => Err(refused("workspace_full", limit)),
        Outcome::TooLarge(limit) => Err(refused("change_too_large", limit)),
        Outcome::Fenced => Err(refused("fenced", "another worker executes this run now")),
    }
}

fn conflict(kind: Kind, version: i64) -> ToolFailure {
    let problem =
        format!("the {} was changed meanwhile and has the version {version}; read it and try again", kind.as_str());
    refused("version_conflict", problem)
}

fn not_found(kind: Kind, id: Uuid) -> ToolFailure {
    refused("not_found", format!("there is no {} {id}", kind.as_str()))
}

fn invalid_arguments(invalid: InvalidField) -> ToolFailure {
    refused("invalid_arguments", invalid.to_string())
}

fn refused(code: &str, message: impl Into<String>) -> ToolFailure {
    ToolFailure::Refused(ToolError::new(code, message))
}
