//! Files that two sides of a merge added, which git merges, and whose names do not go together.

use std::collections::BTreeMap;

use lanewright_model::CommitId;

use crate::command::{Result, path_text};
use crate::repo::Repository;

/// A path that the side that is merged added, and the one that was there.
pub type Clash = (String, String);

#[derive(Debug, Default, PartialEq, Eq)]
pub struct NameClashes {
    /// They differ only by letter case: file systems of macOS and Windows hold one of them.
    pub by_case: Vec<Clash>,
    /// They are in one directory and begin with the same number, as files do that it orders: migrations, changelog fragments.
    pub by_number: Vec<Clash>,
}

impl Repository {
    /// Which files that `theirs` added clash with files that `ours` added, since the two parted.
    ///
    /// # Errors
    /// A commit cannot be read.
    pub fn name_clashes(&self, ours: &CommitId, theirs: &CommitId) -> Result<NameClashes> {
        let Some(base) = self.merge_base(ours, theirs)? else { return Ok(NameClashes::default()) };
        let added = |to: &CommitId| -> Result<Vec<String>> {
            let new = self.differences(&base, to)?.into_iter().filter(|it| it.from == 0);
            Ok(new.map(|it| path_text(&it.path)).collect())
        };
        Ok(clashes(&added(ours)?, &added(theirs)?))
    }
}

fn clashes(ours: &[String], theirs: &[String]) -> NameClashes {
    let known: BTreeMap<String, &String> = ours.iter().map(|path| (path.to_lowercase(), path)).collect();
    let numbered: BTreeMap<(&str, &str), &String> =
        ours.iter().filter_map(|path| Some((number_of(path)?, path))).collect();
    let other = |path: &String, found: Option<&&String>| {
        found.filter(|there| **there != path).map(|there| (path.clone(), (*there).clone()))
    };
    NameClashes {
        by_case: theirs.iter().filter_map(|path| other(path, known.get(&path.to_lowercase()))).collect(),
        by_number: theirs.iter().filter_map(|path| other(path, numbered.get(&number_of(path)?))).collect(),
    }
}

/// The directory of a file and the number with which its name begins, as in `0012_users.sql`, `V7__users.sql` or `12.fix.md`.
fn number_of(path: &str) -> Option<(&str, &str)> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let name = name.strip_prefix('V').unwrap_or(name);
    let (number, rest) = name.split_at(name.find(|character: char| !character.is_ascii_digit())?);
    (!number.is_empty() && rest.starts_with(['_', '-', '.'])).then_some((directory, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|&path| path.to_owned()).collect()
    }

    fn pair(one: &str, other: &str) -> Clash {
        (one.to_owned(), other.to_owned())
    }

    #[test]
    fn names_that_differ_by_case_clash() {
        let found =
            clashes(&paths(&["README.md", "src/Ünit.rs", "same"]), &paths(&["Readme.md", "src/ünit.rs", "same"]));
        assert_eq!(found.by_case, [pair("Readme.md", "README.md"), pair("src/ünit.rs", "src/Ünit.rs")]);
        assert_eq!(found.by_number, []);
    }

    #[test]
    fn files_of_one_directory_with_one_number_clash() {
        let ours = paths(&["db/0007_users.sql", "db/V8__a.sql", "notes/12.fix.md", "2024.txt", "7up.sql"]);
        let theirs =
            paths(&["db/0007_orders.sql", "db/V8__b.sql", "notes/12.feature.md", "other/0007_a.sql", "7x.sql"]);
        let expected = [
            pair("db/0007_orders.sql", "db/0007_users.sql"),
            pair("db/V8__b.sql", "db/V8__a.sql"),
            pair("notes/12.feature.md", "notes/12.fix.md"),
        ];
        assert_eq!(clashes(&ours, &theirs).by_number, expected);
    }
}
