//! The PostgreSQL servers that `DATABASE_URL` names. One of them takes writes, and a failover makes it another one.

use std::{
    io,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use sqlx::{Connection as _, PgConnection, Row as _, postgres::PgConnectOptions};

use super::{outages, pool::ACQUIRE};
use crate::hosts::one_url_per_host;

/// The servers, in the order of the URL; cheap to clone.
#[derive(Debug, Clone)]
pub struct Servers {
    each: Vec<PgConnectOptions>,
    /// The server that accepted the last connection.
    current: Arc<AtomicUsize>,
}

impl Servers {
    /// Reads a URL as libpq does: `postgres://user@host,host:port/database`. Each host has the port 5432 or its own.
    ///
    /// Every connection must take writes, so `target_session_attrs` may only ask for that, as `read-write` or `primary`
    /// do. Fails if it asks for another server, or if the URL has another error.
    pub fn read(url: &str) -> Result<Self, sqlx::Error> {
        let url = without_target(url)?;
        let each = one_url_per_host(&url).into_iter().map(|url| PgConnectOptions::from_str(&url));
        Ok(Self { each: each.collect::<Result<_, _>>()?, current: Arc::default() })
    }

    /// Adds settings, which each connection sends when it begins.
    pub fn with_settings(self, settings: &[(&str, &str)]) -> Self {
        let each = self.each.into_iter().map(|options| options.options(settings.iter().copied())).collect();
        Self { each, ..self }
    }

    /// Names the connections in `pg_stat_activity`.
    pub fn with_name(self, name: &str) -> Self {
        Self { each: self.each.into_iter().map(|options| options.application_name(name)).collect(), ..self }
    }

    /// Connects. Of several servers, it takes the first one that accepts writes, beginning with the last one that did.
    /// Fails with the error of that one if none does.
    pub async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        if let [only] = &self.each[..] {
            return PgConnection::connect_with(only).await;
        }
        // A host that has vanished answers nothing, and the others must be asked too.
        let limit = ACQUIRE / (self.each.len() as u32 + 1);
        let first = self.current.load(Ordering::Relaxed);
        let mut refused = None;
        for index in (0..self.each.len()).map(|next| (first + next) % self.each.len()) {
            let attempt = tokio::time::timeout(limit, connect_to_write(&self.each[index])).await;
            match attempt.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into())) {
                Ok(connection) => {
                    self.current.store(index, Ordering::Relaxed);
                    return Ok(connection);
                }
                Err(error) => {
                    // The server that took writes was demoted. Any other one may have been a standby all the time.
                    if index == first && outages::is_read_only(&error) {
                        outages::leave_earlier_connections();
                    }
                    refused = refused.or(Some(error));
                }
            }
        }
        Err(refused.expect("a URL names at least one host"))
    }

    /// Returns whether a failover may make another server take writes.
    pub fn are_several(&self) -> bool {
        self.each.len() > 1
    }
}

async fn connect_to_write(options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    let mut connection = PgConnection::connect_with(options).await?;
    // A standby, or a server that was demoted to one.
    let is_read_only = "select current_setting('transaction_read_only') = 'on'";
    if !sqlx::raw_sql(is_read_only).fetch_one(&mut connection).await?.try_get::<bool, _>(0)? {
        return Ok(connection);
    }
    connection.close().await?;
    Err(outages::read_only())
}

/// Removes `target_session_attrs`, which the driver does not know.
fn without_target(url: &str) -> Result<String, sqlx::Error> {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let mut kept = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some(("target_session_attrs", "any" | "read-write" | "primary" | "prefer-primary")) => {}
            Some(("target_session_attrs", other)) => {
                let reason =
                    format!("target_session_attrs={other} asks for a server that refuses writes; leave it out");
                return Err(sqlx::Error::Configuration(reason.into()));
            }
            _ => kept.push(parameter),
        }
    }
    Ok(if kept.is_empty() { address.to_owned() } else { format!("{address}?{}", kept.join("&")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failover_needs_several_hosts() {
        assert!(Servers::read("postgres://db1,db2/runs").expect("it is a URL").are_several());
        assert!(!Servers::read("postgres://db1/runs").expect("it is a URL").are_several());
    }

    #[test]
    fn only_a_server_that_takes_writes_may_be_asked_for() {
        assert_eq!(without_target("postgres://a,b/c?target_session_attrs=primary").expect("ok"), "postgres://a,b/c");
        let url = "postgres://a,b/c?sslmode=require&target_session_attrs=read-write";
        assert_eq!(without_target(url).expect("it asks for writes"), "postgres://a,b/c?sslmode=require");
        let refused = Servers::read("postgres://a,b/c?target_session_attrs=standby").expect_err("it refuses writes");
        assert!(refused.to_string().contains("target_session_attrs=standby"), "{refused}");
    }
}
