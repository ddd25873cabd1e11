//! The files in which GSD keeps how far a project is: nobody but Lanekeeper writes them, when a lane is merged (SPEC §3.2).

use std::path::{Path, PathBuf};

use super::{PortError, Ports};
use crate::event::Event;
use crate::git::Reserved;
use crate::model::{CommitId, LaneIndex, PlanFormat};
use crate::plan_source::tracking::DonePlan;

impl Ports {
    /// The files of which a lane has no say, with what they hold once its head is merged onto `onto` as well as the
    /// `done` lanes before it; and a summary, where the lane wrote none.
    pub(super) fn reserved(
        &self,
        lane: LaneIndex,
        (onto, head): (&CommitId, &CommitId),
        done: usize,
    ) -> Result<Vec<Reserved>, PortError> {
        if self.facts.options.plan_format != Some(PlanFormat::Gsd) {
            return Ok(Vec::new());
        }
        let planning = self.planning();
        let id = self.id(lane);
        let skipped = self.plan.skipped.len();
        let date = (self.clock)().0.format("%Y-%m-%d").to_string();
        let plan = DonePlan {
            plan: id.as_str(),
            phase: id.as_str().split('-').next().unwrap_or_default(),
            done: (done + skipped + 1).min(self.plan.lanes.len() + skipped),
            of: self.plan.lanes.len() + skipped,
            date: &date,
        };
        let file = |name: &str, tracked: &dyn Fn(&str) -> String| -> Result<Reserved, PortError> {
            let path = planning.join(name).to_string_lossy().into_owned();
            let known = self.repository.file_in(onto, &path)?.and_then(|bytes| String::from_utf8(bytes).ok());
            let text = known.filter(|_| self.facts.options.gsd_tracking).map(|text| tracked(&text).into_bytes());
            Ok(Reserved { path, text })
        };
        let kept = [file("ROADMAP.md", &|text| plan.in_roadmap(text))?, file("STATE.md", &|text| plan.in_state(text))?];
        Ok(kept.into_iter().chain(self.missing_summary(lane, head, &date)?).collect())
    }

    /// What marks a plan as done, for a lane whose agent did not write it.
    fn missing_summary(&self, lane: LaneIndex, head: &CommitId, date: &str) -> Result<Option<Reserved>, PortError> {
        let plan = &self.facts.plan_path;
        let directory = if plan.is_dir() { Some(plan.as_path()) } else { plan.parent() };
        let inside = directory.and_then(|it| it.strip_prefix(self.repository.main_worktree()).ok());
        let Some(inside) = inside.filter(|_| self.facts.options.gsd_tracking) else { return Ok(None) };
        let id = self.id(lane);
        let path = inside.join(format!("{id}-SUMMARY.md")).to_string_lossy().into_owned();
        if self.repository.file_in(head, &path)?.is_some() {
            return Ok(None);
        }
        let name = self.plan.lane(lane).name.as_ref().map(|name| format!(": {name}")).unwrap_or_default();
        let run = &self.facts.run_id;
        let text = format!(
            "# Plan {id}{name}\n\nDone on {date}. The agent left no summary of its own; Lanekeeper merged its work ({head}) in run {run}.\n"
        );
        Ok(Some(Reserved { path, text: Some(text.into_bytes()) }))
    }

    /// Says so where a lane changed what it has no say in.
    pub(super) fn left_out(
        &self,
        lane: LaneIndex,
        (base, head): (&CommitId, &CommitId),
        reserved: &[Reserved],
    ) -> Result<Option<Event>, PortError> {
        if reserved.is_empty() {
            return Ok(None);
        }
        let changed = self.repository.changed_paths(base, head)?;
        let of_lane: Vec<&str> =
            reserved.iter().map(|file| file.path.as_str()).filter(|path| changed.iter().any(|it| it == path)).collect();
        if of_lane.is_empty() {
            return Ok(None);
        }
        let message = format!("what the lane says in {} is left out: Lanekeeper keeps them", of_lane.join(" and "));
        Ok(Some(Event::Noted { lane: Some(self.id(lane)), message }))
    }

    /// The project's planning directory, relative to the repository's root.
    fn planning(&self) -> PathBuf {
        let plan = self.facts.plan_path.strip_prefix(self.repository.main_worktree()).unwrap_or(Path::new(""));
        let parts: Vec<_> = plan.components().collect();
        let at = parts.iter().position(|part| part.as_os_str() == ".planning");
        at.map_or_else(|| PathBuf::from(".planning"), |at| parts[..=at].iter().collect())
    }
}
