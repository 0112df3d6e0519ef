//! Secrets from files: where `<VARIABLE>_FILE` names a file, the content of the file is the value of the secret `<VARIABLE>`.
//!
//! A setting is a secret if its help hides its value. So this module has no list, and each new secret can come from a file.

use std::ffi::OsString;

use clap::{Arg, Command, builder::Resettable};
use holdfast_shared::config::{SECRET_FILE_SUFFIX, read_secret_file};
use secrecy::ExposeSecret;

/// Sets the secrets of the server, or of the client, to the contents of their files. Fails with a message that names the
/// variable if a file cannot be read, or if both a file and a value are given.
pub fn read_into(
    command: Command,
    is_client: bool,
    variable: &impl Fn(&str) -> Option<OsString>,
) -> Result<Command, String> {
    let mut refusal = None;
    let mut give = |arg: Arg| match read(&arg, variable) {
        None => arg,
        // clap needs a `'static` default. A process reads each secret once, so the leak is bounded.
        Some(Ok(secret)) => arg.env(Resettable::Reset).default_value(&*secret.leak()).hide_default_value(true),
        Some(Err(sentence)) => {
            refusal.get_or_insert(sentence);
            arg
        }
    };
    let command = if is_client {
        command.mut_subcommand("chat", |chat| chat.mut_args(&mut give))
    } else {
        command.mut_args(&mut give)
    };
    refusal.map_or(Ok(command), Err)
}

/// Returns the content of the setting's file, or `None` if the setting is no secret or has no file.
fn read(arg: &Arg, variable: &impl Fn(&str) -> Option<OsString>) -> Option<Result<String, String>> {
    let name = arg.get_env().filter(|_| arg.is_hide_env_values_set())?.to_string_lossy();
    let file_name = format!("{name}{SECRET_FILE_SUFFIX}");
    let path = variable(&file_name).filter(|path| !path.is_empty())?;
    if variable(&name).is_some_and(|value| !value.is_empty()) {
        return Some(Err(format!("{file_name}: contradicts {name}, which is also set; unset one of them")));
    }
    let secret = read_secret_file(path.as_ref()).map_err(|problem| format!("{file_name}: {problem}"));
    Some(secret.map(|secret| secret.expose_secret().to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::cli::Cli;

    fn jwt_key(file: &str, variable: Option<&str>) -> Result<String, String> {
        let variables = |name: &str| match name {
            "HOLDFAST_JWT_KEY_FILE" => Some(OsString::from(file)),
            "HOLDFAST_JWT_KEY" => variable.map(OsString::from),
            _ => None,
        };
        let matches = read_into(Cli::command(), false, &variables)?.get_matches_from(["holdfast"]);
        let cli = Cli::from_arg_matches(&matches).unwrap();
        Ok(cli.settings.users.jwt_key.unwrap().expose_secret().to_owned())
    }

    #[test]
    fn a_secret_may_come_from_a_file_but_from_one_place_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let file = path.to_str().unwrap();
        std::fs::write(&path, "hunter2\n").unwrap();
        assert_eq!(jwt_key(file, None).unwrap(), "hunter2");
        assert_eq!(jwt_key(file, Some("")).unwrap(), "hunter2");
        let both = jwt_key(file, Some("other")).unwrap_err();
        assert!(both.starts_with("HOLDFAST_JWT_KEY_FILE: contradicts HOLDFAST_JWT_KEY"), "{both}");
        for refused in ["\n", &"x".repeat(70_000)] {
            std::fs::write(&path, refused).unwrap();
            let sentence = jwt_key(file, None).unwrap_err();
            assert!(sentence.starts_with("HOLDFAST_JWT_KEY_FILE: "), "{sentence}");
        }
        assert!(jwt_key("/nowhere/key", None).unwrap_err().contains("/nowhere/key"));
    }

    #[test]
    fn every_setting_that_holds_a_secret_may_come_from_a_file() {
        let holds_secret = |name: &str| {
            ["_KEY", "_URI", "_TOKEN"].iter().any(|end| name.ends_with(end))
                || ["DATABASE_URL", "REDIS_URL", "VERTEX_CREDENTIALS"].contains(&name)
        };
        let command = Cli::command();
        let all = command.get_arguments().chain(command.get_subcommands().flat_map(Command::get_arguments));
        for arg in all {
            let Some(name) = arg.get_env().map(|name| name.to_string_lossy()) else { continue };
            assert_eq!(arg.is_hide_env_values_set(), holds_secret(&name), "{name}");
        }
    }
}
