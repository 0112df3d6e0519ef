//! `holdfast healthcheck`: checks the Holdfast process beside it, for the health checks of containers.
//!
//! It sends one HTTP request to the address in the settings of that process. An API is healthy when it accepts messages,
//! because other containers wait for that. A worker serves no clients, so it is healthy when it is alive.

use std::{
    error::Error,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use reqwest::{Client, Response, StatusCode};
use serde::Deserialize;

use crate::cli::ServerSettings;

/// Longest wait for the response. `/readyz` itself waits up to 2 s for database and Redis.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Arguments of `holdfast healthcheck`.
#[derive(Debug, Clone, Args)]
pub struct HealthcheckArgs {
    /// Process to check.
    #[arg(value_enum, default_value = "api")]
    target: HealthcheckTarget,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum HealthcheckTarget {
    /// The API, also with a worker in the same process, at HOLDFAST_ADDR.
    Api,
    /// A worker, at HOLDFAST_METRICS_ADDR.
    Worker,
}

/// The problem that `/readyz` of an API returns while the API is not ready.
#[derive(Deserialize)]
struct NotReady {
    reason: String,
    detail: String,
}

/// Sends one request and prints the state. Fails with the reason if the process is not healthy.
pub async fn run(args: HealthcheckArgs, settings: &ServerSettings) -> anyhow::Result<()> {
    match args.target {
        HealthcheckTarget::Api => {
            let address = reachable(settings.api.addr, "HOLDFAST_ADDR")?;
            let answer = get(address, "/readyz", "HOLDFAST_ADDR").await?;
            println!("{}", readiness(answer).await?);
        }
        HealthcheckTarget::Worker => {
            let Some(address) = settings.run.metrics_addr else {
                bail!(
                    "a worker can only be checked at HOLDFAST_METRICS_ADDR: set it for the worker and for the check, such as to 127.0.0.1:9090"
                )
            };
            let address = reachable(address, "HOLDFAST_METRICS_ADDR")?;
            let answer = get(address, "/healthz", "HOLDFAST_METRICS_ADDR").await?;
            if answer.status() != StatusCode::OK {
                bail!("{address} responds with {}, so it is no Holdfast", answer.status());
            }
            println!("alive");
        }
    }
    Ok(())
}

/// Returns the address at which this host reaches a listener: loopback, if the listener takes every address. Fails without
/// a port.
fn reachable(address: SocketAddr, variable: &str) -> anyhow::Result<SocketAddr> {
    if address.port() == 0 {
        bail!("{variable} leaves the port open: give it one, such as {}:8080", address.ip());
    }
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(SocketAddr::new(ip, address.port()))
}

async fn get(address: SocketAddr, path: &str, variable: &str) -> anyhow::Result<Response> {
    // The environment's proxy is for model providers, not for this host.
    let client = Client::builder().no_proxy().timeout(TIMEOUT).build().context("could not make an HTTP client")?;
    client.get(format!("http://{address}{path}")).send().await.map_err(|error| {
        let why = if error.is_timeout() {
            format!("no response within {} s", TIMEOUT.as_secs())
        } else {
            innermost(&error).to_string()
        };
        anyhow::anyhow!("could not ask {address} ({variable}): {why}")
    })
}

/// Returns the state of a healthy API; fails with the reason of `/readyz`. An API without Redis counts as healthy, because
/// it accepts messages and its streams continue.
async fn readiness(answer: Response) -> anyhow::Result<&'static str> {
    match answer.status() {
        StatusCode::OK => Ok("ready"),
        StatusCode::SERVICE_UNAVAILABLE => {
            let NotReady { reason, detail } = answer.json().await.context("could not read why it is not ready")?;
            match reason.as_str() {
                "redis" => Ok("works, without Redis"),
                _ => bail!("not ready: {reason}: {detail}"),
            }
        }
        status => bail!("{} responds with {status}, so it is no Holdfast", answer.url()),
    }
}

fn innermost(error: &dyn Error) -> &dyn Error {
    error.source().map_or(error, innermost)
}
