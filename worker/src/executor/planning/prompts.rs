//! The instructions of planners and of the children of plans.

use holdfast_shared::{
    agent::ModelRole,
    context::AgentContext,
    plan::{Plan, PlanStep, StepStatus},
};
use holdfast_workspace::TASKS;
use serde_json::json;

use crate::model::ToolSpec;

/// Beginning of an answer that reports the failure of a step.
pub const FAILED: &str = "FAILED:";

const PLANNER: &str = "You are an assistant beside the user's work. Decide for each message: answer it, if you can do so at once; \
    call tools, if you need facts or must change something; make a plan with agent_create_plan, if the work needs several steps or parts that \
    can be done at the same time; or ask with ask_clarifying_questions, if you need an answer first.";

const EXECUTOR: &str = "You take one step of a plan. Do what the task says, with the tools that you have, and nothing else. Answer with the \
    result of the step alone: another agent reads it. If the step cannot be done, answer with FAILED: and the reason.";

const REVIEWER: &str = "You judge a plan before it is executed: whether it reaches its goal, whether steps are missing or unneeded, whether \
    their order is right, and whether each step has the tools that it needs. Answer with one JSON object and nothing else: \
    {\"verdict\": \"approved\" or \"changes_requested\", \"notes\": \"what to change\"}.";

const SYNTHESIZER: &str = "You write the answer after a plan: what each step did, what failed, and what is left.";

/// The instructions of a context.
const CREATE: &str = "Create the project by what you know from the conversation; where something is missing, choose what is likely. \
    Begin with a template that fits, if list_onto_templates has one, and give it goals, plans, tasks, documents and relations in one call.";

const AUDIT: &str = "Audit the project: say what is stale, what is blocked, what contradicts itself, and what is missing. Name the entity \
    and the date or state that shows it, the most serious first. Change nothing.";

const FORECAST: &str = "Forecast the project: say what will probably happen to its goals and dates, how sure you are, and why: from its \
    states, dates, relations and its pace so far. Say what would change the outcome. Change nothing.";

/// Returns the instructions of a role.
pub const fn of_role(role: ModelRole) -> &'static str {
    match role {
        ModelRole::Planner | ModelRole::Summarizer => PLANNER,
        ModelRole::Executor => EXECUTOR,
        ModelRole::Reviewer => REVIEWER,
        ModelRole::Synthesizer => SYNTHESIZER,
    }
}

/// Returns where the user is.
pub fn place(context: &AgentContext) -> String {
    let mut lines = vec![format!("The user is in the context {}.", context.context_type)];
    if let Some(id) = &context.entity_id {
        let kind = context.ontology_entity_type.map_or_else(|| "entity".to_owned(), |kind| json!(kind).to_string());
        lines.push(format!("The user looks at the {} {id}.", kind.trim_matches('"')));
    }
    if let Some(focus) = &context.project_focus {
        lines.push(format!("The focus: {}", json!(focus)));
    }
    let task = match context.context_type.as_str() {
        "project_create" => Some(format!("{CREATE}\n{TASKS}")),
        "project_audit" => Some(AUDIT.to_owned()),
        "project_forecast" => Some(FORECAST.to_owned()),
        _ => None,
    };
    lines.extend(task);
    lines.join("\n")
}

/// Returns a line for each tool.
pub fn tools(specs: &[ToolSpec]) -> Option<String> {
    // The declarations have the rest of each description.
    let summary = |spec: &ToolSpec| spec.description.split_inclusive(". ").next().unwrap_or_default().trim().to_owned();
    let line = |spec: &ToolSpec| format!("- {}: {}", spec.name, summary(spec).lines().next().unwrap_or_default());
    let lines: Vec<String> = specs.iter().map(line).collect();
    (!lines.is_empty()).then(|| format!("Your tools:\n{}", lines.join("\n")))
}

/// Returns when to create tasks, for a planner that can.
pub fn tasks(specs: &[ToolSpec]) -> Option<String> {
    let creates = specs.iter().any(|spec| matches!(spec.name.as_str(), "create_onto_task" | "create_onto_project"));
    creates.then(|| format!("About tasks: {TASKS}"))
}

/// Returns the plan with the state of each step.
pub fn plan(plan: &Plan) -> String {
    let steps: Vec<_> = plan.steps.iter().map(|step| json!(step)).collect();
    let document = json!({"goal": plan.metadata.goal, "status": plan.status, "steps": steps});
    format!("The plan, as it is now:\n{document:#}")
}

/// Returns the message by which the planner takes a step itself.
pub fn own_step(plan: &Plan, step: &PlanStep) -> String {
    format!(
        "{}\n\n(This is step {} of {} of the plan. Answer with its result alone. If it cannot be done, answer with {FAILED} and the reason.)",
        step.description,
        step.step_number,
        plan.steps.len()
    )
}

/// Returns what an executor must know beside its task.
pub fn context(plan: &Plan, step: &PlanStep) -> String {
    let needed = step.depends_on.iter().filter_map(|number| plan.step(*number));
    let results =
        needed.map(|step| format!("Result of step {}: {}", step.step_number, step.result.as_deref().unwrap_or("")));
    let goal =
        format!("(This is step {} of a plan. Its goal: {})", step.step_number, without_brackets(&plan.metadata.goal));
    std::iter::once(goal).chain(results).collect::<Vec<_>>().join("\n")
}

/// Returns the task of a reviewer.
pub fn review(plan: &Plan) -> String {
    let steps: Vec<_> = plan
        .steps
        .iter()
        .map(|step| {
            json!({
                "step_number": step.step_number, "description": step.description, "tools": step.tools,
                "executor_required": step.executor_required, "depends_on": step.depends_on,
            })
        })
        .collect();
    format!("Goal: {}\nPlan:\n{:#}", plan.metadata.goal, json!(steps))
}

/// Returns the message after which the planner writes its answer.
pub fn ended(plan: &Plan) -> String {
    format!(
        "(The plan has ended: {} of its {} steps are completed. Write the answer to my message: what each step did, what failed, and what is left.)",
        plan.count(StepStatus::Completed),
        plan.steps.len()
    )
}

/// Returns the request for the steps of a plan; `problem` is what is wrong with the last version.
pub fn steps(goal: &str, tools: &[ToolSpec], problem: Option<&str>) -> String {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let problem = problem.map(|problem| format!("\nThe last version cannot be used: {problem}.")).unwrap_or_default();
    let about_tasks = tasks(tools).map(|tasks| format!("\n{tasks}")).unwrap_or_default();
    format!(
        "Make a plan for this goal: {goal}\nAnswer with one JSON object and nothing else: {{\"steps\": [{{\"step_number\": 1, \"description\": \
         \"the task\", \"tools\": [], \"executor_required\": false, \"depends_on\": []}}]}}. At most 20 steps. Tools: {}. A step with \
         executor_required is done by another agent, beside other steps.{about_tasks}{problem}",
        names.join(", ")
    )
}

/// Asks how much is known about a project that is to be created.
pub fn project_analysis(known: &str) -> String {
    format!(
        "A user wants to create a project. They have written so far:\n\n{known}\n\nIs that enough to choose what kind of project it is and \
         what it is to bring about? Answer with one JSON object and nothing else: {{\"confidence\": 0.0, \"questions\": []}}. \
         confidence is between 0 and 1, and 0.6 is enough to begin with. If it is less, write one or two short questions, in the \
         user's language."
    )
}

/// A goal may have directives for the scripted model, which are not those of a step.
fn without_brackets(text: &str) -> String {
    text.replace(['[', ']'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str) -> ToolSpec {
        ToolSpec { name: name.to_owned(), description: format!("Uses {name}. More."), input_schema: json!({}) }
    }

    fn place_of(context_type: &str) -> String {
        let context = json!({"context_type": context_type});
        place(&serde_json::from_value(context).unwrap())
    }

    #[test]
    fn the_philosophy_of_tasks_stands_in_the_prompts() {
        assert!(tasks(&[spec("create_onto_task")]).unwrap().contains(TASKS));
        assert_eq!(tasks(&[spec("list_onto_tasks")]), None);
        assert!(place_of("project_create").contains(TASKS));
        assert!(steps("g", &[spec("create_onto_task")], None).contains(TASKS));
    }

    #[test]
    fn an_audit_and_a_forecast_have_instructions() {
        assert!(place_of("project_audit").contains("stale") && place_of("project_forecast").contains("probably"));
        assert_eq!(place_of("global"), "The user is in the context global.");
    }

    #[test]
    fn a_tool_has_one_line() {
        assert_eq!(tools(&[spec("a"), spec("b")]).unwrap(), "Your tools:\n- a: Uses a.\n- b: Uses b.");
    }
}
