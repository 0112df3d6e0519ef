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
    /// No context: a step of a plan, which names its tools among those of its planner, or another program.
    All,
}

/// Kinds whose entities agents list and change, beside projects.
const WITHIN: [Kind; 4] = [Kind::Task, Kind::Goal, Kind::Plan, Kind::Document];

const BASE: [Operation; 4] = [Operation::FieldInfo, Operation::WebSearch, Operation::Overview, Operation::UsageGuide];

const TEMPLATES: [Operation; 2] = [Operation::RequestTemplate, Operation::SuggestTemplate];

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
        self.operations().into_iter().map(|operation| WorkspaceTool::new(operation, has_project)).collect()
    }

    /// Returns whether the scope has the tool of an operation.
    pub(super) fn has(self, operation: Operation) -> bool {
        self.operations().contains(&operation)
    }

    fn operations(self) -> Vec<Operation> {
        match self {
            Self::Global => [&BASE[..], &searches(), &reads(), &[Operation::CreateProject], &TEMPLATES].concat(),
            Self::ProjectCreate => {
                [&BASE[..], &[Operation::ListTemplates, Operation::CreateProject], &TEMPLATES].concat()
            }
            Self::Project => [&BASE[..], &searches(), &reads(), &changes(), &TEMPLATES].concat(),
            Self::ProjectReview => [&BASE[..], &searches(), &reads()].concat(),
            Self::All => {
                [&BASE[..], &searches(), &reads(), &[Operation::CreateProject], &changes(), &TEMPLATES].concat()
            }
        }
    }
}

fn searches() -> Vec<Operation> {
    let lists = [Kind::Project, Kind::Task, Kind::Plan, Kind::Goal, Kind::Document].map(Operation::List);
    let searches = [Kind::Project, Kind::Task, Kind::Document].map(Operation::Search);
    let others =
        [Operation::SearchAll, Operation::ListTemplates, Operation::ListTaskDocuments, Operation::Relationships];
    [&lists[..], &searches, &others].concat()
}

fn reads() -> Vec<Operation> {
    std::iter::once(Kind::Project).chain(WITHIN).map(Operation::Details).collect()
}

/// Returns the tools that change something, without the creation of projects.
fn changes() -> Vec<Operation> {
    let of_kind = |kind| [Operation::Create(kind), Operation::Update(kind), Operation::Delete(kind)];
    let others = [Operation::CreateTaskDocument, Operation::Update(Kind::Project)];
    WITHIN.into_iter().flat_map(of_kind).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use holdfast_shared::{tokens::estimate, tool::Effect};

    use super::*;
    use crate::tools::Category;

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
        let count = |scope| names(scope).len();
        let counts =
            [ToolScope::Global, ToolScope::ProjectCreate, ToolScope::Project, ToolScope::ProjectReview, ToolScope::All];
        assert_eq!(counts.map(count), [24, 8, 37, 21, 38]);
        assert!(names(ToolScope::Global).contains(&"create_onto_project".to_owned()));
        assert!(!names(ToolScope::Project).contains(&"create_onto_project".to_owned()));
        assert!(!names(ToolScope::Global).contains(&"create_onto_task".to_owned()));
        assert_eq!(ToolScope::of("sea"), None);
    }

    #[test]
    fn there_are_38_tools_in_five_categories() {
        let tools = ToolScope::All.tools(false);
        let of = |category| tools.iter().filter(|tool| tool.category == category).count();
        let categories = [Category::Search, Category::Read, Category::Write, Category::Template, Category::Utility];
        assert_eq!(categories.map(of), [12, 5, 15, 2, 4]);
        let mut names = names(ToolScope::All);
        names.sort();
        insta::assert_snapshot!(names.join("\n"));
    }
}
