//! Files that the addresses in a message have led to.

use serde_json::json;
use uuid::Uuid;

use super::{
    Claim, Error, Storage,
    run::{USE_FILES, held},
    sql::{Commit, RollBack, Tx, args, statements},
};
use crate::{
    file::Attachment,
    overrides::{RunOverrides, StoredClientParts},
    tool::ClientTool,
};

statements! {
    /// Replaces what the client of a run has brought.
    SET_CLIENT_PARTS = concat!("
        update agent_runs
        set client_tools = $3
        where ", held!(), "
    "),
    /// Replaces the files of the message that a run answers.
    SET_ATTACHMENTS = "
        update chat_messages
        set attachments = $2
        where id = (
            select input_message_id
            from agent_runs
            where id = $1
        )
    ",
}

/// The files that a worker has made of the addresses that the client of a run has brought.
#[derive(Debug)]
pub struct LinkedFiles<'a> {
    /// The files of the run's message.
    pub attachments: &'a [Attachment],
    /// The client's tools.
    pub client_tools: &'a [ClientTool],
    /// The overrides, with the files of the given history.
    pub overrides: &'a RunOverrides,
    /// The new files.
    pub new: Vec<Uuid>,
}

impl Storage {
    /// Stores the files in the place of their addresses. Returns false if the claim does not hold the run any more.
    pub async fn keep_linked_files(&self, claim: &Claim, linked: &LinkedFiles<'_>) -> Result<bool, Error> {
        let LinkedFiles { attachments, client_tools, overrides, new } = linked;
        let parts = StoredClientParts::row(client_tools, overrides);
        let (run_id, conversation_id, owner) = (claim.run_id, claim.conversation_id, claim.owner_id.as_str());
        let keep = async |tx: &mut Tx| {
            if tx.execute(SET_CLIENT_PARTS, args![run_id, claim.attempt, parts]).await? == 0 {
                return Ok(RollBack(false));
            }
            let attachments = (!attachments.is_empty()).then(|| json!(attachments));
            tx.execute(SET_ATTACHMENTS, args![run_id, attachments]).await?;
            tx.execute(USE_FILES, args![conversation_id, owner, new.clone()]).await?;
            Ok(Commit(true))
        };
        self.database.transact("keep the files of addresses", keep).await
    }
}
