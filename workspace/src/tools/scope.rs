//! The tools of a context.

use super::{Operation, WorkspaceTool};
use crate::kind::Kind;

/// The context of a turn, which decides the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolScope {
    /// No project in particular.
    Global,
    /// A project is to be created.
    ProjectCreate,
    /// A project.
    Project,
    /// A project is judged or foretold: nothing changes it.
    ProjectReview,
    /// A step of a plan, which names its tools among those of its planner.
    Step,
}

/// Kinds whose entities agents list and change, beside projects.
const WITHIN: [Kind; 4] = [Kind::Task, Kind::Goal, Kind::Plan, Kind::Document];

impl ToolScope {
    /// Returns the scope of a context type; `None` for one that is not the workspace's.
    pub fn of(context_type: &str) -> Option<Self> {
        match context_type {
            "global" => Some(Self::Global),
            "project_create" => Some(Self::ProjectCreate),
            "project" => Some(Self::Project),
            "project_audit" | "project_forecast" => Some(Self::ProjectReview),
            _ => None,
        }
    }

    /// Returns the tools of the scope. Where the context has a project, the tools need no `project_id`.
    pub fn tools(self, has_project: bool) -> Vec<WorkspaceTool> {
        let utilities = [Operation::FieldInfo, Operation::Overview, Operation::UsageGuide];
        let reads = std::iter::once(Kind::Project).chain(WITHIN);
        let reads = reads.flat_map(|kind| [Operation::List(kind), Operation::Details(kind)]);
        let changes = WITHIN
            .into_iter()
            .flat_map(|kind| [Operation::Create(kind), Operation::Update(kind), Operation::Delete(kind)]);
        let operations: Vec<Operation> = match self {
            Self::Global => utilities.into_iter().chain(reads).chain([Operation::Create(Kind::Project)]).collect(),
            Self::ProjectCreate => utilities.into_iter().chain([Operation::Create(Kind::Project)]).collect(),
            Self::Project => {
                utilities.into_iter().chain(reads).chain(changes).chain([Operation::Update(Kind::Project)]).collect()
            }
            Self::ProjectReview => utilities.into_iter().chain(reads).collect(),
            Self::Step => {
                let of_project = [Operation::Create(Kind::Project), Operation::Update(Kind::Project)];
                utilities.into_iter().chain(reads).chain(changes).chain(of_project).collect()
            }
        };
        operations.into_iter().map(|operation| WorkspaceTool::new(operation, has_project)).collect()
    }
}

#[cfg(test)]
mod tests {
    use holdfast_shared::{tokens::estimate, tool::Effect};

    use super::*;

    fn names(scope: ToolScope) -> Vec<String> {
        scope.tools(false).into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn a_review_changes_nothing() {
        for context_type in ["project_audit", "project_forecast"] {
            let tools = ToolScope::of(context_type).unwrap().tools(true);
            assert!(tools.len() > 10 && tools.iter().all(|tool| tool.effect == Effect::ReadOnly));
        }
    }

    #[test]
    fn the_tools_of_a_project_cost_the_model_at_most_4500_tokens() {
        let cost =
            |tool: &WorkspaceTool| estimate(&format!("{} {} {}", tool.name, tool.description, tool.input_schema));
        let tokens: u32 = ToolScope::Project.tools(false).iter().map(cost).sum();
        assert!(tokens <= 4500, "{tokens} tokens");
    }

    #[test]
    fn each_scope_has_the_tools_of_its_work() {
        assert!(names(ToolScope::Global).contains(&"create_onto_project".to_owned()));
        assert!(!names(ToolScope::Project).contains(&"create_onto_project".to_owned()));
        assert!(names(ToolScope::Project).contains(&"update_onto_task".to_owned()));
        assert!(names(ToolScope::Global).contains(&"get_onto_project_details".to_owned()));
        assert!(!names(ToolScope::Global).contains(&"create_onto_task".to_owned()));
        assert_eq!(names(ToolScope::ProjectCreate).len(), 4);
        assert_eq!(ToolScope::of("sea"), None);
    }
}
