//! Files that one side of a merge added, which git merges, and whose names do not go together with others.

use std::collections::BTreeMap;

use lanewright_model::CommitId;

use crate::command::{Result, path_text};
use crate::fast::case_twins;
use crate::repo::Repository;

/// A path that the side which is merged added, and the other one.
pub type Clash = (String, String);

#[derive(Debug, Default, PartialEq, Eq)]
pub struct NameClashes {
    /// They differ only by letter case: file systems of macOS and Windows hold one of them.
    pub by_case: Vec<Clash>,
    /// They are in one directory and begin with the same number, as migrations do, which it orders.
    pub by_number: Vec<Clash>,
}

impl Repository {
    /// Which files that `theirs` added clash: by case with any file of `merged`, the merge of both; by number with files that
    /// `ours` added since the two parted.
    ///
    /// # Errors
    /// A commit cannot be read.
    pub fn name_clashes(&self, [ours, theirs]: [&CommitId; 2], merged: &CommitId) -> Result<NameClashes> {
        let Some(base) = self.merge_base(ours, theirs)? else { return Ok(NameClashes::default()) };
        let new = self.added(&base, theirs)?;
        let by_case = match case_twins::case_twins(self, merged, &new) {
            _ if new.is_empty() => Vec::new(),
            Some(known) => known,
            None => {
                let git = self.git().args(["ls-tree", "-r", "-z", "--name-only", "--full-tree", merged.as_str()]);
                twins(&git.paths()?, &new)
            }
        };
        Ok(NameClashes { by_case, by_number: of_one_number(&self.added(&base, ours)?, &new) })
    }

    /// The files that `theirs` has, and neither `base` nor `ours`, where `ours` has got another one of the same number since.
    ///
    /// # Errors
    /// A commit cannot be read.
    pub fn same_numbers(&self, base: &CommitId, [ours, theirs]: [&CommitId; 2]) -> Result<Vec<Clash>> {
        let mut clashes = of_one_number(&self.added(base, ours)?, &self.added(ours, theirs)?);
        if !clashes.is_empty() {
            let own = self.added(base, theirs)?;
            clashes.retain(|(path, _)| own.contains(path));
        }
        Ok(clashes)
    }

    fn added(&self, from: &CommitId, to: &CommitId) -> Result<Vec<String>> {
        let new = self.differences(from, to)?.into_iter().filter(|it| it.from == 0);
        Ok(new.map(|it| path_text(&it.path)).collect())
    }
}

/// The `new` paths with those of `all` that differ from them only by letter case.
fn twins(all: &[String], new: &[String]) -> Vec<Clash> {
    let mut known = BTreeMap::<String, Vec<&String>>::new();
    all.iter().for_each(|path| known.entry(path.to_lowercase()).or_default().push(path));
    let twin = |path: &String| known.get(&path.to_lowercase())?.iter().find(|twin| **twin != path).copied();
    new.iter().filter_map(|path| Some((path.clone(), twin(path)?.clone()))).collect()
}

fn of_one_number(ours: &[String], theirs: &[String]) -> Vec<Clash> {
    let numbered: BTreeMap<(&str, &str), &String> =
        ours.iter().filter_map(|path| Some((number_of(path)?, path))).collect();
    let other = |path: &String| numbered.get(&number_of(path)?).filter(|there| **there != path).copied();
    theirs.iter().filter_map(|path| Some((path.clone(), other(path)?.clone()))).collect()
}

/// The directory of a file and the number with which its name begins, as in `0012_users.sql` or `V1.2__users.sql`. Years and
/// dates are none, and the one of `12.fix.md`, a changelog fragment, is that of an issue.
fn number_of(path: &str) -> Option<(&str, &str)> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let name = name.strip_prefix('V').unwrap_or(name);
    let (number, rest) = name.split_at(name.find(|character: char| !character.is_ascii_digit() && character != '.')?);
    let is_date = number.len() >= 8 || number.len() == 4 && ["19", "20"].contains(&&number[..2]);
    let is_number = number.ends_with(|character: char| character.is_ascii_digit()) && !is_date;
    let title = rest.trim_start_matches(['_', '-']);
    // A second number is a part of a date or of a version; that of `2fa` is one of a word.
    let word = title.trim_start_matches(|character: char| character.is_ascii_digit());
    let begins_with_word = word.len() == title.len() || word.starts_with(char::is_alphabetic);
    (is_number && title.len() < rest.len() && begins_with_word).then_some((directory, number))
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
        let new = paths(&["Readme.md", "src/ünit.rs", "same"]);
        let found = twins(&[paths(&["README.md", "src/Ünit.rs"]), new.clone()].concat(), &new);
        assert_eq!(found, [pair("Readme.md", "README.md"), pair("src/ünit.rs", "src/Ünit.rs")]);
    }

    #[test]
    fn files_of_one_directory_with_one_number_clash() {
        let ours = paths(&["db/0007_users.sql", "db/V8__a.sql", "db/V1.1__a.sql", "notes/12-x.md", "7up.sql"]);
        let theirs = paths(&[
            "db/0007_orders.sql",
            "db/V8__b.sql",
            "db/V1.2__b.sql",
            "notes/12-y.md",
            "other/0007_a.sql",
            "7x.sql",
        ]);
        let expected = [
            pair("db/0007_orders.sql", "db/0007_users.sql"),
            pair("db/V8__b.sql", "db/V8__a.sql"),
            pair("notes/12-y.md", "notes/12-x.md"),
        ];
        assert_eq!(of_one_number(&ours, &theirs), expected);
    }

    #[test]
    fn dates_versions_and_issues_are_no_numbers_of_an_order() {
        for path in [
            "db/2026_11_05_120000_orders.php",
            "_posts/2026-11-05-post.md",
            "docs/2026-plan.md",
            "notes/12.fix.md",
            "1.2.3.txt",
            "7.sql",
            "3-4_x.txt",
            "db/20261105_2fa.sql",
        ] {
            assert_eq!(number_of(path), None, "{path}");
        }
        assert_eq!(number_of("db/V1.2__b.sql"), Some(("db", "1.2")));
        assert_eq!(number_of("db/0007_2fa.sql"), Some(("db", "0007")));
    }
}
