//! Checks of foreign schemas: tools that a client declares, and arguments that a human edits.

use holdfast_shared::{
    approval::Decision,
    schema::SchemaCheckError,
    storable::{MAX_DEPTH, is_too_deep},
    storage::InvalidInput,
    tool::ClientTool,
};
use uuid::Uuid;

use super::App;
use crate::{auth::Caller, in_flight::LimitKey, problem::Problem};

impl App {
    /// Fails if the number, the names or the sizes of client tools are invalid. These checks are cheap.
    pub fn check_client_tools(&self, tools: &[ClientTool]) -> Result<(), Problem> {
        ClientTool::check_all(tools, self.tools.max_client_tools, self.schemas.limits())
            .map_err(|problem| Problem::invalid_client_tool(&problem))
    }

    /// Fails if a schema of the client tools does not compile.
    pub(super) async fn compile_client_tools(&self, caller: &Caller, tools: &[ClientTool]) -> Result<(), Problem> {
        if tools.is_empty() {
            return Ok(());
        }
        let schemas = tools.iter().map(|tool| (tool.name.clone(), tool.input_schema.clone())).collect();
        self.schemas.compile_all(&LimitKey::of(caller).to_string(), schemas).await.map_err(
            |unchecked| match unchecked {
                SchemaCheckError::Invalid(problem) => Problem::invalid_client_tool(&problem),
                SchemaCheckError::Busy => Problem::schemas_busy(),
            },
        )
    }

    /// Checks edited arguments against the tool's schema. The inner result goes to storage, which reports it only if
    /// the approval is still open.
    pub(super) async fn check_edited(
        &self,
        owner: &str,
        run_id: Uuid,
        approval_id: Uuid,
        decision: &Decision,
    ) -> Result<Result<(), InvalidInput>, Problem> {
        let Decision::Approve { edited_input: Some(input), .. } = decision else { return Ok(Ok(())) };
        let invalid = |problem: String| Ok(Err(InvalidInput(problem)));
        if is_too_deep(input) {
            return invalid(format!("at the top: it is nested deeper than {MAX_DEPTH}"));
        }
        if !input.is_object() {
            return invalid("at the top: it is not a JSON object".to_owned());
        }
        let Some(schema) = self.storage.approval_schema(owner, run_id, approval_id).await? else { return Ok(Ok(())) };
        // A server's broken schema accepts everything, because the server checks its own arguments.
        let checked = match self.schemas.compile(owner, schema).await {
            Ok(schema) => self.schemas.validate(owner, schema, input.clone()).await,
            Err(SchemaCheckError::Invalid(_)) => Ok(()),
            Err(busy) => Err(busy),
        };
        match checked {
            Ok(()) => Ok(Ok(())),
            Err(SchemaCheckError::Invalid(problem)) => invalid(problem),
            Err(SchemaCheckError::Busy) => Err(Problem::schemas_busy()),
        }
    }
}
