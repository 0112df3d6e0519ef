//! `tool_choice` and `parallel_tool_calls`, as the requests of both APIs have them.

use holdfast_shared::tool_choice::{ToolChoice, ToolMode};
use serde_json::Value;

use crate::{problem::Problem, protocols::openai::wire::flat_name};

/// Most names that a request allows.
const MAX_ALLOWED: usize = 1024;

/// Longest name of a tool.
const MAX_NAME: usize = 256;

/// Returns the choice of a request; `None` if the model decides by itself. Fails for a choice that this server does not know.
pub fn tool_choice(choice: &Value, parallel: &Value) -> Result<Option<ToolChoice>, Problem> {
    let (mode, allowed) = match choice {
        Value::Null => (ToolMode::Auto, None),
        Value::String(mode) => (mode_named(mode)?, None),
        choice => match choice["type"].as_str() {
            Some("function" | "custom") => (ToolMode::Named(name_of(choice)?), None),
            Some("allowed_tools") => {
                let (mode, allowed) = allowed_tools(choice.get("allowed_tools").unwrap_or(choice))?;
                (mode, Some(allowed))
            }
            Some(mode @ ("auto" | "none" | "required" | "any")) => (mode_named(mode)?, None),
            _ => return Err(unknown()),
        },
    };
    let parallel = match parallel {
        Value::Null => None,
        Value::Bool(parallel) => Some(*parallel),
        _ => return Err(Problem::invalid_body("parallel_tool_calls is true or false.")),
    };
    let choice = ToolChoice { mode, allowed, parallel, after_step: 0 };
    Ok(Some(choice).filter(|choice| !choice.is_default()))
}

fn allowed_tools(choice: &Value) -> Result<(ToolMode, Vec<String>), Problem> {
    let tools = choice["tools"].as_array().ok_or_else(unknown)?;
    if tools.len() > MAX_ALLOWED {
        return Err(Problem::invalid_body(format!("tool_choice allows at most {MAX_ALLOWED} tools.")));
    }
    let names = tools.iter().map(name_of).collect::<Result<Vec<_>, _>>()?;
    Ok((choice["mode"].as_str().map_or(Ok(ToolMode::Auto), mode_named)?, names))
}

fn mode_named(name: &str) -> Result<ToolMode, Problem> {
    match name {
        "auto" => Ok(ToolMode::Auto),
        "none" => Ok(ToolMode::None),
        "required" | "any" => Ok(ToolMode::Required),
        _ => Err(unknown()),
    }
}

/// Returns the name of a function in either API.
fn name_of(tool: &Value) -> Result<String, Problem> {
    let name = ["function", "custom"].iter().find_map(|kind| tool[kind]["name"].as_str());
    let fits = |text: &&str| text.len() <= MAX_NAME && !text.contains('\0');
    let name = name.or_else(|| tool["name"].as_str()).filter(fits);
    let namespace = tool["namespace"].as_str();
    if !namespace.iter().all(fits) {
        return Err(unknown());
    }
    let flat = |name: &str| namespace.map_or_else(|| name.to_owned(), |namespace| flat_name(namespace, name));
    name.map(flat).ok_or_else(unknown)
}

fn unknown() -> Problem {
    Problem::invalid_body(
        "tool_choice is \"auto\", \"none\", \"required\", {\"type\": \"function\"} with the name of a tool, or {\"type\": \"allowed_tools\"} with a list of them.",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn choice(mode: ToolMode, allowed: Option<&[&str]>) -> ToolChoice {
        let allowed = allowed.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        ToolChoice { mode, allowed, ..ToolChoice::default() }
    }

    #[test]
    fn the_choices_of_both_apis_are_read() {
        let check = |value: Value, expected: Option<ToolChoice>| {
            let found = tool_choice(&value, &Value::Null);
            assert_eq!(found.unwrap_or_else(|problem| panic!("{value}: {}", problem.detail)), expected, "{value}");
        };
        check(Value::Null, None);
        check(json!("auto"), None);
        check(json!("none"), Some(choice(ToolMode::None, None)));
        check(json!("required"), Some(choice(ToolMode::Required, None)));
        let named = || Some(choice(ToolMode::Named("ask".into()), None));
        check(json!({"type": "function", "function": {"name": "ask"}}), named());
        check(json!({"type": "function", "name": "ask"}), named());
        let tools = json!([{"type": "function", "name": "a"}, {"type": "function", "function": {"name": "b"}}]);
        let of_responses = json!({"type": "allowed_tools", "mode": "required", "tools": tools});
        check(of_responses, Some(choice(ToolMode::Required, Some(&["a", "b"]))));
        let of_completions = json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}});
        check(of_completions, Some(choice(ToolMode::Auto, Some(&["a", "b"]))));
    }

    #[test]
    fn an_unknown_choice_is_refused() {
        let unknown = [
            json!("sometimes"),
            json!(1),
            json!({"type": "function"}),
            json!({"type": "web_search"}),
            json!({"type": "allowed_tools", "tools": "all"}),
            json!({"type": "allowed_tools", "mode": "often", "tools": []}),
            json!({"type": "function", "name": "x".repeat(MAX_NAME + 1)}),
            json!({"type": "allowed_tools", "tools": vec![json!({"name": "a"}); MAX_ALLOWED + 1]}),
        ];
        for value in unknown {
            assert_eq!(tool_choice(&value, &Value::Null).unwrap_err().code, "invalid_body", "{value}");
        }
        assert!(tool_choice(&Value::Null, &json!("no")).is_err());
        let longest = json!({"type": "function", "name": "x".repeat(MAX_NAME)});
        assert!(tool_choice(&longest, &json!(false)).is_ok());
        let most = json!({"type": "allowed_tools", "tools": vec![json!({"name": "a"}); MAX_ALLOWED]});
        assert!(tool_choice(&most, &Value::Null).is_ok());
    }
}
