//! What the commits of a branch say about the lanes that runs merged into it, and about commits that were reverted since.

use lanewright_model::{CommitId, LaneId, RunId};

use crate::command::{Result, nul_separated, path_text};
use crate::fast::libgit2;
use crate::history::merge::UNDOES;
use crate::repo::{Repository, commit_id};

/// A lane whose work a commit completes on a branch, according to its trailers `Run`, `Lane` and `Plan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedLane {
    pub commit: CommitId,
    pub run: RunId,
    pub lane: LaneId,
    /// The digest of what the lane was to do.
    pub plan: String,
}

/// What the newest commits of a branch say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergedLanes {
    /// The newest first; those that were reverted are left out.
    pub lanes: Vec<MergedLane>,
    reverts: Vec<Reverting>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Reverting {
    by: CommitId,
    /// The commit that it reverts, or how that begins.
    reverts: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Merged(MergedLane),
    Reverted(Reverting),
}

/// How many commits are read: a walk through the whole history of a large repository takes seconds.
const MOST: usize = 5000;

/// How often a revert may be reverted.
const DEEPEST: usize = 20;

/// The shortest name of a commit that git writes into a message.
const SHORTEST: usize = 7;

impl Repository {
    /// What the newest 5,000 commits that `tip` holds say.
    ///
    /// # Errors
    /// What git returns.
    pub fn merged_lanes(&self, tip: &CommitId) -> Result<MergedLanes> {
        let git = || self.git().args(["log", "-z", "--no-show-signature", "--encoding=UTF-8", "--format=%H%x1f%B"]);
        let by_git = || -> Result<Vec<Said>> {
            let listing = git().arg(format!("--max-count={MOST}")).arg(tip.as_str()).run()?;
            let entries = nul_separated(&listing).map(path_text);
            let commits = entries.filter_map(|entry| {
                let (commit, message) = entry.split_once('\u{1f}')?;
                said(commit_id(commit.as_bytes()).ok()?, message)
            });
            Ok(commits.collect())
        };
        libgit2::in_messages(self, tip, MOST, &said).map_or_else(by_git, Ok).map(MergedLanes::of)
    }
}

impl MergedLanes {
    fn of(all: Vec<Said>) -> Self {
        let (mut lanes, mut reverts) = (Vec::new(), Vec::new());
        for said in all {
            match said {
                Said::Merged(lane) => lanes.push(lane),
                Said::Reverted(reverting) => reverts.push(reverting),
            }
        }
        let mut all = Self { lanes: Vec::new(), reverts };
        lanes.retain(|lane| !all.is_reverted(&lane.commit));
        all.lanes = lanes;
        all
    }

    /// Whether a commit says that it reverts `commit`, and none that it reverts that one.
    pub fn is_reverted(&self, commit: &CommitId) -> bool {
        self.reverts_hold(commit, 0)
    }

    /// Whether the work that `commit` brought onto `onto`, and that `at` has by other commits, was taken back since: in `tip`,
    /// whose commits these are, its files are as they were, or a commit is reverted that changed one of them. A forge may
    /// have made one commit of it, and may say of no commit that it reverts it.
    ///
    /// # Errors
    /// A commit cannot be read.
    pub fn is_taken_back(
        &self,
        repository: &Repository,
        (onto, commit): (&CommitId, &CommitId),
        (at, tip): (&CommitId, &CommitId),
    ) -> Result<bool> {
        // Another clone may not have the commit: then a revert of anything counts.
        let paths = repository.has_commit(commit)?.then(|| repository.changed_paths(onto, commit)).transpose()?;
        let is_of_work =
            |changed: Vec<String>| paths.as_ref().is_none_or(|paths| changed.iter().any(|path| paths.contains(path)));
        if paths.as_ref().is_some_and(|paths| !paths.is_empty()) && !is_of_work(repository.changed_paths(onto, tip)?) {
            return Ok(true);
        }
        for reverting in &self.reverts {
            let Ok(reverted) = CommitId::new(&reverting.reverts) else { continue };
            let is_between = repository.has_commit(&reverted)?
                && repository.is_ancestor(&reverted, at)?
                && !repository.is_ancestor(&reverted, onto)?;
            if !is_between || !self.is_reverted(&reverted) {
                continue;
            }
            match &repository.parent_of(&reverted)? {
                Some(parent) if !is_of_work(repository.changed_paths(parent, &reverted)?) => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    fn reverts_hold(&self, commit: &CommitId, depth: usize) -> bool {
        let mut by = self.reverts.iter().filter(|it| commit.as_str().starts_with(&it.reverts));
        depth < DEEPEST && by.any(|it| !self.reverts_hold(&it.by, depth + 1))
    }
}

fn said(commit: CommitId, message: &str) -> Option<Said> {
    if let Some(reverts) = reverted_by(message) {
        return Some(Said::Reverted(Reverting { by: commit, reverts }));
    }
    if !message.contains("\nPlan: ") {
        return None;
    }
    let mut trailers = libgit2::trailers_in(message);
    let plan = trailers.remove("Plan").filter(|plan| plan.len() == 16 && is_hexadecimal(plan))?;
    let (run, lane) = (RunId::new(trailers.get("Run")?).ok()?, LaneId::new(trailers.get("Lane")?).ok()?);
    Some(Said::Merged(MergedLane { commit, run, lane, plan }))
}

/// The name of the commit that `git revert` says is reverted, which `revert.reference` shortens.
fn reverted_by(message: &str) -> Option<String> {
    let line = message.lines().find_map(|line| line.strip_prefix(UNDOES))?;
    let name: String = line.chars().take_while(char::is_ascii_hexdigit).collect();
    (name.len() >= SHORTEST).then(|| name.to_ascii_lowercase())
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(digit: char) -> CommitId {
        CommitId::new(&digit.to_string().repeat(40)).unwrap()
    }

    fn read(messages: &[(char, &str)]) -> MergedLanes {
        MergedLanes::of(messages.iter().filter_map(|(digit, message)| said(commit(*digit), message)).collect())
    }

    const MERGE: &str = "Merge lane A\n\nRun: r1\nLane: A\nPlan: 0123456789abcdef\n";

    fn merged(messages: &[(char, &str)]) -> usize {
        read(messages).lanes.len()
    }

    #[test]
    fn trailers_name_the_lane_that_is_merged() {
        let expected = MergedLane {
            commit: commit('a'),
            run: RunId::new("r1").unwrap(),
            lane: LaneId::new("A").unwrap(),
            plan: "0123456789abcdef".to_owned(),
        };
        assert_eq!(read(&[('a', MERGE)]).lanes, [expected]);
        let signed = format!("{MERGE}Signed-off-by: Ann <ann@example.invalid>\n");
        assert_eq!(merged(&[('a', &signed)]), 1);
    }

    #[test]
    fn cut_or_invented_trailers_are_ignored() {
        let without = |line: &str| MERGE.replace(line, "");
        let ignored = [
            without("Run: r1\n"),
            without("Lane: A\n"),
            without("Plan: 0123456789abcdef\n"),
            MERGE.replace("abcdef", "abcde"),
            MERGE.replace("abcdef", "abcdef0"),
            MERGE.replace("abcdef", "ABCDEF"),
            MERGE.replace("Lane: A", "Lane: ../x"),
            MERGE.replace("Plan: ", "Plan "),
            format!("{MERGE}\nand something after the trailers.\n"),
        ];
        for message in ignored {
            assert_eq!(merged(&[('a', &message)]), 0, "{message}");
        }
    }

    #[test]
    fn reverted_merges_do_not_count_until_the_revert_is_reverted() {
        let revert = |digit: char| format!("Revert \"x\"\n\nThis reverts commit {}.\n", commit(digit));
        let (once, twice, other) = (revert('a'), revert('b'), revert('f'));
        assert_eq!(merged(&[('b', &once), ('a', MERGE)]), 0);
        assert_eq!(merged(&[('c', &twice), ('b', &once), ('a', MERGE)]), 1);
        assert_eq!(merged(&[('b', &other), ('a', MERGE)]), 1);
        assert_eq!(merged(&[('c', MERGE), ('b', &once), ('a', MERGE)]), 1, "merged again");
        let ours = format!("{}Run: r1\nLane: A\n", revert('a').replace(".\n", ", reversing\nchanges made to f.\n\n"));
        assert_eq!(merged(&[('b', &ours), ('a', MERGE)]), 0);
        let short = "Revert \"x\"\n\nThis reverts commit aaaaaaaa (Merge lane A, 2026-01-01).\n";
        assert_eq!(merged(&[('b', short), ('a', MERGE)]), 0);
        assert_eq!(merged(&[('b', "This reverts commit a.\n"), ('a', MERGE)]), 1);
    }
}
