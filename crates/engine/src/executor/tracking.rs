//! The files in which GSD keeps how far a project is: only Lanewright writes them, when a lane is merged (SPEC §3.2).

use std::path::{Path, PathBuf};

use lanewright_git::Reserved;
use lanewright_model::event::{Event, PLANNING};
use lanewright_model::text::headline;
use lanewright_model::{CommitId, LaneIndex, MergedPlan, PlanFormat};
use lanewright_schedule::RunState;

use super::{Executor, Result};

impl Executor {
    /// The files of which a lane has no say, with what they hold once its head, which began at `base`, is merged onto
    /// `onto`; and a summary, where the lane wrote none and its plan asks for one or GSD's files are kept up to date.
    pub(super) fn reserved(
        &self,
        lane: LaneIndex,
        base: Option<&CommitId>,
        errors: &[String],
        (onto, head): (&CommitId, &CommitId),
    ) -> Result<Vec<Reserved>> {
        if self.facts.options.plan_format != Some(PlanFormat::Gsd) {
            return Ok(Vec::new());
        }
        let tracking = self.facts.options.gsd_tracking;
        let paths = TRACKING.map(|name| self.planning().join(name).to_string_lossy().into_owned());
        let text_of = |path: &str| -> Result<Option<String>> {
            let text = if tracking { self.repository.file_in(onto, path)? } else { None };
            Ok(text.and_then(|bytes| String::from_utf8(bytes).ok()))
        };
        let texts = [text_of(&paths[0])?, text_of(&paths[1])?];
        let (directory, file) = self.plan_directory();
        let names = match &directory {
            Some(inside) => [head, onto].map(|commit| self.repository.names_in(commit, &inside.to_string_lossy())),
            None => [Ok(Vec::new()), Ok(Vec::new())],
        };
        let [of_head, of_branch] = names;
        let (of_head, of_branch) = (of_head?, of_branch?);
        let skipped = self.plan.skipped.iter().map(|skipped| &skipped.lane);
        let lanes: Vec<String> =
            self.plan.lanes.iter().map(|lane| &lane.id).chain(skipped).map(ToString::to_string).collect();
        let plan = self.plan.lane(lane);
        let tasks = || plan.agents.iter().flat_map(|agent| &agent.tasks).filter(|task| !task.kind.is_human());
        let names_of_tasks: Vec<String> = tasks().map(|task| headline(task.title(), 200)).collect();
        let changed = base.map(|base| self.repository.changed_paths(base, head)).transpose()?.unwrap_or_default();
        let after = (self.planning_files)(&MergedPlan {
            lane: plan.id.as_str(),
            name: plan.name.as_deref(),
            phase: self.plan.phase.as_str(),
            lanes: &lanes,
            directory: directory.as_deref(),
            file: file.as_deref(),
            names: [&of_head, &of_branch],
            date: &self.clock.now().0.format("%Y-%m-%d").to_string(),
            source: (&self.facts.run_id, head),
            prompt: tasks().next_back().map_or("", |task| task.prompt.as_str()),
            tasks: &names_of_tasks,
            changed: &changed,
            errors,
            tracking,
            texts: [texts[0].as_deref(), texts[1].as_deref()],
        });
        let written = |text: String| Some(text.into_bytes());
        let tracked = paths.into_iter().zip(after.texts).map(|(path, text)| (path, text.and_then(written)));
        let summary = directory
            .zip(after.summary)
            .map(|(inside, (name, text))| (inside.join(name).to_string_lossy().into_owned(), written(text)));
        Ok(tracked.chain(summary).map(|(path, text)| Reserved { path, text }).collect())
    }

    /// The directory of the plans, relative to the repository's root, if it is inside; and the name of the plan's file if
    /// the run executes that one only.
    fn plan_directory(&self) -> (Option<PathBuf>, Option<String>) {
        let path = &self.facts.plan_path;
        let is_file = path.is_file() || !path.is_dir() && path.extension().is_some_and(|extension| extension == "md");
        let directory = if is_file { path.parent() } else { Some(path.as_path()) };
        let inside = directory.and_then(|it| it.strip_prefix(self.repository.main_worktree()).ok());
        let file = path.file_name().filter(|_| is_file).map(|name| name.to_string_lossy().into_owned());
        (inside.map(Path::to_owned), file)
    }

    /// A note if the lane changed files that its merge leaves out.
    pub(super) fn left_out(
        &self,
        lane: LaneIndex,
        (base, head): (&CommitId, &CommitId),
        reserved: &[Reserved],
    ) -> Result<Option<Event>> {
        if reserved.is_empty() {
            return Ok(None);
        }
        let changed = self.repository.changed_paths(base, head)?;
        let of_lane: Vec<&str> =
            reserved.iter().map(|file| file.path.as_str()).filter(|path| changed.iter().any(|it| it == path)).collect();
        if of_lane.is_empty() {
            return Ok(None);
        }
        let message = format!("what the lane says in {} is left out: Lanewright keeps them", of_lane.join(" and "));
        Ok(Some(self.note(lane, message)))
    }

    /// A note if its merge brings a summary that the lane did not write.
    pub(super) fn added_summary(&self, lane: LaneIndex, reserved: &[Reserved]) -> Option<Event> {
        let path = &reserved.iter().find(|file| !self.is_tracking(&file.path))?.path;
        Some(self.note(lane, format!("the agent left no summary; Lanewright adds {path}")))
    }

    /// Whether `path` is one of GSD's tracking files, which are not merged from lanes.
    pub(super) fn is_tracking(&self, path: &str) -> bool {
        let planning = self.planning();
        let is = |name: &&str| planning.join(name) == Path::new(path);
        self.facts.options.plan_format == Some(PlanFormat::Gsd) && TRACKING.iter().any(is)
    }

    fn planning(&self) -> PathBuf {
        self.facts.planning(self.repository.main_worktree()).unwrap_or_else(|| PathBuf::from(PLANNING))
    }
}

/// What failed in a lane, a line each.
pub(super) fn errors_of(state: &RunState, lane: LaneIndex) -> Vec<String> {
    let workers = state.plan().lane(lane).agents.iter().zip(state.lane(lane).agents());
    let all = workers.flat_map(|(agent, worker)| worker.past.iter().map(move |past| (&agent.name, past)));
    all.map(|(agent, past)| {
        let task = past.task.as_ref().map(|task| format!("task {task} ")).unwrap_or_default();
        headline(&format!("{task}({agent}): {}", past.failure.message), ERROR)
    })
    .collect()
}

/// The longest line about an error, in characters.
const ERROR: usize = 300;

const TRACKING: [&str; 2] = ["ROADMAP.md", "STATE.md"];
