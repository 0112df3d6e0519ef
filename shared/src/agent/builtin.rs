//! The agents that the program has.

use uuid::Uuid;

use super::{AgentDefinition, AgentKind};

/// The id of the planner that answers the agent stream unless a setting names another agent.
pub const PLANNER_ID: Uuid = Uuid::from_u128(0x0191_0a9e_7000_7000_8000_706c_616e_6e65);

/// Returns the agents of the program by their ids.
pub fn builtin_agents() -> [(Uuid, AgentDefinition); 1] {
    let planner = AgentDefinition {
        name: "planner".to_owned(),
        description: Some(
            "Answers questions, makes plans and executes them with subagents, and asks when it needs to know more."
                .to_owned(),
        ),
        kind: AgentKind::Planner,
        ..AgentDefinition::default()
    };
    [(PLANNER_ID, planner)]
}
