//! Refs, commits, what is in them, and what the user's settings say of branches and remotes.

use std::collections::BTreeSet;

use lanewright_model::{CommitId, LaneId, RunId, Timestamp, TreeEntry, TreeEntryKind};

use crate::command::{GitError, Result, nul_separated, path_text};
use crate::fast::libgit2;
use crate::repo::{Repository, branch_reference, commit_id, commit_ids};

impl Repository {
    /// Where the branch `name` is; `None`: there is no such branch.
    pub fn branch_commit(&self, name: &str) -> Result<Option<CommitId>> {
        self.commit_at(&branch_reference(name))
    }

    /// The commit that the ref `reference` (a full name) leads to; `None`: there is no such ref.
    ///
    /// # Errors
    /// [`GitError::LostObject`]: it leads to something that cannot be read. Git itself does not tell that from no ref.
    pub fn commit_at(&self, reference: &str) -> Result<Option<CommitId>> {
        if let Some(known) = libgit2::commit_at(self, reference) {
            return Ok(known);
        }
        match (self.resolve(&format!("{reference}^{{commit}}"))?, self.target_of(reference)?) {
            (None, Some(lost)) => Err(GitError::LostObject { object: lost.to_string() }),
            (found, _) => Ok(found),
        }
    }

    /// What the ref `reference` leads to, whether or not that can be read; `None`: there is no such ref.
    pub fn target_of(&self, reference: &str) -> Result<Option<CommitId>> {
        let find = || Ok(self.references(reference)?.into_iter().find(|(name, _)| name == reference).map(|(_, to)| to));
        libgit2::target_of(self, reference).map_or_else(find, Ok)
    }

    fn resolve(&self, name: &str) -> Result<Option<CommitId>> {
        let found = self.git().args(["rev-parse", "--verify", "--quiet", name]).line_if_any()?;
        found.map(|name| commit_id(name.as_bytes())).transpose()
    }

    /// Whether `descendant` holds everything that `ancestor` holds; a commit is its own ancestor.
    pub fn is_ancestor(&self, ancestor: &CommitId, descendant: &CommitId) -> Result<bool> {
        if ancestor == descendant {
            return Ok(true);
        }
        let git = || self.git().args(["merge-base", "--is-ancestor", ancestor.as_str(), descendant.as_str()]);
        libgit2::is_ancestor(self, ancestor, descendant).map_or_else(|| Ok(git().yes()?), Ok)
    }

    /// Those of `commits` that `tip` holds, found in one walk of the history. A commit that is not in the repository is in
    /// no history.
    pub fn held_by(&self, tip: &CommitId, commits: &BTreeSet<CommitId>) -> Result<BTreeSet<CommitId>> {
        let there = self.existing_commits(commits.iter().cloned())?.into_iter().collect();
        let outside = self.outside_of(&there, &[&format!("^{tip}")])?;
        Ok(there.into_iter().filter(|commit| !outside.contains(commit)).collect())
    }

    /// Those of `commits` that no ref leads to, found in one walk of the history; all of them where it cannot be walked.
    pub(crate) fn without_reference(&self, commits: &BTreeSet<CommitId>) -> Result<BTreeSet<CommitId>> {
        let there: BTreeSet<CommitId> = self.existing_commits(commits.iter().cloned())?.into_iter().collect();
        let outside = self.outside_of(&there, &["--not", "--glob=refs/*"]).unwrap_or_else(|_| there.clone());
        let is_known = |commit: &&CommitId| there.contains(*commit) && !outside.contains(*commit);
        Ok(commits.iter().filter(|commit| !is_known(commit)).cloned().collect())
    }

    /// Those of `commits`, which the repository has, that are not in the history of `others`: arguments of `git rev-list`.
    fn outside_of(&self, commits: &BTreeSet<CommitId>, others: &[&str]) -> Result<BTreeSet<CommitId>> {
        if commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        let asked: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let git = self.git().args(["rev-list", "--stdin"]).args(others);
        let listed = commit_ids(&git.input(asked.into_bytes()).run()?)?;
        Ok(listed.into_iter().filter(|commit| commits.contains(commit)).collect())
    }

    pub(crate) fn is_in_any(&self, commit: &CommitId, holders: &[CommitId]) -> Result<bool> {
        for holder in holders {
            if self.is_ancestor(commit, holder)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) fn is_in_any_reference(&self, commit: &CommitId) -> Result<bool> {
        let git = self.git().args(["for-each-ref", "--count=1", "--contains", commit.as_str()]);
        Ok(!git.run()?.is_empty())
    }

    pub fn has_commit(&self, commit: &CommitId) -> Result<bool> {
        let git = self.git().args(["cat-file", "-e", &format!("{commit}^{{commit}}")]);
        Ok(git.attempt()?.status.success())
    }

    /// Those of `commits` that are in the repository.
    pub fn existing_commits(&self, commits: impl IntoIterator<Item = CommitId>) -> Result<Vec<CommitId>> {
        let asked: String = commits.into_iter().map(|commit| format!("{commit}\n")).collect();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let git = self.git().args(["cat-file", "--batch-check=%(objectname) %(objecttype)"]).input(asked.into_bytes());
        let answers = git.line()?;
        let found = answers.lines().filter_map(|line| line.strip_suffix(" commit"));
        found.map(|commit| commit_id(commit.as_bytes())).collect()
    }

    pub fn is_related(&self, one: &CommitId, other: &CommitId) -> Result<bool> {
        let git = || self.git().args(["merge-base", one.as_str(), other.as_str()]);
        Ok(self.is_ancestor(one, other)? || git().attempt()?.status.code() != Some(1))
    }

    /// The first parent of `commit`; `None`: it has none, or is not in the repository.
    pub fn parent_of(&self, commit: &CommitId) -> Result<Option<CommitId>> {
        let output = self.git().args(["rev-parse", "--verify", "--quiet", &format!("{commit}^1")]).attempt()?;
        output.status.success().then(|| commit_id(&output.stdout)).transpose()
    }

    /// The directory of hooks that is set (`core.hooksPath`), is in the main worktree and is not in `commit`, so that new
    /// worktrees have no hooks.
    ///
    /// # Errors
    /// Git cannot list the files of the commit.
    pub fn hooks_outside_of(&self, commit: &CommitId) -> Result<Option<String>> {
        let settings = self.configuration()?;
        let place = settings.get("core.hookspath").filter(|place| !place.starts_with(['/', '~']));
        let Some(place) = place.filter(|place| self.main_worktree().join(place).is_dir()) else { return Ok(None) };
        let listed = self.git().args(["ls-tree", "--name-only", commit.as_str(), "--", place]).run()?;
        Ok(listed.is_empty().then(|| place.to_owned()))
    }

    pub fn tree_of(&self, commit: &CommitId) -> Result<String> {
        let git = || self.git().args(["rev-parse", &format!("{commit}^{{tree}}")]);
        libgit2::tree_of(self, commit).map_or_else(|| Ok(git().line()?), Ok)
    }

    /// When `commit` was made, to the second.
    pub fn commit_time(&self, commit: &CommitId) -> Result<Timestamp> {
        let seconds: i64 = self.show("%ct", commit)?.parse().unwrap_or_default();
        Ok(Timestamp::from_unix_millis(seconds.saturating_mul(1000)))
    }

    pub fn message_of(&self, commit: &CommitId) -> Result<String> {
        Ok(self.show("%B", commit)?.trim_end().to_owned())
    }

    /// What `git show` prints of a commit in `format`.
    pub(crate) fn show(&self, format: &str, commit: &CommitId) -> Result<String> {
        Ok(self.git().args(["show", "--no-patch", &format!("--format={format}"), commit.as_str()]).line()?)
    }

    /// How two commits differ, a line a file and a sum (`git diff --stat`).
    pub fn diff_stat(&self, from: &CommitId, to: &CommitId) -> Result<String> {
        let git = self.git().args(["diff", "--stat=80", "--no-ext-diff", "--no-color", from.as_str(), to.as_str()]);
        Ok(path_text(&git.run()?))
    }

    pub(crate) fn subject_of(&self, commit: &CommitId) -> Result<String> {
        libgit2::subject_of(self, commit).map_or_else(|| self.show("%s", commit), Ok)
    }

    /// The ref `prefix` and those below it or, where it has a `*`, those that match it, each with its commit.
    pub fn references(&self, prefix: &str) -> Result<Vec<(String, CommitId)>> {
        let below = prefix.trim_end_matches('/');
        let (pattern, all) =
            if prefix.contains('*') { (prefix.to_owned(), true) } else { (format!("{below}*"), false) };
        if let Some(mut known) = libgit2::references(self, &pattern) {
            let is_below =
                |name: &str| name.strip_prefix(below).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            known.retain(|(name, _)| all || is_below(name));
            return Ok(known);
        }
        let listing = self.git().args(["for-each-ref", "--format=%(objectname) %(refname)", prefix]).line()?;
        let pairs = listing.lines().filter_map(|line| line.split_once(' '));
        pairs.map(|(commit, name)| Ok((name.to_owned(), commit_id(commit.as_bytes())?))).collect()
    }

    /// The commits on `branch` with the trailer of `run` that none of `known` holds, the newest first.
    pub fn commits_of_run(&self, run: &RunId, branch: &str, known: &[CommitId]) -> Result<Vec<CommitId>> {
        if self.branch_commit(branch)?.is_none() {
            return Ok(Vec::new());
        }
        let git = self.git().args(["rev-list", "--fixed-strings", "--grep", &format!("Run: {run}")]);
        let git = git.arg(branch_reference(branch)).arg("--not").args(known.iter().map(CommitId::as_str));
        commit_ids(&git.run()?)
    }

    /// How many commits `tip` holds that `base` does not.
    pub fn commits_between(&self, base: &CommitId, tip: &CommitId) -> Result<usize> {
        let counted = self.git().args(["rev-list", "--count", &format!("{base}..{tip}")]).run()?;
        Ok(path_text(&counted).trim().parse().unwrap_or_default())
    }

    /// Whether a commit that `tip` holds names the run and the lane in its trailers.
    pub fn names_lane(&self, tip: &CommitId, run: &RunId, lane: &LaneId) -> Result<bool> {
        let trailer = |name: &str, value: &str| format!("--grep=^{name}: {}$", value.replace('.', "\\."));
        let git = self.git().args(["rev-list", "--max-count=1", "--all-match"]);
        let git = git.args([trailer("Run", run.as_str()), trailer("Lane", lane.as_str())]);
        Ok(!git.arg(tip.as_str()).run()?.is_empty())
    }

    /// Every file, link and submodule of a commit, sorted by path.
    pub fn entries(&self, commit: &CommitId) -> Result<Vec<TreeEntry>> {
        let git = self.git().args(["ls-tree", "-r", "-z", "--full-tree", "--long", commit.as_str()]);
        let mut entries: Vec<TreeEntry> = nul_separated(&git.run()?).filter_map(entry).collect();
        entries.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(entries)
    }

    /// The bytes of a file's object, as they are stored: no filter is applied.
    pub fn contents(&self, object: &str) -> Result<Vec<u8>> {
        let git = || self.git().args(["cat-file", "blob", object]);
        libgit2::contents(self, object).map_or_else(|| Ok(git().run()?), Ok)
    }

    /// The content of a file in a commit; `None`: there is none.
    pub fn file_in(&self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>> {
        let output = self.git().args(["cat-file", "blob", &format!("{commit}:{path}")]).attempt()?;
        Ok(output.status.success().then_some(output.stdout))
    }

    /// The names in a directory of a commit, relative to the repository's root; none where it does not exist.
    pub fn names_in(&self, commit: &CommitId, directory: &str) -> Result<Vec<String>> {
        let git = self.git().args(["ls-tree", "-z", "--name-only", "--full-tree", &format!("{commit}:{directory}")]);
        let output = git.attempt()?;
        let listed = if output.status.success() { output.stdout } else { Vec::new() };
        Ok(nul_separated(&listed).map(path_text).collect())
    }
}

/// Reads `100644 blob OBJECT SIZE\tPATH`.
fn entry(line: &[u8]) -> Option<TreeEntry> {
    let (facts, path) = split_tab(line)?;
    let facts = path_text(facts);
    let mut facts = facts.split_ascii_whitespace();
    let (mode, _, object, size) = (facts.next()?, facts.next()?, facts.next()?, facts.next()?);
    let kind = match mode {
        "120000" => TreeEntryKind::Link,
        "160000" => TreeEntryKind::Submodule,
        _ => TreeEntryKind::File,
    };
    let size = size.parse().unwrap_or_default();
    Some(TreeEntry { path: path_text(path), kind, size, object: object.to_owned() })
}

/// What is before and after the first tab of a line: git separates a path by one.
pub(crate) fn split_tab(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let tab = line.iter().position(|&byte| byte == b'\t')?;
    Some((&line[..tab], &line[tab + 1..]))
}

/// The remote that `branch` follows according to the settings; `None`: it follows none.
pub fn upstream_remote(repository: &Repository, branch: &str) -> Result<Option<String>> {
    let name = configured(repository, &format!("branch.{branch}.remote"))?;
    // A branch that follows another one of the same repository names the remote `.`.
    Ok(name.filter(|name| name != "."))
}

/// The address of `remote` as the user wrote it, before `url.….insteadOf` changes it.
pub fn written_url(repository: &Repository, remote: &str) -> Result<Option<String>> {
    configured(repository, &format!("remote.{remote}.url"))
}

fn configured(repository: &Repository, key: &str) -> Result<Option<String>> {
    Ok(repository.git().args(["config", "--get", key]).line_if_any()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_entry_line_is_parsed_with_any_path() {
        let read = |line: &[u8]| entry(line).map(|entry| (entry.path, entry.kind, entry.size));
        let file = read(b"100755 blob 0123456789abcdef0123456789abcdef01234567      12\tsrc/a b\tc\n.rs");
        assert_eq!(file, Some(("src/a b\tc\n.rs".to_owned(), TreeEntryKind::File, 12)));
        let module = read(b"160000 commit 0123456789abcdef0123456789abcdef01234567       -\tvendor/x");
        assert_eq!(module, Some(("vendor/x".to_owned(), TreeEntryKind::Submodule, 0)));
        assert_eq!(read(b"nonsense"), None);
    }
}
