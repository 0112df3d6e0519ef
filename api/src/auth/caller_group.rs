//! The group of an anonymous caller: the runs of one address share the slots of workers, with any number of secrets.
//!
//! A run's row has the group until the run ends. The group is a keyed hash, so it does not show the address; all API processes
//! have one key, so they name one address alike.

use std::net::IpAddr;

use holdfast_shared::config::ANONYMOUS_PREFIX;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::one_client;

/// Names groups.
pub struct CallerGroups {
    /// The hash of what all hashed texts begin with.
    keyed: Sha256,
}

impl CallerGroups {
    pub fn new(key: &SecretString) -> Self {
        let keyed = Sha256::new().chain_update(key.expose_secret()).chain_update("\0group of anonymous callers\0");
        Self { keyed }
    }

    /// Returns the group of an address, which has 128 bits of the hash.
    pub fn of(&self, address: IpAddr) -> String {
        let digest = self.keyed.clone().chain_update(one_client(address).to_string()).finalize();
        format!("{ANONYMOUS_PREFIX}@{}", hex::encode(&digest[..16]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_that_of_one_address_and_does_not_show_it() {
        let groups = |key: &str| CallerGroups::new(&key.to_owned().into());
        let of = |address: &str| groups("k").of(address.parse().unwrap());
        assert_eq!(of("192.0.2.1"), of("192.0.2.1"));
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::7"), "one host has all addresses of its network");
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_ne!(of("192.0.2.1"), groups("l").of("192.0.2.1".parse().unwrap()), "without the key no reader finds it");
        assert!(!of("192.0.2.1").contains("192.0.2.1"));
    }
}
