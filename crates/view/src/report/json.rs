//! The report as JSON. `docs/schemas/report.schema.json` defines it, `docs/report.md` describes it.

use lanewright_model::event::RunStarted;
use serde_json::{Value, json};

use super::ExecutionReport;
use super::lanes::{JobReport, LaneReport, PlacementReport};
use crate::history::{LaneState, PlacementView, Retry};
use crate::status::interfaces::interfaces;
use crate::status::summary::milliseconds;

/// `major.minor`: fields may be added with a minor version.
const VERSION: &str = "1.0";

pub(super) fn report(report: &ExecutionReport<'_>) -> Value {
    let run = &report.history.run;
    let start = run.start.as_deref();
    json!({
        "version": VERSION,
        "lanewright": start.map(|start| &start.lanewright),
        "run_id": run.run_id(),
        "phase": run.phase,
        "title": run.title,
        "plan_path": start.map(|start| start.plan_path.to_string_lossy()),
        "plan_sha256": start.map(|start| &start.plan_sha256),
        "base_branch": run.base_branch(),
        "base_commit": start.map(|start| &start.base_commit),
        "integration": run.integration,
        "options": start.map(options),
        "outcome": run.outcome,
        "standing": report.summary.standing(),
        "exit_code": run.code,
        "stop": run.stop,
        "host": run.owner.as_ref().map(|owner| &owner.host),
        "started": run.started,
        "finished": run.finished,
        "resumes": run.resumes,
        "times": report.times,
        "lanes": report.lanes.iter().map(lane).collect::<Vec<_>>(),
        "final_gate": jobs(&report.final_gate),
        "interfaces": interfaces(report.history),
        "usage": report.summary.usage(),
        "timeline": report.timeline,
        "left": report.lanes.iter().filter_map(left).collect::<Vec<_>>(),
        "next_steps": report.summary.next_steps,
        "escalations": report.summary.escalations,
        "notes": run.notes,
        "damaged_lines": report.damaged_lines,
    })
}

fn options(start: &RunStarted) -> Value {
    let options = &start.options;
    let mut value = json!({
        "max_parallel": options.max_parallel,
        "merge": options.merge,
        "fail_fast": options.fail_fast,
        "lanes": options.lanes,
        "worktree_root": options.worktree_root.to_string_lossy(),
        "timeout_ms": milliseconds(options.timeout),
    });
    if let (Value::Object(value), Value::Object(budget)) = (&mut value, json!(options.budget)) {
        value.extend(budget);
    }
    value
}

fn left(report: &LaneReport<'_>) -> Option<Value> {
    let state = report.lane.state;
    let left = !state.is_done() && state != LaneState::Skipped;
    left.then(|| json!({ "lane": report.lane.id, "state": state, "note": report.summary.note }))
}

fn lane(report: &LaneReport<'_>) -> Value {
    let (lane, times) = (report.lane, &report.times);
    json!({
        "lane": lane.id,
        "name": lane.name,
        "state": lane.state,
        "stage": lane.stage,
        "reason": lane.reason(),
        "waiting_for": report.summary.waiting_for,
        "note": report.summary.note,
        "depends_on": lane.depends_on,
        "has_gate": lane.has_gate,
        "agents": lane.agents.iter().map(|agent| &agent.name).collect::<Vec<_>>(),
        "started": lane.started,
        "finished": lane.finished,
        "elapsed_ms": milliseconds(report.summary.elapsed),
        "busy_ms": report.busy_ms,
        "active_ms": times.active_ms,
        "git_ms": times.git_ms,
        "waited_ms": times.waited_ms,
        "overhead_ms": times.overhead_ms,
        "elsewhere": lane.elsewhere().map(PlacementView::json),
        "placements": report.placements.iter().map(placement).collect::<Vec<_>>(),
        "branch": lane.workplace.branch(),
        "worktree": report.summary.worktree,
        "head": lane.workplace.head,
        "merge_commit": lane.merge_commit,
        "pull_request": lane.pull_request,
        "usage": lane.usage(),
        "attempts": jobs(&report.attempts),
        "gates": jobs(&report.gates),
        "failure": report.failure(),
        "failures": lane.failures,
        "merges": lane.merges,
        "checkpoints": lane.checkpoints,
        "snapshots": lane.snapshots,
        "must_haves": lane.must_haves,
        "answers": lane.answers,
        "kept": lane.kept,
    })
}

fn placement(report: &PlacementReport<'_>) -> Value {
    let it = report.placement;
    json!({
        "number": it.number,
        "executor": it.executor,
        "job": it.job,
        "host": it.host,
        "note": it.note,
        "offered": it.offered,
        "claimed": it.claimed,
        "ended": it.ended,
        "waited_ms": report.waited_ms,
        "outcome": it.outcome,
        "reason": it.reason,
    })
}

fn jobs(reports: &[JobReport<'_>]) -> Vec<Value> {
    reports.iter().map(job).collect()
}

fn job(report: &JobReport<'_>) -> Value {
    let (job, exit) = (report.job, report.job.exit.as_ref());
    json!({
        "kind": job.job.role.word(),
        "agent": job.job.agent(),
        "task": job.job.task(),
        "number": job.job.number,
        "started": report.started,
        "finished": exit.map(|exit| exit.finished_at),
        "elapsed_ms": report.elapsed_ms,
        "passed": job.passed(),
        "cause": exit.map(|exit| exit.cause),
        "exit_code": exit.map(|exit| exit.exit_code),
        "rejected": job.rejected,
        "command": exit.map(|exit| &exit.command),
        "notes": exit.map(|exit| &exit.notes).filter(|notes| !notes.is_empty()),
        "tail": job.failed_tail(),
        "diagnosis": job.diagnosis(),
        "outage": job.outage(),
        "said": job.report,
        "transcript": job.transcript,
        "retry": job.retry.as_deref().map(retry),
    })
}

fn retry(retry: &Retry) -> Value {
    let Retry { level, number, of, reason, planned, not_before, .. } = retry;
    json!({
        "level": level, "number": number, "of": of, "reason": reason, "planned": planned, "not_before": not_before,
    })
}
