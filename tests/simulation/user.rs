//! The user, who works in a checkout of the same repository while a run is in progress.

use lanewright_model::CommitId;

use super::dice::Dice;

/// The user's checkout. What its index and its files hold is named by the commit that they equal, but for the user's
/// own changes.
#[derive(Clone)]
pub struct User {
    /// Whether `HEAD` names the integration branch.
    pub on_branch: bool,
    pub index: CommitId,
    pub files: CommitId,
    /// A file is changed that a merge changes, too.
    pub dirty: bool,
    /// Another git program holds the lock on the index, or on the branch.
    pub locks_index: bool,
    pub locks_branch: bool,
    /// A rebase of the integration branch has stopped: `HEAD` is detached, and git keeps the branch from moving.
    pub rebasing: bool,
    /// Whether a stopped rebase stays until the run has ended.
    leaves_rebases: bool,
}

/// What the user does next; the world carries out what concerns the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    Commit,
    Switch,
}

impl User {
    pub fn new(tip: CommitId, leaves_rebases: bool) -> Self {
        Self {
            on_branch: false,
            index: tip.clone(),
            files: tip,
            dirty: false,
            locks_index: false,
            locks_branch: false,
            rebasing: false,
            leaves_rebases,
        }
    }

    /// One step. What is begun is ended as often, so that a run gets by.
    pub fn act(&mut self, dice: &mut Dice) -> Option<Deed> {
        let free = !self.rebasing && !self.locks_index;
        match dice.roll(8) {
            0 | 1 if free && !self.locks_branch => return Some(Deed::Commit),
            2 | 3 if free && !self.dirty => return Some(Deed::Switch),
            4 => self.dirty = !self.dirty && self.on_branch,
            5 => self.locks_index = !self.locks_index,
            6 => self.locks_branch = !self.locks_branch && !self.rebasing,
            7 if self.rebasing => self.rebasing = self.leaves_rebases,
            7 if self.on_branch && free && !self.dirty => {
                self.rebasing = true;
                self.on_branch = false;
            }
            _ => {}
        }
        None
    }

    /// Ends whatever keeps the integration branch from moving, which is at `tip`.
    pub fn make_way(&mut self, tip: &CommitId) {
        if self.on_branch {
            self.check_out(tip);
        }
        self.dirty = false;
        self.locks_index = false;
        self.locks_branch = false;
        self.rebasing = false;
    }

    /// What publishing finds in the way. A stopped rebase it does not know: the branch just does not move.
    pub fn obstacle(&self) -> Option<&'static str> {
        match () {
            () if self.locks_branch => Some("the branch is locked"),
            () if self.on_branch && self.locks_index => Some("the checkout's index is locked"),
            () if self.on_branch && self.dirty => Some("the checkout has changes"),
            () => None,
        }
    }

    /// Moves index and files, as a switch to the branch and a fast-forward do.
    pub fn check_out(&mut self, tip: &CommitId) {
        self.index = tip.clone();
        self.files = tip.clone();
    }
}
