//! `holdfast healthcheck`: the results that a container's health check receives.

use std::{net::TcpListener, process::Command};

use test_servers::{Postgres, free_port};

use crate::support::{Embedded, Holdfast, ScaledOut, until};

/// Returns the exit status and the output.
fn healthcheck(who: Option<&str>, variable: &str, address: &str) -> (Option<i32>, String) {
    verdict(Holdfast::command().arg("healthcheck").args(who).env(variable, address))
}

fn verdict(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    let output_text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(output_text).unwrap().trim_end().to_owned())
}

fn address(base: &str) -> &str {
    base.strip_prefix("http://").unwrap()
}

#[test]
fn an_api_on_every_address_is_asked_on_loopback() {
    for (every, loopback) in [("0.0.0.0:0", "127.0.0.1:"), ("[::]:0", "[::1]:")] {
        let mut holdfast = Embedded::new().with("HOLDFAST_ADDR", every).with("HOLDFAST_DEVELOPMENT", "true").start();
        let base = holdfast.base();
        assert!(base.starts_with(&format!("http://{}", every.trim_end_matches('0'))), "{base}");
        assert_eq!(healthcheck(None, "HOLDFAST_ADDR", address(&base)), (Some(0), "ready".to_owned()));
        holdfast.kill();
        let (status, output_text) = healthcheck(None, "HOLDFAST_ADDR", address(&base));
        assert_eq!(status, Some(1));
        assert!(
            output_text.contains(loopback) && output_text.contains("(HOLDFAST_ADDR): Connection refused"),
            "{output_text}"
        );
    }
}

#[test]
fn a_proxy_in_the_environment_is_not_asked() {
    let mut holdfast = Embedded::new().start();
    let mut command = Holdfast::command();
    command.arg("healthcheck").env("http_proxy", "http://127.0.0.1:1").env("HOLDFAST_ADDR", address(&holdfast.base()));
    assert_eq!(verdict(&mut command), (Some(0), "ready".to_owned()));
}

#[test]
fn an_api_is_well_without_redis_and_not_without_its_database() {
    let mut postgres = Postgres::start();
    let database = postgres.create_database();
    let mut scaled = ScaledOut::on(database.url().to_owned(), Some(database));
    let base = scaled.api().base();
    let mut api = scaled.api();
    assert_eq!(healthcheck(None, "HOLDFAST_ADDR", address(&base)).0, Some(1), "the first API is gone");
    let base = api.base();
    let ask = || healthcheck(None, "HOLDFAST_ADDR", address(&base));
    assert_eq!(ask(), (Some(0), "ready".to_owned()));
    scaled.redis.kill();
    assert_eq!(ask(), (Some(0), "works, without Redis".to_owned()));
    postgres.stop();
    let (status, output_text) = ask();
    assert_eq!(status, Some(1));
    assert!(output_text.starts_with("holdfast: not ready: database: "), "{output_text}");
}

#[test]
fn a_server_that_accepts_and_never_responds_is_not_well() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (status, output_text) = healthcheck(None, "HOLDFAST_ADDR", &silent.local_addr().unwrap().to_string());
    assert_eq!(status, Some(1));
    assert!(output_text.ends_with("(HOLDFAST_ADDR): no response within 3 s"), "{output_text}");
}

#[tokio::test]
async fn a_worker_is_asked_at_its_metrics_address() {
    let scaled = ScaledOut::new();
    let address = format!("0.0.0.0:{}", free_port());
    let ask = || healthcheck(Some("worker"), "HOLDFAST_METRICS_ADDR", &address);
    let mut worker = Holdfast::start(scaled.command("worker").env("HOLDFAST_METRICS_ADDR", &address));
    worker.wait_for_log("worker started");
    let well = until("the worker says that it is alive", async || Some(ask()).filter(|(status, _)| *status == Some(0)));
    assert_eq!(well.await.1, "alive");
    worker.kill();
    let (status, output_text) = ask();
    assert_eq!(status, Some(1));
    assert!(
        output_text.contains("HOLDFAST_METRICS_ADDR") && output_text.contains("Connection refused"),
        "{output_text}"
    );
}

#[test]
fn without_an_address_the_error_names_the_variable_to_set() {
    let (status, output_text) = verdict(Holdfast::command().args(["healthcheck", "worker"]));
    assert_eq!(status, Some(1));
    assert!(output_text.contains("HOLDFAST_METRICS_ADDR: set it"), "{output_text}");
    let (status, output_text) = healthcheck(None, "HOLDFAST_ADDR", "127.0.0.1:0");
    assert_eq!(status, Some(1));
    assert!(output_text.contains("HOLDFAST_ADDR leaves the port open"), "{output_text}");
}
