//! Settles a merge that conflicts in nothing but files that a command makes again, such as lock files.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use lanewright_files::regular_file;
use lanewright_git::{self as git, Checkout, Holder, Mode, Reserved};
use lanewright_model::event::{Event, Worktree};
use lanewright_model::ownership::names_file;
use lanewright_model::text::{headline, listed, shell_line};
use lanewright_model::{CommandLine, CommitId, ExitCause, JobId, JobRole, JobSpec, LaneIndex, OnOrphan};
use lanewright_programs::process::{self, Observation};
use lanewright_schedule::RunState;

use super::{Executor, Result};

/// How long the commands for one merge may take, if gates may take longer.
const LIMIT: Duration = Duration::from_secs(300);

/// How many other files that a command changed are named.
const NAMED: usize = 5;

/// How the commands of a lane run.
pub(super) struct Regeneration {
    lane: LaneIndex,
    environment: BTreeMap<String, String>,
}

/// What came of the commands for a merge.
pub(super) struct MadeAgain {
    /// The files as the commands left them; `None`: the merge is a conflict.
    pub(super) files: Option<Vec<Reserved>>,
    /// What was done, for the run log.
    pub(super) note: Option<Event>,
}

impl Executor {
    pub(super) fn regeneration(&self, lane: LaneIndex, state: &RunState) -> Regeneration {
        Regeneration { lane, environment: self.lane_environment(lane, state, Path::new("")) }
    }

    /// Has `paths`, the conflicts of the merge of `theirs` into `ours`, made again where the setting `regenerate` names all of
    /// them: the files of the merge, with `paths` as they are in ours, are checked out, and the commands run there. Nothing
    /// else may change. `reserved`: files that the merge does not decide either.
    pub(super) fn make_again(
        &self,
        regeneration: &Regeneration,
        [ours, theirs]: [&CommitId; 2],
        paths: &[String],
        reserved: &[Reserved],
    ) -> Result<MadeAgain> {
        let nothing = MadeAgain { files: None, note: None };
        let Some(commands) = self.commands_for(paths) else { return Ok(nothing) };
        if !self.can_be_made_again([ours, theirs], paths)? {
            return Ok(nothing);
        }
        let as_ours = |path: &String| Reserved { path: path.clone(), text: None };
        let decided: Vec<Reserved> = reserved.iter().cloned().chain(paths.iter().map(as_ours)).collect();
        let Some(merge) = git::try_merge(&self.repository, [ours, theirs], &decided)? else { return Ok(nothing) };
        let holder = self.search_holder(Some(regeneration.lane), "regenerate");
        let made = self.in_worktree_at(&holder, (&merge, ours), |worktree| {
            self.run_commands(regeneration, &merge, (&commands, paths), worktree)
        })?;
        let (lines, names) = (commands.iter().map(CommandLine::to_string).collect::<Vec<_>>(), listed(paths, NAMED));
        let lines = format!("`{}`", lines.join("`, `"));
        let (files, message) = match made {
            Ok(files) => (Some(files), format!("the conflict in {names} was settled by {lines}")),
            Err(why) => (None, format!("the conflict in {names} was not settled by {lines}: {why}")),
        };
        Ok(MadeAgain { files, note: Some(self.note(regeneration.lane, message)) })
    }

    /// Whether `paths` follow from other files that `theirs` changed: what it changed in them alone, such as one package's
    /// version, would be lost, and a file that one side removed would come back.
    fn can_be_made_again(&self, [ours, theirs]: [&CommitId; 2], paths: &[String]) -> Result<bool> {
        let Some(base) = self.repository.merge_base(ours, theirs)? else { return Ok(false) };
        let is_named = |path: &String| self.regenerate.keys().any(|glob| names_file(glob, path));
        let has_cause = !self.repository.changed_paths(&base, theirs)?.iter().all(is_named);
        let is_in = |path: &String, commit| Ok::<_, git::GitError>(self.repository.file_in(commit, path)?.is_some());
        for path in paths {
            if !is_in(path, ours)? || !is_in(path, theirs)? {
                return Ok(false);
            }
        }
        Ok(has_cause)
    }

    /// The commands that make `paths` again, each once, in the directories of the files; `None`: not all have one.
    fn commands_for(&self, paths: &[String]) -> Option<Vec<CommandLine>> {
        let mut commands = Vec::new();
        for path in paths {
            let (_, line) = self.regenerate.iter().find(|(glob, _)| names_file(glob, path))?;
            let line = match path.rsplit_once('/') {
                Some((directory, _)) => {
                    let enter = shell_line(["cd".to_owned(), format!("./{directory}")]);
                    CommandLine::Shell(format!("{enter} && {{ {line}\n}}"))
                }
                None => CommandLine::Shell(line.clone()),
            };
            if !commands.contains(&line) {
                commands.push(line);
            }
        }
        Some(commands)
    }

    /// Runs the commands in `worktree`; what they made of `paths`, or why that does not count.
    fn run_commands(
        &self,
        regeneration: &Regeneration,
        merge: &CommitId,
        (commands, paths): (&[CommandLine], &[String]),
        worktree: &Worktree,
    ) -> Result<Result<Vec<Reserved>, String>> {
        let (lane, root) = (self.id(regeneration.lane), &worktree.path);
        let directory = self.run.directory().join("regenerate").join(lane.as_str());
        if let Observation::Running(_) | Observation::Starting = process::observe(&directory)? {
            // Of a Lanewright that was killed.
            process::stop(&directory, true)?;
            process::wait_without_secrets(&directory, None, &self.redactor)?;
        }
        process::make_room(&directory)?;
        let job = JobId { lane: Some(lane), role: JobRole::Tests, number: 0 };
        self.copied.forget(root);
        self.copy_ignored(&job, root, &|_| ())?;
        let environment = self.environment_at(&regeneration.environment, root);
        let spec = self.gate_spec(job, commands.to_vec(), worktree, environment);
        let timeout = spec.timeout.unwrap_or(LIMIT).min(LIMIT);
        let spec = JobSpec { timeout: Some(timeout), on_orphan: OnOrphan::Stop, ..spec };
        let launched = self.launch(&directory, &spec)?;
        let exit = process::wait_without_secrets(&directory, Some(launched), &self.redactor)?;
        if exit.cause == ExitCause::TimedOut {
            return Ok(Err(format!("it took longer than {} s", timeout.as_secs())));
        }
        if !exit.passed() {
            let said = exit.tail.iter().rev().find(|line| !line.trim().is_empty()).unwrap_or(&exit.notes);
            return Ok(Err(format!("it exited with code {}: {}", exit.exit_code, headline(said, 200))));
        }
        if self.repository.head_at(root)?.commit != *merge {
            return Ok(Err("it made a commit".to_owned()));
        }
        let is_named = |path: &String| self.regenerate.keys().any(|glob| names_file(glob, path));
        let changed = git::uncommitted_paths(&self.repository, root)?;
        let others: Vec<String> = changed.iter().filter(|path| !is_named(path)).cloned().collect();
        if !others.is_empty() {
            return Ok(Err(format!("it changed other files: {}", listed(&others, NAMED))));
        }
        let more = changed.iter().filter(|path| !paths.contains(path));
        let mut files = Vec::new();
        for path in paths.iter().chain(more) {
            match regular_file::read(root.join(path)) {
                Ok(text) => files.push(Reserved { path: path.clone(), text: Some(text) }),
                Err(error) => return Ok(Err(format!("{path} cannot be read: {error}"))),
            }
        }
        Ok(Ok(files))
    }

    /// What `work` returns in a worktree of its own at `commit`, which is given back then, at `kept`: a commit that a ref
    /// leads to.
    pub(super) fn in_worktree_at<T>(
        &self,
        holder: &Holder,
        (commit, kept): (&CommitId, &CommitId),
        work: impl FnOnce(&Worktree) -> Result<T>,
    ) -> Result<T> {
        let at = |start: &CommitId| Checkout { branch: None, start: start.clone(), mode: Mode::Reset, adopt: true };
        let worktree = self.pool.open(holder, &at(commit))?;
        let done = work(&worktree);
        git::restore(&worktree.path, commit)?;
        if kept != commit {
            self.pool.open(holder, &at(kept))?;
        }
        self.pool.release(holder, std::slice::from_ref(kept))?;
        self.pool.unlink(holder)?;
        done
    }
}
