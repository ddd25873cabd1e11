//! What agents could push with, because they run as the user: for information, and nothing of it is damage (decision 65).
//! No value is shown.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use lanewright_git::ConfigurationEntry;
use lanewright_model::redact::has_password;
use regex::Regex;
use serde::Serialize;

use crate::cli::{RepositoryContext, Result};

/// What agents can use, and what they do not get.
#[derive(Debug, Default, Serialize)]
pub(super) struct Credentials {
    /// Credentials that agents can read.
    pub(super) readable: Vec<Readable>,
    /// Variables of this environment that agents do not get, by name.
    pub(super) withheld: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Readable {
    /// The file, or the variable.
    #[serde(rename = "where")]
    pub(super) place: String,
    pub(super) what: String,
    pub(super) remedy: String,
}

impl Readable {
    fn new(place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into(), remedy: remedy.into() }
    }
}

/// Looks at the environment, at git's settings, and at the files of the user's home directory.
pub(super) fn credentials(within: &RepositoryContext) -> Result<Credentials> {
    let report = within.withheld().report(within.context.environment.keys().map(String::as_str));
    let passed = report
        .passed
        .iter()
        .map(|name| Readable::new(*name, "the setting `pass_env` passes it to agents", "take it out of `pass_env`"));
    let entries = within.repository.configuration_entries()?;
    let settings = entries.iter().filter_map(|entry| of_setting(entry, within.repository.main_worktree()));
    let files = files(within).into_iter();
    let readable = passed.chain(settings).chain(files.filter(|(path, _)| path.is_file()).map(|(path, what)| {
        Readable::new(path.display().to_string(), what, "run Lanewright as a user, or in a container, without it")
    }));
    Ok(Credentials {
        readable: readable.collect(),
        withheld: report.withheld.iter().map(|&name| name.to_owned()).collect(),
    })
}

/// Files that programs keep credentials for repositories in.
fn files(within: &RepositoryContext) -> Vec<(PathBuf, &'static str)> {
    let named = |name: &str| within.context.environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let Some(home) = named("HOME") else { return Vec::new() };
    let config = named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    let gh = named("GH_CONFIG_DIR").unwrap_or_else(|| config.join("gh"));
    let glab = named("GLAB_CONFIG_DIR").unwrap_or_else(|| config.join("glab-cli"));
    let mut files = vec![
        (home.join(".netrc"), "passwords for hosts, which git and curl read"),
        (home.join(".git-credentials"), "passwords of git's helper `store`"),
        (config.join("git/credentials"), "passwords of git's helper `store`"),
        (gh.join("hosts.yml"), "the login of `gh`"),
        (glab.join("config.yml"), "the login of `glab`"),
    ];
    let keys = std::fs::read_dir(home.join(".ssh")).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_key = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("id_") && !name.ends_with(".pub")
    };
    let mut keys: Vec<PathBuf> = keys.filter(is_key).collect();
    keys.sort_unstable();
    files.extend(keys.into_iter().map(|key| (key, "a key of ssh")));
    files
}

/// A setting that holds a credential or calls a program that has some.
fn of_setting(entry: &ConfigurationEntry, main: &Path) -> Option<Readable> {
    let (name, value) = (entry.name.as_str(), entry.value.as_str());
    let place = main.join(&entry.file).display().to_string();
    if name.starts_with("http.") && name.ends_with(".extraheader") && !value.is_empty() {
        let remedy =
            "remove it (git config --unset-all); if actions/checkout wrote it, set `persist-credentials: false`";
        return Some(Readable::new(place, format!("a header with a credential, {}", without_password(name)), remedy));
    }
    if name.starts_with("credential.") && name.ends_with(".helper") {
        // `cache --timeout=60`; another one is a line of shell, and may hold a password itself.
        let first = value.split_whitespace().next().filter(|word| !word.starts_with('!'))?;
        let program = Path::new(first).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let what = format!("the credential helper `{program}` answers every program of this user");
        return Some(Readable::new(place, what, "run Lanewright as a user, or in a container, without it"));
    }
    // `url.https://user:password@host/.insteadof` has the address in its name.
    (has_password(value) || has_password(name)).then(|| {
        let what = format!("an address with a password, {}", without_password(name));
        Readable::new(place, what, "write the address without it; use ssh or a credential helper of CI's push step")
    })
}

/// The name of a setting without what stands before `@` in an address in it.
fn without_password(name: &str) -> String {
    #[expect(clippy::expect_used, reason = "a constant, compiled by a test")]
    static USER: LazyLock<Regex> = LazyLock::new(|| Regex::new("://[^/@]*@").expect("a pattern"));
    USER.replace_all(name, "://…@").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, value: &str) -> Option<String> {
        let entry = ConfigurationEntry {
            file: ".git/config".into(),
            name: name.into(),
            value: value.into(),
            of_repository: true,
        };
        let found = of_setting(&entry, Path::new("/r"))?;
        assert_eq!(found.place, "/r/.git/config");
        Some(format!("{}; {}", found.what, found.remedy))
    }

    #[test]
    fn settings_with_credentials_are_found_without_their_values() {
        let header = found("http.https://github.com/.extraheader", "AUTHORIZATION: basic c2VjcmV0").unwrap();
        assert!(
            header.contains("http.https://github.com/.extraheader") && header.contains("persist-credentials: false")
        );
        assert!(!header.contains("c2VjcmV0"), "{header}");
        let address = found("remote.origin.url", "https://x-access-token:s3cr3t@github.com/a/b.git").unwrap();
        assert!(address.contains("remote.origin.url") && !address.contains("s3cr3t"), "{address}");
        let instead = found("url.https://me:s3cr3t@host/.insteadof", "https://host/").unwrap();
        assert!(instead.contains("url.https://…@host/.insteadof") && !instead.contains("s3cr3t"), "{instead}");
        assert!(
            found("credential.helper", "/usr/lib/git/git-credential-libsecret")
                .unwrap()
                .contains("`git-credential-libsecret`")
        );
        assert!(found("credential.https://github.com.helper", "store --file x").unwrap().contains("`store`"));
    }

    #[test]
    fn settings_without_credentials_are_not_found() {
        for (name, value) in [
            ("http.https://github.com/.extraheader", ""),
            ("remote.origin.url", "https://me@host/r.git"),
            ("remote.origin.url", "git@github.com:a/b.git"),
            ("credential.helper", ""),
            ("user.name", "me"),
        ] {
            assert_eq!(found(name, value), None, "{name}");
        }
    }
}
