//! The agents to which agents delegate, by their names or ids.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

use super::{
    Error, Storage,
    sql::{Tx, args, statements},
};
use crate::{
    agent::{AgentDefinition, DelegationCycle, Delegations, Delegator},
    subagent::Subagent,
};

statements! {
    /// Returns the agents with these names or ids.
    NAMED = "
        select value->>'name' as wanted, a.id, a.name,
            v.definition->>'description' as description,
            cast(v.definition->>'recursive' as bigint) as most_in_chain,
            v.definition->'subagents' as subagents
        from {each:$1}
        join agent_definitions a
            on a.id = {uuid:value->>'id'} or a.name = value->>'name'
        join agent_definition_versions v
            on v.agent_definition_id = a.id and v.version = a.version
        where a.deleted_at is null
        order by a.id
    ",
}

/// An agent that a definition names as a subagent.
#[derive(Debug, Clone)]
pub struct FoundAgent {
    /// The agent.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its description, if it has one.
    pub description: Option<String>,
    /// Times that it may appear in one chain; `None` for no such bound.
    pub recursive: Option<u32>,
}

#[derive(FromRow)]
struct NamedRow {
    wanted: String,
    id: Uuid,
    name: String,
    description: Option<String>,
    most_in_chain: Option<i64>,
    subagents: Option<Json<Vec<Subagent>>>,
}

impl Storage {
    /// Returns the agents that these texts name or whose ids they are, each with the text that found it. An agent with the
    /// id comes before one with the name, and of several with one name the newest counts.
    pub async fn agents_named(&self, names: &[String]) -> Result<BTreeMap<String, FoundAgent>, Error> {
        let doing = "find the subagents of a run";
        let rows = self.database.fetch_all::<NamedRow>(doing, NAMED, args![wanted(names.iter())]).await?;
        let found = by_wanted(rows).into_iter().map(|(wanted, row)| {
            let NamedRow { id, name, description, most_in_chain, .. } = row;
            (wanted, FoundAgent { id, name, description, recursive: most_in_chain.map(|most| most as u32) })
        });
        Ok(found.collect())
    }
}

/// Returns names and ids of agents, as a parameter.
fn wanted<'a>(names: impl Iterator<Item = &'a String>) -> serde_json::Value {
    let id = |name: &String| name.parse::<Uuid>().ok().map(|id| id.simple().to_string());
    names.map(|name| json!({"name": name, "id": id(name)})).collect()
}

/// Returns the row that counts for each text.
fn by_wanted(rows: Vec<NamedRow>) -> BTreeMap<String, NamedRow> {
    let mut found = BTreeMap::<String, NamedRow>::new();
    for row in rows {
        let is_better = |earlier: &NamedRow| earlier.id.to_string() != row.wanted;
        if found.get(&row.wanted).is_none_or(is_better) {
            found.insert(row.wanted.clone(), row);
        }
    }
    found
}

/// Fails with a cycle through one of these agents, which this transaction has stored. It looks at the agents to which they
/// delegate, and so on. A cycle that another transaction closes at this moment stays, and the limits of trees bound it.
pub async fn expect_end(
    tx: &mut Tx,
    agents: &[(Uuid, &AgentDefinition)],
) -> Result<Result<(), DelegationCycle>, Error> {
    let (mut graph, mut found) = (Delegations::default(), BTreeMap::<String, Uuid>::new());
    let mut next: Vec<(Uuid, String, bool, Vec<String>)> = Vec::new();
    for (id, definition) in agents {
        let names = definition.subagents.iter().map(|subagent| subagent.agent.clone()).collect();
        next.push((*id, definition.name.clone(), definition.recursive.is_some(), names));
    }
    let mut named: Vec<(Uuid, Vec<String>)> = Vec::new();
    while !next.is_empty() {
        let mut unknown: BTreeSet<String> = BTreeSet::new();
        for (id, name, is_bounded, names) in next.drain(..) {
            unknown.extend(names.iter().filter(|name| !found.contains_key(*name)).cloned());
            graph.0.insert(id, Delegator { name, is_bounded, subagents: Vec::new() });
            named.push((id, names));
        }
        if unknown.is_empty() {
            break;
        }
        let rows = tx.fetch_all::<NamedRow>(NAMED, args![wanted(unknown.iter())]).await?;
        for (wanted, row) in by_wanted(rows) {
            found.insert(wanted, row.id);
            if !graph.0.contains_key(&row.id) && !next.iter().any(|(id, ..)| *id == row.id) {
                let names = row.subagents.map(|subagents| subagents.0).unwrap_or_default();
                let names = names.into_iter().map(|subagent| subagent.agent).collect();
                next.push((row.id, row.name, row.most_in_chain.is_some(), names));
            }
        }
    }
    for (id, names) in named {
        let subagents = names.iter().filter_map(|name| found.get(name).copied()).collect();
        graph.0.entry(id).or_default().subagents = subagents;
    }
    Ok(agents.iter().try_for_each(|(id, _)| graph.expect_end(*id)))
}
