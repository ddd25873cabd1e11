//! The refs in a git directory, read from its files.

use std::collections::BTreeMap;
use std::path::Path;

use lanewright_files::directory;
use lanewright_files::regular_file;
use lanewright_model::CommitId;

use super::files::{is_object_name, read_small};
use crate::command::Result;

/// How many refs are read at most.
const MOST_REFERENCES: usize = 200_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) object: String,
    /// What a tag leads to, as git noted it.
    pub(super) peeled: Option<String>,
}

/// The refs in a git directory, by their full names.
#[derive(Debug, Default)]
pub(super) struct References {
    pub(super) named: BTreeMap<String, Reference>,
    /// Those that lead to other refs, with their names.
    pub(super) symbolic: BTreeMap<String, String>,
}

impl References {
    /// Those in `git` without those that begin with one of `without`.
    pub(super) fn of(git: &Path, without: &[&str]) -> Result<Self> {
        let mut this = Self { named: Self::read_packed(&git.join("packed-refs"))?, symbolic: BTreeMap::new() };
        this.read_loose(git, "refs")?;
        let is_left_out = |name: &str| without.iter().any(|prefix| name == *prefix || name.starts_with(prefix));
        this.named.retain(|name, _| !is_left_out(name));
        this.symbolic.retain(|name, _| !is_left_out(name));
        Ok(this)
    }

    pub(super) fn read_packed(file: &Path) -> Result<BTreeMap<String, Reference>> {
        let text = regular_file::read_if_there(file)?.unwrap_or_default();
        let mut found: BTreeMap<String, Reference> = BTreeMap::new();
        let mut last: Option<String> = None;
        for line in String::from_utf8_lossy(&text).lines().take(MOST_REFERENCES) {
            if let Some(peeled) = line.strip_prefix('^') {
                if let Some(reference) = last.as_ref().and_then(|name| found.get_mut(name)) {
                    reference.peeled = Some(peeled.to_owned());
                }
            } else if let Some((object, name)) = line.split_once(' ').filter(|(object, _)| is_object_name(object)) {
                found.insert(name.to_owned(), Reference { object: object.to_owned(), peeled: None });
                last = Some(name.to_owned());
            }
        }
        Ok(found)
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

    /// As a `packed-refs`.
    pub(super) fn packed(&self) -> String {
        let mut text = "# pack-refs with: sorted \n".to_owned();
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
