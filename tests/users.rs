//! Authentication: JWTs, anonymous users and operators, and the owner of data.

use jsonwebtoken::Algorithm;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{
        Client, Deployment, Embedded, ErrorResponse, Holdfast, answer, fold, refusal,
        tokens::{EC, ED25519, Keys, RSA, SECRET, claims, now, sign_with, token},
    },
};

in_both_modes!(data_belongs_to_the_user_that_the_token_names, a_secret_identifies_an_anonymous_user,);

in_either_mode!(
    only_an_operators_token_writes_agents,
    a_page_of_another_origin_changes_nothing_with_the_cookie,
    only_operators_see_an_agents_instructions_in_a_trace,
);

fn with_authentication() -> Embedded {
    Embedded::new().with("HOLDFAST_JWT_KEY", SECRET)
}

fn user_named(client: &Client, subject: &str) -> Client {
    client.token(&token(&claims(subject, json!({}))))
}

async fn me(client: &Client) -> Value {
    client.get("/v1/users/me").await.unwrap()
}

async fn failure_of(client: &Client) -> ErrorResponse {
    client.get("/v1/users/me").await.expect_err("it was admitted")
}

fn count(page: &Value) -> usize {
    page["items"].as_array().unwrap().len()
}

/// Returns the secret in the cookie of a response.
fn cookie(response: &Response) -> Option<String> {
    let cookie = response.headers().get("set-cookie")?.to_str().unwrap();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=31536000");
    Some(pair.strip_prefix("__Host-holdfast_user=").unwrap().to_owned())
}

async fn data_belongs_to_the_user_that_the_token_names(mut deployment: Deployment) {
    deployment = deployment.with("HOLDFAST_JWT_KEY", SECRET);
    let client = deployment.client();
    let (ann, bob) = (user_named(&client, "ann"), user_named(&client, "bob"));
    let expected = json!({"user": "ann", "kind": "jwt", "operator": false, "default_session": "session_ann"});
    assert_eq!(me(&ann).await, expected);
    let submission = ann.start("[tokens=3] hi").await;
    let run = submission["run"]["id"].as_str().unwrap();
    assert_eq!(ann.wait_for_run(run).await["status"], "completed");
    assert_eq!(bob.get(&format!("/v1/runs/{run}")).await.unwrap_err().code, "run_not_found");
    // Another token of a user identifies the same user.
    let again = client.token(&token(&claims("ann", json!({"exp": now() + 60, "jti": "2"}))));
    assert_eq!(count(&again.get("/v1/runs").await.unwrap()), 1);
    assert_eq!(count(&bob.get("/v1/runs").await.unwrap()), 0);
    assert_eq!(count(&client.get("/v1/runs").await.unwrap()), 0, "another user sees nothing");
}

async fn a_secret_identifies_an_anonymous_user(mut deployment: Deployment) {
    deployment = deployment.with("HOLDFAST_JWT_KEY", SECRET);
    let client = deployment.client();
    let post = client.request(Method::POST, "/v1/runs").json(&json!({"input": "[tokens=3] hi"}));
    let response = post.header("accept", "text/event-stream").send().await.unwrap();
    let secret = cookie(&response).expect("a stream gives new callers their identity");
    assert_eq!(secret.len(), 43);
    let run = response.headers()["x-run-id"].to_str().unwrap().to_owned();

    let mut users = Vec::new();
    let with_cookie =
        |path: &str| client.request(Method::GET, path).header("cookie", format!("a=b; __Host-holdfast_user={secret}"));
    users.push(answer(with_cookie("/v1/users/me")).await.unwrap());
    users.push(me(&client.token(&secret)).await);
    users.push(answer(client.request(Method::GET, "/v1/users/me").header("x-api-key", &secret)).await.unwrap());
    let user = users[0]["user"].as_str().unwrap();
    assert!(user.starts_with("anonymous_") && !user.contains(&secret[..8]), "{user}");
    assert_eq!((users[0]["kind"].as_str(), users[0]["operator"].as_bool()), (Some("anonymous"), Some(false)));
    assert!(users.iter().all(|other| *other == users[0]), "{users:?}");
    let run_seen = answer(with_cookie(&format!("/v1/runs/{run}"))).await.unwrap();
    assert_eq!(run_seen["id"].as_str(), Some(&*run));
    assert_eq!(count(&client.token(&secret).get("/v1/conversations").await.unwrap()), 1);

    let made = client.post("/v1/users/anonymous", json!({})).await.unwrap();
    let other = client.token(made["token"].as_str().unwrap());
    assert_eq!(me(&other).await["user"], made["user"]);
    assert_eq!(other.get(&format!("/v1/runs/{run}")).await.unwrap_err().code, "run_not_found");
    assert_eq!(count(&other.get("/v1/conversations").await.unwrap()), 0);
    // A token with this text as subject is another user, if it is valid at all.
    let posing = client.token(&token(&claims(user, json!({}))));
    assert_eq!(failure_of(&posing).await.code, "invalid_token");
}

async fn only_operators_see_an_agents_instructions_in_a_trace(mut deployment: Deployment) {
    deployment = deployment.with("HOLDFAST_JWT_KEY", SECRET);
    let client = deployment.client();
    let operator = client.token(&token(&claims("olga", json!({"role": "operator"}))));
    let agent = operator.post("/v1/agents", json!({"name": "helper", "system_prompt": "private"})).await.unwrap();
    for (client, expected) in [
        (&operator, json!({"role": "system", "content": "private"})),
        (&user_named(&client, "ann"), json!({"role": "system", "content": "", "redacted": true})),
    ] {
        let submission =
            client.post("/v1/runs", json!({"agent_id": agent["id"], "input": "[tokens=1] hi"})).await.unwrap();
        let run_id = submission["run"]["id"].as_str().unwrap();
        client.wait_for_run(run_id).await;
        let trace = client.get(&format!("/v1/runs/{run_id}/messages")).await.unwrap();
        let path = format!("/v1/conversations/{}/checkpoints", submission["conversation"]["id"].as_str().unwrap());
        let newest = client.get(&path).await.unwrap()["items"][0]["id"].as_str().unwrap().to_owned();
        let checkpoint = client.get(&format!("{path}/{newest}")).await.unwrap();
        for first in [&trace["items"][0], &checkpoint["trace"][0]] {
            let fields: Vec<_> = expected.as_object().unwrap().keys().map(|field| &first[field]).collect();
            assert_eq!(fields, expected.as_object().unwrap().values().collect::<Vec<_>>(), "{first}");
        }
        assert_eq!((&trace["items"][1]["role"], &trace["items"][1]["position"]), (&json!("user"), &json!(2)));
    }
}

async fn only_an_operators_token_writes_agents(mut deployment: Deployment) {
    deployment = deployment.with("HOLDFAST_JWT_KEY", SECRET);
    let client = deployment.client();
    let with_role = |role: Value| client.token(&token(&claims("ann", json!({ "role": role }))));
    let operator = with_role(json!("operator"));
    assert_eq!(me(&operator).await["operator"], true);
    let agent = operator.post("/v1/agents", json!({"name": "helper", "system_prompt": "private"})).await.unwrap();
    let path = format!("/v1/agents/{}", agent["id"].as_str().unwrap());
    for client in
        [client.clone(), user_named(&client, "ann"), with_role(json!("user")), with_role(json!({"operator": true}))]
    {
        let refused = [
            client.post("/v1/agents", json!({"name": "mine"})).await,
            client.post("/v1/agents/check", json!({"name": "mine"})).await,
            client.patch(&path, json!({"name": "mine"})).await,
            client.delete(&path).await,
            client.get("/v1/profiles").await,
            answer(client.request(Method::PUT, "/v1/profiles").json(&json!({}))).await,
        ];
        for failure in refused.map(Result::unwrap_err) {
            assert_eq!((failure.status, failure.code.as_str()), (403, "operator_needed"));
        }
        let (one, list) = (client.get(&path).await.unwrap(), client.get("/v1/agents").await.unwrap());
        assert_eq!(
            (&one["name"], &one["system_prompt"]),
            (&json!("helper"), &Value::Null),
            "every caller may read its own identity"
        );
        let own = list["items"].as_array().unwrap().iter().filter(|agent| agent["origin"] != "builtin");
        assert!(own.eq([&one]));
    }
    with_role(json!(["user", "operator"])).delete(&path).await.unwrap();
}

#[tokio::test]
async fn an_invalid_token_is_refused_with_the_reason() {
    let embedded = with_authentication();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let check = async |token: &str, reason: &str| {
        let response = client.token(token).request(Method::GET, "/v1/users/me").send().await.unwrap();
        let challenge = response.headers()["www-authenticate"].to_str().unwrap();
        assert_eq!((response.status().as_u16(), challenge), (401, "Bearer"));
        let failure = failure_of(&client.token(token)).await;
        let detail = failure.body["detail"].as_str().unwrap();
        assert_eq!(failure.code, "invalid_token");
        assert!(detail.contains(reason), "{reason}: {detail}");
        let parts = token.split('.').filter(|part| part.len() > 8);
        assert!(parts.into_iter().all(|part| !detail.contains(part)), "{detail}");
    };
    let good = claims("ann", json!({}));
    me(&client.token(&token(&good))).await;
    check(&token(&claims("ann", json!({"exp": now() - 10}))), "has expired").await;
    check(&token(&claims("ann", json!({"nbf": now() + 60}))), "not valid yet").await;
    check(&sign_with("another secret", Algorithm::HS256, &good), "signature is wrong").await;
    check(&sign_with(SECRET, Algorithm::HS384, &good), "algorithm (alg) is not HS256").await;
    check(&RSA.sign(&good), "algorithm (alg) is not HS256").await;
    check(&token(&claims("ann", json!({"exp": null}))), "claim exp is missing").await;
    check(&token(&claims("ann", json!({"exp": "tomorrow"}))), "claim exp is missing, or of the wrong type").await;
    check(&token(&claims("ann", json!({"sub": null}))), "claim sub is missing").await;
    check(&token(&claims("ann", json!({"sub": 7}))), "claim sub is missing, or of the wrong type").await;
    check(&token(&claims("", json!({}))), "1 to 128 characters").await;
    check(&token(&claims(&"u".repeat(129), json!({}))), "1 to 128 characters").await;
    check(&token(&claims("a\nb", json!({}))), "control characters").await;
    check(&token(&claims("anonymous_0", json!({}))), "another kind").await;
    // The header is `{"alg":"none"}`, with valid claims and without a signature.
    let payload = token(&good).split('.').nth(1).unwrap().to_owned();
    check(&format!("eyJhbGciOiJub25lIn0.{payload}."), "it is no JWT").await;
    check("a.b.c", "it is no JWT").await;
    check(&token(&good).replacen('.', "", 1), "it is no JWT").await;
    check("sk-no-key-at-all", "neither a JWT nor").await;
    let edge = [("ann".repeat(42) + "an", 128), ("🦀".repeat(128), 128)];
    for (subject, chars) in edge {
        let user = me(&user_named(&client, &subject)).await["user"].as_str().unwrap().chars().count();
        assert_eq!(user, chars);
    }
    me(&client.token(&token(&claims("ann", json!({"exp": now() - 2}))))).await;
    assert!(!holdfast.log_so_far().contains(&payload), "tokens are not logged");
}

#[tokio::test]
async fn a_stream_ends_when_its_token_expires_and_resumes_with_a_new_one() {
    let embedded = with_authentication();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    // The server accepts the token for a second or two, because clocks may differ by 5 s.
    let short = client.token(&token(&claims("ann", json!({"exp": now() - 4}))));
    let busy = short.stream("[tokens=150] [delay=20] hi").await;
    let silent = short.stream("[tokens=2] [delay=20000] hi").await;
    let run = busy.run_id.clone();
    let ((mut frames, last_words), (_, also)) = tokio::join!(busy.until_broken(), silent.until_broken());
    for words in [last_words, also] {
        assert!(words.ends_with(": the token has expired; come back with a new one\n"), "{words:?}");
    }
    assert!(failure_of(&short).await.body["detail"].as_str().unwrap().contains("has expired"));
    let ann = user_named(&client, "ann");
    let cursor = frames.last().unwrap().id.clone();
    frames.extend(ann.rest_after(&run, &cursor).await);
    assert_eq!(frames.iter().filter(|frame| frame.event == "message.delta").count(), 150);
    assert_eq!(ann.run(&run).await["output_message"]["content"], fold(&frames));
}

#[tokio::test]
async fn a_public_key_lets_in_its_own_algorithm_only() {
    for keys in [RSA, EC, ED25519] {
        let one_line = keys.public.replace('\n', "\\n");
        let embedded = Embedded::new().with("HOLDFAST_JWT_KEY", one_line).with("HOLDFAST_JWT_AUDIENCE", "holdfast");
        let mut holdfast = embedded.start();
        let client = holdfast.client();
        let good = claims("ann", json!({"aud": "holdfast"}));
        assert_eq!(me(&client.token(&keys.sign(&good))).await["user"], "ann");
        // A known attack signs with the public key as an HMAC secret.
        let tricks = [keys.public, keys.public.trim(), &keys.public.replace('\n', "\\n")];
        let mut forged: Vec<String> = tricks.iter().map(|text| sign_with(text, Algorithm::HS256, &good)).collect();
        let others: [Keys; 3] = [RSA, EC, ED25519];
        forged.extend(others.iter().filter(|other| other.algorithm != keys.algorithm).map(|other| other.sign(&good)));
        for token in forged {
            let detail = failure_of(&client.token(&token)).await.body["detail"].as_str().unwrap().to_owned();
            assert!(detail.contains(&format!("algorithm (alg) is not {:?}", keys.algorithm)), "{detail}");
        }
        let mut unsigned = keys.sign(&good);
        unsigned.truncate(unsigned.len() - 4);
        assert_eq!(failure_of(&client.token(&unsigned)).await.code, "invalid_token");
    }
}

#[tokio::test]
async fn audience_and_issuer_are_checked_where_they_are_configured() {
    let embedded = with_authentication()
        .with("HOLDFAST_JWT_AUDIENCE", "holdfast")
        .with("HOLDFAST_JWT_ISSUERS", "https://accounts.google.com=google,https://own.example=")
        .with("HOLDFAST_JWT_ROLE_CLAIM", "https://own.example/role");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let from = |issuer: &str, subject: &str, more: Value| {
        let mut all = json!({"iss": issuer, "aud": "holdfast"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.token(&token(&claims(subject, all)))
    };
    let (google, own) = ("https://accounts.google.com", "https://own.example");
    assert_eq!(me(&from(google, "12345", json!({}))).await["user"], "google_12345");
    assert_eq!(me(&from(own, "ann", json!({}))).await["user"], "ann");
    assert_eq!(me(&from(own, "ann", json!({"aud": ["x", "holdfast"]}))).await["user"], "ann");
    let operator = from(own, "ann", json!({"https://own.example/role": "operator", "role": "user"}));
    assert_eq!(me(&operator).await["operator"], true);
    assert_eq!(me(&from(own, "ann", json!({"role": "operator"}))).await["operator"], false);
    for (client, reason) in [
        (from(own, "google_12345", json!({})), "another kind"),
        (from("https://evil.example", "ann", json!({})), "issuer (iss)"),
        (from(own, "ann", json!({"iss": [own, google]})), "issuer (iss)"),
        (from(own, "ann", json!({"iss": null})), "claim iss is missing"),
        (from(own, "ann", json!({"aud": "other"})), "audience (aud)"),
        (from(own, "ann", json!({"aud": null})), "claim aud is missing"),
    ] {
        let failure = failure_of(&client).await;
        let detail = failure.body["detail"].as_str().unwrap();
        assert!(failure.code == "invalid_token" && detail.contains(reason), "{reason}: {detail}");
    }
}

#[tokio::test]
async fn a_key_refuses_development_identities_and_answers_any_host_name() {
    let embedded = with_authentication();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    for client in [client.user("ann"), user_named(&client, "ann").user("ann")] {
        let failure = failure_of(&client).await;
        assert_eq!((failure.status, failure.code.as_str()), (401, "development_identity"));
    }
    let elsewhere = client.request(Method::GET, "/v1/users/me").header("host", "chat.example.org");
    assert_eq!(answer(elsewhere).await.unwrap()["kind"], "anonymous");
    assert!(client.request(Method::GET, "/").send().await.unwrap().status().is_success());
}

#[tokio::test]
async fn without_anonymous_users_every_caller_needs_a_token() {
    let embedded = with_authentication().with("HOLDFAST_ANONYMOUS", "false");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let secret = "s".repeat(43);
    let cookie = format!("__Host-holdfast_user={secret}");
    for request in [
        client.request(Method::GET, "/v1/runs"),
        client.request(Method::GET, "/v1/runs").header("cookie", cookie),
        client.token(&secret).request(Method::GET, "/v1/runs"),
        client.request(Method::POST, "/v1/runs").json(&json!({"input": "x"})),
    ] {
        let failure = answer(request).await.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (401, "unauthenticated"));
    }
    assert_eq!(client.post("/v1/users/anonymous", json!({})).await.unwrap_err().code, "no_anonymous_users");
    user_named(&client, "ann").start("[tokens=1]").await;
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        assert_eq!(client.request(Method::GET, path).send().await.unwrap().status(), 200, "{path}");
    }
}

#[tokio::test]
async fn only_new_callers_that_create_something_receive_a_cookie() {
    let embedded = with_authentication();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let made = json!({"title": "mine"});
    let post = |client: &Client| client.request(Method::POST, "/v1/conversations").json(&made);
    let secret = cookie(&post(&client).send().await.unwrap()).unwrap();
    let known_cookie = format!("__Host-holdfast_user={secret}");
    for request in [
        client.request(Method::GET, "/v1/runs"),
        client.request(Method::HEAD, "/v1/runs"),
        post(&client).header("cookie", known_cookie),
        post(&client.token(&secret)),
        post(&user_named(&client, "ann")),
        client.request(Method::POST, "/v1/conversations").json(&json!({"title": ""})),
        post(&client).header("sec-fetch-site", "cross-site"),
        client.request(Method::POST, "/v1/users/anonymous").header("sec-fetch-site", "cross-site"),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(cookie(&response), None, "{}", response.url());
    }
    let response = client.request(Method::POST, "/v1/users/anonymous").send().await.unwrap();
    let secret = cookie(&response).unwrap();
    assert_eq!(response.json::<Value>().await.unwrap()["token"], secret);
    // The user owns the stored message, although its run failed before its first output.
    let failing = json!({"message": "[tokens=0] [fail]"});
    let failed_response = client.request(Method::POST, "/api/chat/stream").json(&failing).send().await.unwrap();
    assert_eq!(failed_response.status(), 200);
    assert!(cookie(&failed_response).is_some());
    // The server ignores an invalid cookie.
    let broken = post(&client).header("cookie", "__Host-holdfast_user=short").send().await.unwrap();
    assert!(cookie(&broken).is_some());
}

/// Headers that a browser sends for pages of other origins.
const FOREIGN: [(&str, &str); 5] = [
    ("sec-fetch-site", "same-site"),
    ("sec-fetch-site", "cross-site"),
    ("origin", "null"),
    ("origin", "https://other.example.org"),
    ("origin", "http://127.0.0.1"),
];

async fn a_page_of_another_origin_changes_nothing_with_the_cookie(mut deployment: Deployment) {
    deployment = deployment.with("HOLDFAST_JWT_KEY", SECRET).with("HOLDFAST_CORS_ORIGINS", "https://other.example.org");
    let client = deployment.client();
    let made = client.request(Method::POST, "/v1/users/anonymous").send().await.unwrap();
    let secret = cookie(&made).unwrap();
    let by_cookie = |method: Method, path: &str| {
        client.request(method, path).header("cookie", format!("__Host-holdfast_user={secret}"))
    };
    answer(by_cookie(Method::POST, "/v1/conversations").json(&json!({"title": "mine"}))).await.unwrap();
    let token = token(&claims("eve", json!({})));
    for (name, value) in FOREIGN {
        let requests = [
            by_cookie(Method::POST, "/v1/conversations").json(&json!({})),
            by_cookie(Method::POST, "/v1/runs").json(&json!({"input": "[tokens=1]"})),
            by_cookie(Method::PUT, "/v1/users/me/profile").json(&json!({"profile": "x"})),
            by_cookie(Method::POST, "/mcp/rpc").json(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})),
            by_cookie(Method::POST, "/v1/users/anonymous"),
            by_cookie(Method::DELETE, "/v1/users/me"),
            by_cookie(Method::POST, "/v1/users/me/claim").bearer_auth(&token),
        ];
        for request in requests {
            let response = request.header(name, value).send().await.unwrap();
            assert_eq!(cookie(&response), None);
            let path = response.url().path().to_owned();
            assert_eq!(response.status(), 403, "{name}: {value} {path}");
            assert_eq!(response.json::<Value>().await.unwrap()["code"], "foreign_origin", "{path}");
        }
        let read = answer(by_cookie(Method::GET, "/v1/conversations").header(name, value)).await.unwrap();
        assert_eq!(count(&read), 1, "{name}: {value}");
        let named = client.token(&secret).request(Method::PUT, "/v1/users/me/profile").header(name, value);
        answer(named.json(&json!({"profile": "x"}))).await.unwrap();
        let stranger = client.request(Method::POST, "/v1/users/anonymous").header(name, value).send().await.unwrap();
        assert_eq!(cookie(&stranger), None, "the browser may have another cookie: {name}: {value}");
    }
    let own = by_cookie(Method::PUT, "/v1/users/me/profile").header("origin", client.base());
    answer(own.header("sec-fetch-site", "same-origin").json(&json!({"profile": "y"}))).await.unwrap();
    answer(by_cookie(Method::PUT, "/v1/users/me/profile").json(&json!({"profile": "z"}))).await.unwrap();
}

#[tokio::test]
async fn a_listed_origin_uses_the_cookie_where_credentials_are_allowed() {
    let embedded = with_authentication()
        .with("HOLDFAST_CORS_ORIGINS", "https://front.example")
        .with("HOLDFAST_CORS_CREDENTIALS", "true");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let secret = cookie(&client.request(Method::POST, "/v1/users/anonymous").send().await.unwrap()).unwrap();
    for (origin, status) in [("https://front.example", 201), ("https://other.example", 403)] {
        let request = client.request(Method::POST, "/v1/conversations").header("origin", origin);
        let request = request.header("cookie", format!("__Host-holdfast_user={secret}"));
        let response = request.header("sec-fetch-site", "same-site").json(&json!({})).send().await.unwrap();
        assert_eq!(response.status(), status, "{origin}");
    }
}

#[tokio::test]
async fn no_other_user_replaces_an_anonymous_one() {
    let embedded = with_authentication();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let made = client.request(Method::POST, "/v1/users/anonymous").send().await.unwrap();
    assert_eq!(made.status(), 201);
    let secret = cookie(&made).unwrap();
    let user = made.json::<Value>().await.unwrap()["user"].clone();
    let again = || {
        let request = client.request(Method::POST, "/v1/users/anonymous");
        request.header("cookie", format!("__Host-holdfast_user={secret}"))
    };
    for request in [again(), again().bearer_auth(token(&claims("ann", json!({}))))] {
        let response = request.send().await.unwrap();
        assert_eq!((response.status().as_u16(), cookie(&response)), (200, None));
        assert_eq!(response.json::<Value>().await.unwrap(), json!({"user": user}), "scripts do not get the secret");
    }
}

#[test]
fn an_empty_key_admits_no_caller() {
    for variable in ["HOLDFAST_JWT_KEY", "HOLDFAST_JWT_KEY_FILE"] {
        let embedded = Embedded::new().with(variable, "");
        let sentence = refusal(&mut embedded.command());
        assert!(sentence.contains(&format!("{variable} is empty")), "{sentence}");
    }
}

#[tokio::test]
async fn in_development_mode_every_name_is_believed_and_keys_are_ignored() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let developer = |user: &str, session: &str| json!({"user": user, "kind": "developer", "operator": true, "default_session": session});
    assert_eq!(me(&client).await, developer("debug_user", "debug_session"));
    assert_eq!(me(&client.user("ann")).await, developer("ann", "session_ann"));
    assert_eq!(me(&client.token("sk-anything")).await, developer("debug_user", "debug_session"));
    let dummy = client.request(Method::GET, "/v1/users/me").header("x-api-key", "anything");
    assert_eq!(answer(dummy).await.unwrap()["user"], "debug_user");
    let response = client.request(Method::POST, "/v1/conversations").json(&json!({})).send().await.unwrap();
    assert_eq!(cookie(&response), None);
    let failure = client.post("/v1/users/anonymous", json!({})).await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (409, "no_anonymous_users"));
}

#[tokio::test]
async fn a_session_is_named_by_its_header() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let ask = |session: &str| client.user("ann").request(Method::GET, "/v1/users/me").header("x-session-id", session);
    assert_eq!(answer(ask("tab 1")).await.unwrap()["default_session"], "tab 1");
    assert_eq!(answer(ask(&"ü".repeat(128))).await.unwrap()["default_session"], "ü".repeat(128));
    for session in ["", "  ", &"s".repeat(129), "a\tb", "\u{200b}\u{202e}"] {
        let failure = answer(ask(session)).await.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (400, "invalid_session"), "{session:?}");
    }
}

#[test]
fn settings_that_would_admit_every_caller_are_refused_by_name() {
    let check = |settings: &[(&str, &str)], expected: &[&str]| {
        let mut command = Holdfast::command();
        command.env("HOLDFAST_DATA_DIR", "/dev/null/holdfast").envs(settings.iter().copied());
        let message = refusal(&mut command);
        assert!(expected.iter().all(|part| message.contains(part)), "{settings:?}: {message}");
        assert!(!message.contains("MII"), "the key is quoted: {message}");
    };
    let key = ("HOLDFAST_JWT_KEY", SECRET);
    check(
        &[("HOLDFAST_JWT_KEY", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----")],
        &["HOLDFAST_JWT_KEY", "PEM"],
    );
    check(&[("HOLDFAST_JWT_KEY", RSA.private)], &["HOLDFAST_JWT_KEY", "private"]);
    check(&[("HOLDFAST_JWT_KEY", RSA.public)], &["HOLDFAST_JWT_AUDIENCE", "is required with a public key"]);
    check(&[("HOLDFAST_JWT_KEY", &SECRET[..31])], &["HOLDFAST_JWT_KEY", "has 31 bytes", "at least 32"]);
    check(&[("HOLDFAST_ADDR", "0.0.0.0:0")], &["HOLDFAST_ADDR", "HOLDFAST_JWT_KEY", "HOLDFAST_DEVELOPMENT=true"]);
    check(&[key, ("HOLDFAST_DEVELOPMENT", "true")], &["HOLDFAST_DEVELOPMENT", "HOLDFAST_JWT_KEY"]);
    check(
        &[("HOLDFAST_CORS_ORIGINS", "https://*.example.org")],
        &["HOLDFAST_CORS_ORIGINS", "https://chat.example.org"],
    );
    check(&[("HOLDFAST_JWT_AUDIENCE", "x")], &["HOLDFAST_JWT_KEY", "HOLDFAST_JWT_AUDIENCE"]);
    check(&[("HOLDFAST_ANONYMOUS", "false")], &["HOLDFAST_JWT_KEY", "HOLDFAST_ANONYMOUS"]);
    check(&[key, ("HOLDFAST_ANONYMOUS", "perhaps")], &["HOLDFAST_ANONYMOUS", "true, false"]);
    check(&[key, ("HOLDFAST_JWT_ISSUERS", "google")], &["HOLDFAST_JWT_ISSUERS", "https://accounts.google.com=google"]);
    check(&[key, ("HOLDFAST_JWT_ISSUERS", "a=x,b=x_y")], &["HOLDFAST_JWT_ISSUERS", "told apart"]);
    check(&[("CHAT_RATE_LIMIT", "plenty")], &["CHAT_RATE_LIMIT", "10/minute", "plenty"]);
    check(&[("HOLDFAST_TRUSTED_PROXIES", "10.0.0.1,proxy")], &["HOLDFAST_TRUSTED_PROXIES", "10.1.0.0/16", "\"proxy\""]);
}

#[test]
fn a_key_opens_every_address_and_development_mode_there_is_warned_about() {
    let everywhere = ("HOLDFAST_ADDR", "0.0.0.0:0");
    let mut keyed = with_authentication().with(everywhere.0, everywhere.1).start();
    keyed.wait_for_log("users: as their JWTs say, or anonymous");
    assert!(!keyed.log_so_far().contains("can be reached from other machines"));
    let open = Embedded::new().with(everywhere.0, everywhere.1).with("HOLDFAST_DEVELOPMENT", "true");
    open.start().wait_for_log("can be reached from other machines");
}
