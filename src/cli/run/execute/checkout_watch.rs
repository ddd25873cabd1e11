//! Checkouts that a `git switch` leaves behind the integration branch while a lane is published: brought into step beside
//! the run, so that no lane waits for them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use lanewright_git::{self as git, Publication, Repository};
use lanewright_model::event::{Event, Record};

/// A thread that examines the checkouts after each publication until no `git switch` can be under way.
pub(super) struct SwitchWatch {
    published: Sender<()>,
    thread: JoinHandle<Option<String>>,
}

impl SwitchWatch {
    pub(crate) fn start(repository: &Repository, branch: &str) -> Self {
        let (published, publications) = channel();
        let (repository, branch) = (repository.clone(), branch.to_owned());
        Self { published, thread: thread::spawn(move || repair_after_each(&publications, &repository, &branch)) }
    }

    pub(crate) fn observe(&self, records: &[Record]) {
        if records.iter().any(|record| matches!(record.event, Event::LaneMerged { .. })) {
            // A thread that ended has panicked; `finish` reports it.
            let _ = self.published.send(());
        }
    }

    /// Takes a last look, also for a publication of an earlier process. Returns what kept a checkout from being brought into
    /// step, and what to do.
    pub(crate) fn finish(self) -> Option<String> {
        let _ = self.published.send(());
        drop(self.published);
        self.thread.join().unwrap_or_else(|_| Some("checkouts of the integration branch were not examined".to_owned()))
    }
}

fn repair_after_each(publications: &Receiver<()>, repository: &Repository, branch: &str) -> Option<String> {
    let mut obstructed = None;
    while publications.recv().is_ok() {
        obstructed = match git::sync_after_switches(repository, branch) {
            Ok(Some(Publication::CheckedOutDirty { worktree, blockers })) => {
                Some(blockers.cannot_move(branch, &worktree))
            }
            Ok(_) => None,
            Err(error) => Some(error.with_remedy()),
        };
    }
    obstructed
}
