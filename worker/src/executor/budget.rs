//! The budget of a conversation in a run, and the earlier messages that may be read word by word.

use holdfast_shared::{
    agent::{AgentDefinition, AgentKind},
    config::RunConfig,
    storage::Window,
};

use crate::{WorkerState, model::ChosenModel};

/// The budget of planners, where no setting has another one.
const OF_PLANNERS: u32 = 5_000;

/// The part of a model's context window that the conversation may take: the rest is for instructions, tools and answers.
pub const WINDOW_SHARE: u32 = 2;

/// Earlier messages of agents, where no setting has another number.
const OF_AGENTS: usize = 10;

/// Earlier messages of conversations that only the budget bounds. It keeps a query from reading all of a very long one.
const MOST: usize = 10_000;

/// Bytes of a token, at most, as it is estimated.
const TOKEN_BYTES: usize = 4;

/// Returns the tokens of the conversation for a model. A length that its provider has refused counts as its context window.
pub fn tokens(definition: &AgentDefinition, shared: &WorkerState, owner: &str, model: &ChosenModel) -> u32 {
    let refused = shared.refusals.room(owner, &model.choice().path()).unwrap_or(u32::MAX);
    tokens_within(definition, &shared.worker.config, model.context_window().min(refused))
}

fn tokens_within(definition: &AgentDefinition, config: &RunConfig, context_window: u32) -> u32 {
    let by_kind = || match definition.kind {
        AgentKind::Planner => OF_PLANNERS,
        AgentKind::Agent => context_window / WINDOW_SHARE,
    };
    definition.context_tokens.or(config.context_tokens).unwrap_or_else(by_kind)
}

/// Returns the earlier messages that a run of the agent may read word by word. `is_plain` is true for a run without an agent.
pub fn window(definition: &AgentDefinition, is_plain: bool, config: &RunConfig, tokens: u32) -> Window {
    let of_agent = !is_plain && definition.kind == AgentKind::Agent;
    let (usual, standing) = match definition.history_limit {
        Some(limit) => (limit, limit),
        // The question is one of the messages of a standing conversation.
        None if of_agent => {
            (config.history_limit.unwrap_or(OF_AGENTS), config.standing_history_limit.saturating_sub(1))
        }
        None => (config.history_limit.unwrap_or(MOST), config.history_limit.unwrap_or(MOST)),
    };
    Window { usual, standing, bytes: tokens as usize * TOKEN_BYTES, result_chars: config.earlier_result_chars }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct BudgetArgs {
        #[command(flatten)]
        run: RunConfig,
    }

    fn config(args: &[&str]) -> RunConfig {
        BudgetArgs::parse_from(["holdfast"].iter().chain(args)).run
    }

    fn planner() -> AgentDefinition {
        AgentDefinition { kind: AgentKind::Planner, ..AgentDefinition::default() }
    }

    #[test]
    fn the_budget_is_the_agents_then_the_settings_then_the_kinds() {
        let own = AgentDefinition { context_tokens: Some(700), ..AgentDefinition::default() };
        let check = |definition: &AgentDefinition, args: &[&str], expected: u32| {
            assert_eq!(tokens_within(definition, &config(args), 32_000), expected, "{args:?}");
        };
        check(&AgentDefinition::default(), &[], 16_000);
        check(&planner(), &[], 5_000);
        check(&planner(), &["--context-tokens", "900"], 900);
        check(&AgentDefinition::default(), &["--context-tokens", "900"], 900);
        check(&own, &["--context-tokens", "900"], 700);
    }

    #[test]
    fn an_agent_reads_ten_messages_and_others_as_many_as_the_budget_holds() {
        let limited = AgentDefinition { history_limit: Some(4), ..AgentDefinition::default() };
        let check = |definition: &AgentDefinition, is_plain: bool, args: &[&str], expected: (usize, usize)| {
            let window = window(definition, is_plain, &config(args), 1_000);
            assert_eq!(((window.usual, window.standing), window.bytes), (expected, 4_000), "{args:?}");
        };
        let set = ["--chat-history-limit", "6"];
        check(&AgentDefinition::default(), false, &[], (10, 19));
        check(&AgentDefinition::default(), false, &set, (6, 19));
        check(&AgentDefinition::default(), false, &["--chat-standing-history-limit", "0"], (10, 0));
        check(&limited, false, &set, (4, 4));
        check(&AgentDefinition::default(), true, &[], (MOST, MOST));
        check(&AgentDefinition::default(), true, &set, (6, 6));
        check(&planner(), false, &[], (MOST, MOST));
        check(&planner(), false, &set, (6, 6));
    }
}
