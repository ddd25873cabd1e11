//! The refs in a git directory, read from its files.

use std::collections::BTreeMap;
use std::path::Path;

use lanewright_files::directory;
use lanewright_files::regular_file;
use lanewright_model::CommitId;

use super::files::{is_object_name, read_small};
use crate::command::Result;
use crate::fast::libgit2;
use crate::repo::Repository;

/// How many refs are read at most.
const MOST_REFERENCES: usize = 200_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) object: String,
    /// What a tag leads to.
    pub(super) peeled: Option<String>,
}

/// Below it git believes `packed-refs` about what tags lead to, if that says that it knows.
const TAGS: &str = "refs/tags/";

/// The refs in a git directory, by their full names.
#[derive(Debug, Default)]
pub(super) struct References {
    pub(super) named: BTreeMap<String, Reference>,
    /// Those that lead to other refs, with their names.
    pub(super) symbolic: BTreeMap<String, String>,
    /// Those below [`TAGS`] of which the files do not say whether they lead to something else.
    unpeeled: Vec<String>,
}

impl References {
    /// Those in `git` without those that begin with one of `without`.
    pub(super) fn of(git: &Path, without: &[&str]) -> Result<Self> {
        let mut this = Self::read_packed(&git.join("packed-refs"))?;
        this.read_loose(git, "refs")?;
        let is_left_out = |name: &str| without.iter().any(|prefix| name == *prefix || name.starts_with(prefix));
        this.named.retain(|name, _| !is_left_out(name));
        this.symbolic.retain(|name, _| !is_left_out(name));
        Ok(this)
    }

    pub(super) fn read_packed(file: &Path) -> Result<Self> {
        let text = regular_file::read_if_there(file)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut this = Self::default();
        let mut last: Option<String> = None;
        for line in text.lines().take(MOST_REFERENCES) {
            if let Some(peeled) = line.strip_prefix('^') {
                if let Some(reference) = last.as_ref().and_then(|name| this.named.get_mut(name)) {
                    reference.peeled = Some(peeled.to_owned());
                }
            } else if let Some((object, name)) = line.split_once(' ').filter(|(object, _)| is_object_name(object)) {
                this.named.insert(name.to_owned(), Reference { object: object.to_owned(), peeled: None });
                last = Some(name.to_owned());
            }
        }
        if !text.lines().next().is_some_and(|line| line.starts_with('#') && line.contains(" peeled ")) {
            this.unpeeled = this.named.keys().filter(|name| name.starts_with(TAGS)).cloned().collect();
        }
        Ok(this)
    }

    fn read_loose(&mut self, git: &Path, name: &str) -> Result<()> {
        for (path, kind) in directory::entries_with_kinds(&git.join(name))? {
            let Some(part) = path.file_name().and_then(|part| part.to_str()) else { continue };
            let name = format!("{name}/{part}");
            if kind.is_dir() {
                self.read_loose(git, &name)?;
            } else if self.named.len() < MOST_REFERENCES
                && !name.ends_with(".lock")
                && let Some(text) = read_small(&path)
            {
                let line = text.lines().next().unwrap_or_default();
                if let Some(target) = line.strip_prefix("ref: ") {
                    self.named.remove(&name);
                    self.symbolic.insert(name, target.to_owned());
                } else if is_object_name(line) {
                    self.unpeeled.extend(Some(&name).filter(|name| name.starts_with(TAGS)).cloned());
                    self.named.insert(name, Reference { object: line.to_owned(), peeled: None });
                }
            }
        }
        Ok(())
    }

    /// Whether a ref can have that name beside these.
    pub(super) fn may_have(&self, name: &str) -> bool {
        let is_in_the_way = |known: &String| {
            let is_below = |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
            known == name || is_below(known, name) || is_below(name, known)
        };
        !self.named.keys().chain(self.symbolic.keys()).any(is_in_the_way)
    }

    /// Looks up what tags lead to where no file says it, if libgit2 can.
    pub(super) fn peel(&mut self, repository: &Repository) {
        if self.unpeeled.is_empty() {
            return;
        }
        let named: Vec<String> = self.unpeeled.iter().filter(|name| self.named.contains_key(*name)).cloned().collect();
        let objects = named.iter().map(|name| self.named[name].object.as_str());
        let Some(peeled) = libgit2::peeled(repository, objects) else { return };
        for (name, peeled) in named.iter().zip(peeled) {
            if let Some(reference) = self.named.get_mut(name) {
                reference.peeled = peeled;
            }
        }
        self.unpeeled.clear();
    }

    /// As a `packed-refs`. Programs such as GitPython read only those that say that they know what tags lead to.
    pub(super) fn packed(&self) -> String {
        let peeled = if self.unpeeled.is_empty() { "peeled " } else { "" };
        let mut text = format!("# pack-refs with: {peeled}sorted \n");
        for (name, reference) in &self.named {
            text.extend([&reference.object, " ", name, "\n"]);
            if let Some(peeled) = &reference.peeled {
                text.extend(["^", peeled, "\n"]);
            }
        }
        text
    }
}

pub(super) fn is_null(commit: &CommitId) -> bool {
    commit.as_str().bytes().all(|digit| digit == b'0')
}
