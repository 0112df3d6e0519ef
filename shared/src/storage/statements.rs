//! All statements, for the test that prepares them on both databases.

use super::{
    BackEnd, access, agents, anonymous_data, approvals, archive, briefings, chats, checkpoints, client_parts,
    conversation_removal, conversations, delegations, deployment, erasure, file_removals, files, fork_summary, history,
    kept_results, knowledge_rows, linked_files, memories, memory_removals, memory_rows, message_place, messages,
    owners, pause_names, plans, position, profiles, project_conversations, quota, rows, run, run_positions, runs,
    sessions, similar,
    sql::{self, FencedTexts, Sql},
    trace, user_profiles, versions, workspace_rows,
};

/// The statements of each file. `run` and `sql` have lists of their own.
const FILES: &[&[Sql]] = &[
    crate::file_store::STATEMENTS,
    access::STATEMENTS,
    agents::STATEMENTS,
    anonymous_data::STATEMENTS,
    approvals::STATEMENTS,
    archive::STATEMENTS,
    briefings::STATEMENTS,
    chats::STATEMENTS,
    checkpoints::STATEMENTS,
    client_parts::STATEMENTS,
    conversation_removal::STATEMENTS,
    conversations::STATEMENTS,
    delegations::STATEMENTS,
    deployment::STATEMENTS,
    erasure::STATEMENTS,
    file_removals::STATEMENTS,
    files::STATEMENTS,
    fork_summary::STATEMENTS,
    history::STATEMENTS,
    kept_results::STATEMENTS,
    knowledge_rows::STATEMENTS,
    linked_files::STATEMENTS,
    memories::STATEMENTS,
    memory_removals::STATEMENTS,
    memory_rows::STATEMENTS,
    message_place::STATEMENTS,
    messages::STATEMENTS,
    owners::STATEMENTS,
    pause_names::STATEMENTS,
    plans::STATEMENTS,
    position::STATEMENTS,
    profiles::STATEMENTS,
    quota::STATEMENTS,
    rows::STATEMENTS,
    run_positions::STATEMENTS,
    runs::STATEMENTS,
    project_conversations::STATEMENTS,
    sessions::STATEMENTS,
    similar::STATEMENTS,
    trace::STATEMENTS,
    user_profiles::STATEMENTS,
    versions::STATEMENTS,
    workspace_rows::STATEMENTS,
];

/// Returns the name of each statement, with a text that the back end must be able to prepare. For PostgreSQL, the text of
/// a statement in a fenced write begins with the statements that it reads.
pub fn statement_texts(back_end: BackEnd) -> Vec<(&'static str, String)> {
    let files = FILES.iter().chain(run::STATEMENTS).chain(sql::STATEMENTS);
    let all = files.flat_map(|file| file.iter().copied());
    match back_end {
        BackEnd::Postgres => {
            let is_fenced = |sql: Sql| run::FENCED.iter().any(|fenced| fenced.contains(sql));
            let alone = all.filter(|sql| sql.is_for_postgres() && !is_fenced(*sql));
            let fenced = run::FENCED.iter().flat_map(FencedTexts::for_postgres);
            let spare = run::SPARE.iter().map(|sql| (sql.name(), sql.for_postgres_unfenced()));
            alone.map(|sql| (sql.name(), sql.for_postgres())).chain(fenced).chain(spare).collect()
        }
        BackEnd::Sqlite | BackEnd::Memory => {
            all.filter(|sql| sql.is_for_sqlite()).map(|sql| (sql.name(), sql.for_sqlite())).collect()
        }
    }
}
