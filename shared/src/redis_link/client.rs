//! Reads `REDIS_URL`, and the certificates that it names in the words of PostgreSQL's URLs.

use std::fs;

use redis::{Client, ClientTlsConfig, ErrorKind, RedisError, TlsCertificates};
use secrecy::{ExposeSecret, SecretString};

/// A client of the server that the URL names. RESP3 is what brings pushes.
///
/// `rediss://` takes `sslrootcert` (the authority that has signed the server's certificate; by default those that the system
/// trusts), `sslcert` and `sslkey` (what the client shows), each the path of a PEM file.
pub(super) fn read(url: &SecretString) -> Result<Client, RedisError> {
    let (address, query) = url.expose_secret().split_once('?').unwrap_or((url.expose_secret(), ""));
    let (mut root, mut certificate, mut key) = (None, None, None);
    let mut parameters = vec!["protocol=resp3"];
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some(("sslrootcert", path)) => root = Some(file(path)?),
            Some(("sslcert", path)) => certificate = Some(file(path)?),
            Some(("sslkey", path)) => key = Some(file(path)?),
            _ => parameters.push(parameter),
        }
    }
    let url = format!("{address}?{}", parameters.join("&"));
    let client_tls = match (certificate, key) {
        (Some(client_cert), Some(client_key)) => Some(ClientTlsConfig { client_cert, client_key }),
        (None, None) => None,
        _ => return Err((ErrorKind::InvalidClientConfig, "sslcert and sslkey are needed together").into()),
    };
    if root.is_none() && client_tls.is_none() {
        return Client::open(url);
    }
    Client::build_with_tls(url, TlsCertificates { client_tls, root_cert: root })
}

fn file(path: &str) -> Result<Vec<u8>, RedisError> {
    let unreadable = |error: std::io::Error| {
        RedisError::from((ErrorKind::InvalidClientConfig, "could not read a certificate", format!("{path}: {error}")))
    };
    fs::read(path).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        read(&SecretString::from(url)).expect_err("it was accepted").to_string()
    }

    #[test]
    fn certificates_that_cannot_be_used_are_named() {
        assert!(refusal("rediss://h?sslrootcert=/nowhere/ca.pem").contains("/nowhere/ca.pem"));
        assert!(refusal("rediss://h?sslcert=/dev/null").contains("sslkey"));
        assert!(refusal("redis://h?sslrootcert=/dev/null").contains("rediss://"));
    }

    #[test]
    fn other_parameters_stay() {
        let client = read(&SecretString::from("redis://h:7/2?protocol=resp3")).expect("it is a URL");
        assert_eq!(client.get_connection_info().addr().to_string(), "h:7");
    }
}
