//! The files in which GSD keeps how far a project is: only Lanewright writes them, when a lane is merged (SPEC §3.2).

use std::path::{Path, PathBuf};

use lanewright_files::{atomic, directory, regular_file};
use lanewright_git::{self as git, Reserved};
use lanewright_model::event::{Event, PLANNING};
use lanewright_model::text::headline;
use lanewright_model::{CommitId, LaneId, LaneIndex, MergedPlan, PlanFormat};
use lanewright_schedule::RunState;

use similar::{DiffTag, TextDiff};

use super::{Executor, Result};

impl Executor {
    /// The files of which a lane has no say, with what they hold once its head, which began at `base`, is merged onto
    /// `onto`; and a summary, where the lane wrote none and its plan asks for one or GSD's files are kept up to date. One
    /// that git ignores is not committed: see [`Self::deliver_summary`].
    pub(super) fn reserved(
        &self,
        lane: LaneIndex,
        base: Option<&CommitId>,
        errors: &[String],
        commits: (&CommitId, &CommitId),
    ) -> Result<Vec<Reserved>> {
        let Some(after) = self.after_merge(lane, base, errors, commits)? else {
            return self.ticked_lists(lane, commits);
        };
        let summary = after.summary.filter(|_| !after.ignored);
        Ok(after.tracked.into_iter().chain(summary).collect())
    }

    /// What is written when the lane is merged; `None`: nothing, its plan is not one of GSD.
    fn after_merge(
        &self,
        lane: LaneIndex,
        base: Option<&CommitId>,
        errors: &[String],
        (onto, head): (&CommitId, &CommitId),
    ) -> Result<Option<AfterMerge>> {
        if self.facts.options.plan_format != Some(PlanFormat::Gsd) {
            return Ok(None);
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
        let (mut of_head, of_branch) = (of_head?, of_branch?);
        let ignored = directory.as_deref().is_some_and(|inside| self.ignores_summaries(inside));
        if ignored {
            let places = [Some(self.run.summaries(self.id_of(lane))), self.plans_in_checkout(directory.as_deref())];
            of_head.extend(places.iter().flatten().flat_map(|place| names_of(place)));
        }
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
        let written = |path: String, text: Option<String>| Reserved { path, text: text.map(String::into_bytes) };
        let tracked = paths.into_iter().zip(after.texts).map(|(path, text)| written(path, text)).collect();
        let summary = directory
            .zip(after.summary)
            .map(|(inside, (name, text))| written(inside.join(name).to_string_lossy().into_owned(), Some(text)));
        Ok(Some(AfterMerge { tracked, summary, ignored }))
    }

    pub(super) fn id_of(&self, lane: LaneIndex) -> &LaneId {
        &self.plan.lane(lane).id
    }

    /// The directory of the plans in the main worktree, of which git may know nothing.
    fn plans_in_checkout(&self, inside: Option<&Path>) -> Option<PathBuf> {
        Some(self.repository.main_worktree().join(inside?))
    }

    /// Whether git ignores summaries beside the plans (GSD's `commit_docs: false`).
    fn ignores_summaries(&self, inside: &Path) -> bool {
        let path = inside.join(SUMMARY);
        git::is_ignored(self.repository.main_worktree(), &path.to_string_lossy()).unwrap_or(false)
    }

    /// Saves the summaries that an agent of the lane wrote in `worktree`, where git ignores them and the next reset
    /// removes them. Those that the main worktree has as well came from there.
    pub(super) fn save_summaries(&self, lane: LaneIndex, worktree: &Path) -> Result<()> {
        let (Some(inside), _) = self.plan_directory() else { return Ok(()) };
        if self.facts.options.plan_format != Some(PlanFormat::Gsd) {
            return Ok(());
        }
        let names: Vec<String> = names_of(&worktree.join(&inside)).filter(|name| name.ends_with(SUMMARY)).collect();
        if names.is_empty() || !self.ignores_summaries(&inside) {
            return Ok(());
        }
        let saved = self.run.summaries(self.id_of(lane));
        for name in names {
            let path = inside.join(&name);
            let Ok(text) = regular_file::read_text(worktree.join(&path)) else { continue };
            if regular_file::read_text(self.repository.main_worktree().join(&path)).is_ok_and(|known| known == text) {
                continue;
            }
            directory::create_directory(&saved)?;
            atomic::write(&saved.join(name), self.redactor.redact(&text).as_bytes())?;
        }
        Ok(())
    }

    /// Puts the summary of a merged lane beside its plan in the main worktree, where git ignores it: that of its agent, else
    /// a short one under the rules of [`Self::reserved`]. A file that exists there stays as it is.
    pub(super) fn deliver_summary(
        &self,
        lane: LaneIndex,
        base: Option<&CommitId>,
        errors: &[String],
        commits: (&CommitId, &CommitId),
    ) -> Result<Vec<Event>> {
        let after = self.after_merge(lane, base, errors, commits)?.filter(|after| after.ignored);
        let (Some(after), (Some(inside), _)) = (after, self.plan_directory()) else { return Ok(Vec::new()) };
        let saved = self.run.summaries(self.id_of(lane));
        let text_of = |name: &String| regular_file::read(saved.join(name)).ok();
        let of_agent = names_of(&saved).filter_map(|name| {
            let text = Some(text_of(&name)?);
            Some(Reserved { path: inside.join(name).to_string_lossy().into_owned(), text })
        });
        let mut events = Vec::new();
        for (summary, is_own) in of_agent.map(|it| (it, true)).chain(after.summary.map(|it| (it, false))) {
            let path = self.repository.main_worktree().join(&summary.path);
            let made = path.parent().map(directory::create_directory).transpose()?;
            if made.is_some() && atomic::create(&path, &summary.text.unwrap_or_default())? {
                let path = &summary.path;
                let message = match is_own {
                    true => format!("git ignores {path}: the agent's summary is in the main worktree, uncommitted"),
                    false => {
                        format!("the agent left no summary; Lanewright adds {path}, which git ignores, uncommitted")
                    }
                };
                events.push(self.note(lane, message));
            }
        }
        Ok(events)
    }

    /// GSD's tracking files at `tip` without what a lane's `merge` brought onto `onto`: lines that later merges wrote again stay.
    pub(crate) fn tracking_without(&self, [onto, merge, tip]: [&CommitId; 3]) -> Result<Vec<Reserved>> {
        if self.facts.options.plan_format != Some(PlanFormat::Gsd) || !self.facts.options.gsd_tracking {
            return Ok(Vec::new());
        }
        let mut files = Vec::new();
        for path in TRACKING.map(|name| self.planning().join(name).to_string_lossy().into_owned()) {
            let text_in = |commit| -> Result<Option<String>> {
                Ok(self.repository.file_in(commit, &path)?.and_then(|bytes| String::from_utf8(bytes).ok()))
            };
            if let (Some(before), Some(after), Some(now)) = (text_in(onto)?, text_in(merge)?, text_in(tip)?) {
                let text = Some(without_change(&before, &after, &now).into_bytes());
                files.push(Reserved { path, text });
            }
        }
        Ok(files)
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

    /// Whether `path` is a list or one of GSD's tracking files, which are not merged from lanes.
    pub(super) fn is_tracking(&self, path: &str) -> bool {
        let planning = self.planning();
        let is = |name: &&str| planning.join(name) == Path::new(path);
        let is_of_gsd = || self.facts.options.plan_format == Some(PlanFormat::Gsd) && TRACKING.iter().any(is);
        self.is_list(path) || is_of_gsd()
    }

    fn planning(&self) -> PathBuf {
        self.facts.planning(self.repository.main_worktree()).unwrap_or_else(|| PathBuf::from(PLANNING))
    }
}

/// What is written when a lane is merged.
struct AfterMerge {
    /// The tracking files.
    tracked: Vec<Reserved>,
    /// The summary, where the lane wrote none and should have.
    summary: Option<Reserved>,
    /// Whether git ignores summaries.
    ignored: bool,
}

/// The names in a directory, none where it is missing.
fn names_of(place: &Path) -> impl Iterator<Item = String> + use<> {
    let paths = directory::entries(place).unwrap_or_default();
    paths.into_iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
}

/// How the name of a summary ends.
const SUMMARY: &str = "SUMMARY.md";

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

/// `now` with what a change made of `before` to `after` as it was, where `now` has it once: as a whole, else line by line,
/// each as the line of before that it is like.
fn without_change(before: &str, after: &str, now: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let [before, after] = [before, after].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let mut lines: Vec<&str> = now.split_inclusive('\n').collect();
    for change in diff.ops().iter().filter(|change| change.tag() != DiffTag::Equal) {
        let (old, new) = (&before[change.old_range()], &after[change.new_range()]);
        if let Some(place) = only_place(&lines, new) {
            lines.splice(place..place + new.len(), old.iter().copied());
            continue;
        }
        for line in new {
            if let Some(place) = only_place(&lines, std::slice::from_ref(line)) {
                let is_like = |old: &&&str| TextDiff::from_chars(**old, *line).ratio() > 0.6;
                lines.splice(place..=place, old.iter().find(is_like).copied());
            }
        }
    }
    lines.concat()
}

/// Where `lines` have the `block`, if that is at one place.
fn only_place(lines: &[&str], block: &[&str]) -> Option<usize> {
    let mut places = lines.windows(block.len().max(1)).enumerate().filter(|(_, found)| *found == block);
    places.next().filter(|_| places.next().is_none()).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::without_change;

    #[test]
    fn lines_of_other_merges_stay_when_one_is_undone() {
        let before = "# Roadmap\n- [ ] 10-01\n- [ ] 10-02\nLast: none\n";
        let after = "# Roadmap\n- [x] 10-01\n- [ ] 10-02\n- error of 10-01\nLast: 10-01\n";
        let now = "# Roadmap\n- [x] 10-01\n- [x] 10-02\n- error of 10-01\nLast: 10-02\n";
        assert_eq!(without_change(before, after, now), "# Roadmap\n- [ ] 10-01\n- [x] 10-02\nLast: 10-02\n");
        assert_eq!(without_change(before, after, after), before);
        assert_eq!(without_change(before, before, now), now);
        let twice = "- [x] 10-01\n- [x] 10-01\n";
        assert_eq!(without_change(before, after, twice), twice);
    }
}
