//! Tools of the scripted model, so that tools can be tried without a server.

use serde_json::json;

use crate::model::ToolSpec;

pub(super) const APPROVAL: &str = "scripted__approval";
pub(super) const CLIENT_TOOL: &str = "scripted__clienttool";
const ECHO: &str = "scripted__echo";
const DRAW: &str = "scripted__draw";

/// Returns the tools, for the code that declares and executes them.
pub fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, description: &str, field: &str| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {field: {"type": "string"}},
            "required": [field],
        }),
    };
    let mut echo = tool(ECHO, "Answers with the text that it is given, after a while if asked to.", "text");
    echo.input_schema["properties"]["delay_ms"] = json!({"type": "integer", "minimum": 0});
    vec![
        tool(APPROVAL, "Does something that a human must approve first.", "action"),
        tool(CLIENT_TOOL, "Asks the user a question.", "question"),
        echo,
        tool(DRAW, "Draws a square of one color: a name such as teal, or #rrggbb.", "color"),
    ]
}
