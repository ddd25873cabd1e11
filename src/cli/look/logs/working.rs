//! What `work` prints of the agents and gates of its run, into the output of its job: what `logs` prints of
//! several lanes.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use lanewright_model::{LaneId, RunId};
use lanewright_store::Follower;

use super::lines::Lines;
use super::{POLL_INTERVAL, Printed, Selection};
use crate::cli::repository_context::redactor;
use crate::cli::runs::{pinned_plan, started};
use crate::cli::{RepositoryContext, now, offset};
use crate::progress::styles_for;

/// Works on a run, and prints what its agents and gates write meanwhile.
pub(crate) fn while_working<T>(within: &RepositoryContext, run: &RunId, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if let Err(error) = print_until(within, run, &over) {
                tracing::warn!("what agents write is not printed any more: {error:#}");
            }
        });
        let _over = Over(&over);
        work()
    })
}

/// Says so when it is dropped, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn print_until(within: &RepositoryContext, run: &RunId, over: &AtomicBool) -> Result<()> {
    let directory = within.state.run(run);
    let Some(plan) = pinned_plan(&directory) else { return Ok(()) };
    let mut log = Follower::new(&directory.log());
    let mut news = log.poll()?.records;
    let chosen = started(&news).map(|started| started.options.lanes.clone()).unwrap_or_default();
    let all = plan.lanes.iter().map(|lane| &lane.id);
    let lanes = all.filter(|lane| chosen.is_empty() || chosen.contains(lane)).map(LaneId::to_string).collect();
    let lines = Lines::new(&within.context, Some(lanes), styles_for(&std::io::stdout()), offset());
    let selection = Selection { lanes: Vec::new(), agent: None, since: Some(now()) };
    let mut printed = Printed::new(selection, &directory, Some(&plan), lines);
    // The supervisors clean the files once the jobs have ended.
    printed.redactor = Some(redactor(&within.settings, &plan));
    printed.is_news = true;
    loop {
        let is_over = over.load(Ordering::Acquire);
        news.extend(log.poll()?.records);
        printed.learn(&std::mem::take(&mut news));
        printed.print(is_over)?;
        if is_over {
            return Ok(());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
