//! What a commit holds, without a worktree.

use crate::git::command::error::GitError;
use crate::git::command::program::{Git, nul_separated, path_text};
use crate::git::repo::repository::Repository;
use crate::model::{CommitId, TreeEntry, TreeEntryKind};

impl Repository {
    /// Every file, link and submodule of a commit, sorted by path.
    ///
    /// # Errors
    /// What git says.
    pub fn entries(&self, commit: &CommitId) -> Result<Vec<TreeEntry>, GitError> {
        let git = Git::new(self.main_worktree()).args(["ls-tree", "-r", "-z", "--full-tree", "--long"]);
        let listing = git.arg(commit.as_str()).run()?;
        let mut entries: Vec<TreeEntry> = nul_separated(&listing).filter_map(entry).collect();
        entries.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(entries)
    }

    /// The bytes of a file's object, as they are stored: no filter is applied.
    ///
    /// # Errors
    /// What git says.
    pub fn contents(&self, object: &str) -> Result<Vec<u8>, GitError> {
        let known = self.in_process(|git| Ok(git.find_blob(git2::Oid::from_str(object)?)?.content().to_vec()));
        match known {
            Some(bytes) => Ok(bytes),
            None => Ok(Git::new(self.main_worktree()).args(["cat-file", "blob", object]).run()?),
        }
    }
}

/// Reads `100644 blob OBJECT SIZE\tPATH`.
fn entry(line: &[u8]) -> Option<TreeEntry> {
    let tab = line.iter().position(|&byte| byte == b'\t')?;
    let facts = path_text(&line[..tab]);
    let mut facts = facts.split_ascii_whitespace();
    let (mode, _, object, size) = (facts.next()?, facts.next()?, facts.next()?, facts.next()?);
    let kind = match mode {
        "120000" => TreeEntryKind::Link,
        "160000" => TreeEntryKind::Submodule,
        _ => TreeEntryKind::File,
    };
    let size = size.parse().unwrap_or_default();
    Some(TreeEntry { path: path_text(&line[tab + 1..]), kind, size, object: object.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_listing_is_read_whatever_its_path_holds() {
        let read = |line: &[u8]| entry(line).map(|entry| (entry.path, entry.kind, entry.size));
        let file = read(b"100755 blob 0123456789abcdef0123456789abcdef01234567      12\tsrc/a b\tc\n.rs");
        assert_eq!(file, Some(("src/a b\tc\n.rs".to_owned(), TreeEntryKind::File, 12)));
        let module = read(b"160000 commit 0123456789abcdef0123456789abcdef01234567       -\tvendor/x");
        assert_eq!(module, Some(("vendor/x".to_owned(), TreeEntryKind::Submodule, 0)));
        assert_eq!(read(b"nonsense"), None);
    }
}
