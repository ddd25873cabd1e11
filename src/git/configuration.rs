//! What git's settings say, asked once for as long as the files that say it stay as they are.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::error::GitError;
use super::program::{Git, path_text};
use super::repository::Repository;
use super::stamp::Stamps;

/// The settings of a repository, as its main worktree sees them.
#[derive(Debug)]
pub(crate) struct Configuration {
    /// By names as git prints them: section and key in lower case.
    values: HashMap<String, String>,
    /// The files that were read, or would have been.
    files: Stamps,
    /// Where attributes for all repositories would be.
    attributes: Vec<PathBuf>,
}

/// The settings as they were when they were last asked for; shared by all copies of a [`Repository`].
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownConfiguration(Arc<Mutex<Option<Arc<Configuration>>>>);

impl KnownConfiguration {
    /// The settings as they are now.
    pub(crate) fn now(&self, repository: &Repository) -> Result<Arc<Configuration>, GitError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(configuration) if configuration.files.are_current() => Ok(configuration.clone()),
            _ => Ok(known.insert(Arc::new(Configuration::read(repository)?)).clone()),
        }
    }
}

impl Configuration {
    fn read(repository: &Repository) -> Result<Self, GitError> {
        let main = repository.main_worktree();
        // Before they are read: what changes meanwhile is read again.
        let mut files = Stamps::now(usual_files(repository.common_dir()));
        let listing = Git::new(main).args(["config", "--null", "--list", "--show-origin"]).run()?;
        let mut values = HashMap::new();
        let parts: Vec<&[u8]> = listing.split(|&byte| byte == 0).collect();
        for pair in parts.chunks_exact(2) {
            let Some(file) = pair[0].strip_prefix(b"file:") else { continue };
            files.add(main.join(OsStr::from_bytes(file)));
            let text = path_text(pair[1]);
            let (name, value) = text.split_once('\n').unwrap_or((&text, "true"));
            values.insert(name.to_owned(), value.to_owned());
        }
        Ok(Self { values, files, attributes: usual_attributes(main)? })
    }

    /// The value of a setting, whose section and key are in lower case.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// A setting that is true or false; `None`: nothing is said.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let value = self.get(name)?.to_ascii_lowercase();
        Some(!["false", "no", "off", "0", ""].contains(&value.as_str()))
    }

    /// Where attributes of the user's and of the system's are if there are any and no setting says where.
    pub(crate) fn attribute_files(&self) -> &[PathBuf] {
        &self.attributes
    }

    /// Whether names, modes and links are on disk as they are in trees, all of them, the same in every worktree.
    pub(crate) fn keeps_names_and_modes(&self) -> bool {
        let changing = ["core.ignorecase", "core.precomposeunicode", "core.sparsecheckout", "core.splitindex"];
        let needed = ["core.symlinks", "core.filemode"];
        let is = |value: bool| move |name: &&str| self.flag(name) == Some(value);
        self.is_uniform() && !changing.iter().any(is(true)) && !needed.iter().any(is(false))
    }

    /// Whether every worktree sees the same settings.
    pub(crate) fn is_uniform(&self) -> bool {
        let conditional = self.values.keys().any(|name| name.starts_with("includeif."));
        !conditional && self.flag("extensions.worktreeconfig") != Some(true)
    }
}

/// Where settings of the repository whose common directory is `common` usually are, whether or not there are any now.
pub(crate) fn usual_files(common: &Path) -> Vec<PathBuf> {
    let mut files = vec![common.join("config")];
    files.extend(std::env::home_dir().map(|home| home.join(".gitconfig")));
    files.extend(user_directory().map(|directory| directory.join("config")));
    files
}

/// Where git looks for what the user says for all repositories.
fn user_directory() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CONFIG_HOME").filter(|name| !name.is_empty()).map(PathBuf::from);
    named.or_else(|| std::env::home_dir().map(|home| home.join(".config"))).map(|directory| directory.join("git"))
}

/// Where attributes are that no repository holds; the system's place is a matter of how git was built.
fn usual_attributes(main: &Path) -> Result<Vec<PathBuf>, GitError> {
    let system = Git::new(main).args(["var", "GIT_ATTR_SYSTEM"]).attempt()?;
    let system = system.stdout.trim_ascii_end();
    let system = (!system.is_empty()).then(|| main.join(OsStr::from_bytes(system)));
    Ok(system.into_iter().chain(user_directory().map(|directory| directory.join("attributes"))).collect())
}
