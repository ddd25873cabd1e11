//! `git stash`: one list for all worktrees, the user's entries among those of agents.

use lanewright_model::CommitId;

use crate::command::Result;
use crate::fast::durable;
use crate::repo::Repository;

/// The stashed states that were made on `branch`, which began at `base`, or on its commits without it, oldest first;
/// their objects are durable. The list itself is only looked at.
pub fn stashed_on(repository: &Repository, branch: &str, base: &CommitId) -> Result<Vec<CommitId>> {
    if repository.commit_at("refs/stash")?.is_none() {
        return Ok(Vec::new());
    }
    let listing = repository.git().args(["reflog", "show", "--format=%H %P%x09%gs", "refs/stash", "--"]).line()?;
    let tip = repository.branch_commit(branch)?;
    let mut found = Vec::new();
    for (names, subject) in listing.lines().rev().filter_map(|line| line.split_once('\t')) {
        let mut names = names.split(' ').filter_map(|name| CommitId::new(name).ok());
        let (Some(stash), Some(parent)) = (names.next(), names.next()) else { continue };
        let belongs = match (place_in(subject), &tip) {
            (Some("(no branch)"), Some(tip)) => {
                repository.is_ancestor(&parent, tip)? && !repository.is_ancestor(&parent, base)?
            }
            (place, _) => place == Some(branch),
        };
        if belongs {
            durable::objects(repository, &stash, [base])?;
            found.push(stash);
        }
    }
    Ok(found)
}

/// Where a stash was made, as git words it: `WIP on BRANCH: …`, or `On BRANCH: …` where there is a message.
fn place_in(subject: &str) -> Option<&str> {
    let place = subject.strip_prefix("WIP on ").or_else(|| subject.strip_prefix("On "))?;
    Some(place.split_once(": ")?.0)
}

#[cfg(test)]
mod tests {
    use super::place_in;

    #[test]
    fn stash_subject_names_its_branch() {
        assert_eq!(place_in("WIP on lane/P1/A: 1234567 On main: x"), Some("lane/P1/A"));
        assert_eq!(place_in("On lane/P1/A: half done"), Some("lane/P1/A"));
        assert_eq!(place_in("WIP on (no branch): 1234567 x"), Some("(no branch)"));
        assert_eq!(place_in("somebody's own words"), None);
    }
}
