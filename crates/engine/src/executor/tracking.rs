//! The files in which GSD keeps how far a project is: only Lanewright writes them, when a lane is merged (SPEC §3.2).

use std::path::{Path, PathBuf};

use lanewright_git::Reserved;
use lanewright_model::event::Event;
use lanewright_model::{CommitId, LaneIndex, MergedPlan, PlanFormat};

use super::{Executor, Result};

impl Executor {
    /// The files of which a lane has no say, with what they hold once its head is merged onto `onto`; and a summary, where
    /// the lane wrote none.
    pub(super) fn reserved(&self, lane: LaneIndex, (onto, head): (&CommitId, &CommitId)) -> Result<Vec<Reserved>> {
        if self.facts.options.plan_format != Some(PlanFormat::Gsd) {
            return Ok(Vec::new());
        }
        let paths = TRACKING.map(|name| self.planning().join(name).to_string_lossy().into_owned());
        if !self.facts.options.gsd_tracking {
            return Ok(paths.map(|path| Reserved { path, text: None }).into());
        }
        let text_of = |path: &str| -> Result<Option<String>> {
            Ok(self.repository.file_in(onto, path)?.and_then(|bytes| String::from_utf8(bytes).ok()))
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

    /// Whether `path` is one of GSD's tracking files, which are not merged from lanes.
    pub(super) fn is_tracking(&self, path: &str) -> bool {
        let planning = self.planning();
        let is = |name: &&str| planning.join(name) == Path::new(path);
        self.facts.options.plan_format == Some(PlanFormat::Gsd) && TRACKING.iter().any(is)
    }

    fn planning(&self) -> PathBuf {
        let plan = self.facts.plan_path.strip_prefix(self.repository.main_worktree()).unwrap_or(Path::new(""));
        let parts: Vec<_> = plan.components().collect();
        let at = parts.iter().position(|part| part.as_os_str() == ".planning");
        at.map_or_else(|| PathBuf::from(".planning"), |at| parts[..=at].iter().collect())
    }
}

const TRACKING: [&str; 2] = ["ROADMAP.md", "STATE.md"];
