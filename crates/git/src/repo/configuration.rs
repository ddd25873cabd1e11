//! Git's settings, read once for as long as their files stay as they are.

use crate::command::{Result, path_text};
use crate::repo::Repository;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct Configuration {
    /// By names as git prints them: section and key in lower case.
    values: HashMap<String, String>,
    /// All of the repository's own, in the order in which git reads them.
    own: Vec<(String, String)>,
    /// The files that were read, or would have been.
    files: Stamps,
}

/// The settings as they were when they were last read; shared by all copies of a [`Repository`].
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownConfiguration(Arc<Mutex<Option<Arc<Configuration>>>>);

impl KnownConfiguration {
    pub(crate) fn now(&self, repository: &Repository) -> Result<Arc<Configuration>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(configuration) if configuration.files.are_current() => Ok(configuration.clone()),
            _ => Ok(known.insert(Arc::new(Configuration::read(repository)?)).clone()),
        }
    }
}

/// One line of git's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationEntry {
    /// The file that has it; a relative path is one below the main worktree.
    pub file: PathBuf,
    /// As git prints it: section and key in lower case.
    pub name: String,
    pub value: String,
    /// Whether it is one of the repository's own settings, or of those of a worktree, and not the user's or the machine's.
    pub of_repository: bool,
}

/// All settings of the repository's files and of those of the user and the machine, in the order in which git reads them; a
/// setting may be there several times.
///
/// # Errors
/// Git cannot read one of the files.
pub(crate) fn entries(repository: &Repository) -> Result<Vec<ConfigurationEntry>> {
    let listing = repository.git().args(["config", "--null", "--list", "--show-scope", "--show-origin"]).run()?;
    let parts: Vec<&[u8]> = listing.split(|&byte| byte == 0).collect();
    let of_file = |parts: &[&[u8]]| {
        let file = OsStr::from_bytes(parts[1].strip_prefix(b"file:")?).into();
        let text = path_text(parts[2]);
        let (name, value) = text.split_once('\n').unwrap_or((&text, "true"));
        let of_repository = [b"local".as_slice(), b"worktree"].contains(&parts[0]);
        Some(ConfigurationEntry { file, name: name.to_owned(), value: value.to_owned(), of_repository })
    };
    Ok(parts.chunks_exact(3).filter_map(of_file).collect())
}

impl Configuration {
    fn read(repository: &Repository) -> Result<Self> {
        let main = repository.main_worktree();
        // Before they are read: what changes meanwhile is read again.
        let mut files = Stamps::of(usual_files(repository.common_dir()));
        let (mut values, mut own) = (HashMap::new(), Vec::new());
        for ConfigurationEntry { file, name, value, of_repository } in entries(repository)? {
            files.add(main.join(file));
            own.extend(of_repository.then(|| (name.clone(), value.clone())));
            values.insert(name, value);
        }
        Ok(Self { values, own, files })
    }

    /// The value of a setting, whose section and key are in lower case.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The settings whose names begin with `prefix`, which is left out, by name.
    pub(crate) fn below<'a>(&'a self, prefix: &'a str) -> std::collections::BTreeMap<&'a str, &'a str> {
        let below = |(name, value): (&'a String, &'a String)| Some((name.strip_prefix(prefix)?, value.as_str()));
        self.values.iter().filter_map(below).collect()
    }

    /// Whether `of` holds for the name and a value of a setting of the repository's own, also of a value that another replaces.
    pub(crate) fn any_own(&self, of: fn(&str, &str) -> bool) -> bool {
        self.own.iter().any(|(name, value)| of(name, value))
    }

    /// A boolean setting; `None`: it is not set.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(is_true)
    }

    /// Whether every worktree sees the same settings.
    pub(crate) fn is_uniform(&self) -> bool {
        let conditional = self.values.keys().any(|name| name.starts_with("includeif."));
        !conditional && self.flag("extensions.worktreeconfig") != Some(true)
    }
}

/// Whether git takes `value` for true.
pub(crate) fn is_true(value: &str) -> bool {
    !["false", "no", "off", "0", ""].contains(&value.to_ascii_lowercase().as_str())
}

/// Where settings of the repository whose common directory is `common` usually are, whether or not there are any now.
pub(crate) fn usual_files(common: &Path) -> Vec<PathBuf> {
    let mut files = vec![common.join("config")];
    files.extend(std::env::home_dir().map(|home| home.join(".gitconfig")));
    let named = std::env::var_os("XDG_CONFIG_HOME").filter(|name| !name.is_empty()).map(PathBuf::from);
    let user = named.or_else(|| std::env::home_dir().map(|home| home.join(".config")));
    files.extend(user.map(|directory| directory.join("git/config")));
    files
}

/// Files, each with its modification and change time, inode and size as they were; `None`: it did not exist.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamps(Vec<(PathBuf, Option<Stamp>)>);

type Stamp = [i64; 6];

impl Stamps {
    pub(crate) fn of(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut stamps = Self::default();
        files.into_iter().for_each(|file| stamps.add(file));
        stamps
    }

    fn add(&mut self, file: PathBuf) {
        if !self.0.iter().any(|(known, _)| *known == file) {
            let now = stamp(&file);
            self.0.push((file, now));
        }
    }

    pub(crate) fn are_current(&self) -> bool {
        self.0.iter().all(|(file, then)| stamp(file) == *then)
    }
}

fn stamp(file: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(file).ok()?;
    let [inode, size] = [found.ino(), found.size()].map(u64::cast_signed);
    Some([found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec(), inode, size])
}
