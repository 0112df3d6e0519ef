//! The tools and overrides that the client of a run has brought beside its message.

use serde_json::{Value, json};
use sqlx::types::Json;
use uuid::Uuid;

use super::{
    Error, Storage,
    sql::{args, statements},
};
use crate::{
    file::ToolFile,
    overrides::{RunOverrides, StoredClientParts},
    tool::ClientTool,
};

statements! {
    /// Returns the tools and the overrides of a run, without its given history.
    CLIENT_PARTS {
        postgres = "
            select client_tools #- array['overrides', 'history']
            from agent_runs
            where id = $1
        ",
        sqlite = "
            select json_remove(client_tools, '$.overrides.history')
            from agent_runs
            where id = $1
        ",
    },
    /// Notes that a run names files of its owner, which the result of a call brings.
    USE_CALL_FILES = "
        insert into run_files (file_id, run_id)
        select f.id, $1
        from files f
        where f.owner_id = $2 and f.id {in:$3}
        on conflict (file_id, run_id) do nothing
        returning run_id
    ",
    /// Stores the files of a client's call before its result.
    SET_CALL_FILES = "
        update agent_run_tool_calls
        set files = $3
        where run_id = $1
          and call_id = $2
          and status = 'client'
        returning run_id
    ",
    /// Replaces the tools, the overrides and the metadata of a waiting run. Its given history stays.
    RENEW_CLIENT_PARTS {
        postgres = "
            update agent_runs
            set client_tools = case
                    when client_tools #> array['overrides', 'history'] is null
                    then cast($2 as jsonb)
                    else jsonb_set(
                        cast($2 as jsonb),
                        array['overrides', 'history'],
                        client_tools #> array['overrides', 'history']
                    )
                end,
                metadata = cast($3 as jsonb)
            where id = $1
              and status = 'waiting'
            returning id
        ",
        sqlite = "
            update agent_runs
            set client_tools = case
                    when json_type(client_tools, '$.overrides.history') is null
                    then json($2)
                    else json_set(
                        $2,
                        '$.overrides.history',
                        json(json_extract(client_tools, '$.overrides.history'))
                    )
                end,
                metadata = json($3)
            where id = $1
              and status = 'waiting'
            returning id
        ",
    },
}

impl Storage {
    /// Returns the tools and the overrides that the client of a run has brought, without the history, which may be long.
    pub async fn client_parts(&self, run_id: Uuid) -> Result<(Vec<ClientTool>, RunOverrides), Error> {
        let row = self
            .database
            .fetch_optional::<(Option<Json<StoredClientParts>>,)>(
                "read what the client of a run has brought",
                CLIENT_PARTS,
                args![run_id],
            )
            .await?;
        let parts = row.and_then(|(parts,)| parts).map(|parts| parts.0).unwrap_or_default();
        Ok((parts.client_tools, parts.overrides))
    }

    /// Stores the files that the result of an open call of the client brings. The result itself follows.
    pub async fn set_call_files(
        &self,
        owner: &str,
        run_id: Uuid,
        call_id: &str,
        files: &[ToolFile],
    ) -> Result<(), Error> {
        let ids: Vec<Uuid> = files.iter().map(|file| file.file_id).collect();
        // Order matters: a file that no run names may be deleted as unused.
        let doing = "store the files of a client's call";
        self.database.write::<(Uuid,)>(doing, USE_CALL_FILES, args![run_id, owner, ids]).await?;
        self.database.write::<(Uuid,)>(doing, SET_CALL_FILES, args![run_id, call_id, json!(files)]).await?;
        Ok(())
    }

    /// Replaces the tools, the overrides and the metadata of a run, if it waits for its client. Its given history stays.
    pub async fn renew_client_parts(
        &self,
        run_id: Uuid,
        client_tools: Vec<ClientTool>,
        overrides: RunOverrides,
        metadata: Option<Value>,
    ) -> Result<(), Error> {
        let parts = StoredClientParts { client_tools, overrides };
        let args = args![run_id, json!(parts), metadata];
        self.database.write::<(Uuid,)>("renew what the client of a run has brought", RENEW_CLIENT_PARTS, args).await?;
        Ok(())
    }
}
