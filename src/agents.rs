//! The file of agents that `HOLDFAST_AGENTS` names. A process reads, checks and stores it at its start, so that a file
//! describes the agents of a deployment.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, anyhow, bail};
use holdfast_shared::{
    agent::{AgentDefinition, ModelRole, Profile, Profiles, without_quoted_text},
    storage::Storage,
};
use serde::Deserialize;
use uuid::Uuid;

/// The content of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    agents: Vec<AgentDefinition>,
    profiles: Option<BTreeMap<String, Profile>>,
    roles: Option<BTreeMap<ModelRole, String>>,
}

/// The agents of a file by their ids, and its model profiles.
#[derive(Debug, PartialEq)]
pub struct Described {
    pub agents: BTreeMap<Uuid, AgentDefinition>,
    /// `None` if the file has neither profiles nor roles.
    pub profiles: Option<Profiles>,
}

/// The UUID namespace in which an agent's name gives its id.
const NAMESPACE: Uuid = Uuid::from_u128(0x8f0c_5a4e_9d0b_4c1e_a6b1_2f6d_6a3e_7c55);

/// Reads the file and replaces the database's agents by those of the file. An agent keeps its id as long as it keeps its
/// name. Fails if the file does not fit or the database is away.
pub async fn load(path: &Path, storage: &Storage, variables: &[String]) -> anyhow::Result<()> {
    let Described { agents, profiles } = read(path, variables)?;
    storage.load_profiles(profiles.as_ref()).await?;
    let loaded = storage.load_agents(&agents).await?;
    let (changed, hidden) =
        loaded.with_context(|| format!("HOLDFAST_AGENTS: could not use {}: subagents", path.display()))?;
    for (id, definition) in &agents {
        tracing::info!(agent.id = %id, agent.name = definition.name, "agent from the file");
    }
    let profiles = profiles.map_or(0, |all| all.profiles.len());
    tracing::info!(file = %path.display(), agents = agents.len(), changed, hidden, profiles, "agents loaded");
    Ok(())
}

/// Returns the content of the file. Fails with the line and the reason if the file does not fit.
pub fn read(path: &Path, variables: &[String]) -> anyhow::Result<Described> {
    parse(path, variables).with_context(|| format!("HOLDFAST_AGENTS: could not use {}", path.display()))
}

fn parse(path: &Path, variables: &[String]) -> anyhow::Result<Described> {
    let text = std::fs::read_to_string(path)?;
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let file: File = match extension {
        "toml" => toml::from_str(&text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            unfit(line, error.message())
        })?,
        "yaml" | "yml" => serde_saphyr::from_str(&text).map_err(|error| {
            let line = error.location().map(|location| location.line() as usize);
            unfit(line, &error.without_snippet().to_string())
        })?,
        _ => bail!("expected a file that ends in .toml, .yaml or .yml"),
    };
    let mut agents = BTreeMap::new();
    for definition in file.agents {
        definition.check(variables).with_context(|| format!("agent {:?}", definition.name))?;
        let id = Uuid::new_v5(&NAMESPACE, definition.name.as_bytes());
        if let Some(earlier) = agents.insert(id, definition) {
            bail!("two agents are named {:?}", earlier.name);
        }
    }
    let profiles = match (file.profiles, file.roles) {
        (None, None) => None,
        (profiles, roles) => {
            Some(Profiles { profiles: profiles.unwrap_or_default(), roles: roles.unwrap_or_default() })
        }
    };
    profiles.as_ref().map_or(Ok(()), Profiles::check)?;
    Ok(Described { agents, profiles })
}

/// Returns an error with the reason and the line number. It shows no line, because lines may hold secrets.
fn unfit(line: Option<usize>, problem: &str) -> anyhow::Error {
    let problem = without_quoted_text(&problem);
    match line {
        Some(line) => anyhow!("line {line}: {problem}"),
        None => anyhow!(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(name: &str, text: &str) -> anyhow::Result<Vec<AgentDefinition>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Ok(read(&path, &["T".to_owned()])?.agents.into_values().collect())
    }

    #[test]
    fn both_formats_mean_the_same() {
        let toml = read_as(
            "agents.toml",
            "[[agents]]\nname = \"ops\"\nhistory_limit = 4\n[[agents.mcp_servers]]\nname = \"kb\"\ntransport = \"rpc\"\nurl = \"http://a\"\nauth = { bearer = { env = \"T\" } }\n[agents.tools.kb__count]\neffect = \"once\"\n",
        );
        let yaml = read_as(
            "agents.yaml",
            "agents:\n  - name: ops\n    history_limit: 4\n    mcp_servers:\n      - {name: kb, transport: rpc, url: 'http://a', auth: {bearer: {env: T}}}\n    tools: {kb__count: {effect: once}}\n",
        );
        assert_eq!(toml.unwrap(), yaml.unwrap());
    }

    #[test]
    fn a_secret_in_the_wrong_place_is_not_shown() {
        let toml = "[[agents]]\nname = \"a\"\n[[agents.mcp_servers]]\nname = \"s\"\ntransport = \"rpc\"\nurl = \"http://a\"\nauth = \"hunter2\"\n";
        let yaml = "agents:\n  - name: a\n    mcp_servers:\n      - {name: s, transport: rpc, url: 'http://a', auth: hunter2}\n";
        for (name, text) in [("agents.toml", toml), ("agents.yaml", yaml)] {
            let error = format!("{:#}", read_as(name, text).expect_err("it was accepted"));
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_wrong_file_is_refused_with_a_reason() {
        let check = |name: &str, text: &str, part: &str| {
            let error = format!("{:#}", read_as(name, text).expect_err("it was accepted"));
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        };
        check("agents.json", "{}", ".toml");
        check("agents.toml", "agents = 3", "sequence");
        check("agents.toml", "", "agents");
        check("agents.yaml", "", "unexpected end");
        check("agents.toml", "[[agents]]\nname = \"a\"\n[[agents]]\nname = \"a\"\n", "two agents");
        check("agents.yaml", "agents:\n  - name: a\n    colour: red\n", "colour");
        check("agents.yaml", "agents:\n  - name: a\n    limits: {max_steps: 0}\n", "limits.max_steps");
        check(
            "agents.yaml",
            "agents:\n  - name: a\n    mcp_servers:\n      - {name: s, transport: rpc, url: 'http://a', auth: {bearer: {env: REDIS_URL}}}\n",
            "may not use the variable REDIS_URL; HOLDFAST_AGENT_SECRETS lists",
        );
    }
}
