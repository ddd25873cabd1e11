//! Starting a run.

use std::collections::BTreeSet;
use std::sync::Arc;

use lanewright_engine::at_resume::has_begun;
use lanewright_files::{atomic, regular_file};
use lanewright_git::MergedLanes;
use lanewright_model::digest::sha256;
use lanewright_model::event::{Event, RunOptions, RunStarted};
use lanewright_model::text::shell_line;
use lanewright_model::{CommitId, LaneId, LaneIndex, MergeMode, Plan, RunId};
use lanewright_schedule::RunState;
use lanewright_store::{Journal, RunDirectory, RunLock, StateDirectory, checkpoints, run_log};
use lanewright_view::RunHistory;
use serde_json::json;

use super::execution::execute;
use super::forge;
use super::preflight;
use crate::cli::args::Intent;
use crate::cli::executors;
use crate::cli::repository_context::redactor;
use crate::cli::run::intent::{Alone, PlanFile, RunRequest, plan_text};
use crate::cli::run::lock::{
    DoneBy, LaneClaims, LockedRun, Place, choosing, done_in_words, left_of, lock_branches, lock_run,
};
use crate::cli::run_id::{ReservedRunId, new_run_id};
use crate::cli::runs::did_you_mean;
use crate::cli::wait_policy::retry_while_held;
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result, owner};

/// What is left of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PhaseRest {
    Nothing,
    /// All lanes are merged; it is not known here whether the final gate passed.
    FinalGate,
    Lanes,
}

/// The lanes that were asked for, and what is left of them.
pub(crate) struct Chosen {
    base: String,
    wanted: usize,
    /// Those that have to run.
    left: Vec<LaneId>,
    /// Those that an earlier run did, and that are not wanted again.
    done: Vec<(LaneId, DoneBy)>,
    is_all_done: bool,
    /// What the commits of the base say, as of its tip.
    history: Option<(CommitId, MergedLanes)>,
}

/// Finds out what is left of the lanes that were asked for. Writes nothing.
pub(crate) fn choose(within: &RepositoryContext, request: &RunRequest, plan: &PlanFile) -> Result<Chosen> {
    let base = within.base_branch()?;
    let named = chosen_lanes(&plan.plan, request)?;
    let claims = match request.is_all_again() {
        true => LaneClaims::default(),
        false => LaneClaims::of_runs(within, plan, &base)?,
    };
    for log in &claims.damaged {
        let message = format!("{} is damaged: what it says of merged lanes does not count", log.display());
        within.context.printer.warning(message, &["to see what is damaged: lanewright doctor".to_owned()]);
    }
    let named = if request.alone == Alone::Next { Vec::new() } else { named };
    Ok(Chosen::of(request, &plan.plan, &base, &named, &claims))
}

impl Chosen {
    /// Of the `named` lanes, or of all if none is.
    fn of(request: &RunRequest, plan: &Plan, base: &str, named: &[LaneId], claims: &LaneClaims) -> Self {
        let wanted: Vec<LaneIndex> = match named {
            [] => plan.indices().collect(),
            named => named.iter().filter_map(|lane| plan.find(lane)).collect(),
        };
        let again = |lane: &LaneId| request.is_all_again() || request.redo && request.lanes.contains(lane);
        let left: BTreeSet<LaneIndex> = left_of(plan, &wanted, &claims.done, again).into_iter().collect();
        let (left, done): (Vec<LaneIndex>, Vec<LaneIndex>) = wanted.iter().partition(|lane| left.contains(lane));
        let ids = |lanes: Vec<LaneIndex>| lanes.into_iter().map(|lane| plan.lane(lane).id.clone()).collect::<Vec<_>>();
        let (left, done) = (ids(left), ids(done));
        // The final gate may be left of a run that merged all lanes, or of one of which nothing is known here.
        let is_judged = plan.gates.last.is_empty() || claims.is_done;
        let is_all_done = left.is_empty() && !(named.is_empty() && (claims.is_unfinished(&done) || !is_judged));
        let done = done.into_iter().filter_map(|lane| claims.done.get(&lane).cloned().map(|by| (lane, by)));
        let (base, history) = (base.to_owned(), claims.history.clone());
        Self { base, wanted: wanted.len(), left, done: done.collect(), is_all_done, history }
    }

    pub(crate) fn rest(&self) -> PhaseRest {
        match (self.left.is_empty(), self.is_all_done) {
            (true, true) => PhaseRest::Nothing,
            (true, false) => PhaseRest::FinalGate,
            (false, _) => PhaseRest::Lanes,
        }
    }

    /// What is said where no lane is left.
    pub(crate) fn report_if_done(&self, within: &RepositoryContext, plan: &Plan) -> Result<Option<ExitStatus>> {
        self.is_all_done.then(|| self.report_done(within, plan)).transpose()
    }

    fn report_done(&self, within: &RepositoryContext, plan: &Plan) -> Result<ExitStatus> {
        let (phase, base) = (&plan.phase, &self.base);
        // `clean` leaves no word of the run of some.
        let done = match self.done.len() == self.wanted {
            true => done_in_words(self.wanted, &self.done, base),
            false => format!("every lane of phase {phase} is merged into {base}"),
        };
        let lane =
            |(lane, by): &(LaneId, DoneBy)| json!({"lane": lane, "run": by.run, "merged": by.place == Place::Merged});
        let lanes: Vec<_> = self.done.iter().map(lane).collect();
        within.context.printer.print(
            format_args!(
                "nothing to do: {done}\nto run them again: the same with --redo, or with --new-run on branches of their own\n"
            ),
            &json!({"phase": phase, "base_branch": base, "lane": null, "outcome": "done", "done": lanes}),
        )
    }

    /// Says which lanes are left out.
    pub(crate) fn note_done(&self, within: &RepositoryContext) {
        if !self.done.is_empty() {
            let done = done_in_words(self.wanted, &self.done, &self.base);
            within.context.printer.note(format!("{done}; to run them again as well: --redo"));
        }
    }
}

/// Starts a run and executes it to its end.
pub(crate) fn start(
    within: &RepositoryContext,
    request: &RunRequest,
    plan: &PlanFile,
    chosen: &Chosen,
) -> Result<ExitStatus> {
    let base = within.base_branch()?;
    if within.repository.branch_commit(&base)?.is_none() {
        let message = format!("there is no branch `{base}` to build on");
        return Err(ExitStatus::Usage.error(message).hint("name one with --base BRANCH"));
    }
    within.rescue();
    within.state_remote()?;
    checkpoints::check(&within.state.checkpoints())?;
    let merges_here = within.settings.merge.value.mode() == MergeMode::Local;
    let scan = merges_here.then(|| preflight::CheckoutScan::begin(within, &base));
    let named = chosen_lanes(&plan.plan, request)?;
    let left: BTreeSet<&LaneId> = chosen.left.iter().collect();
    let runs = |lane: &LaneId| left.contains(lane) && (named.is_empty() || named.contains(lane));
    let lanes = || plan.plan.indices().filter(|lane| runs(&plan.plan.lane(*lane).id));
    preflight::check(&within.context, &plan.plan, lanes())?;
    let prefix = within.settings.branch_prefix.value.as_deref().unwrap_or_default();
    preflight::check_branches(within, prefix, &plan.plan.phase)?;
    preflight::check_sandbox(within)?;
    preflight::check_include_file(within)?;
    preflight::note_identity(within);
    preflight::check_signing(&within.repository, &base)?;
    preflight::note_surroundings(within)?;
    preflight::note_merge_drivers(within)?;
    preflight::note_file_mode(within)?;
    preflight::note_cargo_workspace(within);
    let run = request.run_id.clone().unwrap_or_else(|| new_run_id(plan.plan.phase.as_str()));
    executors::check(within, &plan.plan, lanes(), &run)?;
    preflight::note_gates(within, &plan.plan, &runs);
    preflight::note_budgets(within, &plan.plan, &runs);
    preflight::note_fallbacks(&within.context, &plan.plan, &runs);
    preflight::note_unused_follow(within);
    preflight::note_setup(&within.context, &plan.plan, &runs);
    preflight::note_hooks(within, &base, &plan.plan, &runs)?;
    preflight::note_commit_hooks(within)?;
    preflight::note_needs(within, &base, &plan.plan, &runs)?;
    let merge = within.settings.merge.value.mode();
    let forge = forge::ready(within, (merge, within.settings.follow.value.is_some()), &base)?;
    let worktree_root = &within.settings.worktree_root.value;
    within.prepare(worktree_root)?;
    within.ignore_runner_files(&plan.plan)?;
    let reserved = reserve(within, request, &plan.plan, &run)?;
    let run = reserved.as_ref().map_or(run, |reserved| reserved.id.clone());
    let selection =
        Selection { within, request, plan, base: &base, named: &named, run: &run, history: &chosen.history };
    let share = retry_while_held(&within.context, &within.settings, || selection.share());
    if !matches!(share, Ok(Ok(_))) {
        // Nothing begins, so nothing is left; a root that holds something stays.
        within.pool(worktree_root, false).remove_empty(&run);
    }
    let share = match share? {
        Ok(share) => share,
        Err(done) => return done.report_done(within, &plan.plan),
    };
    share.chosen.note_done(within);
    if request.alone == Alone::Next && share.lanes != named {
        let lanes = share.lanes.iter().map(LaneId::as_str).collect::<Vec<_>>().join(", ");
        within.context.printer.note(format!("Lane {lanes} is next."));
    }
    if let Some(scan) = scan {
        let all = |lane: &LaneIndex| {
            let id = &plan.plan.lane(*lane).id;
            share.lanes.contains(id) || share.lanes.is_empty() && !share.done.contains(id)
        };
        preflight::report_obstacles(within, &base, scan, &plan.plan, plan.plan.indices().filter(all))?;
        preflight::note_lists(within, &base, &plan.plan, plan.format)?;
    }
    let locked = selection.begin(share)?;
    let first = vec![Event::RunStarted(Box::new(locked.started.clone()))];
    let view = RunHistory::for_plan(&locked.plan);
    Ok(execute(within, locked, view, (first, request.adoption.wait), forge)?.0)
}

/// Reserves `run`, or another name if a run has it; `None`: the user chose the name.
fn reserve(
    within: &RepositoryContext,
    request: &RunRequest,
    plan: &Plan,
    run: &RunId,
) -> Result<Option<ReservedRunId>> {
    if request.run_id.is_some() {
        return Ok(None);
    }
    let others = std::iter::repeat_with(|| new_run_id(plan.phase.as_str()));
    ReservedRunId::first_of(&within.state, std::iter::once(run.clone()).chain(others))
}

struct Selection<'a> {
    within: &'a RepositoryContext,
    request: &'a RunRequest,
    plan: &'a PlanFile,
    base: &'a str,
    /// The lanes that were named, with what has to run with them; empty: all.
    named: &'a [LaneId],
    run: &'a RunId,
    history: &'a Option<(CommitId, MergedLanes)>,
}

/// What a new run works on, locked.
struct Share {
    chosen: Chosen,
    /// Empty: all.
    lanes: Vec<LaneId>,
    /// Those that are merged, or done otherwise.
    done: Vec<LaneId>,
    locks: Vec<RunLock>,
}

impl Selection<'_> {
    /// Decides what the run works on and locks it.
    fn share(&self) -> Result<std::result::Result<Share, Chosen>> {
        let (plan, request) = (&self.plan.plan, self.request);
        choosing(&self.within.state, &plan.phase, || {
            let claims = LaneClaims::read(self.within, self.plan, self.base, self.history.clone())?;
            let Some(lanes) = self.lanes(&claims)? else {
                return Ok(Err(Chosen::of(request, plan, self.base, &[], &claims)));
            };
            let chosen = Chosen::of(request, plan, self.base, &lanes, &claims);
            if chosen.is_all_done {
                return Ok(Err(chosen));
            }
            let lanes = if lanes.is_empty() { lanes } else { chosen.left.clone() };
            let is_beside = request.intent == Intent::StartBeside;
            if !is_beside {
                claims.refuse_live(plan, &lanes)?;
                self.refuse_beside_unfinished(&claims, &lanes)?;
            }
            if request.alone != Alone::No {
                let mut indices = lanes.iter().filter_map(|lane| plan.find(lane));
                indices.try_for_each(|lane| claims.refuse_early(plan, self.base, lane))?;
            }
            let locks = if is_beside { Vec::new() } else { lock_branches(self.within, plan, &lanes, self.run)? };
            let done = match lanes.is_empty() {
                true => chosen.done.iter().map(|(lane, _)| lane.clone()).collect(),
                false => claims.merged_beside(plan, &lanes),
            };
            Ok(Ok(Share { chosen, lanes, done, locks }))
        })
    }

    fn lanes(&self, claims: &LaneClaims) -> Result<Option<Vec<LaneId>>> {
        if self.request.alone != Alone::Next {
            return Ok(Some(self.named.to_vec()));
        }
        let preferred = self.named.first().and_then(|lane| self.plan.plan.find(lane));
        Ok(claims.next(&self.plan.plan, self.base, preferred)?.map(|lane| vec![lane]))
    }

    /// What is half done is resumed, not started again by mistake.
    fn refuse_beside_unfinished(&self, claims: &LaneClaims, lanes: &[LaneId]) -> Result<()> {
        let Some(interrupted) = claims.interrupted_with(lanes) else { return Ok(()) };
        let (phase, base, plan) = (&self.plan.plan.phase, self.base, self.plan.path.to_string_lossy());
        let is_phase = self.request.alone == Alone::No;
        let lane = self.named.first().filter(|_| !is_phase);
        let what = if is_phase { "execute-phase" } else { "execute-lane" };
        let words = ["lanewright", what, &plan].into_iter().chain(lane.map(LaneId::as_str)).chain(["--new-run"]);
        Err(ExitStatus::InvalidOperation
            .error(format!("phase {phase} on {base} holds {interrupted}"))
            .hint(format!("to resume it: {} (or the same as now with --resume)", interrupted.resume()))
            .hint(format!("to start another one beside it: {}", shell_line(words))))
    }

    fn begin(&self, share: Share) -> Result<LockedRun> {
        let Self { within, request, plan, base, run, .. } = self;
        let beside = request.intent == Intent::StartBeside;
        let branch_suffix = if beside { format!("-{run}") } else { String::new() };
        let base_commit = within
            .repository
            .branch_commit(base)?
            .ok_or_else(|| ExitStatus::Usage.error(format!("the branch `{base}` was deleted meanwhile")))?;
        let plan_text = plan_text(&plan.plan, &within.settings)?;
        let Share { lanes, done, mut locks, .. } = share;
        let options = request.run_options(&within.settings);
        let git_settings = Some(within.repository.first_settings_of_commits()?);
        let started = RunStarted {
            format: run_log::FORMAT.to_owned(),
            lanewright: env!("CARGO_PKG_VERSION").to_owned(),
            run_id: (*run).clone(),
            phase: plan.plan.phase.clone(),
            plan_path: plan.path.clone(),
            plan_sha256: plan.sha256.clone(),
            pinned_sha256: sha256(&plan_text),
            base_branch: (*base).to_owned(),
            base_commit,
            owner: owner(&within.session_id),
            options: RunOptions { lanes, done, branch_suffix, plan_format: plan.format, git_settings, ..options },
        };
        let directory = within.state.run(run);
        directory.create()?;
        locks.insert(0, lock_run(within, run)?);
        remove_unbegun(&within.state, run)?;
        refuse_old_results(run, &directory)?;
        let journal = Journal::create(&directory.log(), run, &plan.plan.phase)?;
        Ok(LockedRun {
            directory,
            journal: journal.redacting(redactor(&within.settings, &plan.plan)),
            records: Arc::default(),
            started,
            plan: plan.plan.clone(),
            plan_text,
            edited: false,
            accepted: None,
            state: RunState::new(plan.plan.clone()),
            _locks: locks,
        })
    }
}

/// How the first line of every run log begins.
const FIRST: &[u8] = b"{\"seq\":1,";

/// Removes the log and the plan of a run of that name that died before it began: nothing was done in it. The run's lock
/// is held.
fn remove_unbegun(state: &StateDirectory, run: &RunId) -> Result<()> {
    let directory = state.run(run);
    let log = directory.log();
    let is_log = log.symlink_metadata().is_ok_and(|it| it.is_file()) && state.has(run);
    if !is_log || directory.directory().join("lanes").exists() {
        return Ok(());
    }
    let contents = run_log::read(&log)?;
    let torn_first =
        || regular_file::read(&log).is_ok_and(|bytes| FIRST.starts_with(&bytes) || bytes.starts_with(FIRST));
    let ours = !contents.records.is_empty() || torn_first();
    if ours && contents.damage.is_empty() && !has_begun(&contents.records) {
        // The log last: without it the plan is taken for what is left of a run that did something.
        atomic::remove(&directory.plan())?;
        atomic::remove(&log)?;
    }
    Ok(())
}

/// The exits of an earlier run of that name would be taken for this one's.
fn refuse_old_results(run: &RunId, directory: &RunDirectory) -> Result<()> {
    let old = [directory.plan(), directory.directory().join("lanes")].into_iter().find(|path| path.exists());
    let Some(old) = old else { return Ok(()) };
    let message = format!("there was a run {run} already: {} is of its making", old.display());
    Err(ExitStatus::Usage
        .error(message)
        .hint("choose another name with --run-id, or leave it out")
        .hint(format!("to remove what it left: lanewright clean {run} --logs, or its directory if its log is gone")))
}

/// The lanes that were asked for: with what they depend on for `execute-phase`, alone for `execute-lane`.
fn chosen_lanes(plan: &Plan, request: &RunRequest) -> Result<Vec<LaneId>> {
    let mut indices = Vec::new();
    for lane in &request.lanes {
        let Some(index) = plan.find(lane) else {
            let known: Vec<&str> = plan.lanes.iter().map(|lane| lane.id.as_str()).collect();
            let error = ExitStatus::Usage.error(format!("the plan has no lane `{lane}`"));
            let otherwise = || Some(format!("its lanes are {}", known.join(", ")));
            return Err(did_you_mean(error, lane.as_str(), &known, otherwise));
        };
        indices.push(index);
    }
    let chosen = if request.alone == Alone::No { plan.dag().with_dependencies(indices) } else { indices };
    Ok(chosen.into_iter().map(|index| plan.lane(index).id.clone()).collect())
}
