//! The lists of the plans of other programs, which say what is done: only Lanewright ticks them, when a lane is merged.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::time::Duration;

use lanewright_files::time_limit::output_of_group_within;
use lanewright_git::{self as git, Reserved};
use lanewright_model::event::Event;
use lanewright_model::text::{headline, shell_line};
use lanewright_model::{CommitId, LaneIndex, PlanFormat, Tick};

use similar::{DiffOp, DiffTag, TextDiff};

use super::{Executor, Result};

/// How long the program of a plan may take to record that a lane is done.
const STORE_LIMIT: Duration = Duration::from_secs(60);

/// The lists of a plan once the merge of a lane is undone.
#[derive(Debug, Default)]
pub(crate) struct ReopenedLists {
    pub(crate) files: Vec<Reserved>,
    /// Those whose ticks stay, because the list changed there since; then no list of the lane is opened.
    pub(crate) left: Vec<String>,
}

impl Executor {
    /// The lists of the plan with the lane's tasks done, on top of what `commit` has of them; and those of other plans that
    /// `head` has otherwise, as they are.
    pub(super) fn ticked_lists(
        &self,
        lane: LaneIndex,
        (commit, head): (&CommitId, &CommitId),
    ) -> Result<Vec<Reserved>> {
        let (texts, edited) = (self.texts_at(&self.plan.lists, commit)?, self.edited_lists()?);
        let companions = self.texts_at(&self.plan.companions, commit)?;
        let ticked = |(path, text): (String, String)| {
            let text = self.tick(lane, (&path, &text), &companions, true).filter(|_| !edited.contains(&path));
            Reserved { path, text: text.map(String::into_bytes) }
        };
        let mut lists: Vec<Reserved> = texts.into_iter().map(ticked).collect();
        lists.extend(self.other_lists((commit, head))?.into_iter().map(|path| Reserved { path, text: None }));
        Ok(lists)
    }

    /// The lists of other plans of the format that `commit` has and that differ in `head`.
    fn other_lists(&self, (commit, head): (&CommitId, &CommitId)) -> Result<Vec<String>> {
        if !self.facts.options.plan_format.is_some_and(PlanFormat::has_lists) {
            return Ok(Vec::new());
        }
        let mut others = Vec::new();
        for path in self.repository.changed_paths(commit, head)? {
            let is_other = self.is_list(&path) && !self.plan.lists.contains(&path);
            if is_other && self.repository.file_in(commit, &path)?.is_some() {
                others.push(path);
            }
        }
        Ok(others)
    }

    /// Whether `path` is a list of the plan, or has the place of one of another plan of its format.
    pub(super) fn is_list(&self, path: &str) -> bool {
        let has_place = |format| (self.is_list)(format, path);
        self.plan.lists.iter().any(|list| list == path) || self.facts.options.plan_format.is_some_and(has_place)
    }

    /// The lists of the plan at `tip` with what the lane's `merge` ticked on top of `onto` open again: all of it, or nothing.
    pub(crate) fn reopened_lists(&self, lane: LaneIndex, [onto, merge, tip]: [&CommitId; 3]) -> Result<ReopenedLists> {
        let mut reopened = ReopenedLists::default();
        if self.plan.lists.is_empty() {
            return Ok(reopened);
        }
        // A plan may have hundreds of lists, one for each task.
        let changed = self.repository.changed_paths(onto, merge)?;
        let lists: Vec<String> = changed.into_iter().filter(|path| self.plan.lists.contains(path)).collect();
        let companions = self.texts_at(&self.plan.companions, tip)?;
        let edited = self.edited_lists()?;
        for (path, now) in self.texts_at(&lists, tip)? {
            let [before, after] = [onto, merge].map(|commit| self.texts_at(std::slice::from_ref(&path), commit));
            let tick = |text: &str, done| self.tick(lane, (&path, text), &companions, done);
            let text = match (before?.pop(), after?.pop()) {
                (Some((_, before)), Some((_, after))) if before != after => {
                    match reopened_text([&before, &after, &now], &tick) {
                        Reopened::Text(_) if edited.contains(&path) => Reopened::Changed,
                        found => found,
                    }
                }
                _ => Reopened::Already,
            };
            reopened.left.extend(matches!(text, Reopened::Changed).then(|| path.clone()));
            let text = if let Reopened::Text(text) = text { Some(text.into_bytes()) } else { None };
            reopened.files.push(Reserved { path, text });
        }
        if !reopened.left.is_empty() {
            reopened.files.iter_mut().for_each(|file| file.text = None);
        }
        Ok(reopened)
    }

    /// The text of a list once the lane's tasks are done, or open; `None`: as it is.
    fn tick(
        &self,
        lane: LaneIndex,
        (path, text): (&str, &str),
        companions: &[(String, String)],
        done: bool,
    ) -> Option<String> {
        let plan = self.plan.lane(lane);
        let agents = plan.agents.iter().flat_map(|agent| &agent.tasks);
        let tasks: Vec<&str> = agents.map(|task| task.id.as_str()).collect();
        let (format, phase, lane) = (self.facts.options.plan_format?, self.plan.phase.as_str(), plan.id.as_str());
        (self.ticked)(&Tick { format, path, text, companions, phase, lane, tasks: &tasks, done })
    }

    /// Those of `paths` that `commit` has, each with its text.
    fn texts_at(&self, paths: &[String], commit: &CommitId) -> Result<Vec<(String, String)>> {
        let text_of = |path: &String| -> Result<Option<(String, String)>> {
            let text = self.repository.file_in(commit, path)?.and_then(|bytes| String::from_utf8(bytes).ok());
            Ok(text.map(|text| (path.clone(), text)))
        };
        paths.iter().filter_map(|path| text_of(path).transpose()).collect()
    }

    /// The lists that have changes in the user's checkout which are not committed: a merge that changed them could not be checked
    /// out there.
    fn edited_lists(&self) -> Result<Vec<String>> {
        if self.plan.lists.is_empty() {
            return Ok(Vec::new());
        }
        let changed = git::tracked_changes_where_checked_out(&self.repository, &self.facts.base_branch)?;
        let changed = changed.map(|(_, paths)| paths).unwrap_or_default();
        Ok(changed.into_iter().filter(|path| self.plan.lists.contains(path)).collect())
    }

    /// A note if what the lane did is not ticked in a list of the plan. `reserved`: those that git has.
    pub(super) fn unticked(&self, lane: LaneIndex, reserved: &[Reserved]) -> Result<Option<Event>> {
        if self.plan.lists.is_empty() || self.facts.options.plan_format == Some(PlanFormat::Beads) {
            return Ok(None);
        }
        let is_known = |path: &&String| reserved.iter().any(|file| file.path == **path);
        let unknown: Vec<&str> = self.plan.lists.iter().filter(|path| !is_known(path)).map(String::as_str).collect();
        let edited = self.edited_lists()?;
        let message = match (edited.as_slice(), unknown.as_slice()) {
            ([], []) => return Ok(None),
            ([], unknown) => format!("not ticked in {}, which is not committed", unknown.join(" and ")),
            (edited, _) => format!("not ticked in {}, which you changed and have not committed", edited.join(" and ")),
        };
        Ok(Some(self.note(lane, message)))
    }

    /// Has the program that keeps the plan record that the lane is done, where the plan is only an export of its store. It may
    /// do so again after a death.
    pub(super) fn record_in_store(&self, lane: LaneIndex) -> Option<Event> {
        let words = (self.recording_command)(self.facts.options.plan_format?, self.id_of(lane).as_str())?;
        let (program, arguments) = words.split_first()?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.repository.main_worktree()).stdin(Stdio::null());
        let line = shell_line(&words);
        let message = match output_of_group_within(command, STORE_LIMIT) {
            Ok(Some(output)) if output.status.success() => format!("`{line}` recorded that it is done"),
            Ok(Some(output)) => {
                let said = String::from_utf8_lossy(&output.stderr);
                format!("`{line}` failed ({}): {}; type it once that is mended", output.status, headline(&said, 200))
            }
            Ok(None) => format!(
                "`{line}` took longer than {} s; type it to record that the lane is done",
                STORE_LIMIT.as_secs()
            ),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                format!("{program} is not on PATH; to record that the lane is done: {line}")
            }
            Err(error) => format!("`{line}` cannot be run: {error}"),
        };
        Some(self.note(lane, self.redactor.redact(&message).into_owned()))
    }
}

/// What becomes of a list when a lane's merge is undone.
#[derive(Debug, PartialEq, Eq)]
enum Reopened {
    Text(String),
    /// Nothing in it says that the lane is done.
    Already,
    /// It changed where the merge ticked it.
    Changed,
}

/// The list `now` without what a merge ticked when it made `after` of `before`. `tick` gives a text with the lane's tasks
/// done, or open; `None`: it stays the same.
fn reopened_text([before, after, now]: [&str; 3], tick: &dyn Fn(&str, bool) -> Option<String>) -> Reopened {
    let done = tick(now, true);
    if let Some(done) = &done
        && (without_ticks([before, after, done], tick).as_deref() == Some(now)
            || tick(done, false).as_deref() == Some(now))
    {
        return Reopened::Already;
    }
    without_ticks([before, after, now], tick).map_or(Reopened::Changed, Reopened::Text)
}

fn without_ticks([before, after, now]: [&str; 3], tick: &dyn Fn(&str, bool) -> Option<String>) -> Option<String> {
    let open = tick(now, false)?;
    let restored = with_lines_of([before, after, now]);
    // Lines that say no more than a status are at several places: the right ones are those that the format opens, too.
    if let Some(restored) = restored
        && changes_only_lines_of(now, &restored, &open)
    {
        return Some(restored);
    }
    // Several lanes in one line: right where the format opens exactly what the merge ticked.
    let is_exact = tick(after, false).as_deref() == Some(before) && tick(&open, true).as_deref() == Some(now);
    (is_exact && extent(now, &open) == extent(after, before)).then_some(open)
}

/// `now` with the lines that differ between `before` and `after`, of which there are as many, as `before` has them. `None`
/// unless `now` has all of them as `after` has them.
fn with_lines_of([before, after, now]: [&str; 3]) -> Option<String> {
    let [old, new, mut lines] = [before, after, now].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    if old.len() != new.len() {
        return None;
    }
    let still = TextDiff::from_lines(after, now);
    let still = still.ops().iter().filter(|op| op.tag() == DiffTag::Equal);
    let place: HashMap<usize, usize> = still.flat_map(|op| op.new_range().map(|new| (old_of(op, new), new))).collect();
    for at in (0..old.len()).filter(|&at| old[at] != new[at]) {
        *lines.get_mut(*place.get(&at)?)? = old[at];
    }
    Some(lines.concat())
}

/// The line of the old text that is equal to the line `new` of the new one.
fn old_of(op: &DiffOp, new: usize) -> usize {
    op.old_range().start + (new - op.new_range().start)
}

/// How much of a text changes where a format writes another word, or another letter, at each of some places.
fn extent(text: &str, other: &str) -> usize {
    match text.len().abs_diff(other.len()) {
        0 => text.bytes().zip(other.bytes()).filter(|(one, other)| one != other).count(),
        difference => difference,
    }
}

/// Whether `one` differs from `text` in no line that `other` has unchanged; all have the same number of lines.
fn changes_only_lines_of(text: &str, one: &str, other: &str) -> bool {
    let lines = || text.split_inclusive('\n').zip(one.split_inclusive('\n')).zip(other.split_inclusive('\n'));
    let count = |text: &str| text.split_inclusive('\n').count();
    count(text) == count(other) && lines().all(|((line, one), other)| line == one || line != other)
}

#[cfg(test)]
mod tests {
    use super::{Reopened, reopened_text};

    /// A lane `A` of a list of boxes, whose tasks are on lines with ` A`.
    fn tick(text: &str, done: bool) -> Option<String> {
        let (from, to) = if done { ("[ ] A", "[x] A") } else { ("[x] A", "[ ] A") };
        Some(text.replace(from, to)).filter(|changed| changed != text)
    }

    fn reopened(before: &str, now: &str) -> Reopened {
        reopened_text([before, &tick(before, true).unwrap(), now], &tick)
    }

    fn text(text: &str) -> Reopened {
        Reopened::Text(text.to_owned())
    }

    #[test]
    fn what_was_done_before_the_merge_stays_done() {
        assert_eq!(reopened("[ ] A\n[x] A\n", "[x] A\n[x] A\n"), text("[ ] A\n[x] A\n"));
    }

    #[test]
    fn other_changes_of_the_list_stay() {
        assert_eq!(reopened("a\n[ ] A\n[ ] B\n", "new\na\n[x] A\n[x] B\nb"), text("new\na\n[ ] A\n[x] B\nb"));
    }

    #[test]
    fn ticks_of_a_lane_are_opened_all_or_none() {
        assert_eq!(reopened("[ ] A 1\n[ ] A 2\n", "[x] A 1\n[x] A 2, later\n"), text("[ ] A 1\n[ ] A 2, later\n"));
        assert_eq!(reopened("[ ] A 1\n[ ] A 2\n", "[x] A 1\n[-] A 2\n"), Reopened::Changed);
        assert_eq!(reopened("[ ] A 1\n[ ] A 2\n", "[ ] A 1\n[x] A 2\n"), Reopened::Changed);
        assert_eq!(reopened("[ ] A 1\n[ ] A 2\n", "[x] A 1\n"), Reopened::Changed);
    }

    #[test]
    fn open_lists_have_nothing_to_open() {
        assert_eq!(reopened("[ ] A\n[ ] B\n", "[ ] A\n[x] B\n"), Reopened::Already);
    }

    #[test]
    fn lanes_in_one_line_are_opened_by_the_format() {
        assert_eq!(reopened("[ ] A [ ] B", "[x] A [x] B"), text("[ ] A [x] B"));
        assert_eq!(reopened("[ ] A [x] A [ ] B", "[x] A [x] A [x] B"), Reopened::Changed, "one was done before");
    }
}
