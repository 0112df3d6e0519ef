//! The things that a run gets from a server: its tools under the names that models know, and its instructions.

use holdfast_shared::agent::AgentDefinition;

use super::{
    fake::{Behaviour, FakeServer},
    *,
};
use crate::tools::{RunServers, ServerState, Toolbox};

/// A list with two good tools, names that providers do not take, and malformed tools.
const MIXED: &str = r#"[
    {"name": "good", "inputSchema": {"type": "object"}},
    {"name": "no_schema"}, {"name": "null_schema", "inputSchema": null}, {"name": "true_schema", "inputSchema": true},
    {"name": "bad_title", "title": 5, "inputSchema": {"type": "object"}},
    {"name": "bad_icons", "icons": "x", "inputSchema": {"type": "object"}},
    {"name": "as_task", "execution": {"taskSupport": "required"}, "inputSchema": {"type": "object"}},
    {"inputSchema": {"type": "object"}}, 7,
    {"name": "files.read", "inputSchema": {"type": "object"}},
    {"name": "good", "description": "another one", "inputSchema": {"type": "object"}}
]"#;

fn agent(server: McpServer) -> AgentDefinition {
    AgentDefinition { mcp_servers: vec![server], ..AgentDefinition::default() }
}

async fn toolbox(mcp: &Arc<Mcp>, definition: &AgentDefinition) -> Toolbox {
    let mut toolbox = Toolbox::default();
    let servers = RunServers::new(mcp, user("ann"), DEADLINE);
    toolbox.use_servers(servers.clone());
    for server in &definition.mcp_servers {
        let (hold, state) = servers.begin(server).await;
        assert!(matches!(state, ServerState::Ready(_)));
        toolbox.hold(hold);
        toolbox.take_server(server, state, definition);
    }
    toolbox
}

fn names(toolbox: &Toolbox) -> Vec<String> {
    toolbox.specs().into_iter().map(|spec| spec.name).collect()
}

#[tokio::test]
async fn a_malformed_tool_is_left_out_alone_and_named() {
    let fake = FakeServer::with_behaviour(Behaviour::Lists(MIXED)).await;
    let mcp = mcp(&[]);
    for server in [http(&fake.url()), rpc(&fake.url())] {
        let mut toolbox = toolbox(&mcp, &agent(server)).await;
        assert_eq!(names(&toolbox), ["test__files_read_f63bf522", "test__good"]);
        assert_eq!(toolbox.get("test__good").unwrap().spec.description, "");
        let notices = toolbox.take_notices();
        assert_eq!(notices.len(), 1);
        let left_out = ["no_schema", "null_schema", "true_schema", "bad_title", "bad_icons", "as_task", "number 8"];
        for name in left_out.into_iter().chain(["number 9", "good (an earlier tool"]) {
            assert!(notices[0].contains(name), "{name}: {}", notices[0]);
        }
        assert!(toolbox.take_notices().is_empty(), "a warning carries a notice once");
    }
}

#[tokio::test]
async fn a_definition_names_a_tool_as_its_server_or_as_the_model_does() {
    let fake = FakeServer::with_behaviour(Behaviour::Lists(MIXED)).await;
    let mcp = mcp(&[]);
    for name in ["test__files.read", "test__files_read_f63bf522"] {
        let allowed = json!({"name": "a", "mcp_servers": [{"name": "test", "transport": "rpc", "url": fake.url()}],
            "allowed_tools": [name], "tools": {name: {"effect": "read_only"}}});
        let toolbox = toolbox(&mcp, &serde_json::from_value(allowed).unwrap()).await;
        assert_eq!(names(&toolbox), ["test__files_read_f63bf522"]);
        assert!(toolbox.get("test__files_read_f63bf522").unwrap().effect == holdfast_shared::tool::Effect::ReadOnly);
    }
}

#[tokio::test]
async fn the_instructions_of_a_server_are_read_unless_its_definition_refuses_them() {
    let mcp = mcp(&[]);
    let definition = agent(fake_stdio(&[]));
    let instructions = toolbox(&mcp, &definition).await.instructions(&definition);
    assert_eq!(instructions, ["[Instructions of the tool server test]\nCall echo first."]);
    let refusing = agent(McpServer { instructions: false, ..fake_stdio(&[]) });
    assert!(toolbox(&mcp, &refusing).await.instructions(&refusing).is_empty());
    let unused = AgentDefinition { allowed_tools: Some(["test__x".to_owned()].into()), ..definition };
    assert!(toolbox(&mcp, &unused).await.instructions(&unused).is_empty(), "the run has no tool of the server");
    mcp.close().await;
}

#[tokio::test]
async fn an_announced_list_replaces_the_tools_of_its_server() {
    let (mcp, server) = (mcp(&[]), fake_stdio(&[]));
    let definition = agent(server.clone());
    let mut toolbox = toolbox(&mcp, &definition).await;
    let (ann, known) = (user("ann"), toolbox.listings().unwrap().1["test"].clone());
    assert!(mcp.announced(&server, &ann, &known).await.is_none());
    call(&mcp, &server, "change", json!({})).await.unwrap();
    let mut announced = None;
    until(async || {
        announced = mcp.announced(&server, &ann, &known).await;
        announced.is_some()
    })
    .await;
    toolbox.replace_server(&server, &announced.unwrap(), &definition);
    assert_eq!(names(&toolbox), ["test__echo", "test__more"]);
    mcp.close().await;
    assert!(mcp.announced(&server, &ann, &known).await.is_none(), "no connection is made for a look");
}
