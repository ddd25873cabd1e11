//! The worktrees and branches of lanes and agents.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use lanewright_git::{Holder, Present, WorktreeState};
use lanewright_model::text::shell_line;

use crate::doctor::escalation;
use crate::doctor::{Claimed, Expected, Finding, HoldingSeen, Kind, Repair, RunFacts, Severity, Target};

pub(super) fn findings(facts: &RunFacts, expected: &Expected, seen: &HoldingSeen) -> Vec<Finding> {
    if seen.incomplete {
        return Vec::new();
    }
    let case = Case { facts, expected, seen };
    let mut found = Vec::new();
    found.extend(case.branch());
    found.extend(case.worktree());
    found.extend(case.claim());
    if let WorktreeState::Present(present) = &seen.state {
        found.extend(case.locked(present));
    }
    found
}

struct Case<'a> {
    facts: &'a RunFacts,
    expected: &'a Expected,
    seen: &'a HoldingSeen,
}

impl Case<'_> {
    fn finding(&self, kind: Kind, severity: Severity, evidence: String) -> Finding {
        Finding::at(kind, severity, &self.shown(), evidence).of_run(&self.facts.run).of(&self.seen.owned)
    }

    fn shown(&self) -> Cow<'_, Path> {
        self.expected.shown(&self.seen.owned, &self.seen.holding.worktree)
    }

    fn holder(&self) -> Holder {
        self.expected.holder(&self.seen.owned)
    }

    fn target(&self) -> Target {
        let options = &self.expected.started.options;
        let mut worktree = self.seen.holding.worktree.clone();
        worktree.head = self.seen.holding.head.clone();
        let (log, root) = (self.facts.log_path.clone(), options.worktree_root.clone());
        Target { log, root, holder: self.holder(), worktree }
    }

    /// The same finding with its repair, unless a job works in the worktree now.
    fn unless_busy(&self, finding: Finding, repair: Repair) -> Finding {
        match &self.seen.busy {
            Some(job) => {
                let stop = shell_line(["lanewright", "rollback", self.facts.run.as_str()]);
                finding.needs_user(format!("{job} still runs there: wait until it ends, or stop and keep it: {stop}"))
            }
            None => finding.repaired_by(repair),
        }
    }

    fn branch(&self) -> Option<Finding> {
        let branch = &self.seen.holding.worktree.branch;
        if self.seen.branch.is_some() {
            return None;
        }
        let finding = |evidence| {
            let finding = Finding::new(Kind::BranchMissing, Severity::Error, branch, evidence);
            finding.of_run(&self.facts.run).of(&self.seen.owned)
        };
        Some(match &self.seen.origin {
            Some((commit, who)) => finding(format!("the branch is gone; {} is {who}{}", commit.short(), self.loss()))
                .repaired_by(Repair::MakeBranch(branch.clone(), commit.clone())),
            None => {
                let issue = format!("branch {branch} is gone, and so is every commit that is known of it");
                let by_hand = vec!["git fsck --lost-found".to_owned(), format!("git branch {branch} COMMIT")];
                let tried = "the worktree's own history, the run log and the snapshots were asked";
                finding(issue.clone()).escalated(escalation::worktree(self.facts, self.seen, issue, tried, by_hand))
            }
        })
    }

    fn loss(&self) -> String {
        let lost = self.seen.lost_snapshot.as_ref();
        lost.map(|name| format!("; what {name} kept is gone from the repository")).unwrap_or_default()
    }

    fn worktree(&self) -> Option<Finding> {
        let worktree = &self.seen.holding.worktree;
        match &self.seen.state {
            WorktreeState::Missing => Some(self.missing()),
            WorktreeState::Moved(to) => {
                Some(self.lost(Kind::WorktreeMoved, format!("it is in {} now", to.display()), Some(to)))
            }
            WorktreeState::Forgotten(entry) => {
                let evidence = format!("its files are there, and git has forgotten it ({} is gone)", entry.display());
                Some(self.lost(Kind::WorktreeForgotten, evidence, None))
            }
            WorktreeState::Misplaced => {
                let evidence = "git records it at a place where nothing is".to_owned();
                Some(self.lost(Kind::WorktreeForgotten, evidence, None))
            }
            WorktreeState::Foreign => {
                let evidence = "something else is there, which is not Lanewright's".to_owned();
                let place = worktree.path.to_string_lossy().into_owned();
                Some(self.foreign(evidence, shell_line(["mv", &place, &format!("{place}.foreign")])))
            }
            WorktreeState::Present(present) => {
                // Which branch does not matter where the engine has put it on none: it resets it when it needs it.
                let matters = !worktree.branch.is_empty() && !self.seen.holding.unjudged;
                (matters && !present.on_branch).then(|| self.wrong_branch(present))
            }
        }
    }

    /// A worktree whose files are there, and that git does not find.
    fn lost(&self, kind: Kind, evidence: String, moved_to: Option<&PathBuf>) -> Finding {
        let finding = self.finding(kind, Severity::Error, evidence);
        self.unless_busy(finding, Repair::Register(self.target(), moved_to.cloned()))
    }

    fn missing(&self) -> Finding {
        let branch = &self.seen.holding.worktree.branch;
        let mut evidence = match &self.seen.branch {
            Some(at) if branch.is_empty() => format!("the worktree is gone; it stood at {}, on no branch", at.short()),
            Some(at) => format!("the worktree is gone; its branch {branch} is at {}", at.short()),
            None => format!("the worktree is gone, and so is its branch {branch}"),
        };
        let snapshot = self.seen.snapshot.as_ref();
        evidence.extend(snapshot.map(|name| format!("; what was not committed may be in {name}")));
        evidence.push_str(&self.loss());
        let finding = self.finding(Kind::WorktreeMissing, Severity::Error, evidence);
        if self.seen.branch.is_none() && self.seen.origin.is_none() {
            return finding.needs_user("the branch must be there first");
        }
        self.unless_busy(finding, Repair::Reopen(self.target(), self.seen.branch.clone()))
    }

    fn foreign(&self, evidence: String, away: String) -> Finding {
        let path = self.seen.holding.worktree.path.display();
        let issue = format!("{path} is not the worktree that the run log says is there");
        let tried = "it was looked at; what is not Lanewright's is never moved or deleted";
        let escalation = escalation::worktree(self.facts, self.seen, issue, tried, vec![away]);
        self.finding(Kind::WorktreeForeign, Severity::Error, evidence).escalated(escalation)
    }

    fn wrong_branch(&self, present: &Present) -> Finding {
        let branch = &self.seen.holding.worktree.branch;
        let on = present.checked_out.as_deref().map_or("no branch".to_owned(), |on| format!("branch {on}"));
        let evidence = format!("it is on {on}, not on {branch}");
        let finding = self.finding(Kind::WorktreeWrongBranch, Severity::Error, evidence);
        finding.repaired_by(Repair::BackToBranch(self.target()))
    }

    fn claim(&self) -> Option<Finding> {
        let there = matches!(self.seen.state, WorktreeState::Present(_));
        let (kind, evidence) = match &self.seen.claim {
            Claimed::Rightly => return None,
            // The repair that restores the worktree claims it too.
            Claimed::ByNobody if !there => return None,
            Claimed::ByNobody => (Kind::ClaimMissing, "it has no recorded holder".to_owned()),
            Claimed::Damaged(reason) => (Kind::ClaimDamaged, reason.clone()),
            Claimed::ByAnother(run) => {
                let evidence = format!("run {run} holds the slot");
                let finish = shell_line(["lanewright", "resume", run]);
                return Some(self.foreign(evidence, finish));
            }
        };
        let finding = self.finding(kind, Severity::Error, evidence);
        Some(finding.repaired_by(Repair::Reclaim(self.target())))
    }

    fn locked(&self, present: &Present) -> Option<Finding> {
        let reason = present.locked.as_ref()?;
        let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let unlock = shell_line(["git", "worktree", "unlock", &self.shown().to_string_lossy()]);
        let finding = self.finding(Kind::WorktreeLocked, Severity::Warning, format!("it was locked by hand{why}"));
        Some(
            finding
                .hint(format!("the run continues, but the worktree is not removed at its end; to allow it: {unlock}")),
        )
    }
}
