//! The decision table of `ModelConfig::choice`, and the providers' addresses.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct ModelArgs {
    #[command(flatten)]
    model: ModelConfig,
}

fn config(flags: &[&str]) -> ModelConfig {
    ModelArgs::try_parse_from([&["holdfast"], flags].concat()).unwrap_or_else(|error| panic!("{error}")).model
}

/// Checks the choice as `provider/name`, or the variable that the error names.
#[track_caller]
fn check(flags: &[&str], expected: &str) {
    let found = match config(flags).choice() {
        Ok(choice) => format!("{}/{}", choice.provider, choice.name),
        Err(error) => format!("error: {}", error.variable),
    };
    assert_eq!(found, expected, "for {flags:?}");
}

#[test]
fn the_settings_decide_about_the_model() {
    const NAME: &str = "--chat-model-name=m";
    check(&[], "scripted/scripted");
    check(&[NAME], "error: CHAT_MODEL_NAME");
    check(&["--chat-model-name= "], "scripted/scripted");
    check(&["--gemini-api-key="], "scripted/scripted");
    check(&["--chat-model-provider=scripted", NAME], "scripted/scripted");
    check(&["--chat-model-provider=scripted", "--openai-api-key=k"], "scripted/scripted");

    check(&["--gemini-api-key=k"], "gemini/gemini-1.5-flash");
    check(&["--gemini-api-key=k", "--openai-api-key=k"], "gemini/gemini-1.5-flash");
    check(&["--gemini-api-key=k", NAME], "gemini/m");
    check(&["--chat-model-provider=gemini"], "error: GEMINI_API_KEY");
    check(&["--chat-model-provider=gemini", "--gemini-base-url=http://h"], "gemini/gemini-1.5-flash");

    check(&["--openai-api-key=k", NAME], "error: CHAT_MODEL_PROVIDER");
    check(&["--anthropic-api-key=k"], "error: CHAT_MODEL_PROVIDER");
    check(&["--vertex-api-key=k"], "error: CHAT_MODEL_PROVIDER");
    check(&["--vertex-credentials={}"], "error: CHAT_MODEL_PROVIDER");
    check(&["--google-application-credentials=/a.json"], "scripted/scripted");

    check(&["--chat-model-provider=openai", NAME], "error: OPENAI_API_KEY");
    check(&["--chat-model-provider=openai", "--openai-api-key= ", NAME], "error: OPENAI_API_KEY");
    check(&["--chat-model-provider=openai", "--openai-api-key=k"], "error: CHAT_MODEL_NAME");
    check(&["--chat-model-provider=openai", "--openai-api-key=k", NAME], "openai/m");
    check(&["--chat-model-provider=openai", "--openai-base-url=http://h/v1", NAME], "openai/m");
    check(&["--chat-model-provider=openai", "--openai-base-url=h:80/v1", NAME], "error: OPENAI_BASE_URL");

    check(&["--chat-model-provider=anthropic", NAME], "error: ANTHROPIC_API_KEY");
    check(&["--chat-model-provider=anthropic", "--anthropic-api-key=k"], "error: CHAT_MODEL_NAME");
    check(&["--chat-model-provider=anthropic", "--anthropic-base-url=https://h", NAME], "anthropic/m");
    check(&["--chat-model-provider=anthropic", "--anthropic-base-url=ftp://h", NAME], "error: ANTHROPIC_BASE_URL");

    check(&["--chat-model-provider=ollama"], "error: CHAT_MODEL_NAME");
    check(&["--chat-model-provider=ollama", NAME], "ollama/m");
    check(&["--chat-model-provider=ollama", "--ollama-base-url=h", NAME], "error: OLLAMA_BASE_URL");

    const VERTEX: &str = "--chat-model-provider=vertex";
    const GEMINI: &str = "--chat-model-name=gemini-x";
    check(&[VERTEX, GEMINI], "vertex/gemini-x");
    check(&[VERTEX, GEMINI, "--vertex-project-id=p"], "vertex/gemini-x");
    check(&[VERTEX, GEMINI, "--vertex-api-key=k"], "error: VERTEX_PROJECT_ID");
    check(&[VERTEX, GEMINI, "--vertex-api-key=k", "--vertex-base-url=http://h"], "error: VERTEX_PROJECT_ID");
    check(&[VERTEX, GEMINI, "--vertex-project-id=p", "--vertex-base-url=http://h"], "vertex/gemini-x");
    check(&[VERTEX, GEMINI, "--vertex-project-id=p", "--vertex-base-url=h"], "error: VERTEX_BASE_URL");
    check(&[VERTEX, "--vertex-project-id=p", "--vertex-api-key=k"], "error: CHAT_MODEL_NAME");
    check(&[VERTEX, "--vertex-project-id=p", "--vertex-api-key=k", NAME], "error: CHAT_MODEL_NAME");
    check(&[VERTEX, "--vertex-project-id=p", "--vertex-api-key=k", "--chat-model-name=claude-x"], "vertex/claude-x");
}

/// Checks the choice for an agent, as `check` does.
#[track_caller]
fn check_agent(flags: &[&str], provider: Option<&str>, name: Option<&str>, expected: &str) {
    let found = match config(flags).choice_for(provider, name) {
        Ok(choice) => format!("{}/{}", choice.provider, choice.name),
        Err(error) => format!("error: {}", error.variable),
    };
    assert_eq!(found, expected, "for {flags:?}, {provider:?}, {name:?}");
}

#[test]
fn an_agent_may_name_a_provider_or_a_model_or_both() {
    const OWN: [&str; 4] =
        ["--chat-model-provider=openai", "--openai-api-key=k", "--chat-model-name=m", "--gemini-api-key=k"];
    check_agent(&OWN, None, None, "openai/m");
    check_agent(&OWN, None, Some("n"), "openai/n");
    check_agent(&OWN, Some(" "), Some(""), "openai/m");
    check_agent(&OWN, Some("openai"), None, "openai/m");
    check_agent(&OWN, Some("openai"), Some("n"), "openai/n");

    // The deployment's model is unknown to another provider.
    check_agent(&OWN, Some("gemini"), None, "gemini/gemini-1.5-flash");
    check_agent(&OWN, Some("scripted"), Some("n"), "scripted/scripted");
    check_agent(&OWN, Some("ollama"), None, "error: model.name of the agent");
    check_agent(&OWN, Some("ollama"), Some("n"), "ollama/n");

    check_agent(&OWN, Some("anthropic"), Some("n"), "error: ANTHROPIC_API_KEY");
    check_agent(&OWN, Some("vertex"), Some("gemini-x"), "error: VERTEX_PROJECT_ID");
    check_agent(
        &["--vertex-credentials={}", "--openai-api-key=k"],
        Some("vertex"),
        Some("gemini-x"),
        "vertex/gemini-x",
    );
    check_agent(&["--gce-metadata-host=h"], Some("vertex"), Some("gemini-x"), "vertex/gemini-x");
    check_agent(&OWN, Some("acme"), Some("n"), "error: model.provider of the agent");
    check_agent(&["--ollama-base-url=h"], Some("ollama"), Some("n"), "error: OLLAMA_BASE_URL");
    check_agent(&[], None, Some("n"), "scripted/scripted");
}

#[test]
fn addresses_end_with_one_slash_and_have_a_version() {
    let check = |provider, flags: &[&str], expected: &str| assert_eq!(config(flags).base_url(provider), expected);
    check(Provider::OpenAi, &[], "https://api.openai.com/v1/");
    check(Provider::OpenAi, &["--openai-base-url=http://h:1/v1"], "http://h:1/v1/");
    check(Provider::OpenAi, &["--openai-base-url=http://h:1/v1/"], "http://h:1/v1/");
    check(Provider::OpenAi, &["--openai-base-url=http://h:1"], "http://h:1/");
    check(Provider::Anthropic, &["--anthropic-base-url=http://h:1"], "http://h:1/v1/");
    check(Provider::Anthropic, &["--anthropic-base-url=http://h:1/v1"], "http://h:1/v1/");
    check(Provider::Anthropic, &["--anthropic-base-url=http://h:1/proxy/"], "http://h:1/proxy/");
    check(Provider::Gemini, &["--gemini-base-url=http://h:1/"], "http://h:1/v1beta/");
    check(Provider::Gemini, &["--gemini-base-url=http://h:1/v1beta"], "http://h:1/v1beta/");
    check(Provider::Ollama, &["--ollama-base-url=http://h:1"], "http://h:1/");
}

#[test]
fn the_address_of_vertex_has_version_project_and_location() {
    let check = |flags: &[&str], expected: &str| assert_eq!(config(flags).vertex_url("p"), expected);
    check(&[], "https://aiplatform.googleapis.com/v1/projects/p/locations/global/");
    check(
        &["--vertex-location=europe-west1"],
        "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1/",
    );
    check(&["--vertex-base-url=http://h:1"], "http://h:1/v1/projects/p/locations/global/");
    check(
        &["--vertex-base-url=http://h:1/vertex/v1/", "--vertex-location=eu"],
        "http://h:1/vertex/v1/projects/p/locations/eu/",
    );
}

#[test]
fn debug_output_has_no_keys() {
    let shown = format!(
        "{:?}",
        config(&[
            "--openai-api-key=secret-value",
            "--gemini-api-key=secret-value",
            "--vertex-credentials=secret-value",
        ])
    );
    assert!(!shown.contains("secret-value"), "{shown}");
}
