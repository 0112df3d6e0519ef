//! SEARCH: entities by their names, also with a typing error or a part of a word.

use holdfast_shared::database::{Error, args};
use serde::Serialize;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::{Workspace, rows::NameRow, tables::table};
use crate::{entity::folded, kind::Kind, likeness::NameQuery};

/// A search for names.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// Words of names.
    pub query: &'a str,
    /// The kinds to look through.
    pub kinds: &'a [Kind],
    /// Only entities of this project.
    pub project_id: Option<Uuid>,
    /// Only entities in this state.
    pub state: Option<&'a str>,
    /// Most results.
    pub limit: usize,
}

/// An entity that a search has found.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = FoundEntity)]
pub struct Found {
    /// Its kind.
    pub kind: Kind,
    /// The entity.
    pub id: Uuid,
    /// Its name or title.
    pub name: String,
    /// Its project; null for a project.
    pub project_id: Option<Uuid>,
    /// Its state.
    pub state: Option<String>,
    /// How well the name has the query, from 0 to 1.
    pub score: f64,
}

/// An entity whose name is like the query.
struct Hit {
    kind: Kind,
    id: Uuid,
    score: f64,
    name_bytes: usize,
}

impl Workspace {
    /// Finds live entities by their names, best first, the shortest name first among equals.
    pub async fn search(&self, owner: &str, search: Search<'_>) -> Result<Vec<Found>, Error> {
        let mut names = Vec::new();
        for kind in search.kinds {
            let args = args![owner, search.project_id, search.state.map(str::to_owned)];
            let read =
                self.database.fetch_optional::<(Option<String>,)>("search the workspace", table(*kind).search, args);
            names.push((*kind, read.await?.and_then(|row| row.0).unwrap_or_default()));
        }
        let (query, limit) = (NameQuery::of(&folded(search.query)), search.limit);
        let hits = spawn_blocking(move || best(&query, &names, limit)).await.expect("a comparison of names ends");
        let mut found = Vec::new();
        for kind in search.kinds {
            let ids: Vec<Uuid> = hits.iter().filter(|hit| hit.kind == *kind).map(|hit| hit.id).collect();
            if !ids.is_empty() {
                let rows = self.database.fetch_all("name what was found", table(*kind).names, args![owner, ids]);
                let rows: Vec<NameRow> = rows.await?;
                found.extend(rows.into_iter().map(|row| (*kind, row)));
            }
        }
        let found_of = |hit: Hit| {
            let at = found.iter().position(|(kind, row)| (*kind, row.0) == (hit.kind, hit.id))?;
            let (kind, (id, name, project_id, state)) = found.swap_remove(at);
            Some(Found { kind, id, name, project_id, state, score: hit.score })
        };
        Ok(hits.into_iter().filter_map(found_of).collect())
    }
}

/// Returns the best hits among the names of each kind, which are lines of an id and a name.
fn best(query: &NameQuery, names: &[(Kind, String)], limit: usize) -> Vec<Hit> {
    let lines = names.iter().flat_map(|(kind, lines)| lines.lines().map(|line| (*kind, line)));
    let mut hits: Vec<Hit> = lines
        .filter_map(|(kind, line)| {
            let (id, name) = line.split_once(' ')?;
            let score = query.score(name)?;
            Some(Hit { kind, id: id.parse().ok()?, score, name_bytes: name.len() })
        })
        .collect();
    let order = |one: &Hit, other: &Hit| {
        let by_length = one.name_bytes.cmp(&other.name_bytes);
        other.score.total_cmp(&one.score).then(by_length).then(other.id.cmp(&one.id))
    };
    hits.sort_unstable_by(order);
    hits.truncate(limit);
    hits
}
