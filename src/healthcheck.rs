//! `holdfast healthcheck`: whether the Holdfast beside it is well, for the health checks of containers.
//!
//! It asks as anybody could, over HTTP, at the address that the same settings name. Of an API it wants to know whether
//! messages are taken, because others wait for that; of a worker, which answers nobody, whether it is alive.

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

/// Longest wait for the answer. `/readyz` gives database and Redis 2 s.
const TIMEOUT: Duration = Duration::from_secs(3);

/// What is asked.
#[derive(Debug, Clone, Args)]
pub struct HealthcheckArgs {
    /// Who is asked.
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

/// What `/readyz` says of an API that is not ready.
#[derive(Deserialize)]
struct NotReady {
    reason: String,
    detail: String,
}

/// Asks once; the error is the sentence that says what is wrong.
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
                    "a worker can only be asked where HOLDFAST_METRICS_ADDR says: set it for both, such as to 127.0.0.1:9090"
                )
            };
            let address = reachable(address, "HOLDFAST_METRICS_ADDR")?;
            let answer = get(address, "/healthz", "HOLDFAST_METRICS_ADDR").await?;
            if answer.status() != StatusCode::OK {
                bail!("{address} answers {}, and is no Holdfast", answer.status());
            }
            println!("alive");
        }
    }
    Ok(())
}

/// Where this host reaches what listens on an address. "Every address" is none to connect to.
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
    // A proxy that the environment names is for the providers.
    let client = Client::builder().no_proxy().timeout(TIMEOUT).build().context("could not make an HTTP client")?;
    client.get(format!("http://{address}{path}")).send().await.map_err(|error| {
        let why = match error.is_timeout() {
            true => format!("no answer within {} s", TIMEOUT.as_secs()),
            false => innermost(&error).to_string(),
        };
        anyhow::anyhow!("could not ask {address} ({variable}): {why}")
    })
}

/// An API without Redis is not ready, but it takes messages and its streams go on; to keep clients from it, or others from
/// starting, would make less of what works.
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
        status => bail!("{} answers {status}, and is no Holdfast", answer.url()),
    }
}

fn innermost(error: &dyn Error) -> &dyn Error {
    error.source().map_or(error, innermost)
}
