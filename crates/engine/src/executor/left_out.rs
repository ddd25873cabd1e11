//! What agents left in their worktrees that is not taken as work: reported once, and a failure where an agent commits it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use lanewright_git::{LeftOut, LeftOutReason};
use lanewright_model::event::Event;
use lanewright_model::ownership::literal_globs;
use lanewright_model::text::{LEFT_OUT, listed};
use lanewright_model::{Failure, FailureKind, LaneId, LaneIndex, TaskId};

use super::Executor;

/// What was reported, by lane and path.
#[derive(Debug, Default)]
pub struct LeftOutReports(Mutex<BTreeMap<(LaneId, String), LeftOut>>);

/// The most paths that a message names.
const NAMED: usize = 10;

impl Executor {
    /// Reports those of `found` that were not reported for the lane before; every commit of the lane finds them again.
    pub(super) fn note_left_out(&self, lane: LaneIndex, found: &[LeftOut]) -> Option<Event> {
        let id = self.id(lane);
        let mut reported = self.left_out.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_new = |it: &LeftOut| reported.insert((id.clone(), it.path.clone()), it.clone()).is_none();
        let new: Vec<&LeftOut> = found.iter().filter(|it| is_new(it)).collect();
        // `take` is no part of what a lane is to do, so a lane that is done is not run again because of it.
        let redo = format!("and if the lane is done by then, run the plan with --redo --lane {id}");
        (!new.is_empty()).then(|| self.note(lane, format!("{LEFT_OUT}{}; {}, {redo}", names(&new), remedy(&new))))
    }

    /// What was reported for the lane, as far as a message names it.
    pub(super) fn reported_left_out(&self, lane: LaneIndex) -> Vec<String> {
        let id = self.id(lane);
        let reported = self.left_out.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = reported.iter().filter(|((of, _), _)| *of == id).map(|(_, it)| it.to_string());
        let mut named: Vec<String> = found.by_ref().take(NAMED).collect();
        let more = found.count();
        named.extend((more > 0).then(|| format!("{more} more")));
        named
    }

    /// Why the work of the lane has no file at `path`, if one was left out of it, with what has it committed.
    pub(super) fn why_left_out(&self, lane: LaneIndex, path: &str) -> Option<String> {
        let id = self.id(lane);
        let reported = self.left_out.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |it: &&LeftOut| it.path == path || (it.path.ends_with('/') && path.starts_with(&it.path));
        let found = reported.iter().filter(|((of, _), _)| *of == id).map(|(_, it)| it).find(is_meant)?;
        Some(format!("left out of the work; {} commits it", take(&[found])))
    }

    /// The failure of an agent that committed such files itself.
    pub(super) fn left_out_is_committed(
        &self,
        lane: LaneIndex,
        agent: usize,
        task: &TaskId,
        found: &[LeftOut],
    ) -> Event {
        let message = "committed files that are left out of the work of lanes; leave them uncommitted";
        let message = format!("{message} ({})", remedy(&found.iter().collect::<Vec<_>>()));
        let paths = found.iter().map(ToString::to_string).collect();
        Event::FailureNoted {
            lane: self.id(lane),
            agent: Some(self.agent_name(lane, agent)),
            task: Some(task.clone()),
            failure: Failure { paths, ..Failure::new(FailureKind::Ownership, message) },
        }
    }
}

fn names(found: &[&LeftOut]) -> String {
    listed(&found.iter().map(ToString::to_string).collect::<Vec<_>>(), NAMED)
}

/// The settings that have them committed.
fn remedy(found: &[&LeftOut]) -> String {
    let is_large = found.iter().any(|it| matches!(it.reason, LeftOutReason::Large(_)));
    let limit = if is_large { ", or raise `max_file_size`," } else { "" };
    format!("to commit them, set {}{limit} in lanewright.toml", take(found))
}

/// The setting that has them committed.
fn take(found: &[&LeftOut]) -> String {
    format!("`take = {}`", literal_globs(found.iter().map(|it| it.path.as_str()).take(NAMED)))
}
