//! Worktrees that are gone, or have become something else, when they are needed: opened anew.

use std::path::Path;

use super::{Moment, PortError, Ports};
use crate::event::Event;
use crate::git::{Checkout, Lost, Mode};

impl Ports {
    /// Makes sure that the worktree at `path`, which the lane or an agent of it holds, is there: where it was removed
    /// or replaced, what is in its place is moved aside, and it is opened anew as it was, without what was neither
    /// committed nor kept. Tells what was found.
    pub(super) fn reopen_if_lost(&self, path: &Path, moment: &Moment) -> Result<Vec<Event>, PortError> {
        let Some(lost) = self.pool.set_lost_aside(path, moment.at)? else { return Ok(Vec::new()) };
        let mut events = self.keep_head_of(&lost, moment)?;
        let tip = lost.branch.as_deref().map(|branch| self.repository.branch_commit(branch)).transpose()?.flatten();
        let start = tip.unwrap_or_else(|| lost.opened.clone());
        let want = Checkout { branch: lost.branch.clone(), start, mode: Mode::FreshBranch, adopt: true };
        self.open(&lost.holder, &want, moment.lane)?;
        events.push(Event::WorktreeLost { lane: self.id(moment.lane), agent: lost.holder.agent.clone() });
        events.push(Event::Noted { lane: Some(self.id(moment.lane)), message: lost.told(path) });
        Ok(events)
    }

    /// Keeps the commit at which the worktree stood, where its branch does not hold that.
    fn keep_head_of(&self, lost: &Lost, moment: &Moment) -> Result<Vec<Event>, PortError> {
        let Some(head) = &lost.head else { return Ok(Vec::new()) };
        let tip = lost.branch.as_deref().map(|branch| self.repository.branch_commit(branch)).transpose()?.flatten();
        if self.repository.is_ancestor(head, tip.as_ref().unwrap_or(&lost.opened))? {
            return Ok(Vec::new());
        }
        let kept = self.keep_commit(moment.lane, head, moment.at)?;
        Ok(vec![self.put_aside(moment.lane, None, kept)])
    }
}

impl Lost {
    /// What is told of it.
    fn told(&self, path: &Path) -> String {
        let whose = match &self.holder.agent {
            Some(agent) => format!("the worktree of {agent}"),
            None => "the lane's worktree".to_owned(),
        };
        let found = match &self.aside {
            Some(aside) => format!("was replaced or damaged; what was there is now {}", aside.display()),
            None => "was removed".to_owned(),
        };
        format!("{whose} ({}) {found}; it was opened anew, and set-up commands were not run again", path.display())
    }
}
