//! A server that issues access tokens by Google's protocols: the JWT bearer grant, whose signature and claims it checks,
//! the refresh token grant, and the metadata server of a machine.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};

use super::{RecordedRequest, provider::read_request};

const EMAIL: &str = "holdfast@a-project.iam.gserviceaccount.com";
const KEY: &str = include_str!("../../../../tests/keys/rsa.pem");
const PUBLIC_KEY: &[u8] = include_bytes!("../../../../tests/keys/rsa.pub.pem");
const UNKNOWN_KEY: &str = include_str!("../../../../tests/keys/rsa_unknown.pem");

/// The answer of the server to one request for a token.
#[derive(Clone)]
pub enum TokenAnswer {
    /// Issues a token for this many seconds if the credentials are right.
    Grant(u64),
    Fail(u16, &'static str),
    Hang,
}

struct TokenIssuer {
    url: String,
    /// The answers to the first requests; the last one repeats.
    answers: VecDeque<TokenAnswer>,
    requests: Vec<RecordedRequest>,
}

pub struct GoogleServer {
    /// `http://127.0.0.1:<port>`.
    pub url: String,
    issuer: Arc<Mutex<TokenIssuer>>,
    asked: watch::Receiver<usize>,
}

impl GoogleServer {
    pub async fn start(answers: &[TokenAnswer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let issuer = TokenIssuer { url: url.clone(), answers: answers.iter().cloned().collect(), requests: Vec::new() };
        let issuer = Arc::new(Mutex::new(issuer));
        let (asking, asked) = watch::channel(0);
        let shared = issuer.clone();
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (issuer, asking) = (shared.clone(), asking.clone());
                tokio::spawn(async move {
                    // An error here only means that the client has gone, which it may.
                    let _ = serve(socket, &issuer).await;
                    asking.send_modify(|count| *count += 1);
                });
            }
        });
        Self { url, issuer, asked }
    }

    /// Returns the requests for tokens.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.issuer.lock().unwrap().requests.clone()
    }

    /// Waits until the server has answered this many requests.
    pub async fn wait_for_answers(&mut self, count: usize) {
        let waiting = self.asked.wait_for(|asked| *asked >= count);
        timeout(Duration::from_secs(10), waiting).await.expect("answers within 10 s").unwrap();
    }

    /// Returns the key of a service account, as the Cloud console makes it.
    pub fn service_account(&self) -> String {
        self.service_account_with(KEY)
    }

    /// Returns such a key that the server does not know.
    pub fn unknown_service_account(&self) -> String {
        self.service_account_with(UNKNOWN_KEY)
    }

    fn service_account_with(&self, key: &str) -> String {
        json!({
            "type": "service_account",
            "project_id": "its-project",
            "private_key_id": "key-1",
            "private_key": key,
            "client_email": EMAIL,
            "token_uri": format!("{}/token", self.url),
        })
        .to_string()
    }

    /// Returns the file of `gcloud auth application-default login`.
    pub fn user(&self) -> String {
        json!({
            "type": "authorized_user",
            "client_id": "a-client",
            "client_secret": "a secret & more",
            "refresh_token": "1//a-refresh-token",
            "quota_project_id": "their-project",
            "token_uri": format!("{}/token", self.url),
        })
        .to_string()
    }

    pub fn host(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }
}

async fn serve(socket: TcpStream, issuer: &Mutex<TokenIssuer>) -> std::io::Result<()> {
    let mut socket = BufReader::new(socket);
    let request = read_request(&mut socket).await?;
    let answer = issuer.lock().unwrap().answer(request);
    let Some((status, content_type, body)) = answer else {
        return socket.read_to_end(&mut Vec::new()).await.map(drop);
    };
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\
         metadata-flavor: Google\r\nconnection: close\r\n\r\n",
        body.len(),
    );
    socket.write_all(format!("{head}{body}").as_bytes()).await?;
    socket.shutdown().await
}

impl TokenIssuer {
    /// Returns status, type and body, or `None` for silence.
    fn answer(&mut self, request: RecordedRequest) -> Option<(u16, &'static str, String)> {
        let line = request.head.lines().next().unwrap_or_default().to_owned();
        if line.starts_with("GET /computeMetadata/") && !request.head.contains("metadata-flavor: google") {
            return Some((403, "application/json", "Missing Metadata-Flavor:Google header.".to_owned()));
        }
        if line == "GET /computeMetadata/v1/project/project-id HTTP/1.1" {
            return Some((200, "application/text", "the-machines-project".to_owned()));
        }
        self.requests.push(request);
        let answer = if self.answers.len() > 1 { self.answers.pop_front() } else { self.answers.front().cloned() };
        match answer.unwrap_or(TokenAnswer::Grant(3600)) {
            TokenAnswer::Hang => None,
            TokenAnswer::Fail(status, body) => Some((status, "application/json", body.to_owned())),
            TokenAnswer::Grant(seconds) => Some(match self.problem(&line) {
                Some(problem) => {
                    let body = json!({"error": "invalid_grant", "error_description": problem});
                    (400, "application/json", body.to_string())
                }
                None => {
                    let token = format!("ya29.token-{}", self.requests.len());
                    let body = json!({"access_token": token, "expires_in": seconds, "token_type": "Bearer"});
                    (200, "application/json", body.to_string())
                }
            }),
        }
    }

    /// Returns what is wrong with the newest request for a token.
    fn problem(&self, line: &str) -> Option<String> {
        let request = self.requests.last().unwrap();
        if line == "GET /computeMetadata/v1/instance/service-accounts/default/token HTTP/1.1" {
            return None;
        }
        if line != "POST /token HTTP/1.1" || !request.head.contains("application/x-www-form-urlencoded") {
            return Some(format!("no request for a token: {line}"));
        }
        let form = Url::parse(&format!("http://form/?{}", request.text)).unwrap();
        let form: HashMap<_, _> = form.query_pairs().into_owned().collect();
        let field = |name: &str| form.get(name).map_or("", String::as_str);
        match field("grant_type") {
            "urn:ietf:params:oauth:grant-type:jwt-bearer" => self.problem_of_assertion(field("assertion")),
            "refresh_token" => {
                let expected = [
                    ("client_id", "a-client"),
                    ("client_secret", "a secret & more"),
                    ("refresh_token", "1//a-refresh-token"),
                ];
                expected.iter().find(|(name, value)| field(name) != *value).map(|(name, _)| format!("Bad {name}"))
            }
            other => Some(format!("Bad grant_type {other:?}")),
        }
    }

    fn problem_of_assertion(&self, assertion: &str) -> Option<String> {
        let mut validation = Validation::new(Algorithm::RS256);
        validation.set_audience(&[format!("{}/token", self.url)]);
        validation.set_issuer(&[EMAIL]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        let key = DecodingKey::from_rsa_pem(PUBLIC_KEY).unwrap();
        let Ok(decoded) = decode::<Value>(assertion, &key, &validation) else {
            return Some("Invalid JWT Signature.".to_owned());
        };
        let claims = decoded.claims;
        let lasts = claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap_or(0);
        if lasts > 3600 {
            return Some("Invalid JWT: Token must be a short-lived token (60 minutes)".to_owned());
        }
        if claims["scope"] != "https://www.googleapis.com/auth/cloud-platform" {
            return Some("Invalid scope".to_owned());
        }
        let kid = decode_header(assertion).unwrap().kid;
        (kid.as_deref() != Some("key-1")).then(|| format!("Bad kid {kid:?}"))
    }
}
