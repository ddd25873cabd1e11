//! Reads what git's settings say of commits, and compares it with what a run found.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::command::Result;
use crate::repo::commit_rules::NAMES;
use crate::repo::{CommitRules, CommitSettings, ConfigurationEntry, Repository};

/// A setting of the repository that is not as a run found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSetting {
    pub name: String,
    /// `None`: it was not set.
    pub before: Option<String>,
    /// `None`: it is not set.
    pub now: Option<String>,
}

fn of_repository(entries: &[ConfigurationEntry]) -> BTreeMap<String, String> {
    let own = entries.iter().filter(|entry| entry.of_repository && NAMES.contains(&entry.name.as_str()));
    own.map(|entry| (entry.name.clone(), entry.value.clone())).collect()
}

/// Those that the environment gives (`GIT_CONFIG_COUNT`), which count more than any file.
fn of_environment() -> Vec<(String, String)> {
    let variable = |name: String| std::env::var(name).ok();
    let count = variable("GIT_CONFIG_COUNT".to_owned()).and_then(|count| count.parse().ok()).unwrap_or(0);
    let pairs = (0..count).map_while(|number: u32| {
        let name = variable(format!("GIT_CONFIG_KEY_{number}"))?.to_ascii_lowercase();
        Some((name, variable(format!("GIT_CONFIG_VALUE_{number}"))?))
    });
    pairs.filter(|(name, _)| NAMES.contains(&name.as_str())).collect()
}

/// What the settings of each repository, by its common directory, were when this process used them first.
static FIRST: Mutex<BTreeMap<PathBuf, BTreeMap<String, String>>> = Mutex::new(BTreeMap::new());

fn first() -> MutexGuard<'static, BTreeMap<PathBuf, BTreeMap<String, String>>> {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CommitSettings {
    /// What `entries` say; of the repository's own settings those that were `recorded`, where a record exists.
    fn of(entries: &[ConfigurationEntry], recorded: Option<&BTreeMap<String, String>>) -> Self {
        let of_repository = recorded.cloned().unwrap_or_else(|| of_repository(entries));
        let others = entries.iter().filter(|entry| !entry.of_repository && NAMES.contains(&entry.name.as_str()));
        let mut values: BTreeMap<String, String> =
            others.map(|entry| (entry.name.clone(), entry.value.clone())).collect();
        values.extend(of_repository.clone());
        values.extend(of_environment());
        Self { values, of_repository }
    }
}

impl Repository {
    /// The same repository, whose commits are made as git's settings say now, whatever becomes of them; its own settings are
    /// those that were `recorded`, where a record exists.
    ///
    /// # Errors
    /// Git cannot read its settings.
    pub fn with_settings_of_commits(self, recorded: Option<&BTreeMap<String, String>>) -> Result<Self> {
        if let Some(recorded) = recorded {
            first().entry(self.common_dir().to_owned()).or_insert_with(|| recorded.clone());
        }
        let settings = Some(CommitSettings::of(&self.configuration_entries()?, recorded));
        let rules = CommitRules { settings, ..(*self.commit_rules).clone() };
        Ok(self.committing(rules))
    }

    /// The settings of the repository's own files that decide about commits, as they were before this process started an
    /// agent: those that it used first, also for another run.
    ///
    /// # Errors
    /// Git cannot read its settings.
    pub fn first_settings_of_commits(&self) -> Result<BTreeMap<String, String>> {
        let now = self.settings_of_commits()?;
        Ok(first().entry(self.common_dir().to_owned()).or_insert(now).clone())
    }

    /// The settings of the repository's own files that decide about commits, as they are.
    ///
    /// # Errors
    /// Git cannot read its settings.
    pub fn settings_of_commits(&self) -> Result<BTreeMap<String, String>> {
        Ok(of_repository(&self.configuration_entries()?))
    }

    /// Which settings of the repository's own files are not as its commits are made with.
    ///
    /// # Errors
    /// Git cannot read its settings.
    pub fn changed_settings_of_commits(&self) -> Result<Vec<ChangedSetting>> {
        let Some(used) = &self.commit_rules.settings else { return Ok(Vec::new()) };
        let now = self.settings_of_commits()?;
        let changed = NAMES.iter().filter(|name| used.of_repository.get(**name) != now.get(**name));
        let value = |values: &BTreeMap<String, String>, name: &str| values.get(name).cloned();
        Ok(changed
            .map(|name| ChangedSetting {
                name: (*name).to_owned(),
                before: value(&used.of_repository, name),
                now: value(&now, name),
            })
            .collect())
    }

    /// The value of one of git's settings with which commits are made; its name in lower case.
    pub(crate) fn setting_of_commits(&self, name: &str) -> Result<Option<String>> {
        match &self.commit_rules.settings {
            Some(settings) => Ok(settings.get(name).map(str::to_owned)),
            None => Ok(self.configuration()?.get(name).map(str::to_owned)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(of_repository: bool, name: &str, value: &str) -> ConfigurationEntry {
        ConfigurationEntry { file: "f".into(), name: name.into(), value: value.into(), of_repository }
    }

    #[test]
    fn recorded_settings_replace_those_of_the_repository() {
        let entries = [
            entry(false, "user.name", "Me"),
            entry(false, "core.editor", "vi"),
            entry(true, "user.name", "Bot"),
            entry(true, "gpg.program", "/tmp/evil"),
        ];
        let now = CommitSettings::of(&entries, None);
        assert_eq!((now.get("user.name"), now.get("core.editor")), (Some("Bot"), None));
        let recorded = BTreeMap::from([("user.email".to_owned(), "me@x".to_owned())]);
        let then = CommitSettings::of(&entries, Some(&recorded));
        assert_eq!((then.get("user.name"), then.get("user.email")), (Some("Me"), Some("me@x")));
        let overriding =
            then.overriding(&["user.name", "user.email", "gpg.program"], |name| now.get(name).map(str::to_owned));
        assert_eq!(overriding, ["user.name=Me", "user.email=me@x", "gpg.program="]);
    }
}
