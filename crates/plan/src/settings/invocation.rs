//! Where a call happens.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Component, Path, PathBuf};

pub type Environment = BTreeMap<String, OsString>;

/// Where a call happens: what defaults and relative paths are worked out from.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The main worktree's root, absolute and without symbolic links.
    pub repository: PathBuf,
    /// The current directory, absolute and without symbolic links.
    pub directory: PathBuf,
    /// The user's home, for paths in files that begin with `~/`.
    pub home: Option<PathBuf>,
    /// How many processors may be used.
    pub cores: u32,
}

impl Invocation {
    /// Most agents wait for a model's answers, so a processor serves several (decision 34).
    pub(super) fn agents_at_once(&self) -> NonZeroU32 {
        const AT_LEAST: NonZeroU32 = NonZeroU32::new(4).expect("not zero");
        NonZeroU32::new(self.cores.saturating_mul(2)).map_or(AT_LEAST, |number| number.max(AT_LEAST))
    }

    pub(super) fn sibling(&self, suffix: &str) -> PathBuf {
        let mut name = self.repository.file_name().unwrap_or_default().to_owned();
        name.push(suffix);
        self.repository.with_file_name(name)
    }

    /// `path` as a file's author means it: from the repository's root, `~/` from home.
    pub(super) fn path_in_file(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => absolute(home, rest),
            _ => absolute(&self.repository, path),
        }
    }
}

/// `path` as seen from `base`. Leading `..` are taken off `base`, which therefore must hold no symbolic link.
pub fn absolute(base: &Path, path: &Path) -> PathBuf {
    let mut whole = base.to_owned();
    let mut components = path.components().peekable();
    while let Some(Component::ParentDir | Component::CurDir) = components.peek() {
        if components.next() == Some(Component::ParentDir) {
            whole.pop();
        }
    }
    whole.extend(components);
    whole
}
