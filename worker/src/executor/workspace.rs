//! The workspace in a planner's run: its tools by the context, and what calls tell about it.

use std::sync::Mutex;

use holdfast_shared::{
    agent::ModelRole,
    config::{ANONYMOUS_PREFIX, begins_with},
    context::{AgentContext, FocusType, ProjectFocus},
    event::{
        ContextShifted, EntityAccessed, EntityCounts, EventBody, FocusChanged, OntologyLoaded, TemplateRequested,
        TemplateSuggested,
    },
    plan::Plan,
    storage::Progress,
    trace::Node,
};
use holdfast_workspace::{EntityReference, Kind, Notice, ProjectContents, ToolScope, Workspace};
use uuid::Uuid;

use super::{Stop, attempt::Attempt, retry_query::retry_query, step_call::StepCall};
use crate::tools::WorkspaceOfRun;

/// The context of a turn about a project.
const PROJECT: &str = "project";

/// Adds the tools of the workspace, for a planner by the context of its run. An executor has those of its step.
pub async fn add_workspace_tools(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let Some(planner) = &attempt.planner else { return Ok(()) };
    let context = AgentContext::of(&attempt.memory.metadata);
    let is_executor = planner.tools.is_some();
    let executes = attempt.memory.plan.as_deref().is_some_and(Plan::is_open);
    let scope = match &context {
        _ if is_executor => Some(ToolScope::All),
        // Steps of a plan name tools of the context in which it was made, perhaps by an earlier attempt.
        Some(context) if executes && context.context_type == PROJECT => Some(ToolScope::All),
        Some(context) => ToolScope::of(&context.context_type),
        None => Some(ToolScope::Global),
    };
    let Some(scope) = scope else { return Ok(()) };
    if !is_executor {
        tell_focus(attempt, context.as_ref());
    }
    let project = context.and_then(|context| context.project_id()?.parse().ok());
    add_tools(attempt, scope, project);
    if let Some(project) = project.filter(|_| !is_executor) {
        load_project(attempt, project, attempt.claim.is_fresh()).await?;
    }
    Ok(())
}

/// Tells that the user looks at another part of a project than at the message before.
fn tell_focus(attempt: &mut Attempt<'_>, context: Option<&AgentContext>) {
    let Some(before) = attempt.memory.inherited.as_ref().filter(|_| attempt.claim.is_fresh()) else { return };
    let before = AgentContext::of(before).and_then(|context| context.project_focus);
    if let Some(focus) =
        context.and_then(|context| context.project_focus.clone()).filter(|now| Some(now) != before.as_ref())
    {
        attempt.recorder.emit(&EventBody::FocusChanged(FocusChanged { focus }));
    }
}

fn add_tools(attempt: &mut Attempt<'_>, scope: ToolScope, project: Option<Uuid>) {
    let (worker, claim) = (&attempt.shared.worker, attempt.claim);
    let of_run = WorkspaceOfRun {
        workspace: Workspace::new(&worker.storage, worker.workspace_limits),
        owner: claim.owner_id.clone(),
        run_id: claim.run_id,
        attempt: claim.attempt,
        project,
        // A search costs the operator money, so the user must have a name.
        web_search: attempt.shared.web_search.clone().filter(|_| !begins_with(&claim.owner_id, ANONYMOUS_PREFIX)),
        model: attempt.chosen_model.clone(),
        date: attempt.memory.date.clone(),
        max_answer_bytes: worker.config.max_answer_bytes,
        usage: Mutex::default(),
    };
    // Steps of a plan name tools of the context in which it was made.
    let keeps = attempt.memory.plan.as_deref().is_some_and(Plan::is_open);
    attempt.toolbox.add_workspace_tools(scope, of_run, keeps);
}

/// Puts a project before the model, and tells so if `tells`.
async fn load_project(attempt: &mut Attempt<'_>, project: Uuid, tells: bool) -> Result<(), Stop> {
    let (worker, claim) = (&attempt.shared.worker, attempt.claim);
    let workspace = Workspace::new(&worker.storage, worker.workspace_limits);
    let read = || workspace.contents(&claim.owner_id, project);
    let contents = retry_query(attempt.lease, attempt.recorder, read).await?;
    if let Some(contents) = contents.as_ref().filter(|_| tells) {
        attempt.recorder.emit(&EventBody::OntologyLoaded(loaded(contents)));
    }
    if let Some(planner) = &mut attempt.planner {
        planner.project = contents.map(|contents| contents.word().text);
    }
    Ok(())
}

/// Tells the user's front end a fact of a call.
pub fn tell(attempt: &mut Attempt<'_>, notice: Notice) {
    match notice {
        Notice::Project(project) => shift(attempt, &project),
        Notice::TemplateRequested { id, kind, reason, hints } => {
            attempt.recorder.emit(&EventBody::TemplateRequested(TemplateRequested {
                template_id: id,
                kind: kind.into(),
                reason: reason.into(),
                hints: hints.map(Into::into),
            }));
        }
        Notice::TemplateSuggested { kind, name, rationale } => {
            attempt.recorder.emit(&EventBody::TemplateSuggested(TemplateSuggested {
                kind: kind.into(),
                name: name.into(),
                rationale: rationale.into(),
            }));
        }
    }
}

/// Turns to a project, if the turn was about none. The checkpoint of this step keeps the context for the conversation.
fn shift(attempt: &mut Attempt<'_>, project: &EntityReference) {
    let is_planner = attempt.planner.as_ref().is_some_and(|planner| planner.role == ModelRole::Planner);
    let context = AgentContext::of(&attempt.memory.metadata);
    let has_project = context.as_ref().is_some_and(|context| context.project_id().is_some());
    if !is_planner || has_project || attempt.shifted_to.is_some() {
        return;
    }
    let focus = ProjectFocus {
        focus_type: FocusType::ProjectWide,
        focus_entity_id: None,
        focus_entity_name: None,
        project_id: project.id.to_string(),
        project_name: project.name.clone(),
    };
    let shifted = AgentContext {
        session_id: context.and_then(|context| context.session_id),
        context_type: PROJECT.to_owned(),
        entity_id: Some(project.id.to_string()),
        ontology_entity_type: None,
        project_focus: Some(focus.clone()),
    };
    attempt.memory.metadata = shifted.within(Some(attempt.memory.metadata.take()));
    attempt.shifted_to = Some(project.id);
    attempt.recorder.emit(&EventBody::ContextShifted(ContextShifted {
        context_type: PROJECT.into(),
        entity_id: project.id,
        entity_name: project.name.as_str().into(),
        message: format!("The conversation is about the project {} now.", project.name).into(),
    }));
    attempt.recorder.emit(&EventBody::FocusChanged(FocusChanged { focus }));
    // The step may wait for other calls, so the context is kept with this one's outcome.
    attempt.checkpoint(Node::Process, Progress::default());
}

/// Gives the next step the tools of the project that this step has led to.
pub async fn follow_shift(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let Some(project) = attempt.shifted_to.take() else { return read_again(attempt).await };
    add_tools(attempt, ToolScope::Project, Some(project));
    load_project(attempt, project, true).await
}

/// Reads the project again, if a call of the step has changed the workspace.
async fn read_again(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let changes = |call: &StepCall| attempt.toolbox.get(&call.state.name).is_some_and(|tool| tool.changes_workspace());
    let has_changed = attempt.memory.calls.iter().any(changes);
    let project = attempt.toolbox.workspace().and_then(|of_run| of_run.project);
    match project.filter(|_| has_changed) {
        Some(project) => load_project(attempt, project, false).await,
        None => Ok(()),
    }
}

/// Returns the entity of a call as events name it.
pub fn accessed(entity: &EntityReference) -> EntityAccessed<'_> {
    EntityAccessed { kind: entity.kind.as_str().into(), id: entity.id, name: entity.name.as_str().into() }
}

fn loaded(contents: &ProjectContents) -> OntologyLoaded<'_> {
    let count = |kind: Kind| contents.counts.iter().find(|(of, _)| *of == kind).map_or(0, |(_, count)| *count);
    OntologyLoaded {
        project_id: contents.project.id,
        name: contents.project.title().into(),
        counts: EntityCounts {
            tasks: count(Kind::Task),
            goals: count(Kind::Goal),
            plans: count(Kind::Plan),
            documents: count(Kind::Document),
            outputs: count(Kind::Output),
            edges: count(Kind::Edge),
        },
        open_tasks: contents.open_tasks,
    }
}
