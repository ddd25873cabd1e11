//! `publish`: brings the work of a run that is done to the remote's branch, by a push or in a pull request.

use std::fmt;

use lanewright_engine::publish::{Delivery, PublishError, Work};
use lanewright_engine::state_sync::{OwnPushes, Source, runs_of, send};
use lanewright_files::atomic;
use lanewright_git::{self as git, GitError, Publication, Remote, Repository};
use lanewright_model::event::{Event, Record, RunOutcome, RunStarted};
use lanewright_model::text::{counted, shell_line};
use lanewright_model::{CommitId, MergeMode, PublishMode, PullRequest, RunId};
use lanewright_programs::forge::{Forge, Opened, Proposal, page_to_open};
use serde_json::{Value, json};

use crate::cli::args::Publish;
use crate::cli::look::report::pull_request_text;
use crate::cli::run::{branch_remote, forge_settings, lock_resting_run};
use crate::cli::runs::{RunRecords, command, last_outcome};
use crate::cli::select::Selector;
use crate::cli::{CliError, Context, ExitStatus, Hint, RepositoryContext, Result, host};

pub(crate) fn run(context: &Context, arguments: &Publish) -> Result<ExitStatus> {
    let within = RepositoryContext::open_for_work(context, arguments.layer())?;
    let run = Selector::new(context, &within.state).newest(arguments.run.as_ref())?;
    let publishing = within.activity(format_args!("Publishing run {run}"));
    let published = publish(&within, &run);
    drop(publishing);
    let published = published?;
    context.printer.print(format_args!("{published}\n"), &published.to_json())?;
    Ok(published.status())
}

/// A run, and what became of its work.
#[derive(Debug)]
pub(crate) struct Published {
    run: RunId,
    remote: String,
    branch: String,
    how: How,
}

#[derive(Debug)]
enum How {
    /// The run left no work for the branch; why.
    Nothing(String),
    AlreadyThere,
    /// A pull request with the work was merged, in whatever style.
    Merged(PullRequest),
    Pushed {
        tip: CommitId,
        /// Merged with what the remote's branch had.
        merged: bool,
    },
    Proposed {
        from: String,
        opened: Opened,
    },
    /// The branch was pushed, and a person has to open the pull request.
    ToPropose {
        from: String,
        page: Option<String>,
    },
}

impl Published {
    /// Whether the remote's branch has the work, or the run left none for it.
    pub(crate) fn is_on_branch(&self) -> bool {
        !matches!(self.how, How::Proposed { .. } | How::ToPropose { .. })
    }

    pub(crate) fn status(&self) -> ExitStatus {
        if matches!(self.how, How::ToPropose { .. }) { ExitStatus::Blocked } else { ExitStatus::Done }
    }

    fn to_json(&self) -> Value {
        let Self { run, remote, branch, how } = self;
        let (state, more) = match how {
            How::Nothing(why) => ("nothing", json!({"reason": why})),
            How::AlreadyThere => ("published", json!({})),
            How::Merged(pull_request) => ("published", json!({"pull_request": pull_request})),
            How::Pushed { tip, merged } => ("pushed", json!({"commit": tip, "merged": merged})),
            How::Proposed { from, opened } => {
                ("proposed", json!({"from": from, "pull_request": opened.pull_request, "updated": opened.updated}))
            }
            How::ToPropose { from, page } => ("to_propose", json!({"from": from, "page": page})),
        };
        let published = self.is_on_branch();
        let mut all =
            json!({"run_id": run, "remote": remote, "branch": branch, "published": published, "state": state});
        if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
            all.extend(more);
        }
        all
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, remote, branch, how } = self;
        match how {
            How::Nothing(why) => write!(f, "There is nothing to publish: {why}."),
            How::AlreadyThere => write!(f, "Run {run} is published: {branch} on {remote} has its work."),
            How::Merged(pull_request) => write!(f, "Run {run} is published: {} was merged.", pull_request.url),
            How::Pushed { tip, merged } => {
                let with = if *merged { ", merged with what it had" } else { "" };
                write!(f, "Pushed run {run} to {branch} on {remote}: it is at {}{with}.", tip.short())
            }
            How::Proposed { from, opened } => {
                let what = if opened.updated { "Updated" } else { "Opened" };
                let url = &opened.pull_request.url;
                write!(f, "{what} the pull request of run {run}, {from} into {branch}: {url}")
            }
            How::ToPropose { from, page } => {
                write!(f, "Pushed run {run} to {from} on {remote}. Open a pull request of it into {branch}")?;
                page.iter().try_for_each(|page| write!(f, ": {page}"))
            }
        }
    }
}

/// Brings the work of a run that is done to the branch of the remote that the settings name. Called again, it does what is
/// missing.
pub(crate) fn publish(within: &RepositoryContext, run: &RunId) -> Result<Published> {
    let records = RunRecords::read(&within.context, &within.state, run.clone())?;
    let _lock = lock_resting_run(within, run)?;
    refuse_unfinished(within, &records)?;
    let started = records.started()?;
    let remote = branch_remote(within, &started.base_branch)?;
    let publisher = Publisher { within, run, started, remote };
    match publisher.started.options.merge {
        MergeMode::Local => publisher.publish(&records),
        MergeMode::None => {
            let why = format!("run {run} leaves its work on the branches of its lanes (merge = \"none\")");
            Ok(publisher.ended(How::Nothing(why)))
        }
        MergeMode::Pr => {
            let why = format!("run {run} proposes each of its lanes in a pull request (merge = \"pr\")");
            Ok(publisher.ended(How::Nothing(why)))
        }
    }
}

/// The pull request of a run whose merge brought `commit` into `branch`, if the forge knows of one.
pub(super) fn merged_pull_request(
    forge: &Forge,
    repository: &Repository,
    run: &RunId,
    (branch, commit): (&str, &CommitId),
) -> Result<Option<PullRequest>> {
    for (pull_request, head) in forge.merged(&format!("lanewright/{run}"))? {
        let Ok(head) = CommitId::new(&head) else { continue };
        let holds = repository.has_commit(&head)? && repository.is_ancestor(commit, &head)?;
        if holds && pull_request.base == branch {
            return Ok(Some(pull_request));
        }
    }
    Ok(None)
}

fn refuse_unfinished(within: &RepositoryContext, records: &RunRecords) -> Result<()> {
    let run = records.run.as_str();
    let error = |message: String| ExitStatus::InvalidOperation.error(message);
    match last_outcome(&records.records) {
        Some(RunOutcome::Done) => Ok(()),
        Some(RunOutcome::RolledBack) => Err(error(format!("run {run} was rolled back, so it has no work to publish"))),
        _ => Err(error(format!("run {run} is not done, so it was not published"))
            .hint(format!("to see what is left: {}", command(&within.state, &["status", run])))
            .hint(format!("to resume it: {}", command(&within.state, &["resume", run])))),
    }
}

struct Publisher<'a> {
    within: &'a RepositoryContext,
    run: &'a RunId,
    started: &'a RunStarted,
    remote: Remote,
}

impl Publisher<'_> {
    fn ended(&self, how: How) -> Published {
        let (remote, branch) = (self.remote.name().to_owned(), self.started.base_branch.clone());
        Published { run: self.run.clone(), remote, branch, how }
    }

    fn publish(&self, records: &RunRecords) -> Result<Published> {
        let (repository, branch) = (&self.within.repository, &self.started.base_branch);
        let commit =
            repository.branch_commit(branch)?.ok_or_else(|| GitError::BranchMissing { branch: branch.clone() })?;
        self.refuse_lost_merges(records, &commit)?;
        let committing = self.within.repository_of(self.started)?;
        let work = Work { repository: &committing, remote: &self.remote, run: self.run, commit: &commit };
        if let Some(tip) = self.find(&work)? {
            return self.already_there(&commit, &tip);
        }
        self.warn_of_unfinished_runs(&commit)?;
        // Another clone must not find work on the branch that the state does not know of.
        self.push_state()?;
        let mode = self.within.settings.publish.value;
        if mode == PublishMode::Pr {
            return self.propose(&work).map(|how| self.ended(how));
        }
        let refusal = match work.deliver(branch) {
            Ok(Delivery::AlreadyThere(tip)) => return self.already_there(&commit, &tip),
            Ok(Delivery::Pushed(tip)) => {
                let merged = tip != commit;
                if merged {
                    self.follow(&commit, &tip)?;
                }
                return Ok(self.ended(How::Pushed { tip, merged }));
            }
            // Once a forge has squashed the work, later commits to the same lines look like a conflict.
            Err(error @ PublishError::Conflict { .. }) => {
                let Some(merged) = self.ready_forge().ok().and_then(|forge| self.merged(&forge, &work).ok().flatten())
                else {
                    return Err(self.failed(&error));
                };
                return self.ended_by_forge(merged, &work).map(|how| self.ended(how));
            }
            Err(PublishError::Git(error)) if error.is_refused_by_rule() => error,
            Err(error) => return Err(self.failed(&error)),
        };
        if mode == PublishMode::Push {
            let error = self.failed(&PublishError::Git(refusal));
            return Err(error.hint(format!("in a pull request: lanewright publish {} --as pr", self.run)));
        }
        let message = format!("{refusal}\nso a pull request is used instead");
        let hint = "to do that at once: --as pr, or publish = \"pr\" in lanewright.toml".to_owned();
        self.within.context.printer.warning(message, &[hint]);
        self.propose(&work).map(|how| self.ended(how))
    }

    /// A branch that was moved or rewritten since is not what the run left, unless it has the work by other commits.
    fn refuse_lost_merges(&self, records: &RunRecords, tip: &CommitId) -> Result<()> {
        let mut merges = records.records.iter().filter_map(|record| match &record.event {
            Event::LaneMerged { lane, commit, onto, .. } => Some((lane, commit, onto)),
            _ => None,
        });
        let Some(first @ (_, _, onto)) = merges.next() else { return Ok(()) };
        let (lane, commit, _) = merges.next_back().unwrap_or(first);
        let repository = &self.within.repository;
        let is_in = |commit: &CommitId| {
            Ok::<_, GitError>(repository.has_commit(commit)? && repository.is_ancestor(commit, tip)?)
        };
        if is_in(commit)? {
            return Ok(());
        }
        let is_published = match self.within.state.run(self.run).publication() {
            Some(at) if is_in(&at)? => {
                !repository.merged_lanes(tip)?.is_taken_back(repository, (onto, commit), (&at, tip))?
            }
            _ => false,
        };
        if is_published || repository.has_work_of(tip, commit)? {
            return self.note_publication(tip);
        }
        let (branch, run) = (&self.started.base_branch, self.run);
        let message = format!(
            "{branch} does not hold {}, with which run {run} merged lane {lane}: the branch was moved or rewritten since",
            commit.short()
        );
        let push = shell_line(["git", "push", self.remote.name(), branch]);
        Err(ExitStatus::Blocked.error(message).hint(format!("to push the branch as it is now: {push}")))
    }

    /// Warns of lanes in the branch of runs that are not done: the branch is published as it is.
    fn warn_of_unfinished_runs(&self, commit: &CommitId) -> Result<()> {
        let (within, branch) = (self.within, &self.started.base_branch);
        for summary in within.state.unfinished_runs() {
            let started = &summary.started;
            let run = &started.run_id;
            if run == self.run || started.base_branch != *branch {
                continue;
            }
            let records = RunRecords::read(&within.context, &within.state, run.clone())?;
            let mut lanes = Vec::new();
            for Record { event, .. } in &records.records {
                if let Event::LaneMerged { lane, commit: merge, .. } = event
                    && within.repository.has_commit(merge)?
                    && within.repository.is_ancestor(merge, commit)?
                {
                    lanes.push(lane.as_str());
                }
            }
            if !lanes.is_empty() {
                let message = format!("{branch} has lanes of run {run}, which is not done: {}", lanes.join(", "));
                let hint = format!("to finish it: {}", command(&within.state, &["resume", run.as_str()]));
                within.context.printer.warning(message, &[hint]);
            }
        }
        Ok(())
    }

    /// Notes that the branch, which is or was at `tip`, has the work by other commits: no later run does the lanes again then.
    fn note_publication(&self, tip: &CommitId) -> Result<()> {
        let directory = self.within.state.run(self.run);
        if directory.publication().is_some() {
            return Ok(());
        }
        directory.note_publication(tip)?;
        self.push_state()
    }

    fn already_there(&self, commit: &CommitId, tip: &CommitId) -> Result<Published> {
        if !self.within.repository.is_ancestor(commit, tip)? {
            self.note_publication(tip)?;
        }
        Ok(self.ended(How::AlreadyThere))
    }

    fn find(&self, work: &Work<'_>) -> Result<Option<CommitId>> {
        work.found_on(&self.started.base_branch).map_err(|error| self.failed(&error))
    }

    /// Pushes the newest state of the run where one was pushed before, or is wanted by the settings.
    fn push_state(&self) -> Result<()> {
        let within = self.within;
        let wanted = within.state_remote()?;
        let remote = wanted.clone().unwrap_or_else(|| self.remote.clone());
        if wanted.is_none() && !runs_of(&remote)?.iter().any(|(run, _)| run == self.run) {
            return Ok(());
        }
        let (directory, repository) = (within.state.run(self.run), within.repository.clone());
        let (run, host) = (self.run.clone(), host());
        send(&Source { repository, directory, run, host, claim: None, pushes: OwnPushes::default() }, &remote, false)?;
        Ok(())
    }

    /// Fast-forwards the branch here to the merge that was pushed, with its checkout, if nothing is in the way.
    fn follow(&self, from: &CommitId, to: &CommitId) -> Result<()> {
        let (repository, branch) = (&self.within.repository, &self.started.base_branch);
        let note = match git::publish(repository, branch, from, to)? {
            Publication::Published | Publication::AlreadyThere => return Ok(()),
            Publication::Moved(_) => format!("{branch} was moved here meanwhile, so it was left as it is"),
            Publication::CheckedOutDirty { worktree, blockers } => {
                let (place, paths) = (worktree.display(), blockers.paths.join(", "));
                format!("{branch}, which is checked out in {place}, was left as it is because of {paths}")
            }
        };
        let pull = shell_line(["git", "pull", "--no-rebase", self.remote.name(), branch]);
        self.within.context.printer.warning(note, &[format!("to bring it up to date: {pull}")]);
        Ok(())
    }

    /// Pushes the work to a branch of the run, and opens its pull request or brings that up to date.
    fn propose(&self, work: &Work<'_>) -> Result<How> {
        let (base, from) = (&self.started.base_branch, format!("lanewright/{}", self.run));
        let forge = self.ready_forge();
        if let Ok(forge) = &forge
            && let Some(merged) = self.merged(forge, work)?
        {
            return self.ended_by_forge(merged, work);
        }
        let delivery = work.deliver(&from).map_err(|error| self.failed(&error))?;
        match forge.and_then(|forge| self.open(&forge, &from, delivery.tip())) {
            Ok(opened) => Ok(How::Proposed { from, opened }),
            Err(error) => {
                let error = CliError::from(error);
                self.within.context.printer.warning(&error.message, &error.hints);
                let page = page_to_open(&forge_settings(self.within, &self.remote)?.urls, &from, base);
                Ok(How::ToPropose { from, page })
            }
        }
    }

    fn ready_forge(&self) -> Result<Forge> {
        Ok(Forge::ready(forge_settings(self.within, &self.remote)?)?)
    }

    fn merged(&self, forge: &Forge, work: &Work<'_>) -> Result<Option<PullRequest>> {
        merged_pull_request(forge, work.repository, self.run, (&self.started.base_branch, work.commit))
    }

    fn ended_by_forge(&self, merged: PullRequest, work: &Work<'_>) -> Result<How> {
        if let Some(tip) = work.fetch(&self.started.base_branch).map_err(|error| self.failed(&error))? {
            self.note_publication(&tip)?;
        }
        Ok(How::Merged(merged))
    }

    fn open(&self, forge: &Forge, from: &str, head: &CommitId) -> Result<Opened> {
        let (title, body) = pull_request_text(self.within, self.run)?;
        let directory = tempfile::tempdir()?;
        let body_file = directory.path().join("pull-request.md");
        atomic::write(&body_file, body.as_bytes())?;
        let variables = [("RUN_ID", self.run.as_str()), ("PHASE", self.started.phase.as_str()), ("LANE", "")];
        let variables = variables.map(|(name, value)| (format!("LANEWRIGHT_{name}"), value.to_owned()));
        let proposal = Proposal {
            branch: from,
            head: head.as_str(),
            base: &self.started.base_branch,
            title: &title,
            body_file: &body_file,
            known: None,
            variables: &variables,
        };
        Ok(forge.propose(&proposal)?)
    }

    /// An error, with what to type about it.
    fn failed(&self, error: &PublishError) -> anyhow::Error {
        let again = command(&self.within.state, &["publish", self.run.as_str()]);
        let blocked = ExitStatus::Blocked.error(error.to_string());
        match error {
            PublishError::Conflict { remote, branch, paths } => {
                let pull = shell_line(["git", "pull", "--no-rebase", remote, branch]);
                let what = counted(paths.len(), "file");
                blocked.hint(format!("merge it here: {pull}")).hint(format!("resolve {what}, commit, then: {again}"))
            }
            PublishError::Moved { .. } => blocked.hint(format!("try again: {again}")),
            PublishError::Shallow { .. } => {
                blocked.hint("fetch the rest: git fetch --unshallow (in GitHub Actions: fetch-depth: 0)")
            }
            PublishError::Git(error) => {
                let remedy = error.remedy().unwrap_or_else(|| "fix what it names".to_owned());
                blocked.hint(format!("{remedy}; then: {again}"))
            }
        }
    }
}
