//! Making a report out of a run's records.

use std::path::PathBuf;

use super::clock::{Clock, Span, covered, milliseconds};
use super::history::{History, JobHistory, LaneHistory};
use super::lane::{FailureReport, JobReport, LaneReport, LaneTimes};
use super::timeline::{self, Timed};
use super::{ExecutionReport, Left, OptionsReport, ReportContext, VERSION};
use crate::event::{Reading, Record, RunOptions};
use crate::model::{Diagnosis, Outage, Timestamp};
use crate::view::lane_view::{Ending, JobView, LaneState, LaneView};
use crate::view::run_view::RunView;
use crate::view::summary::{LaneSummary, Summary};

pub(super) fn assemble(beginning: RunView, records: &[Record], context: ReportContext<'_>) -> ExecutionReport {
    let (mut view, mut history) = {
        let view = beginning.redacted(context.redactor);
        let history = History::new(&view);
        (view, history)
    };
    for record in records {
        view.apply(record);
        history.apply(record, &view);
    }
    let summary = Summary::of(&view, context.summary);
    let until = until(&view, context);
    let clock = Clock::new(view.run.started.unwrap_or(until), std::mem::take(&mut history.rests));
    let jobs = Jobs { until, clock: &clock };
    let lanes: Vec<LaneReport> =
        view.lanes().iter().zip(&summary.lanes).map(|(lane, summary)| jobs.lane(lane, summary, &mut history)).collect();
    let final_gate = jobs.all(view.run.ended.iter().chain(&view.run.running), &mut history);
    let started = history.started.as_ref();
    let timed = Timed {
        clock: &clock,
        until,
        lanes: &lanes,
        final_gate: &final_gate,
        delays: &history.delays,
        git: &history.git,
        parallelism: started.map_or(1, |started| started.options.max_parallel),
    };
    let (timeline, times) = timeline::of(&timed);
    ExecutionReport {
        version: VERSION,
        lanekeeper: started.map(|started| started.lanekeeper.clone()),
        run_id: summary.run_id.clone(),
        phase: summary.phase.clone(),
        title: summary.title.clone(),
        plan_path: started.map(|started| PathBuf::from(&started.plan_path)),
        plan_sha256: started.map(|started| started.plan_sha256.clone()),
        base_branch: summary.base_branch.clone(),
        base_commit: started.map(|started| started.base_commit.clone()),
        integration: summary.integration.clone(),
        options: started.map(|started| options(&started.options)),
        outcome: summary.outcome,
        standing: summary.standing(),
        exit_code: view.run.code,
        stop: history.stop,
        host: view.run.owner.as_ref().map(|owner| owner.host.clone()),
        started: summary.started,
        finished: summary.finished,
        resumes: summary.resumes,
        times,
        left: left(&summary.lanes),
        lanes,
        final_gate,
        interfaces: summary.interfaces.clone(),
        usage: summary.usage,
        timeline,
        next_steps: summary.next_steps.clone(),
        escalations: summary.escalations.clone(),
        notes: history.notes,
        damaged_lines: context.damaged_lines,
        summary,
    }
}

/// Up to when time is counted: what nobody works on takes no more.
fn until(view: &RunView, context: ReportContext<'_>) -> Timestamp {
    let now = context.summary.now;
    view.run.until(if context.summary.held { now } else { view.run.last.unwrap_or(now) })
}

fn options(options: &RunOptions) -> OptionsReport {
    OptionsReport {
        max_parallel: options.max_parallel,
        merge: options.merge,
        fail_fast: options.fail_fast,
        lanes: options.lanes.clone(),
        worktree_root: options.worktree_root.clone(),
        timeout_ms: options.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        budget: options.budget,
    }
}

fn left(lanes: &[LaneSummary]) -> Vec<Left> {
    let open =
        lanes.iter().filter(|lane| !matches!(lane.state, LaneState::Merged | LaneState::Proposed | LaneState::Skipped));
    open.map(|lane| Left { lane: lane.lane.clone(), state: lane.state, note: lane.note.clone() }).collect()
}

/// Makes reports of jobs, and of the lanes that they belong to.
struct Jobs<'a> {
    until: Timestamp,
    clock: &'a Clock,
}

impl Jobs<'_> {
    fn lane(&self, lane: &LaneView, summary: &LaneSummary, history: &mut History) -> LaneReport {
        let told = history.lanes.remove(&lane.id).unwrap_or_default();
        let jobs = self.all(lane.jobs(), history);
        let spans: Vec<Span> = jobs.iter().map(|job| self.clock.span(job.span(self.until))).collect();
        let times = self.times(lane, &spans, &told);
        let LaneHistory { failures, merges, checkpoints, answers, .. } = told;
        let (attempts, gates) = jobs.into_iter().partition(|job| job.kind == "attempt");
        let failed = matches!(lane.ending, Some(Ending::Failed(_)));
        LaneReport {
            lane: lane.id.clone(),
            name: lane.name.clone(),
            state: lane.state,
            stage: lane.stage,
            reason: summary.reason.clone(),
            waiting_for: summary.waiting_for.clone(),
            note: summary.note.clone(),
            depends_on: lane.depends_on.clone(),
            has_gate: lane.has_gate,
            agents: lane.agents.iter().map(|agent| agent.name.clone()).collect(),
            started: lane.started,
            finished: lane.finished,
            elapsed_ms: summary.elapsed.map(|elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)),
            busy_ms: covered(spans),
            times,
            branch: summary.branch.clone(),
            worktree: summary.worktree.clone(),
            head: lane.head.clone(),
            merge_commit: lane.merge_commit.clone(),
            pull_request: lane.pull_request.clone(),
            usage: summary.usage,
            attempts,
            gates,
            failure: lane.last_failure.as_ref().filter(|_| failed).map(FailureReport::from),
            failures,
            merges,
            checkpoints,
            snapshots: lane.snapshots.clone(),
            must_haves: lane.must_haves.clone(),
            answers,
            kept: lane.kept.clone(),
        }
    }

    /// Where the time of a lane went, of which jobs took `busy`.
    fn times(&self, lane: &LaneView, busy: &[Span], told: &LaneHistory) -> LaneTimes {
        let Some(started) = lane.started else { return LaneTimes::default() };
        let (from, to) = self.clock.span((started, lane.finished.unwrap_or(self.until)));
        let within = |span: &Span| (span.0.clamp(from, to), span.1.clamp(from, to));
        let on_clock = |spans: &[(Timestamp, Timestamp)]| -> Vec<Span> {
            spans.iter().map(|&span| within(&self.clock.span(span))).collect()
        };
        let (git, waits) = (on_clock(&told.git), on_clock(&told.waits));
        let accounted = busy.iter().map(within).chain(git.clone()).chain(waits.clone()).collect();
        LaneTimes {
            active_ms: to - from,
            git_ms: covered(git),
            waited_ms: covered(waits),
            overhead_ms: (to - from).saturating_sub(covered(accounted)),
        }
    }

    fn all<'v>(&self, jobs: impl Iterator<Item = &'v JobView>, history: &mut History) -> Vec<JobReport> {
        let of = |job: &JobView| self.job(job, history.jobs.remove(&job.job).unwrap_or_default());
        let mut reports: Vec<JobReport> = jobs.map(of).collect();
        reports.sort_by_key(|job| job.started);
        reports
    }

    fn job(&self, view: &JobView, history: JobHistory) -> JobReport {
        let exit = view.exit.as_ref();
        let passed = exit.map(|exit| exit.passed());
        // A job without an end that does not run is one of which nobody will ever know.
        let (started, until) = view.span(if view.running { self.until } else { view.since });
        let (diagnosis, outage) = read(history.reading);
        JobReport {
            kind: view.job.role.word(),
            agent: view.job.agent().cloned(),
            task: view.job.task().cloned(),
            number: view.job.number,
            started,
            finished: exit.map(|exit| exit.finished_at),
            elapsed_ms: milliseconds(started, until),
            passed,
            cause: exit.map(|exit| exit.cause),
            exit_code: exit.map(|exit| exit.exit_code),
            command: exit.map(|exit| exit.command.clone()),
            notes: exit.map(|exit| exit.notes.clone()).filter(|notes| !notes.is_empty()),
            tail: exit.filter(|exit| !exit.passed()).map(|exit| exit.tail.clone()).unwrap_or_default(),
            diagnosis,
            outage,
            said: history.said,
            transcript: view.transcript.clone(),
            retry: history.retry,
        }
    }
}

fn read(reading: Option<Reading>) -> (Option<Diagnosis>, Option<Outage>) {
    match reading {
        Some(Reading::Diagnosis(diagnosis)) => (Some(diagnosis), None),
        Some(Reading::Outage(outage)) => (None, Some(outage)),
        None => (None, None),
    }
}

impl JobReport {
    /// From when to when it ran, or has run until `until`.
    pub(super) fn span(&self, until: Timestamp) -> (Timestamp, Timestamp) {
        let end = self.finished.unwrap_or(if self.elapsed_ms == 0 { self.started } else { until });
        (self.started, end)
    }
}
