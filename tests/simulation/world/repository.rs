//! What all runs share: commits, the integration branch, and the user's checkout.

use std::collections::BTreeSet;
use std::sync::Arc;

use lanewright_model::CommitId;
use rustc_hash::FxHashMap;

use super::super::user::User;
use super::commit_name;

/// The pieces of work that a commit holds.
pub type Content = Arc<BTreeSet<String>>;

pub struct Repository {
    contents: FxHashMap<CommitId, Content>,
    /// The reverts that each commit has among its ancestors.
    reverts: FxHashMap<CommitId, BTreeSet<usize>>,
    /// What each revert took out.
    reverted: Vec<Content>,
    pub integration: CommitId,
    /// What the integration branch has been.
    pub tips: Vec<CommitId>,
    pub user: User,
    pub commits: u32,
}

impl Repository {
    pub fn new(leaves_rebases: bool) -> Self {
        let none = commit_name(0);
        let user = User::new(none.clone(), leaves_rebases);
        let (contents, reverts) = (FxHashMap::default(), FxHashMap::default());
        let mut git = Self { contents, reverts, reverted: vec![], integration: none, tips: vec![], user, commits: 0 };
        let base = git.commit(&[], BTreeSet::new());
        git.user.check_out(&base);
        git.move_branch(base);
        git
    }

    pub fn commit(&mut self, parents: &[&CommitId], content: impl Into<Content>) -> CommitId {
        self.commits += 1;
        let commit = commit_name(self.commits);
        let reverts: BTreeSet<usize> = parents.iter().flat_map(|parent| self.reverts_in(parent)).collect();
        if !reverts.is_empty() {
            self.reverts.insert(commit.clone(), reverts);
        }
        self.contents.insert(commit.clone(), content.into());
        commit
    }

    fn reverts_in(&self, commit: &CommitId) -> BTreeSet<usize> {
        self.reverts.get(commit).cloned().unwrap_or_default()
    }

    /// A merge: what one side took out since they parted is not brought back by the other.
    pub fn merge(&mut self, ours: &CommitId, theirs: &CommitId) -> CommitId {
        let (in_ours, in_theirs) = (self.reverts_in(ours), self.reverts_in(theirs));
        let gone = |piece: &&String, by: &BTreeSet<usize>, known: &BTreeSet<usize>| {
            by.difference(known).any(|revert| self.reverted[*revert].contains(*piece))
        };
        let left = |side, by, known| {
            let content: Content = self.content(side);
            content.iter().filter(|piece| !gone(piece, by, known)).cloned().collect::<BTreeSet<String>>()
        };
        let mut content = left(ours, &in_theirs, &in_ours);
        content.append(&mut left(theirs, &in_ours, &in_theirs));
        self.commit(&[ours, theirs], content)
    }

    /// The integration branch without the pieces that `is_of` names.
    pub fn revert(&mut self, is_of: impl Fn(&str) -> bool) -> CommitId {
        let tip = self.integration.clone();
        let (out, left): (BTreeSet<String>, _) = self.content(&tip).iter().cloned().partition(|piece| is_of(piece));
        let commit = self.commit(&[&tip], left);
        self.reverts.entry(commit.clone()).or_default().insert(self.reverted.len());
        self.reverted.push(out.into());
        commit
    }

    pub fn content(&self, commit: &CommitId) -> Content {
        self.contents.get(commit).cloned().unwrap_or_default()
    }

    pub fn move_branch(&mut self, commit: CommitId) {
        self.tips.push(commit.clone());
        self.integration = commit;
    }
}
