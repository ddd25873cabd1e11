//! What agents share with the user and should leave as it is: the repository's settings and hooks, and the user's checkout.
//! Nothing here says who changed it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use lanewright_files::directory;
use lanewright_model::text::{counted, listed};

use crate::command::{Git, Result, nul_separated, path_text};
use crate::repo::Repository;

/// The most names that a sentence has.
const NAMED: usize = 5;

/// Sections that everyday commands of git write, set-ups as well.
const EVERYDAY: &[&str] = &["branch.", "submodule.", "maintenance."];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharedState {
    settings: BTreeMap<String, Vec<String>>,
    /// By their names.
    hooks: BTreeMap<String, Stamp>,
    /// Those that differ from the head, by their paths.
    files: BTreeMap<String, Option<Stamp>>,
}

/// Changes whenever the file does: programs cannot set the first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    changed: (i64, i64),
    size: u64,
    inode: u64,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        Some(Self { changed: (found.ctime(), found.ctime_nsec()), size: found.len(), inode: found.ino() })
    }
}

impl Repository {
    /// What agents share with the user, as it is.
    ///
    /// # Errors
    /// Git cannot read its settings, or list what is changed in the main worktree.
    pub fn shared_state(&self) -> Result<SharedState> {
        let mut settings = BTreeMap::<String, Vec<String>>::new();
        for entry in self.configuration_entries()?.into_iter().filter(|entry| entry.of_repository) {
            if !EVERYDAY.iter().any(|section| entry.name.starts_with(section)) {
                settings.entry(entry.name).or_default().push(entry.value);
            }
        }
        let hooks = directory::entries(&self.common_dir().join("hooks")).unwrap_or_default();
        let name = |path: &Path| path.file_name().map(|name| path_text(name.as_bytes()));
        let hooks = hooks.iter().filter_map(|path| Some((name(path)?, Stamp::of(path)?)));
        let main = self.main_worktree();
        let status = Git::new(main).reading_only().args(["status", "--porcelain", "-z", "--no-renames"]).run()?;
        let paths = nul_separated(&status).filter_map(|line| Some(path_text(line.get(3..)?)));
        let files = paths.map(|path| (path.clone(), Stamp::of(&main.join(path))));
        Ok(SharedState { settings, hooks: hooks.collect(), files: files.collect() })
    }
}

impl SharedState {
    /// A sentence for each kind of what is not as it was `before`; the lanes `who` worked meanwhile.
    pub fn changes_since(&self, before: &Self, who: &str) -> Vec<String> {
        let sentence = |names: Vec<String>, kind: &str, place: &str| {
            let (many, names) = (counted(names.len(), kind), listed(&names, NAMED));
            format!("{many} changed in {place} while {who} worked; it may have been you: {names}")
        };
        let kinds = [
            (differing(&before.settings, &self.settings), "git setting", "the repository"),
            (differing(&before.hooks, &self.hooks), "hook", "the repository"),
            (differing(&before.files, &self.files), "file", "your checkout"),
        ];
        let changed = kinds.into_iter().filter(|(names, ..)| !names.is_empty());
        changed.map(|(names, kind, place)| sentence(names, kind, place)).collect()
    }
}

fn differing<T: PartialEq>(before: &BTreeMap<String, T>, now: &BTreeMap<String, T>) -> Vec<String> {
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    let other = now.iter().filter(|(name, value)| before.get(*name) != Some(value)).map(|(name, _)| name);
    let mut names: Vec<String> = gone.chain(other).cloned().collect();
    names.sort();
    names
}
