//! The settings of Vertex AI: its address, and the credentials for its access tokens.
//!
//! Nothing here reads a file or asks a server. The worker turns a `VertexAccess` into tokens.

use std::{env, path::PathBuf};

use secrecy::{ExposeSecret, SecretString};

use super::model::non_empty;

/// The metadata server of each machine of Google Cloud.
const METADATA_HOST: &str = "metadata.google.internal";

/// Settings of Vertex AI.
#[derive(Debug, Clone, clap::Args)]
pub struct VertexConfig {
    /// OAuth access token for Vertex AI, which Holdfast does not refresh; by default it gets tokens by itself.
    #[arg(long, env = "VERTEX_API_KEY", hide_env_values = true)]
    pub vertex_api_key: Option<SecretString>,

    /// Credentials for Vertex AI as JSON: the key of a service account, or those of a user.
    #[arg(long, env = "VERTEX_CREDENTIALS", hide_env_values = true)]
    pub vertex_credentials: Option<SecretString>,

    /// File with such credentials.
    #[arg(long, env = "GOOGLE_APPLICATION_CREDENTIALS")]
    pub google_application_credentials: Option<String>,

    /// Folder of gcloud, whose application_default_credentials.json counts; ~/.config/gcloud by default.
    #[arg(long, env = "CLOUDSDK_CONFIG")]
    pub cloudsdk_config: Option<String>,

    /// Host of Google Cloud's metadata server; metadata.google.internal by default.
    #[arg(long, env = "GCE_METADATA_HOST")]
    pub gce_metadata_host: Option<String>,

    /// Address of Vertex AI or of a compatible API, with the version.
    #[arg(long, env = "VERTEX_BASE_URL")]
    pub vertex_base_url: Option<String>,

    /// Google Cloud project of Vertex AI; by default that of the credentials.
    #[arg(long, env = "VERTEX_PROJECT_ID")]
    pub vertex_project_id: Option<String>,

    /// Google Cloud location of Vertex AI; global by default.
    #[arg(long, env = "VERTEX_LOCATION")]
    pub vertex_location: Option<String>,
}

/// The source of the access tokens.
#[derive(Debug)]
pub enum VertexAccess {
    /// `VERTEX_API_KEY` is the token.
    Token,
    /// `VERTEX_CREDENTIALS` has the credentials.
    Json(SecretString),
    /// `GOOGLE_APPLICATION_CREDENTIALS` names the file of the credentials.
    File(PathBuf),
    /// gcloud's file if it exists, otherwise the metadata server. With neither, requests have no token.
    Ambient {
        /// May not exist.
        gcloud_file: Option<PathBuf>,
        /// May not answer.
        metadata_host: Option<String>,
    },
}

impl VertexConfig {
    /// Returns the source of the access tokens. Only credentials that a setting names go to an address that is not
    /// Google's.
    pub fn access(&self) -> VertexAccess {
        if set(self.vertex_api_key.as_ref()).is_some() {
            return VertexAccess::Token;
        }
        if let Some(json) = set(self.vertex_credentials.as_ref()) {
            return VertexAccess::Json(json.clone());
        }
        if let Some(path) = non_empty(self.google_application_credentials.as_deref()) {
            return VertexAccess::File(path.into());
        }
        let is_google = self.own_address().is_none_or(is_of_google);
        let usual_folder = || env::home_dir().filter(|_| is_google).map(|home| home.join(".config/gcloud"));
        let folder = non_empty(self.cloudsdk_config.as_deref()).map(PathBuf::from).or_else(usual_folder);
        let host = non_empty(self.gce_metadata_host.as_deref()).or(is_google.then_some(METADATA_HOST));
        VertexAccess::Ambient {
            gcloud_file: folder.map(|folder| folder.join("application_default_credentials.json")),
            metadata_host: host.map(str::to_owned),
        }
    }

    /// Returns whether a setting names credentials, which may name the project too.
    pub(super) fn names_credentials(&self) -> bool {
        match self.access() {
            VertexAccess::Token => false,
            VertexAccess::Json(_) | VertexAccess::File(_) => true,
            VertexAccess::Ambient { .. } => [&self.cloudsdk_config, &self.gce_metadata_host]
                .into_iter()
                .any(|setting| non_empty(setting.as_deref()).is_some()),
        }
    }

    /// Returns the project that the operator has set.
    pub fn project(&self) -> Option<&str> {
        non_empty(self.vertex_project_id.as_deref())
    }

    /// Returns the address that the operator has set.
    pub(super) fn own_address(&self) -> Option<&str> {
        non_empty(self.vertex_base_url.as_deref())
    }

    /// Returns Google's address for the location, with the version.
    pub(super) fn usual_address(&self) -> String {
        match self.location() {
            "global" => "https://aiplatform.googleapis.com/v1/".to_owned(),
            region => format!("https://{region}-aiplatform.googleapis.com/v1/"),
        }
    }

    /// Returns the path of a project's models, which follows the address.
    pub(super) fn path(&self, project: &str) -> String {
        format!("projects/{project}/locations/{}/", self.location())
    }

    fn location(&self) -> &str {
        non_empty(self.vertex_location.as_deref()).unwrap_or("global")
    }
}

/// Compose files pass unset variables as empty ones.
fn set(secret: Option<&SecretString>) -> Option<&SecretString> {
    secret.filter(|secret| !secret.expose_secret().trim().is_empty())
}

fn is_of_google(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("https://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.split(':').next().unwrap_or_default();
    !authority.contains('@') && host.ends_with(".googleapis.com")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct VertexFlags {
        #[command(flatten)]
        vertex: VertexConfig,
    }

    fn access(flags: &[&str]) -> VertexAccess {
        VertexFlags::try_parse_from([&["holdfast"], flags].concat()).unwrap().vertex.access()
    }

    #[test]
    fn the_first_source_that_is_set_wins() {
        let all = [
            "--vertex-api-key=t",
            "--vertex-credentials={}",
            "--google-application-credentials=/a.json",
            "--cloudsdk-config=/gcloud",
            "--gce-metadata-host=h:1",
        ];
        assert!(matches!(access(&all), VertexAccess::Token));
        assert!(matches!(access(&all[1..]), VertexAccess::Json(_)));
        assert!(matches!(access(&all[2..]), VertexAccess::File(path) if path.ends_with("a.json")));
        let VertexAccess::Ambient { gcloud_file, metadata_host } = access(&all[3..]) else { panic!("no setting") };
        assert_eq!(gcloud_file, Some("/gcloud/application_default_credentials.json".into()));
        assert_eq!(metadata_host.as_deref(), Some("h:1"));
        assert!(matches!(access(&["--vertex-api-key=", "--vertex-credentials= "]), VertexAccess::Ambient { .. }));
    }

    #[test]
    fn credentials_that_no_setting_names_go_to_google_only() {
        let check = |url: &str, expected: Option<&str>| {
            let VertexAccess::Ambient { gcloud_file, metadata_host } = access(&["--vertex-base-url", url]) else {
                panic!("no setting names credentials")
            };
            assert_eq!(metadata_host.as_deref(), expected, "{url}");
            assert!(expected.is_some() || gcloud_file.is_none(), "{url}");
        };
        check("", Some(METADATA_HOST));
        check("https://europe-west1-aiplatform.googleapis.com/v1", Some(METADATA_HOST));
        check("https://private.p.googleapis.com:443", Some(METADATA_HOST));
        check("http://private.p.googleapis.com", None);
        check("https://gateway.example/googleapis.com", None);
        check("https://a.googleapis.com@gateway.example/v1", None);
        check("https://gateway.example?.googleapis.com", None);
    }
}
