//! What is known of a phase's lanes before a process chooses one: which are merged, which live sessions have them, and
//! which belong to runs whose process has died.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use lanewright_git::MergedLanes;
use lanewright_model::event::{Event, Owner, Record, RunOutcome, RunStarted};
use lanewright_model::text::shell_line;
use lanewright_model::{CommitId, LaneId, LaneIndex, MergeMode, Plan, RunId};
use lanewright_schedule::{Blocker, Claim, NextLane};
use lanewright_store::checkpoints;
use lanewright_store::lock::{Holder, is_held, named, read_holder};
use lanewright_store::{LockScope, StateDirectory};

use super::done_before::{Completion, DoneBy, Found, Place, Verdict, verdict};
use super::locks::held_lanes;
use super::refusal::{WAIT, held, in_words};
use crate::cli::run::intent::PlanFile;
use crate::cli::runs::{decides_whether_unfinished, is_unfinished, newest_of_lanes, runs_of, started};
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result};

/// How many logs of a phase are read, the newest; of finished runs that are older, commits and checkpoints tell enough.
const MOST_LOGS: usize = 500;

/// An unfinished run without a live process.
#[derive(Debug, Clone)]
pub(crate) struct InterruptedRun {
    pub(crate) started: RunStarted,
    /// The last one.
    pub(crate) owner: Owner,
    /// The words that call Lanewright for its files.
    program: Vec<String>,
}

impl InterruptedRun {
    pub(crate) fn resume(&self) -> String {
        let run = ["resume", self.started.run_id.as_str()];
        shell_line(self.program.iter().map(String::as_str).chain(run))
    }

    fn has(&self, lane: &LaneId) -> bool {
        has(&self.started, lane)
    }
}

/// What is known of the lanes of a plan on one base.
#[derive(Debug, Default)]
pub(crate) struct LaneClaims {
    merged: BTreeSet<LaneId>,
    /// The lanes that runs did with the text that the plan has.
    pub(crate) done: BTreeMap<LaneId, DoneBy>,
    /// How the newest run that completed a lane did so, according to logs without damage.
    completions: BTreeMap<LaneId, Completion>,
    /// The logs that are damaged.
    pub(crate) damaged: Vec<PathBuf>,
    unfinished: BTreeSet<RunId>,
    /// Lanes that the log of a run says were rolled back, whatever the commits of the base say of that run.
    rolled_back: BTreeSet<(RunId, LaneId)>,
    /// Whether a run of the plan's text has come to its end here, its final gate included.
    pub(crate) is_done: bool,
    /// What the commits of the base say, as of its tip.
    pub(crate) history: Option<(CommitId, MergedLanes)>,
    live: BTreeMap<LaneId, Option<Holder>>,
    pub(crate) interrupted: Vec<InterruptedRun>,
}

impl LaneClaims {
    /// Looks at every run of the plan's phase on `base`, whose `history` may be known. The caller is choosing.
    pub(crate) fn read(
        within: &RepositoryContext,
        file: &PlanFile,
        base: &str,
        history: Option<(CommitId, MergedLanes)>,
    ) -> Result<Self> {
        let (state, plan) = (&within.state, &file.plan);
        let mut live: BTreeMap<_, _> = held_lanes(state, plan)?.into_iter().collect();
        let whole = state.lock(LockScope::Phase(&plan.phase))?;
        if is_held(&whole) {
            let holder = read_holder(&whole);
            live.extend(plan.lanes.iter().map(|lane| (lane.id.clone(), holder.clone())));
        }
        Self { live, history, ..Self::default() }.with_runs(within, file, base)
    }

    /// The same without the locks of sessions, so that nothing is written.
    pub(crate) fn of_runs(within: &RepositoryContext, file: &PlanFile, base: &str) -> Result<Self> {
        Self::default().with_runs(within, file, base)
    }

    fn with_runs(self, within: &RepositoryContext, file: &PlanFile, base: &str) -> Result<Self> {
        let (state, plan) = (&within.state, &file.plan);
        let mut claims = self;
        let mut known = BTreeSet::new();
        // Locks are looked at before the log that they guard: what a process that has ended wrote is in the log by then.
        for run in runs_of(state, &plan.phase)? {
            let directory = run.directory();
            let held = is_held(&directory.lock());
            // What a finished run merged is all that its log can add.
            if (known.len() >= MOST_LOGS || claims.has_merged_all(plan)) && directory.is_over() {
                continue;
            }
            let Some((records, is_damaged)) = run.checked_records(decides_claims()) else { continue };
            let Some(started) = started(&records).filter(|it| it.base_branch == base) else { continue };
            known.insert(started.run_id.clone());
            match is_damaged {
                true => claims.damaged.push(directory.log()),
                false => claims.note_completions(file, started, &records),
            }
            if is_unfinished(&records) {
                claims.unfinished.insert(started.run_id.clone());
            }
            claims.note_rollbacks(started, &records);
            let is_done =
                |record: &Record| matches!(record.event, Event::RunFinished { outcome: RunOutcome::Done, .. });
            claims.is_done |= started.plan_sha256 == file.sha256 && records.last().is_some_and(is_done);
            claims.merged.extend(merged_in(started, &records));
            claims.merged.extend(merged_by_users(within, base, started, &records)?);
            if is_unfinished(&records) && held {
                claims.note_live(state, plan, started);
            } else if is_unfinished(&records) {
                let owner = last_owner(started, &records);
                claims.interrupted.push(InterruptedRun { started: started.clone(), owner, program: run.program() });
            }
        }
        if !claims.has_merged_all(plan) {
            claims.merged.extend(merged_by_cleaned(within, plan, base, &known)?);
        }
        if let Some(tip) = within.repository.branch_commit(base)? {
            claims.judge(within, plan, &tip);
        }
        Ok(claims)
    }

    fn note_rollbacks(&mut self, started: &RunStarted, records: &[Record]) {
        for Record { event, .. } in records {
            match event {
                Event::LaneRolledBack { lane, .. } => {
                    self.rolled_back.insert((started.run_id.clone(), lane.clone()));
                }
                Event::LaneMerged { lane, .. } => {
                    self.rolled_back.remove(&(started.run_id.clone(), lane.clone()));
                }
                _ => {}
            }
        }
    }

    /// What a run completed, unless a newer one did.
    fn note_completions(&mut self, file: &PlanFile, started: &RunStarted, records: &[Record]) {
        let completed = newest_of_lanes(records, |event| match event {
            Event::LaneMerged { lane, commit, onto, plan } => {
                Some((lane, (commit.clone(), onto.clone(), plan.clone())))
            }
            _ => None,
        });
        for (lane, (commit, onto, digest)) in completed {
            let Some(index) = file.plan.find(&lane) else { continue };
            let is_same = match digest {
                Some(digest) => Some(digest == file.plan.lane_digest(index)),
                None => (started.plan_sha256 == file.sha256).then_some(true),
            };
            let (run, mode, branch) = (started.run_id.clone(), started.options.merge, started.lane_branch(&lane));
            let completion = Completion { run, mode, commit, onto, is_same, branch };
            self.completions.entry(lane).or_insert(completion);
        }
    }

    /// Decides which lanes are done: what logs say of them counts as far as their work is in place; where no log says
    /// anything, the commits that `tip` holds do.
    fn judge(&mut self, within: &RepositoryContext, plan: &Plan, tip: &CommitId) {
        let (repository, mode) = (&within.repository, within.settings.merge.value.mode());
        let known = self.history.take().filter(|(at, _)| at == tip).map(|(_, said)| said);
        // Where git cannot tell, lanes run again.
        let said = known.unwrap_or_else(|| repository.merged_lanes(tip).unwrap_or_default());
        let mut changed = BTreeSet::new();
        for (lane, completion) in &self.completions {
            let Completion { commit, branch, .. } = completion;
            let is_at = |branch: &str| repository.branch_commit(branch).ok().flatten().as_ref() == Some(commit);
            // A forge may have squashed it.
            let published = within.state.run(&completion.run).publication();
            let is_in = |commit: &CommitId| repository.is_ancestor(commit, tip).unwrap_or(false);
            let found = Found {
                in_base: is_in(commit)
                    || repository.has_work_of(tip, commit).unwrap_or(false)
                    || published.as_ref().is_some_and(|at| {
                        let work = (&completion.onto, commit);
                        is_in(at) && !said.is_taken_back(repository, work, (at, tip)).unwrap_or(true)
                    }),
                reverted: said.is_reverted(commit),
                on_branch: completion.mode != MergeMode::Local && is_at(branch),
            };
            match verdict(completion, found, mode) {
                Verdict::Done(place) => {
                    self.done.insert(lane.clone(), DoneBy { run: completion.run.clone(), place });
                }
                Verdict::Changed => {
                    self.merged.remove(lane);
                    changed.insert(lane);
                }
                Verdict::Gone => {
                    self.merged.remove(lane);
                }
                Verdict::Unknown => {}
            }
        }
        for index in plan.indices() {
            let (id, digest) = (&plan.lane(index).id, plan.lane_digest(index));
            if self.done.contains_key(id) || changed.contains(id) {
                continue;
            }
            let is_rolled_back = |run: &RunId| self.rolled_back.contains(&(run.clone(), id.clone()));
            let of_lane = || said.lanes.iter().filter(|it| it.lane == *id && !is_rolled_back(&it.run));
            if of_lane().next().is_some_and(|merged| merged.plan != digest) && !self.completions.contains_key(id) {
                self.merged.remove(id);
            }
            if let Some(merged) = of_lane().find(|it| it.plan == digest) {
                self.done.insert(id.clone(), DoneBy { run: merged.run.clone(), place: Place::Merged });
                self.merged.insert(id.clone());
            }
        }
        self.history = Some((tip.clone(), said));
    }

    /// Whether a run that did one of `lanes` is not finished: something may be left to do in it beside its lanes.
    pub(crate) fn is_unfinished(&self, lanes: &[LaneId]) -> bool {
        lanes.iter().filter_map(|lane| self.done.get(lane)).any(|done| self.unfinished.contains(&done.run))
    }

    /// Whether all lanes are merged that the plan has, or that live sessions have.
    fn has_merged_all(&self, plan: &Plan) -> bool {
        plan.lanes.iter().map(|lane| &lane.id).chain(self.live.keys()).all(|lane| self.merged.contains(lane))
    }

    fn note_live(&mut self, state: &StateDirectory, plan: &Plan, started: &RunStarted) {
        let holder = read_holder(&state.run(&started.run_id).lock());
        for lane in plan.lanes.iter().filter(|lane| has(started, &lane.id)) {
            self.live.entry(lane.id.clone()).or_insert_with(|| holder.clone());
        }
    }

    /// The lanes that are merged and not among `lanes`.
    pub(crate) fn merged_beside(&self, plan: &Plan, lanes: &[LaneId]) -> Vec<LaneId> {
        let beside = |lane: &&LaneId| !lanes.contains(lane) && plan.find(lane).is_some();
        if lanes.is_empty() { Vec::new() } else { self.merged.iter().filter(beside).cloned().collect() }
    }

    fn by_lane(&self, plan: &Plan) -> Vec<Claim> {
        let claim = |lane: &LaneId| match () {
            () if self.merged.contains(lane) => Claim::Merged,
            () if self.live.contains_key(lane) => Claim::Live,
            () if self.interrupted.iter().any(|run| run.has(lane)) => Claim::Left,
            () => Claim::Free,
        };
        plan.lanes.iter().map(|lane| claim(&lane.id)).collect()
    }

    /// The lane to work on by itself; `None`: all are merged.
    pub(crate) fn next(&self, plan: &Plan, base: &str, preferred: Option<LaneIndex>) -> Result<Option<LaneId>> {
        match lanewright_schedule::next_lane(plan, &self.by_lane(plan), preferred) {
            NextLane::Lane(lane) => Ok(Some(plan.lane(lane).id.clone())),
            NextLane::AllMerged => Ok(None),
            NextLane::Nothing(lanes) => Err(self.nothing(plan, base, &lanes)),
        }
    }

    /// Refuses a lane that was named and whose dependencies are not merged yet.
    pub(crate) fn refuse_early(&self, plan: &Plan, base: &str, lane: LaneIndex) -> Result<()> {
        let Some(blocker @ Blocker::Needs(_)) = lanewright_schedule::blocker(plan, &self.by_lane(plan), lane) else {
            return Ok(());
        };
        let id = &plan.lane(lane).id;
        let message = format!("lane {id} cannot begin: {}", in_words(plan, base, &blocker));
        Err(ExitStatus::Blocked
            .error(message)
            .hint("to begin with a lane that is ready: the same with --next in place of the lane")
            .hint(format!("to run it with what it depends on: lanewright execute-phase PLAN --lane {id}")))
    }

    /// The first interrupted run that works on one of `lanes`; no lane named: on any.
    pub(crate) fn interrupted_with(&self, lanes: &[LaneId]) -> Option<&InterruptedRun> {
        self.interrupted.iter().find(|run| lanes.is_empty() || lanes.iter().any(|lane| run.has(lane)))
    }

    /// Refuses lanes that a live session works on, by itself or in a run with branches of its own.
    pub(crate) fn refuse_live(&self, plan: &Plan, lanes: &[LaneId]) -> Result<()> {
        let wanted = |lane: &LaneId| lanes.is_empty() || lanes.contains(lane);
        let of_merged = |lane: &LaneId| self.merged.contains(lane);
        match self.live.iter().find(|(lane, _)| wanted(lane) && !of_merged(lane)) {
            Some((lane, by)) => {
                Err(held(&format!("lane {lane} of phase {} is being worked on", plan.phase), by.as_ref()))
            }
            None => Ok(()),
        }
    }

    fn nothing(&self, plan: &Plan, base: &str, lanes: &[(LaneIndex, Blocker)]) -> anyhow::Error {
        let line = |(lane, blocker): &(LaneIndex, Blocker)| {
            let id = &plan.lane(*lane).id;
            let reason = match blocker {
                Blocker::Held => format!("is worked on by {}", named(self.live.get(id).and_then(Option::as_ref))),
                Blocker::Left => {
                    let run = self.interrupted.iter().find(|run| run.has(id)).map(InterruptedRun::to_string);
                    format!("belongs to {}", run.unwrap_or_default())
                }
                other => in_words(plan, base, other),
            };
            format!("\n  {id}: {reason}")
        };
        let lines: String = lanes.iter().map(line).collect();
        let message = format!("no lane of phase {} can begin now:{lines}", plan.phase);
        if lanes.iter().any(|(_, blocker)| *blocker == Blocker::Held) {
            return ExitStatus::Held.error(message).hint(WAIT);
        }
        let needed = self.interrupted.iter().filter(|run| lanes.iter().any(|(lane, _)| run.has(&plan.lane(*lane).id)));
        let resume = |run: &InterruptedRun| format!("to resume it: {}", run.resume());
        needed.fold(ExitStatus::Blocked.error(message), |error, run| error.hint(resume(run)))
    }
}

impl std::fmt::Display for InterruptedRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Owner { session_id, process, host, .. } = &self.owner;
        let (run, pid) = (&self.started.run_id, process.pid);
        write!(f, "run {run}, which is not finished; its owner, pid {pid} on {host}, session {session_id}, is gone")
    }
}

fn has(started: &RunStarted, lane: &LaneId) -> bool {
    let options = &started.options;
    (options.lanes.is_empty() || options.lanes.contains(lane)) && !options.done.contains(lane)
}

fn last_owner(started: &RunStarted, records: &[Record]) -> Owner {
    let resumed = records.iter().rev().find_map(|record| match &record.event {
        Event::RunResumed { owner, .. } => Some(owner),
        _ => None,
    });
    resumed.unwrap_or(&started.owner).clone()
}

/// Which of a log's events have to be seen for what a run merged and whether it is unfinished.
fn decides_claims() -> impl FnMut(&str) -> bool {
    let mut decides = decides_whether_unfinished();
    move |word| decides(word) || ["lane_merged", "pull_request_opened"].contains(&word)
}

/// The lanes that a run merged into its base and did not roll back.
fn merged_in(started: &RunStarted, records: &[Record]) -> BTreeSet<LaneId> {
    let merged = newest_of_lanes(records, |event| match event {
        Event::LaneMerged { lane, .. } => Some((lane, ())),
        _ => None,
    });
    if started.options.merge == MergeMode::Local { merged.into_keys().collect() } else { BTreeSet::new() }
}

/// The lanes whose pull requests were merged, as far as `base` here has their work.
fn merged_by_users(
    within: &RepositoryContext,
    base: &str,
    started: &RunStarted,
    records: &[Record],
) -> Result<Vec<LaneId>> {
    let Some(tip) = within.repository.branch_commit(base)?.filter(|_| started.options.merge == MergeMode::Pr) else {
        return Ok(Vec::new());
    };
    let mut heads = newest_of_lanes(records, |event| match event {
        Event::PullRequestOpened { lane, head, .. } => Some((lane, head.clone())),
        _ => None,
    });
    heads.retain(|_, head| within.repository.is_ancestor(head, &tip).unwrap_or(false));
    Ok(heads.into_keys().collect())
}

/// The lanes that runs merged whose logs `clean` removed: their checkpoints stay.
fn merged_by_cleaned(
    within: &RepositoryContext,
    plan: &Plan,
    base: &str,
    known: &BTreeSet<RunId>,
) -> Result<BTreeSet<LaneId>> {
    let Some(tip) = within.repository.branch_commit(base)? else { return Ok(BTreeSet::new()) };
    let records = checkpoints::records(&within.state.checkpoints(), |record| {
        let ours = record.phase == plan.phase && *record.base_branch == *base && !known.contains(&record.run_id);
        ours && record.is_merged()
    })?;
    let heads = records.iter().filter_map(|record| record.head_sha.clone()).collect();
    let held = within.repository.held_by(&tip, &heads).unwrap_or_default();
    let mut merged = BTreeSet::new();
    for record in records {
        let (Some(lane), Some(head)) = (record.lane, record.head_sha) else { continue };
        if !merged.contains(&lane)
            && (held.contains(&head) || within.repository.names_lane(&tip, &record.run_id, &lane)?)
        {
            merged.insert(lane);
        }
    }
    Ok(merged)
}
