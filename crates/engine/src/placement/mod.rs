//! Lanes on a cluster: each is a run of its own, which is offered on the exchange, worked on by a job of an engine, and
//! copied back record by record.
//!
//! Git says what happened; an engine is asked only whether there is still hope. One thread does all of it: it keeps what
//! it was asked to do, looks at the exchange and at the engines in turns, and answers when there is something to say.

mod collect;
mod engines;
mod error;
mod forced_stop;
mod offer;
mod removal;
mod watch;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use forced_stop::Unanswered;
use lanewright_git::{Remote, Repository};
use lanewright_model::event::RunStarted;
use lanewright_model::{ExecutorSettings, Plan, RunId, Timestamp};
use lanewright_programs::cluster::{Cluster, OrderName};
use lanewright_store::RunDirectory;

use crate::executor::placements::{Answer, PlacementTask, Placements};
use crate::state_sync::{PushNow, StateSyncError};

/// An executor of the plan, and the engine behind it.
pub struct Engine {
    pub settings: ExecutorSettings,
    pub cluster: Box<dyn Cluster>,
}

/// Why the thread places nothing any more: another clone has the run.
pub type Taken = Arc<Mutex<Option<StateSyncError>>>;

pub struct Placing {
    pub repository: Repository,
    pub exchange: Remote,
    /// Where the run's own state is pushed to, if it is.
    pub state_remote: Option<Remote>,
    pub state: Option<PushNow>,
    /// What jobs reach the exchange by.
    pub address: String,
    pub directory: RunDirectory,
    pub started: RunStarted,
    pub plan: Arc<Plan>,
    pub host: String,
    pub since: Timestamp,
    pub engines: HashMap<String, Engine>,
    pub taken: Taken,
}

/// The thread, and its mailbox until it is to end.
struct Mailbox {
    sender: Option<Sender<(PlacementTask, Answer)>>,
    thread: Option<JoinHandle<()>>,
    unanswered: Unanswered,
}

impl Placements for Mailbox {
    fn take(&self, task: PlacementTask, answer: Answer) {
        let answer = self.unanswered.add(&task, answer);
        // The thread ends after the mailbox.
        let _ = self.sender.as_ref().map(|sender| sender.send((task, answer)));
    }

    fn stop_waiting(&self) {
        self.unanswered.stop_waiting();
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.sender = None;
        self.thread.take().into_iter().for_each(|thread| self.unanswered.join(thread));
    }
}

/// Starts the thread; it ends, and is waited for, once nothing can reach it any more, after a forced stop for a limited
/// time.
pub fn start(placing: Placing) -> std::io::Result<Arc<dyn Placements>> {
    let (sender, inbox) = channel();
    let unanswered = Unanswered::default();
    let watch = watch::Watch::new(placing, unanswered.clone());
    let work = move || watch.work(&inbox);
    let thread = std::thread::Builder::new().name("placement".to_owned()).spawn(work)?;
    Ok(Arc::new(Mailbox { sender: Some(sender), thread: Some(thread), unanswered }))
}

/// The name of the job of a lane's own run that was placed for the `number`th time, where jobs reach the exchange by
/// `address`.
pub fn job_name(address: &str, lane_run: &RunId, number: u32) -> OrderName {
    OrderName::of(&[address, lane_run.as_str(), &number.to_string()])
}

/// The cache of nodes, for the command of jobs.
fn cache_flag(settings: &ExecutorSettings) -> Vec<String> {
    let cache: Option<PathBuf> = settings.node_cache().map(|cache| cache.to_path_buf());
    cache.iter().flat_map(|cache| ["--cache".to_owned(), cache.display().to_string()]).collect()
}

#[cfg(test)]
mod tests;
