//! Authentication, and the limits of anonymous callers.

use std::{net::SocketAddr, num::NonZeroUsize};

use ipnet::IpNet;
use secrecy::SecretString;

use super::{Error, quotas::size};
use crate::rate_limit::Rate;

/// UsersArgs of users.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Users")]
pub struct UsersConfig {
    /// Key of the JWTs: an HS256 secret, or a public key as PEM. Without it the API is in development mode and checks
    /// no caller.
    #[arg(long, env = "HOLDFAST_JWT_KEY", hide_env_values = true)]
    pub jwt_key: Option<SecretString>,

    /// Whether other machines may reach development mode, as in a container whose port is published on loopback.
    #[arg(long, env = "HOLDFAST_DEVELOPMENT", default_value = "false", action = clap::ArgAction::Set)]
    pub development: bool,

    /// Audience that a JWT must have; any unless set. A public key needs it.
    #[arg(long, env = "HOLDFAST_JWT_AUDIENCE")]
    pub jwt_audience: Option<String>,

    /// Accepted issuers of JWTs, as issuer=prefix,…: their users are named prefix_subject, or subject without a prefix.
    /// Any unless set.
    #[arg(long, env = "HOLDFAST_JWT_ISSUERS", value_delimiter = ',', value_parser = issuer)]
    pub jwt_issuers: Vec<Issuer>,

    /// Claim whose value `operator` allows its user to write agents.
    #[arg(long, env = "HOLDFAST_JWT_ROLE_CLAIM", default_value = "role")]
    pub jwt_role_claim: String,

    /// Whether the API accepts requests without a JWT, as an anonymous user.
    #[arg(long, env = "HOLDFAST_ANONYMOUS", default_value = "true", action = clap::ArgAction::Set)]
    pub anonymous: bool,

    /// Rate limit for anonymous callers: runs that one address may start, 10/minute by default; 0 for no limit. In
    /// development mode only if set.
    #[arg(long = "chat-rate-limit", env = "CHAT_RATE_LIMIT", value_parser = rate_limit)]
    pub rate_limit: Option<RateLimitSetting>,

    /// Rate limit for anonymous callers: other writes of one address, 120/minute by default; 0 for no limit. In
    /// development mode only if set.
    #[arg(long, env = "HOLDFAST_WRITE_RATE_LIMIT", value_parser = rate_limit)]
    pub write_rate_limit: Option<RateLimitSetting>,

    /// Rate limit for anonymous callers: reads of one address that are no streams, 600/minute by default; 0 for no limit. In
    /// development mode only if set.
    #[arg(long, env = "HOLDFAST_READ_RATE_LIMIT", value_parser = rate_limit)]
    pub read_rate_limit: Option<RateLimitSetting>,

    /// Bytes that anonymous callers of one address may store in an hour, 67108864 by default; 0 for no limit. In
    /// development mode only if set.
    #[arg(long, env = "HOLDFAST_ANONYMOUS_BYTES_PER_HOUR", value_parser = size)]
    pub anonymous_bytes_per_hour: Option<usize>,

    /// Proxies whose X-Forwarded-For and X-Forwarded-Host the API believes, as addresses or networks: 10.0.0.7,fd00::/8.
    #[arg(long, env = "HOLDFAST_TRUSTED_PROXIES", value_delimiter = ',', value_parser = network)]
    pub trusted_proxies: Vec<IpNet>,

    /// Streams that one user may hold open in one API process, 50 by default; 0 for no limit. In development mode only if set.
    #[arg(long, env = "HOLDFAST_STREAMS_PER_USER", value_parser = holder_limit)]
    pub streams_per_user: Option<usize>,

    /// Streams that one address may hold open in one API process, 200 by default; 0 for no limit. In development mode only if set.
    #[arg(long, env = "HOLDFAST_STREAMS_PER_ADDRESS", value_parser = holder_limit)]
    pub streams_per_address: Option<usize>,

    /// Connections that one address may hold open in one API process, 1000 by default; 0 for no limit. In development mode only if set.
    #[arg(long, env = "HOLDFAST_CONNECTIONS_PER_ADDRESS", value_parser = holder_limit)]
    pub connections_per_address: Option<usize>,
}

/// Streams and connections that one caller may hold in one process. `None` is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HolderLimits {
    /// Streams of one user.
    pub streams_per_user: Option<usize>,
    /// Streams of one address.
    pub streams_per_address: Option<usize>,
    /// Connections of one address that the server sees, unless a trusted proxy has it.
    pub connections_per_address: Option<usize>,
    /// Proxies that `connections_per_address` does not limit.
    pub trusted_proxies: Vec<IpNet>,
}

/// An accepted issuer of JWTs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// Value of the claim `iss`.
    pub name: String,
    /// Prefix of its users' names, before an underscore; may be empty.
    pub prefix: String,
}

/// A value of `CHAT_RATE_LIMIT`, `HOLDFAST_WRITE_RATE_LIMIT` or `HOLDFAST_READ_RATE_LIMIT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateLimitSetting {
    /// No limit.
    Off,
    /// At most this rate.
    At(Rate),
}

/// Prefix of the names of anonymous users, before an underscore.
pub const ANONYMOUS_PREFIX: &str = "anonymous";

const DEFAULT_RATE: &str = "10/minute";
const DEFAULT_WRITE_RATE: &str = "120/minute";
const DEFAULT_READ_RATE: &str = "600/minute";
const DEFAULT_BYTES_PER_HOUR: usize = 64 << 20;
const MAX_PREFIX: usize = 32;

impl UsersConfig {
    /// Returns the rate at which an anonymous caller may start runs; `None` for no limit.
    pub fn anonymous_run_rate(&self) -> Option<Rate> {
        self.in_force(self.rate_limit, DEFAULT_RATE)
    }

    /// Returns the rate of an anonymous caller's other writes; `None` for no limit.
    pub fn write_rate(&self) -> Option<Rate> {
        self.in_force(self.write_rate_limit, DEFAULT_WRITE_RATE)
    }

    /// Returns the rate of an anonymous caller's reads; `None` for no limit.
    pub fn read_rate(&self) -> Option<Rate> {
        self.in_force(self.read_rate_limit, DEFAULT_READ_RATE)
    }

    /// Returns the rate at which anonymous callers of one address may store bytes; `None` for no limit.
    pub fn anonymous_byte_rate(&self) -> Option<Rate> {
        let default = self.jwt_key.as_ref().map(|_| DEFAULT_BYTES_PER_HOUR);
        let bytes = self.anonymous_bytes_per_hour.or(default)?;
        NonZeroUsize::new(bytes).map(Rate::of_hourly_bytes)
    }

    /// Returns the rate at which the runs of anonymous callers of one address may store bytes; `None` for no limit. A worker may
    /// not know the key by which its APIs know callers, so it holds for each run whose API has found its caller anonymous.
    pub fn anonymous_run_byte_rate(&self) -> Option<Rate> {
        NonZeroUsize::new(self.anonymous_bytes_per_hour.unwrap_or(DEFAULT_BYTES_PER_HOUR)).map(Rate::of_hourly_bytes)
    }

    fn in_force(&self, set: Option<RateLimitSetting>, default: &str) -> Option<Rate> {
        match (set, &self.jwt_key) {
            (Some(RateLimitSetting::At(rate)), _) => Some(rate),
            (Some(RateLimitSetting::Off), _) | (None, None) => None,
            (None, Some(_)) => Rate::parse(default).expect("the default is a rate"),
        }
    }

    /// Returns what one caller may hold. In development mode, only set limits apply.
    pub fn holder_limits(&self) -> HolderLimits {
        let limit = |set: Option<usize>, default: usize| match (set, &self.jwt_key) {
            (Some(0), _) | (None, None) => None,
            (Some(most), _) => Some(most),
            (None, Some(_)) => Some(default),
        };
        HolderLimits {
            streams_per_user: limit(self.streams_per_user, 50),
            streams_per_address: limit(self.streams_per_address, 200),
            connections_per_address: limit(self.connections_per_address, 1_000),
            trusted_proxies: self.trusted_proxies.clone(),
        }
    }

    /// Refuses settings that would admit more callers than they say. `addr` is the address that the API listens on.
    pub fn check(&self, addr: SocketAddr) -> Result<(), Error> {
        if self.jwt_key.is_none() {
            return self.check_development(addr);
        }
        if self.development {
            return Err(Error::new("HOLDFAST_DEVELOPMENT", "contradicts HOLDFAST_JWT_KEY: unset one of them"));
        }
        let prefixes =
            || self.jwt_issuers.iter().map(|issuer| issuer.prefix.as_str()).filter(|prefix| !prefix.is_empty());
        let all = || prefixes().chain([ANONYMOUS_PREFIX]);
        for one in prefixes() {
            if one == ANONYMOUS_PREFIX {
                return Err(Error::new("HOLDFAST_JWT_ISSUERS", format!("the prefix {one} is that of anonymous users")));
            }
            if let Some(other) = all().find(|other| begins_with(one, other) || begins_with(other, one)) {
                let problem = format!("users of the prefixes {one} and {other} cannot be told apart by their names");
                return Err(Error::new("HOLDFAST_JWT_ISSUERS", problem));
            }
        }
        Ok(())
    }

    /// Refuses development mode with settings that only make sense if the API checks its callers.
    fn check_development(&self, addr: SocketAddr) -> Result<(), Error> {
        let set = [
            ("HOLDFAST_JWT_AUDIENCE", self.jwt_audience.is_some()),
            ("HOLDFAST_JWT_ISSUERS", !self.jwt_issuers.is_empty()),
            ("HOLDFAST_ANONYMOUS=false", !self.anonymous),
        ];
        match set.iter().find(|(_, is_set)| *is_set) {
            Some((setting, _)) => Err(Error::new(
                "HOLDFAST_JWT_KEY",
                format!("is needed beside {setting}; without it the API checks no caller"),
            )),
            None if self.development || addr.ip().to_canonical().is_loopback() => Ok(()),
            None => {
                let problem = format!(
                    "other machines reach {addr}, and without HOLDFAST_JWT_KEY the API believes every caller: set that \
                     key, listen on 127.0.0.1, or set HOLDFAST_DEVELOPMENT=true where only this machine reaches it"
                );
                Err(Error::new("HOLDFAST_ADDR", problem))
            }
        }
    }
}

/// Returns whether the name has this prefix and an underscore.
pub fn begins_with(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('_'))
}

/// Returns the name under which a worker's limits count an owner. All anonymous users together are one owner, because each
/// of their requests can claim to be a new user.
pub fn counted_owner(owner: &str) -> &str {
    if begins_with(owner, ANONYMOUS_PREFIX) { ANONYMOUS_PREFIX } else { owner }
}

fn issuer(text: &str) -> Result<Issuer, String> {
    let expected = || {
        format!(
            "pairs such as https://accounts.google.com=google, with prefixes of at most {MAX_PREFIX} letters, digits, - and _, not {text:?}"
        )
    };
    // An issuer is a URL, which may have an equals sign. A prefix has none.
    let (name, prefix) = text.trim().rsplit_once('=').ok_or_else(expected)?;
    let fits = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
    if name.is_empty() || prefix.len() > MAX_PREFIX || !prefix.chars().all(fits) {
        return Err(expected());
    }
    Ok(Issuer { name: name.to_owned(), prefix: prefix.to_owned() })
}

fn rate_limit(text: &str) -> Result<RateLimitSetting, String> {
    match Rate::parse(text) {
        Ok(rate) => Ok(rate.map_or(RateLimitSetting::Off, RateLimitSetting::At)),
        Err(invalid) => Err(format!("{invalid}; not {text:?}")),
    }
}

fn holder_limit(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("a whole number, or 0 for no limit, not {text:?}"))
}

fn network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let address = || text.parse().map(|address: std::net::IpAddr| IpNet::from(address.to_canonical()));
    text.parse()
        .or_else(|_| address())
        .map_err(|_| format!("addresses or networks such as 10.0.0.7,10.1.0.0/16, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct UsersArgs {
        #[command(flatten)]
        users: UsersConfig,
    }

    fn users(args: &[&str]) -> Result<UsersConfig, clap::Error> {
        UsersArgs::try_parse_from(["test"].iter().chain(args)).map(|settings| settings.users)
    }

    #[test]
    fn anonymous_callers_are_limited_outside_of_development_mode_or_where_it_is_set() {
        let check = |args: &[&str], expected: Option<&str>| {
            let rate = users(args).unwrap().anonymous_run_rate().map(|rate| rate.to_string());
            assert_eq!(rate.as_deref(), expected, "{args:?}");
        };
        check(&[], None);
        check(&["--jwt-key", "k"], Some("10/minute"));
        check(&["--chat-rate-limit", "3/hour"], Some("3/hour"));
        check(&["--jwt-key", "k", "--chat-rate-limit", "3/hour"], Some("3/hour"));
        check(&["--jwt-key", "k", "--chat-rate-limit", "0"], None);
        let writes = |args: &[&str]| users(args).unwrap().write_rate().map(|rate| rate.to_string());
        assert_eq!(writes(&["--jwt-key", "k"]).as_deref(), Some("120/minute"));
        assert_eq!(writes(&[]), None);
        assert_eq!(writes(&["--write-rate-limit", "1/hour"]).as_deref(), Some("1/hour"));
        let reads = |args: &[&str]| users(args).unwrap().read_rate().map(|rate| rate.to_string());
        assert_eq!(reads(&["--jwt-key", "k"]).as_deref(), Some("600/minute"));
        assert_eq!(reads(&[]), None);
        assert_eq!(reads(&["--jwt-key", "k", "--read-rate-limit", "0"]), None);
        assert_eq!(reads(&["--read-rate-limit", "1/hour"]).as_deref(), Some("1/hour"));
    }

    const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);

    #[test]
    fn only_a_setting_opens_development_mode_to_other_machines() {
        let check = |args: &[&str], addr: &str, refused: Option<&str>| {
            let problem = users(args).unwrap().check(addr.parse().unwrap()).err().map(|error| error.variable);
            assert_eq!(problem, refused, "{args:?} on {addr}");
        };
        for loopback in ["127.0.0.1:0", "127.8.9.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            check(&[], loopback, None);
        }
        for other in ["0.0.0.0:8080", "[::]:8080", "10.0.0.7:8080"] {
            check(&[], other, Some("HOLDFAST_ADDR"));
            check(&["--development", "true"], other, None);
            check(&["--development", "false"], other, Some("HOLDFAST_ADDR"));
            check(&["--jwt-key", "k"], other, None);
        }
        check(&["--jwt-key", "k", "--development", "true"], "127.0.0.1:80", Some("HOLDFAST_DEVELOPMENT"));
    }

    #[test]
    fn streams_and_connections_are_limited_outside_of_development_mode_or_where_it_is_set() {
        let check = |args: &[&str], expected: [Option<usize>; 3]| {
            let limits = users(args).unwrap().holder_limits();
            let found = [limits.streams_per_user, limits.streams_per_address, limits.connections_per_address];
            assert_eq!(found, expected, "{args:?}");
        };
        check(&[], [None, None, None]);
        check(&["--jwt-key", "k"], [Some(50), Some(200), Some(1_000)]);
        check(&["--streams-per-user", "3", "--streams-per-address", "0"], [Some(3), None, None]);
        check(
            &["--jwt-key", "k", "--streams-per-user", "0", "--connections-per-address", "9"],
            [None, Some(200), Some(9)],
        );
        assert!(users(&["--streams-per-user", "many"]).is_err());
    }

    #[test]
    fn issuers_networks_and_rates_are_read_or_refused() {
        let read = users(&["--jwt-issuers", "https://a.example/?x=y=a, b=", "--trusted-proxies", "10.0.0.7,fd00::/8"])
            .unwrap();
        let issuers: Vec<_> =
            read.jwt_issuers.iter().map(|issuer| (issuer.name.as_str(), issuer.prefix.as_str())).collect();
        assert_eq!(issuers, [("https://a.example/?x=y", "a"), ("b", "")]);
        assert_eq!(read.trusted_proxies.iter().map(IpNet::to_string).collect::<Vec<_>>(), ["10.0.0.7/32", "fd00::/8"]);
        for args in [
            ["--jwt-issuers", "https://a.example"],
            ["--jwt-issuers", "=a"],
            ["--jwt-issuers", "a=b c"],
            ["--trusted-proxies", "proxy"],
            ["--trusted-proxies", "10.0.0.0/33"],
            ["--chat-rate-limit", "ten"],
        ] {
            assert!(users(&args).is_err(), "{args:?} was accepted");
        }
    }

    #[test]
    fn settings_that_would_admit_more_callers_than_they_say_are_refused() {
        let check = |args: &[&str], refused: Option<&str>| {
            let problem = users(args).unwrap().check(LOOPBACK).err().map(|error| error.to_string());
            assert_eq!(problem.is_some(), refused.is_some(), "{args:?}: {problem:?}");
            assert!(problem.unwrap_or_default().contains(refused.unwrap_or_default()), "{args:?}");
        };
        check(&[], None);
        check(&["--jwt-audience", "a"], Some("HOLDFAST_JWT_KEY: is needed beside HOLDFAST_JWT_AUDIENCE"));
        check(&["--anonymous", "false"], Some("HOLDFAST_JWT_KEY: is needed beside HOLDFAST_ANONYMOUS=false"));
        check(&["--jwt-issuers", "a=b"], Some("HOLDFAST_JWT_KEY: is needed beside HOLDFAST_JWT_ISSUERS"));
        check(&["--jwt-key", "k", "--jwt-issuers", "a=x,b=x,c=,d=y"], None);
        check(&["--jwt-key", "k", "--jwt-issuers", "a=x,b=x_y"], Some("cannot be told apart"));
        check(&["--jwt-key", "k", "--jwt-issuers", "a=anonymous"], Some("anonymous"));
        check(&["--jwt-key", "k", "--jwt-issuers", "a=anonymous_x"], Some("cannot be told apart"));
    }
}
