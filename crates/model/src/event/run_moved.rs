//! A run that was taken to another clone, and what its records say of paths from then on.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Event, Record, RunStarted, Worktree};

/// A run's state was restored in another clone, or again in the same one: worktrees were created from branches and
/// snapshots, and nothing that ran before runs any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct RunMoved {
    /// Where it was pushed from.
    pub from: Place,
    /// Where it is now.
    pub to: Place,
    /// The slots whose worktrees were opened again, each as its number there and here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<(u32, u32)>,
}

/// A clone on a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// The machine.
    pub host: String,
    /// The main worktree.
    pub repository: PathBuf,
    /// The directory of the worktrees.
    pub worktree_root: PathBuf,
}

/// Makes the paths in `records` those of the place where the run is now: records before a [`RunMoved`] were written
/// elsewhere. The log itself stays as it is.
pub fn relocate(records: &mut [Record]) {
    for at in 0..records.len() {
        let (before, rest) = records.split_at_mut(at);
        if let Event::RunMoved(moved) = &rest[0].event {
            before.iter_mut().for_each(|record| moved.rebase(&mut record.event));
        }
    }
}

impl RunMoved {
    fn rebase(&self, event: &mut Event) {
        match event {
            Event::RunStarted(started) => self.rebase_start(started),
            Event::WorktreeOpened { worktree, .. } | Event::FinalOpened { worktree } => self.rebase_worktree(worktree),
            Event::LaneRolledBack { point: Some(point), .. } => {
                point.worktrees.iter_mut().for_each(|opened| self.rebase_worktree(&mut opened.worktree));
            }
            _ => {}
        }
    }

    fn rebase_start(&self, started: &mut RunStarted) {
        started.plan_path = self.place(&started.plan_path);
        started.options.worktree_root = self.place(&started.options.worktree_root);
        // They are those of another clone.
        started.options.git_settings = None;
        started.options.next_phases.iter_mut().flatten().for_each(|plan| *plan = self.place(plan));
    }

    fn rebase_worktree(&self, worktree: &mut Worktree) {
        if !worktree.path.starts_with(&self.from.worktree_root) {
            return;
        }
        worktree.path = self.place(&worktree.path);
        if let Some((_, here)) = self.slots.iter().find(|(there, _)| *there == worktree.slot) {
            worktree.slot = *here;
            worktree.path.set_file_name(format!("{here:02}"));
        }
    }

    /// A path as it is here. One that lay neither in the clone nor below its worktree root stays what it was.
    fn place(&self, path: &Path) -> PathBuf {
        let (from, to) = (&self.from, &self.to);
        // The worktree root first: it may lie in the clone, and stay elsewhere here.
        let below = |from: &Path, to: &Path| path.strip_prefix(from).ok().map(|rest| joined(to, rest));
        below(&from.worktree_root, &to.worktree_root)
            .or_else(|| below(&from.repository, &to.repository))
            .unwrap_or_else(|| path.to_owned())
    }
}

/// Without the slash at the end that joining nothing leaves.
fn joined(root: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { root.to_owned() } else { root.join(rest) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommitId, LaneId, Timestamp};

    fn place(host: &str, repository: &str) -> Place {
        let worktree_root = PathBuf::from(format!("{repository}.lanes"));
        Place { host: host.to_owned(), repository: repository.into(), worktree_root }
    }

    fn opened(slot: u32, path: &str) -> Event {
        let head = CommitId::new(&"a".repeat(40)).unwrap();
        let worktree = Worktree { slot, path: path.into(), branch: "lane/P1/A".to_owned(), head };
        Event::WorktreeOpened { lane: LaneId::new("A").unwrap(), agent: None, worktree }
    }

    fn path_of(record: &Record) -> (u32, &str) {
        match &record.event {
            Event::WorktreeOpened { worktree, .. } => (worktree.slot, worktree.path.to_str().unwrap()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_before_a_move_are_relocated() {
        let moved = |from: Place, to: Place, slots| Event::RunMoved(Box::new(RunMoved { from, to, slots }));
        let (ci, desk, again) = (place("ci", "/w/repo"), place("desk", "/home/me/repo"), place("desk", "/mnt/repo"));
        let events = vec![
            opened(1, "/w/repo.lanes/slots/01"),
            opened(2, "/w/repo.lanes/slots/02"),
            moved(ci, desk.clone(), vec![(2, 7)]),
            opened(3, "/home/me/repo.lanes/slots/03"),
            moved(desk, again, vec![]),
            opened(4, "/mnt/repo.lanes/slots/04"),
        ];
        let at = Timestamp::from_unix_millis(0);
        let mut records: Vec<Record> =
            (1..).zip(events).map(|(seq, event)| Record { seq, at, event, origin: None }).collect();
        relocate(&mut records);
        assert_eq!(path_of(&records[0]), (1, "/mnt/repo.lanes/slots/01"));
        assert_eq!(path_of(&records[1]), (7, "/mnt/repo.lanes/slots/07"));
        assert_eq!(path_of(&records[3]), (3, "/mnt/repo.lanes/slots/03"));
        assert_eq!(path_of(&records[5]), (4, "/mnt/repo.lanes/slots/04"));
    }

    #[test]
    fn paths_outside_both_roots_are_kept() {
        let moved = RunMoved { from: place("a", "/w/repo"), to: place("b", "/x/r"), slots: vec![] };
        let cases =
            [("/w/repo", "/x/r"), ("/w/repo/p.toml", "/x/r/p.toml"), ("/w/repo2/p", "/w/repo2/p"), ("/p", "/p")];
        for (there, here) in cases {
            assert_eq!(moved.place(Path::new(there)), Path::new(here));
        }
    }
}
