//! Settings of the provider of web searches.

use secrecy::SecretString;

/// Settings of web searches.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Web searches")]
pub struct WebSearchConfig {
    /// Key for Tavily; without it, the tool web_search answers that nothing is configured.
    #[arg(long, env = "TAVILY_API_KEY", hide_env_values = true)]
    pub tavily_api_key: Option<SecretString>,

    /// Address of Tavily's API or of a compatible one.
    #[arg(long, env = "HOLDFAST_WEB_SEARCH_URL", default_value = "https://api.tavily.com")]
    pub web_search_url: String,
}
