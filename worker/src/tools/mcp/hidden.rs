//! The texts that no message about a server shows: its secrets and its address.

use std::borrow::Cow;

use secrecy::{ExposeSecret, SecretString};

use super::target::{ServerTarget, TargetTransport};

/// Shorter values, such as `1` and `yes`, stand in many texts and are no secrets.
const MIN_SECRET_BYTES: usize = 4;

/// Takes the place of what is hidden.
const MARK: &str = "…";

/// Texts that are replaced, the longest first, because one may contain another.
#[derive(Default, Clone)]
pub struct HiddenTexts(Vec<SecretString>);

impl HiddenTexts {
    /// Returns the secrets of a server, and its address as the worker uses it.
    pub fn of(target: &ServerTarget) -> Self {
        let mut texts: Vec<SecretString> = target.secrets().cloned().collect();
        if let TargetTransport::Http { url, .. } | TargetTransport::Rpc { url, .. } = &target.transport {
            texts.push(url.clone().into());
            texts.extend(authority(url).map(SecretString::from));
        }
        Self::new(texts)
    }

    pub fn new(mut texts: Vec<SecretString>) -> Self {
        texts.retain(|text| text.expose_secret().len() >= MIN_SECRET_BYTES);
        texts.sort_by_key(|text| std::cmp::Reverse(text.expose_secret().len()));
        Self(texts)
    }

    pub fn replace_in(&self, text: &str) -> String {
        let found = self.0.iter().map(ExposeSecret::expose_secret);
        let replaced = found.fold(Cow::Borrowed(text), |text, hidden| {
            if text.contains(hidden) { Cow::Owned(text.replace(hidden, MARK)) } else { text }
        });
        replaced.into_owned()
    }
}

/// Returns the host of a URL, with its port.
fn authority(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_also_where_one_contains_another() {
        let hidden = HiddenTexts::new(["abcd", "abcdefgh", "1"].map(SecretString::from).to_vec());
        assert_eq!(hidden.replace_in("1 abcdefgh abcd abc"), "1 … … abc");
    }

    #[test]
    fn an_address_is_the_host_with_its_port() {
        assert_eq!(authority("http://10.0.0.5:9000/mcp?key=1").as_deref(), Some("10.0.0.5:9000"));
        assert_eq!(authority("https://kb.internal/mcp").as_deref(), Some("kb.internal"));
    }
}
