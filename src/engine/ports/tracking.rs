//! The files in which GSD keeps how far a project is: nobody but Lanekeeper writes them, when a lane is merged (SPEC §3.2).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{PortError, Ports};
use crate::event::Event;
use crate::git::Reserved;
use crate::model::{CommitId, LaneIndex, PlanFormat};
use crate::plan_source::roadmap::number_of;
use crate::plan_source::tracking::DonePlan;
use crate::plan_source::{gsd_plan_is_done, gsd_plans_beside};

/// A plan among those of its phase's directory.
struct Standing {
    /// The plan's id, as the whole directory gives it.
    plan: String,
    /// The directory, relative to the repository's root; `None`: it lies elsewhere.
    directory: Option<PathBuf>,
    /// Whether the lane's head has a summary of the plan.
    has_summary: bool,
    /// How many plans of the directory are done with this one, and how many there are.
    count: Option<(usize, usize)>,
}

impl Ports {
    /// The files of which a lane has no say, with what they hold once its head is merged onto `onto`; and a summary, where
    /// the lane wrote none.
    pub(super) fn reserved(
        &self,
        lane: LaneIndex,
        (onto, head): (&CommitId, &CommitId),
    ) -> Result<Vec<Reserved>, PortError> {
        if self.facts.options.plan_format != Some(PlanFormat::Gsd) {
            return Ok(Vec::new());
        }
        let planning = self.planning();
        let date = self.clock.now().0.format("%Y-%m-%d").to_string();
        let standing = self.standing(lane, (onto, head))?;
        let in_phase = !standing.directory.iter().flatten().any(|part| part == "quick");
        let plan = DonePlan {
            plan: &standing.plan,
            phase: number_of(self.plan.phase.as_str()).filter(|_| in_phase),
            count: standing.count,
            date: &date,
        };
        let file = |name: &str, tracked: &dyn Fn(&str) -> String| -> Result<Reserved, PortError> {
            let path = planning.join(name).to_string_lossy().into_owned();
            let known = self.repository.file_in(onto, &path)?.and_then(|bytes| String::from_utf8(bytes).ok());
            let text = known.filter(|_| self.facts.options.gsd_tracking).map(|text| tracked(&text).into_bytes());
            Ok(Reserved { path, text })
        };
        let [roadmap, state] = TRACKING;
        let kept = [file(roadmap, &|text| plan.in_roadmap(text))?, file(state, &|text| plan.in_state(text))?];
        Ok(kept.into_iter().chain(self.missing_summary(lane, head, &date, &standing)).collect())
    }

    /// What the two commits say of the lane's plan and of the others in its directory.
    fn standing(&self, lane: LaneIndex, (onto, head): (&CommitId, &CommitId)) -> Result<Standing, PortError> {
        let (id, path) = (self.id(lane).to_string(), &self.facts.plan_path);
        let is_file = path.is_file() || !path.is_dir() && path.extension().is_some_and(|extension| extension == "md");
        let directory = if is_file { path.parent() } else { Some(path.as_path()) };
        let Some(inside) = directory.and_then(|it| it.strip_prefix(self.repository.main_worktree()).ok()) else {
            return Ok(Standing { plan: id, directory: None, has_summary: false, count: None });
        };
        let place = inside.to_string_lossy();
        let of_head = self.repository.names_in(head, &place)?;
        let beside = [self.repository.names_in(onto, &place)?, of_head.clone()].concat();
        let plans = gsd_plans_beside(&beside);
        let file = path.file_name().filter(|_| is_file);
        let own = plans.iter().find(|plan| file.map_or(plan.id == id, |file| plan.name.as_str() == file));
        let plan = own.map_or(id, |own| own.id.clone());
        let has_summary =
            of_head.contains(&summary(&plan)) || own.is_some_and(|own| gsd_plan_is_done(&own.name, &of_head));
        // One file alone says nothing about how many there are.
        let known = own.is_some() || !is_file;
        let mut is_done: BTreeMap<String, bool> = plans.iter().map(|plan| (plan.id.clone(), plan.is_done)).collect();
        if !is_file {
            let of_run = self.plan.lanes.iter().map(|lane| &lane.id);
            for id in of_run.chain(self.plan.skipped.iter().map(|it| &it.lane)).map(ToString::to_string) {
                let done = beside.contains(&summary(&id));
                is_done.entry(id).or_insert(done);
            }
        }
        is_done.insert(plan.clone(), true);
        let count = known.then(|| (is_done.values().filter(|done| **done).count(), is_done.len()));
        Ok(Standing { plan, directory: Some(inside.to_owned()), has_summary, count })
    }

    /// What marks a plan as done, for a lane whose agent did not write it.
    fn missing_summary(&self, lane: LaneIndex, head: &CommitId, date: &str, standing: &Standing) -> Option<Reserved> {
        let wanted = self.facts.options.gsd_tracking && !standing.has_summary;
        let inside = standing.directory.as_ref().filter(|_| wanted)?;
        let id = &standing.plan;
        let path = inside.join(summary(id)).to_string_lossy().into_owned();
        let name = self.plan.lane(lane).name.as_ref().map(|name| format!(": {name}")).unwrap_or_default();
        let run = &self.facts.run_id;
        let text = format!(
            "# Plan {id}{name}\n\nDone on {date}. The agent left no summary of its own; Lanekeeper merged its work ({head}) in run {run}.\n"
        );
        Some(Reserved { path, text: Some(text.into_bytes()) })
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

    /// Whether `path` is one of GSD's tracking files, which are not merged from lanes.
    pub(super) fn is_tracking(&self, path: &str) -> bool {
        let planning = self.planning();
        let is = |name: &&str| planning.join(name) == Path::new(path);
        self.facts.options.plan_format == Some(PlanFormat::Gsd) && TRACKING.iter().any(is)
    }

    /// The project's planning directory, relative to the repository's root.
    fn planning(&self) -> PathBuf {
        let plan = self.facts.plan_path.strip_prefix(self.repository.main_worktree()).unwrap_or(Path::new(""));
        let parts: Vec<_> = plan.components().collect();
        let at = parts.iter().position(|part| part.as_os_str() == ".planning");
        at.map_or_else(|| PathBuf::from(".planning"), |at| parts[..=at].iter().collect())
    }
}

/// The files of the planning directory that only Lanekeeper changes.
const TRACKING: [&str; 2] = ["ROADMAP.md", "STATE.md"];

/// The file that says that a plan is done.
fn summary(plan: &str) -> String {
    format!("{plan}-SUMMARY.md")
}
