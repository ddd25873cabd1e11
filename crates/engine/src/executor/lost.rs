//! Opens worktrees again that were removed, replaced or emptied.

use std::path::Path;

use lanewright_model::event::Event;

use super::repair::Holding;
use super::{Answer, Executor, ExecutorError, Moment};
use lanewright_git::{Checkout, Lost, Mode};

impl Executor {
    /// Makes sure that the worktree at `path`, which the lane or an agent of it holds, is there, with its claim and its
    /// branch. Where it was removed, replaced or emptied, what is in its place is moved aside, and it is opened again as it
    /// was, without what was neither committed nor saved. Returns what was found.
    pub(super) fn reopen_if_lost(&self, path: &Path, moment: &Moment) -> Answer {
        moment.holding(path).map_or(Ok(Vec::new()), |holding| self.regain(holding, moment, true))
    }

    /// Opens a worktree again that was removed, replaced or emptied.
    pub(super) fn reopen(&self, holding: &Holding, moment: &Moment) -> Answer {
        let Holding { holder, worktree, .. } = holding;
        let lost = match self.pool.set_lost_aside(holder, &worktree.path, moment.at)? {
            None => self.pool.reset_if_emptied(holder, worktree)?,
            lost => lost,
        };
        let Some(lost) = lost else { return Ok(Vec::new()) };
        let mut events = self.keep_head_of(&lost, holding, moment)?;
        let branch = Some(worktree.branch.clone()).filter(|branch| !branch.is_empty());
        let tip = branch.as_deref().map(|branch| self.repository.branch_commit(branch)).transpose()?.flatten();
        let start = tip.unwrap_or_else(|| worktree.head.clone());
        let head = Some(start.clone());
        self.open(holder, &Checkout { branch, start, mode: Mode::FreshBranch, adopt: true }, moment.lane)?;
        events.push(Event::WorktreeLost { lane: self.id(moment.lane), agent: holder.agent.clone(), head });
        events.push(Event::Noted { lane: Some(self.id(moment.lane)), message: self.found_again(&lost, holding) });
        Ok(events)
    }

    /// Keeps the commit at which the worktree stood, where its branch does not hold that.
    fn keep_head_of(&self, lost: &Lost, holding: &Holding, moment: &Moment) -> Result<Vec<Event>, ExecutorError> {
        let Some(head) = &lost.head else { return Ok(Vec::new()) };
        let branch = Some(&holding.worktree.branch).filter(|branch| !branch.is_empty());
        let tip = branch.map(|branch| self.repository.branch_commit(branch)).transpose()?.flatten();
        if self.repository.is_ancestor(head, tip.as_ref().unwrap_or(&holding.worktree.head))? {
            return Ok(Vec::new());
        }
        let kept = self.keep_commit(moment.lane, head, moment.at)?;
        Ok(vec![self.put_aside(moment.lane, None, kept)])
    }

    fn found_again(&self, lost: &Lost, holding: &Holding) -> String {
        let whose = match &holding.holder.agent {
            Some(agent) => format!("the worktree of {agent}"),
            None => "the lane's worktree".to_owned(),
        };
        let found = match &lost.aside {
            Some(aside) => format!("was replaced or damaged; what was there is now {}", aside.display()),
            None => "was removed or emptied".to_owned(),
        };
        let place = self.pool.shown(&holding.holder, &holding.worktree.path);
        let place = place.display();
        format!("{whose} ({place}) {found}; it was opened again, and set-up commands were not run again")
    }
}
