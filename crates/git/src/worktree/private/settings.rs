//! The settings in the git directory of an agent.

use std::path::Path;

use lanewright_model::redact::has_password;

use super::files::quoted;
use super::home::Home;
use crate::command::Result;
use crate::history::IDENTITY;
use crate::repo::{ConfigurationEntry, Repository, entries};

impl Home<'_> {
    /// What the repository sets counts, except what makes a git directory what it is, which git does not read in another file.
    /// `sparse`: the worktree has settings of its own.
    pub(super) fn settings(&self, sparse: bool) -> Result<Vec<u8>> {
        let known = self.repository.configuration()?;
        let common = self.repository.common_dir();
        let version = known.get("core.repositoryformatversion").unwrap_or("0");
        let mut text = format!("[core]\n\trepositoryFormatVersion = {version}\n").into_bytes();
        // Where the user has set it, for this repository or for all, that counts.
        if known.get("core.hookspath").is_none() {
            text.extend(b"\thooksPath = ");
            text.extend(quoted(&common.join("hooks")));
            text.push(b'\n');
        }
        if known.any_own(has_credential) {
            text.extend(self.settings_without_credentials()?);
        } else {
            text.extend(b"[include]\n\tpath = ");
            text.extend(quoted(&common.join("config")));
        }
        // Another job may have changed it there, and a condition on the place of the git directory does not hold here.
        for name in IDENTITY {
            let value = self.repository.setting_of_commits(name)?;
            if let (Some(value), Some((section, key))) = (value, name.split_once('.')) {
                text.extend(format!("\n[{section}]\n\t{key} = ").bytes());
                text.extend(quoted(Path::new(&value)));
            }
        }
        text.extend(b"\n[core]\n\tbare = false\n");
        if known.get("core.worktree").is_some() {
            text.extend(b"\tworktree = ");
            text.extend(quoted(self.worktree));
            text.push(b'\n');
        }
        if let Some(mode) = known.get("core.sharedrepository") {
            text.extend(format!("\tsharedRepository = {mode}\n").bytes());
        }
        text.extend(b"[extensions]\n");
        for (name, value) in known.below("extensions.") {
            text.extend([b"\t", name.as_bytes(), b" = "].concat());
            text.extend(quoted(Path::new(value)));
            text.push(b'\n');
        }
        if sparse {
            text.extend(b"\tworktreeConfig = true\n");
        }
        Ok(text)
    }

    /// What the repository sets, as a file of settings, without what agents could push with.
    fn settings_without_credentials(&self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        for ConfigurationEntry { name, value, of_repository, .. } in entries(self.repository)? {
            let value = if has_password(&value) { without_user(&value) } else { value };
            let (section, key) = name.rsplit_once('.').unwrap_or((&name, ""));
            if !of_repository || key.is_empty() || has_credential(&name, &value) || section.starts_with("include") {
                continue;
            }
            text.extend(match section.split_once('.') {
                Some((section, part)) => [b"[", section.as_bytes(), b" ", &quoted(Path::new(part)), b"]\n\t"].concat(),
                None => format!("[{section}]\n\t").into_bytes(),
            });
            text.extend([key.as_bytes(), b" = ", &quoted(Path::new(&value)), b"\n"].concat());
        }
        Ok(text)
    }
}

/// Whether the repository's settings pass a password, which its agents do not get.
///
/// # Errors
/// Git cannot read them.
pub fn settings_have_credentials(repository: &Repository) -> Result<bool> {
    Ok(repository.configuration()?.any_own(has_credential))
}

/// Whether a setting has a password or a token: in an address, as a header of HTTP, by its name, or in a line of the shell that
/// prints it.
fn has_credential(name: &str, value: &str) -> bool {
    let is_header = name.starts_with("http.") && name.ends_with(".extraheader") && !value.is_empty();
    let is_named =
        [".pass", "smtppass", "password", "token"].iter().any(|end| name.ends_with(end)) && !value.is_empty();
    let is_printed = name.starts_with("credential.") && value.contains("password=");
    is_header || is_named || is_printed || has_password(name) || has_password(value)
}

/// An address without the user and the password in it.
fn without_user(address: &str) -> String {
    let parts = || {
        let (scheme, rest) = address.split_once("://")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Some(format!("{scheme}://{}{path}", authority.rsplit('@').next()?))
    };
    parts().unwrap_or_else(|| address.to_owned())
}
