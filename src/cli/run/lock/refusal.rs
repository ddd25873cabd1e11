//! What is printed when another session has a lane, a phase or a run.

use lanewright_model::text::shell_line;
use lanewright_model::{LaneIndex, Plan};
use lanewright_schedule::Blocker;
use lanewright_store::lock::{Holder, named};

use crate::cli::{ExitStatus, Hint, host};

pub(super) const WAIT: &str = "to wait until it is free, repeat the command with --on-lock-conflict wait";

/// `what` by its live holder.
pub(crate) fn held(what: &str, by: Option<&Holder>) -> anyhow::Error {
    let error = ExitStatus::Held.error(format!("{what} by {}", named(by)));
    let Some(by) = by else { return error.hint("`lanewright status` shows which runs are active").hint(WAIT) };
    // The lock is the kernel's, so the holder lives; its process id is valid on its own machine only.
    let elsewhere =
        (by.owner.host != host()).then(|| format!("the process lives on another machine, {}", by.owner.host));
    let error = elsewhere.into_iter().fold(error, Hint::hint);
    let line = |words: &[&str]| shell_line(by.program.iter().map(String::as_str).chain(words.iter().copied()));
    let run = by.run.as_str();
    error
        .hint(format!("to watch it: {}", line(&["status", run, "--watch"])))
        .hint(format!("to stop what it does: {}", line(&["stop", run])))
        .hint(WAIT)
}

/// Why a lane cannot begin, as far as it follows from plan and base.
pub(super) fn in_words(plan: &Plan, base: &str, blocker: &Blocker) -> String {
    let name = |lane: &LaneIndex| plan.lane(*lane).id.as_str();
    match blocker {
        Blocker::Held => "a live session works on it".to_owned(),
        Blocker::Left => "it belongs to a run that is not finished".to_owned(),
        Blocker::Needs(lanes) => {
            let (are, lanes) =
                (if lanes.len() == 1 { "is" } else { "are" }, lanes.iter().map(name).collect::<Vec<_>>());
            format!("it depends on {}, which {are} not merged into {base} yet", lanes.join(" and "))
        }
        Blocker::Beside(lane) => format!("it must not run beside {}, which is being worked on", name(lane)),
        Blocker::PoolInUse(pool) => format!("lanes that are being worked on use all of the pool `{pool}`"),
    }
}
