//! The tools and overrides that the client of a run has brought beside its message.

use serde_json::json;
use sqlx::types::Json;
use uuid::Uuid;

use super::{
    Error, Storage,
    sql::{args, statements},
};
use crate::{
    overrides::{RunOverrides, StoredClientParts},
    tool::ClientTool,
    tool_choice::ToolChoice,
};

statements! {
    /// Returns the tools and the overrides of a run, without its given history. Rows of earlier versions have a list of tools.
    CLIENT_PARTS {
        postgres = "
            select
                case
                    when jsonb_typeof(client_tools) = 'object'
                    then client_tools #- array['overrides', 'history']
                    else client_tools
                end
            from agent_runs
            where id = $1
        ",
        sqlite = "
            select json_remove(client_tools, '$.overrides.history')
            from agent_runs
            where id = $1
        ",
    },
    /// Replaces the choice of tools of a waiting run; null removes it. Rows of earlier versions have a list of tools.
    SET_TOOL_CHOICE {
        postgres = "
            update agent_runs
            set client_tools = case
                when cast($2 as jsonb) is null
                then client_tools #- array['overrides', 'tool_choice']
                else jsonb_set(
                    case jsonb_typeof(client_tools)
                        when 'object' then client_tools
                        else jsonb_build_object(
                            'client_tools', coalesce(client_tools, jsonb_build_array()),
                            'overrides', jsonb_build_object()
                        )
                    end,
                    array['overrides', 'tool_choice'],
                    cast($2 as jsonb)
                )
            end
            where id = $1
              and status = 'waiting'
              and (
                  cast($2 as jsonb) is not null
                  or client_tools #> array['overrides', 'tool_choice'] is not null
              )
            returning id
        ",
        sqlite = "
            update agent_runs
            set client_tools = case
                when $2 is null
                then json_remove(client_tools, '$.overrides.tool_choice')
                else json_set(
                    case json_type(client_tools)
                        when 'object' then client_tools
                        else json_object(
                            'client_tools', json(coalesce(client_tools, json_array())),
                            'overrides', json_object()
                        )
                    end,
                    '$.overrides.tool_choice',
                    json($2)
                )
            end
            where id = $1
              and status = 'waiting'
              and (
                  $2 is not null
                  or json_extract(client_tools, '$.overrides.tool_choice') is not null
              )
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
        Ok(row.and_then(|(parts,)| parts).map(|parts| parts.0.into_parts()).unwrap_or_default())
    }

    /// Replaces the choice of tools of a run, if it waits for its client.
    pub async fn set_tool_choice(&self, run_id: Uuid, choice: Option<&ToolChoice>) -> Result<(), Error> {
        let args = args![run_id, choice.map(|choice| json!(choice))];
        self.database.write::<(Uuid,)>("change the choice of tools of a run", SET_TOOL_CHOICE, args).await.map(drop)
    }
}
