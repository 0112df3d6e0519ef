//! Reads `REDIS_URL`, and its certificates in the spelling of PostgreSQL's URLs.

use std::fs;

use redis::{Client, ClientTlsConfig, ErrorKind, RedisError, TlsCertificates};
use secrecy::{ExposeSecret, SecretString};

/// Returns a client for the server of this URL. It speaks RESP3, which has pushes.
///
/// `rediss://` takes `sslrootcert`, `sslcert` and `sslkey`, each the path of a PEM file. The first is the authority of
/// the server's certificate, by default the system's. The others are the client's own certificate and key.
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
    fn an_error_names_the_unusable_certificate() {
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
