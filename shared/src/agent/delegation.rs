//! The agents to which agents delegate, and the cycles among them.
//!
//! An agent that can reach itself can start runs without an end. So each cycle needs an agent whose definition says how often
//! it may appear in one chain.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

/// An agent, as a delegation sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delegator {
    /// Its name.
    pub name: String,
    /// The agents to which it delegates.
    pub subagents: Vec<Uuid>,
    /// True if its definition says how often it may appear in one chain.
    pub is_bounded: bool,
}

/// Agents by their ids.
#[derive(Debug, Clone, Default)]
pub struct Delegations(pub BTreeMap<Uuid, Delegator>);

/// A cycle without a bound. It shows the names of its agents, from one of them back to itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} is a cycle, whose agents could delegate without an end; say in the definition of one of them how often it may appear in one chain, such as recursive: 2",
    .0.join(" → ")
)]
pub struct DelegationCycle(Vec<String>);

impl Delegations {
    /// Fails with a shortest cycle through this agent, if there is one that no agent bounds.
    pub fn expect_end(&self, agent: Uuid) -> Result<(), DelegationCycle> {
        let unbounded = |id: &Uuid| self.0.get(id).filter(|delegator| !delegator.is_bounded);
        // Each agent with the one by which the search has found it.
        let (mut found_by, mut seen) = (Vec::from([(agent, 0)]), BTreeSet::new());
        let mut next = 0;
        while let Some((id, _)) = found_by.get(next).copied() {
            for subagent in unbounded(&id).into_iter().flat_map(|delegator| &delegator.subagents) {
                if *subagent == agent {
                    return Err(self.cycle(&found_by, next));
                }
                if seen.insert(*subagent) {
                    found_by.push((*subagent, next));
                }
            }
            next += 1;
        }
        Ok(())
    }

    fn cycle(&self, found_by: &[(Uuid, usize)], last: usize) -> DelegationCycle {
        let name = |index: usize| self.0.get(&found_by[index].0).map(|agent| agent.name.clone()).unwrap_or_default();
        let mut names = vec![name(0)];
        let mut index = last;
        while index > 0 {
            names.push(name(index));
            index = found_by[index].1;
        }
        names.push(name(0));
        names.reverse();
        DelegationCycle(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_needs_an_agent_that_bounds_it() {
        let id = |name: &str| Uuid::from_u128(u128::from(name.as_bytes()[0]));
        // An agent in capitals bounds its chain.
        let check = |agents: &[(&str, &str)], agent: &str, cycle: Option<&str>| {
            let delegator = |name: &str, subagents: &str| Delegator {
                name: name.to_owned(),
                subagents: subagents.split_whitespace().map(id).collect(),
                is_bounded: name.chars().all(char::is_uppercase),
            };
            let agents = agents.iter().map(|(name, subagents)| (id(name), delegator(name, subagents)));
            let found = Delegations(agents.collect()).expect_end(id(agent)).err();
            assert_eq!(found.map(|found| found.0.join(" ")).as_deref(), cycle, "from {agent}");
        };
        check(&[("a", "")], "a", None);
        check(&[("a", "b"), ("b", "c")], "a", None);
        check(&[("a", "a")], "a", Some("a a"));
        check(&[("A", "A")], "A", None);
        check(&[("a", "b"), ("b", "c"), ("c", "a")], "a", Some("a b c a"));
        check(&[("a", "b"), ("b", "c"), ("c", "a")], "c", Some("c a b c"));
        check(&[("a", "B"), ("B", "c"), ("c", "a")], "a", None);
        check(&[("a", "b c"), ("b", ""), ("c", "d a"), ("d", "a")], "a", Some("a c a"));
        // One way back is bounded, and the other one is not.
        check(&[("a", "B c"), ("B", "a"), ("c", "a")], "a", Some("a c a"));
        // A cycle of others does not concern this agent.
        check(&[("a", "b"), ("b", "c"), ("c", "b")], "a", None);
    }
}
