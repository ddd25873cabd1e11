//! What jobs reach in a sandbox besides their worktree, as data. Pure.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use lanewright_model::Runner;
use serde::Deserialize;

use crate::runner::known_writes;

const TEXT: &str = include_str!("../templates/sandbox.toml");

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lists {
    caches: Vec<String>,
    deny_read: Vec<String>,
    sockets: Vec<String>,
}

/// A test reads the lists.
static LISTS: LazyLock<Lists> = LazyLock::new(|| toml::from_str(TEXT).unwrap_or_default());

/// Places that are written as `~/…`, `$NAME`, `$NAME/…` or an absolute path.
pub struct Places<'a> {
    /// The value of a variable as the job sees it.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Places<'_> {
    /// The place that is written as `text`; `None`: a variable in it is not set, or it is relative.
    pub fn place(&self, text: &str) -> Option<PathBuf> {
        let (first, rest) = text.split_once('/').unwrap_or((text, ""));
        let start = match first.strip_prefix('$') {
            Some(name) => (self.variable)(name)?,
            None if first == "~" => (self.variable)("HOME")?,
            None => return Some(PathBuf::from(text)).filter(|path| path.is_absolute()),
        };
        // With a slash at its end the path of a file would name a directory.
        let path =
            if rest.is_empty() { PathBuf::from(start) } else { Path::new(&start).join(rest.trim_end_matches('/')) };
        path.is_absolute().then_some(path)
    }

    fn all<'t>(&self, texts: impl IntoIterator<Item = &'t String>) -> Vec<PathBuf> {
        texts.into_iter().filter_map(|text| self.place(text)).collect()
    }

    /// Caches of package managers and build tools.
    pub fn caches(&self) -> Vec<PathBuf> {
        self.all(&LISTS.caches)
    }

    /// Sockets of programs that run whatever they are asked to.
    pub fn sockets(&self) -> Vec<PathBuf> {
        self.all(&LISTS.sockets)
    }

    /// What cannot be read: `set`, or what is so by default.
    pub fn hidden(&self, set: Option<&[String]>) -> Vec<PathBuf> {
        self.all(set.unwrap_or(&LISTS.deny_read))
    }

    /// What the program of an agent writes: that of `runner`, or of any included runner where the agent has a command of its
    /// own, which may start any of them. The second value: which of these are directories that the program expects to make.
    pub fn of_runner(&self, runner: Option<&Runner>) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let texts: Vec<&String> = match runner {
            Some(runner) => runner.writes.iter().collect(),
            None => known_writes().collect(),
        };
        let made = texts.iter().filter(|text| runner.is_some() && text.ends_with('/')).copied();
        (self.all(texts.iter().copied()), self.all(made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_sandbox_are_valid() {
        let lists: Lists = toml::from_str(TEXT).unwrap();
        let all = [lists.caches, lists.deny_read, lists.sockets].concat().into_iter().chain(known_writes().cloned());
        let odd: Vec<String> = all.filter(|text| !text.starts_with(['~', '$', '/'])).collect();
        assert_eq!(odd, [] as [&str; 0]);
        assert!(known_writes().count() >= 5);
    }

    #[test]
    fn places_of_unset_variables_are_left_out() {
        let variable = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
        let places = Places { variable: &variable };
        assert_eq!(places.place("~/.codex/"), Some("/home/me/.codex".into()));
        assert_eq!(places.place("$CODEX_HOME/x"), None);
        assert_eq!(places.place("/srv/cache"), Some("/srv/cache".into()));
        assert_eq!(places.place("cache"), None);
    }
}
