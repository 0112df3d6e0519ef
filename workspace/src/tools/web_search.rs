//! `web_search`: pages of the web, by a provider with Tavily's API.

use std::time::Duration;

use holdfast_shared::{config::WebSearchConfig, excerpt, json_size::count_values};
use reqwest::{Client, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Call, ToolFailure, ToolOutput,
    arguments::query,
    data,
    declaration::{self, Category, Declaration},
    refused,
};

/// Time-out of a search, and the longest response.
const TIMEOUT: Duration = Duration::from_secs(15);
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
const MAX_RESPONSE_VALUES: usize = 10_000;

/// Results where the call names no number, and at most.
const USUAL_RESULTS: u64 = 5;
const MAX_RESULTS: u64 = 10;

/// Domains of a list at most, and characters of a result's text.
const MAX_DOMAINS: usize = 20;
const RESULT_CHARS: usize = 500;

/// A provider of web searches.
#[derive(Debug, Clone)]
pub struct WebSearch {
    client: Client,
    url: String,
    key: SecretString,
}

#[derive(Deserialize)]
struct SearchResponse {
    #[serde(default)]
    results: Vec<SearchResult>,
}

#[derive(Deserialize)]
struct SearchResult {
    #[serde(default)]
    title: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    content: String,
}

impl WebSearch {
    /// Returns the configured provider; `None` without a key.
    pub fn new(config: &WebSearchConfig) -> Option<Self> {
        let key = config.tavily_api_key.clone()?;
        let client = Client::builder().timeout(TIMEOUT).redirect(reqwest::redirect::Policy::none()).build();
        let client = client.expect("a client with these settings can be built");
        Some(Self { client, url: format!("{}/search", config.web_search_url.trim_end_matches('/')), key })
    }

    async fn search(&self, request: &Value) -> Result<SearchResponse, String> {
        let sent = self.client.post(&self.url).bearer_auth(self.key.expose_secret()).json(request).send().await;
        let mut response = sent.map_err(|error| {
            if error.is_timeout() {
                format!("it took longer than {} s", TIMEOUT.as_secs())
            } else {
                "the provider cannot be reached".to_owned()
            }
        })?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err("the provider refuses the server's key".to_owned());
            }
            StatusCode::TOO_MANY_REQUESTS => {
                return Err("the provider has had too many searches; try again later".to_owned());
            }
            status => return Err(format!("the provider answered {status}")),
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|_| "the provider's answer broke off".to_owned())? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_RESPONSE_BYTES {
                return Err(format!("the provider's answer has more than {MAX_RESPONSE_BYTES} bytes"));
            }
        }
        if count_values(&body) > MAX_RESPONSE_VALUES {
            return Err(format!("the provider's answer has more than {MAX_RESPONSE_VALUES} values"));
        }
        serde_json::from_slice(&body).map_err(|_| "the provider's answer is no list of results".to_owned())
    }
}

pub fn declare() -> Declaration {
    let domains = json!({"type": "array", "items": {"type": "string"}, "maxItems": MAX_DOMAINS});
    let properties = json!({
        "query": declaration::text(), "max_results": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS},
        "include_domains": domains, "exclude_domains": domains
    });
    Declaration::new(Category::Utility, "web_search", "Searches the web.", properties).requires(&["query"])
}

pub async fn call(call: Call<'_>, input: &Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    let query = query(input)?;
    let most = input.get("max_results").and_then(Value::as_u64).unwrap_or(USUAL_RESULTS).clamp(1, MAX_RESULTS);
    let mut request = json!({"query": query, "max_results": most, "search_depth": "basic"});
    for name in ["include_domains", "exclude_domains"] {
        if let Some(domains) = domains(input, name)? {
            request[name] = json!(domains);
        }
    }
    let Some(provider) = call.web_search else {
        return Ok(noted(
            "Nothing was searched: no provider of web searches is configured on this server, or the user has not signed in.",
        ));
    };
    let found = provider.search(&request).await;
    let found =
        found.map_err(|problem| refused("web_search_failed", format!("the web was not searched: {problem}")))?;
    if found.results.is_empty() {
        return Ok(noted("The web has nothing about it."));
    }
    let bounded = |result: &SearchResult| SearchResult {
        title: excerpt::chars(&result.title, 200),
        url: excerpt::chars(&result.url, 300),
        content: excerpt::chars(result.content.trim(), RESULT_CHARS),
    };
    let results: Vec<SearchResult> = found.results.iter().take(most as usize).map(bounded).collect();
    let word = |result: &SearchResult| format!("- {}\n  {}\n  {}", result.title, result.url, result.content);
    let lines: Vec<String> = results.iter().map(word).collect();
    let item = |result: &SearchResult| json!({"title": result.title, "url": result.url, "content": result.content});
    let mut data = data::of_items(results.iter().map(item).collect(), None, 0);
    data["note"] = json!("Pages of the web, unchecked.");
    let output = ToolOutput::of_text(format!("Pages of the web, unchecked:\n{}", lines.join("\n")));
    Ok(ToolOutput { data: Some(data), ..output })
}

/// Returns a result without pages, which says why.
fn noted(text: &str) -> ToolOutput {
    let mut data = data::of_items(Vec::new(), None, 0);
    data["note"] = json!(text);
    ToolOutput { data: Some(data), ..ToolOutput::of_text(text) }
}

fn domains<'a>(input: &'a Map<String, Value>, name: &str) -> Result<Option<Vec<&'a str>>, ToolFailure> {
    let wanted = || {
        refused(
            "invalid_arguments",
            format!("{name}: a list of at most {MAX_DOMAINS} domains, such as [\"example.org\"]"),
        )
    };
    match input.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(domains)) if domains.len() <= MAX_DOMAINS => {
            domains.iter().map(Value::as_str).collect::<Option<_>>().map(Some).ok_or_else(wanted)
        }
        Some(_) => Err(wanted()),
    }
}
