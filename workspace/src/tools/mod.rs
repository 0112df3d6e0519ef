//! The tools by which agents use the workspace. [`scope`] says which of them a context has, [`schema`] describes their
//! arguments, [`text`] words their results.

mod guide;
mod schema;
mod scope;
mod text;

use holdfast_shared::{
    page::PageSize,
    storage::Error,
    tool::{Effect, ToolError},
};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    author::Author,
    entity::{Entity, id_of},
    input::{InvalidField, NewEntity, Patch},
    kind::Kind,
    storage::{Filter, Outcome, Workspace},
};

pub use scope::ToolScope;

/// A tool of the workspace.
#[derive(Debug, Clone)]
pub struct WorkspaceTool {
    /// Its name.
    pub name: String,
    /// Its description for the model.
    pub description: String,
    /// JSON schema of the arguments.
    pub input_schema: Value,
    /// The effect of a call. A change is made once under its call, so it may be repeated.
    pub effect: Effect,
    operation: Operation,
}

/// The work of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    List(Kind),
    Details(Kind),
    Create(Kind),
    Update(Kind),
    Delete(Kind),
    FieldInfo,
    Overview,
    UsageGuide,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text for the model, at most 4,000 characters.
    pub text: String,
    /// The entities that the result is about: kind, id and name.
    pub entities: Vec<(Kind, Uuid, String)>,
}

/// Items of a list, where the call names no limit, and at most.
const USUAL_ITEMS: usize = 20;
const MAX_ITEMS: usize = 50;

impl WorkspaceTool {
    fn new(operation: Operation, has_project: bool) -> Self {
        let (name, description) = text::of_tool(operation);
        let effect = match operation {
            Operation::Create(_) | Operation::Update(_) | Operation::Delete(_) => Effect::Idempotent,
            _ => Effect::ReadOnly,
        };
        Self { name, description, input_schema: schema::of(operation, has_project), effect, operation }
    }

    /// Calls the tool. `project` is that of the context, to which `project_id` defaults.
    pub async fn call(
        &self,
        workspace: &Workspace,
        author: Author<'_>,
        project: Option<Uuid>,
        input: Value,
    ) -> Result<ToolOutput, ToolFailure> {
        let Value::Object(input) = input else {
            return Err(refused("invalid_arguments", "the arguments are no JSON object"));
        };
        let call = Call { workspace, author, project };
        match self.operation {
            Operation::List(kind) => call.list(kind, &input).await,
            Operation::Details(kind) => call.details(kind, &input).await,
            Operation::Create(Kind::Project) => call.create_project(input).await,
            Operation::Create(kind) => call.create(kind, input).await,
            Operation::Update(kind) => call.update(kind, input).await,
            Operation::Delete(kind) => call.delete(kind, &input).await,
            Operation::FieldInfo => Ok(guide::field_info(&input)?),
            Operation::Overview => call.overview().await,
            Operation::UsageGuide => Ok(ToolOutput { text: guide::USAGE.to_owned(), entities: Vec::new() }),
        }
    }
}

impl Workspace {
    /// Words an entity with all its fields, and a project with the newest entities in it; `None` if there is no such entity.
    pub async fn details(&self, owner: &str, kind: Kind, id: Uuid) -> Result<Option<ToolOutput>, Error> {
        let Some(entity) = self.get(owner, kind, id).await? else { return Ok(None) };
        let mut within = Vec::new();
        if kind == Kind::Project {
            for kind in Kind::ALL.iter().filter(|kind| kind.is_within_project()) {
                let filter = Filter { project_id: Some(id), state: None };
                within.push((*kind, self.list(owner, *kind, &filter, None, PageSize::from(USUAL_ITEMS)).await?));
            }
        }
        Ok(Some(text::of_details(&entity, &within)))
    }
}

/// A call with its surroundings.
struct Call<'a> {
    workspace: &'a Workspace,
    author: Author<'a>,
    project: Option<Uuid>,
}

impl Call<'_> {
    async fn list(&self, kind: Kind, input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
        let project_id =
            if kind.is_within_project() { optional_id(input, "project_id")?.or(self.project) } else { None };
        let filter = Filter { project_id, state: input.get("state").and_then(Value::as_str).map(str::to_owned) };
        let most = input.get("limit").and_then(Value::as_u64).map_or(USUAL_ITEMS, |limit| limit as usize);
        let size = PageSize::from(most.clamp(1, MAX_ITEMS));
        let cursor = optional_id(input, "cursor")?;
        let page = self.workspace.list(self.author.owner, kind, &filter, cursor, size).await?;
        Ok(text::of_list(kind, &page))
    }

    async fn details(&self, kind: Kind, input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
        let id = self.id(kind, input)?;
        self.workspace.details(self.author.owner, kind, id).await?.ok_or_else(|| not_found(kind, id))
    }

    async fn create(&self, kind: Kind, mut input: Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
        if let (Some(project), None) = (self.project, input.get("project_id")) {
            input.insert("project_id".to_owned(), Value::String(project.to_string()));
        }
        let new = NewEntity::read(kind, input).map_err(|invalid| invalid_arguments(&invalid))?;
        let created = result(self.workspace.create(self.author, new).await, kind, Uuid::nil())?;
        Ok(text::of_change("Created", &[created]))
    }

    /// Creates a project with the goals, plans, tasks, documents and outputs that the call names.
    async fn create_project(&self, mut input: Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
        let mut contents = Vec::new();
        for kind in Kind::ALL.iter().copied().filter(|kind| kind.is_within_project()) {
            let items = match input.remove(kind.plural()) {
                None | Some(Value::Null) => continue,
                Some(Value::Array(items)) if items.len() <= schema::MAX_CONTENTS => items,
                Some(_) => {
                    let problem = format!("{}: a list of at most {} objects", kind.plural(), schema::MAX_CONTENTS);
                    return Err(refused("invalid_arguments", problem));
                }
            };
            for (index, item) in items.into_iter().enumerate() {
                let place = |invalid: InvalidField| InvalidField {
                    field: format!("{}[{index}].{}", kind.plural(), invalid.field),
                    ..invalid
                };
                let item = item.as_object().cloned().unwrap_or_default();
                let new = NewEntity::read_within(kind, item).map_err(place);
                contents.push(new.map_err(|invalid| invalid_arguments(&invalid))?);
            }
        }
        let project = NewEntity::read(Kind::Project, input).map_err(|invalid| invalid_arguments(&invalid))?;
        let created = self.workspace.create_project(self.author, project, contents).await;
        Ok(text::of_change("Created", &result(created, Kind::Project, Uuid::nil())?))
    }

    async fn update(&self, kind: Kind, mut input: Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
        let id = self.id(kind, &input)?;
        input.remove(&schema::id_field(kind));
        let appends = match input.remove("update_strategy").as_ref().and_then(Value::as_str) {
            None | Some("replace") => false,
            Some("append") => true,
            Some(_) => return Err(refused("invalid_arguments", "update_strategy: replace or append")),
        };
        let patch = Patch::read(kind, input).map_err(|invalid| invalid_arguments(&invalid))?;
        let updated = self.workspace.update(self.author, id, Patch { appends, ..patch }).await;
        Ok(text::of_change("Updated", &[result(updated, kind, id)?]))
    }

    async fn delete(&self, kind: Kind, input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
        let id = self.id(kind, input)?;
        result(self.workspace.delete(self.author, kind, id).await, kind, id)?;
        let text = format!("Deleted the {} {id}. It can be restored for 30 days.", kind.as_str());
        Ok(ToolOutput { text, entities: vec![(kind, id, String::new())] })
    }

    async fn overview(&self) -> Result<ToolOutput, ToolFailure> {
        let size = PageSize::from(USUAL_ITEMS);
        let projects = self.workspace.list(self.author.owner, Kind::Project, &Filter::default(), None, size).await;
        let mut overview = text::of_list(Kind::Project, &projects?);
        overview.text = text::bounded(format!("{}\n\n{}", guide::OVERVIEW, overview.text));
        Ok(overview)
    }

    /// Returns the entity that the call names; for a project, that of the context by default.
    fn id(&self, kind: Kind, input: &Map<String, Value>) -> Result<Uuid, ToolFailure> {
        let field = schema::id_field(kind);
        let id = optional_id(input, &field)?.or(self.project.filter(|_| kind == Kind::Project));
        id.ok_or_else(|| refused("invalid_arguments", format!("{field}: the id of a {} is needed", kind.as_str())))
    }
}

fn optional_id(input: &Map<String, Value>, field: &str) -> Result<Option<Uuid>, ToolFailure> {
    match input.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => id_of(value).map(Some).ok_or_else(|| {
            let example = "\"01a20131-6243-7797-8616-20e98be7ff86\"";
            refused("invalid_arguments", format!("{field}: an id, such as {example}, not {value}"))
        }),
    }
}

/// Returns the result of a change, or the error that the model reads.
fn result<T>(outcome: Result<Outcome<T>, Error>, kind: Kind, id: Uuid) -> Result<T, ToolFailure> {
    match outcome? {
        Outcome::Changed(result) => Ok(result),
        Outcome::NotFound => Err(not_found(kind, id)),
        Outcome::Conflict(version) => {
            let problem =
                format!("the {} was changed meanwhile and has the version {version}; read it again", kind.as_str());
            Err(refused("version_conflict", problem))
        }
        Outcome::Invalid(invalid) => Err(invalid_arguments(&invalid)),
        Outcome::Full(limit) => Err(refused("workspace_full", limit)),
        Outcome::Fenced => Err(refused("fenced", "another worker executes this run now")),
    }
}

fn not_found(kind: Kind, id: Uuid) -> ToolFailure {
    refused("not_found", format!("there is no {} {id}", kind.as_str()))
}

fn invalid_arguments(invalid: &InvalidField) -> ToolFailure {
    refused("invalid_arguments", invalid.to_string())
}

fn refused(code: &str, message: impl Into<String>) -> ToolFailure {
    ToolFailure::Refused(ToolError::new(code, message))
}

/// Returns the short reference of an entity.
fn reference(entity: &Entity) -> (Kind, Uuid, String) {
    (entity.kind, entity.id, entity.title().to_owned())
}
