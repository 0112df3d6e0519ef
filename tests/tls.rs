//! PostgreSQL and Redis over TLS only, with their own authority, checked names, and a client certificate.

use test_servers::{Certificates, Postgres, Redis};

use crate::support::{ScaledOut, refusal};

/// Runs a message to its end.
async fn answers(scaled: &ScaledOut) {
    let (mut api, _worker) = (scaled.api(), scaled.worker());
    let frames = api.client().stream("[tokens=20] hi").await.rest().await;
    assert_eq!(frames.last().unwrap().event, "run.completed");
}

/// Returns the reason with which each role refuses to start with this URL.
fn refusals(scaled: &ScaledOut, variable: &str, url: &str) -> Vec<String> {
    ["api", "worker"].map(|role| refusal(scaled.command(role).env(variable, url))).into()
}

#[tokio::test]
async fn a_postgres_that_asks_for_a_certificate_is_used_and_another_authority_is_refused() {
    let postgres = Postgres::start_with_tls();
    let (url, certificates) = postgres.tls_url();
    let scaled = ScaledOut::on(format!("{url}?sslmode=verify-full&{}", certificates.parameters()), None);
    answers(&scaled).await;
    let strange = Certificates::make();
    let check = |parameters: String| {
        for reason in refusals(&scaled, "DATABASE_URL", &format!("{url}?{parameters}")) {
            assert!(reason.contains("DATABASE_URL"), "{reason}");
        }
    };
    check(format!("sslmode=verify-full&{}", strange.parameters()));
    check(format!("sslmode=verify-full&sslrootcert={}", certificates.path("authority.pem").display()));
    check("sslmode=disable".to_owned());
}

#[tokio::test]
async fn a_redis_that_asks_for_a_certificate_is_used_and_another_authority_is_refused() {
    let redis = Redis::start_with_tls();
    let (url, certificates) = redis.tls_url();
    let scaled = ScaledOut::new().with("REDIS_URL", format!("{url}?{}", certificates.parameters()));
    answers(&scaled).await;
    let strange = Certificates::make();
    let scaled = ScaledOut::new();
    let check = |parameters: String| {
        for reason in refusals(&scaled, "REDIS_URL", &format!("{url}?{parameters}")) {
            assert!(reason.contains("REDIS_URL"), "{reason}");
        }
    };
    check(strange.parameters());
    check(format!("sslrootcert={}", certificates.path("authority.pem").display()));
    check("sslrootcert=/nowhere.pem".to_owned());
}
