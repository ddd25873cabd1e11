//! Pushes a run's state while it is active: after SIGKILL it is too late.
//!
//! A separate thread pushes the newest state after durable events that are worth it: never a queue. What it pushes it reads
//! from disk, so it never claims more than is durable. Only the publication of a merge waits for it ([`PushNow`]).

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use lanewright_git::Remote;
use lanewright_model::event::Record;

use crate::state_sync::Source;
use crate::state_sync::error::{Result, StateSyncError};
use crate::state_sync::push::{StatePusher, is_ours};

/// How long the end of a run waits for its last push.
const LAST_PUSH: Duration = Duration::from_secs(60);
/// The same after a forced stop.
const FORCED: Duration = Duration::from_secs(5);

/// The shortest rest between two pushes where no other is asked for. After each one the thread rests as long as that took.
const SHORTEST_REST: Duration = Duration::from_millis(200);

/// How a run is pushed while it is worked on.
pub struct Pace {
    pub rest: Duration,
    /// How often a run that was claimed is looked for on the remote while there is nothing to push.
    pub look: Duration,
    /// What is done once another process has the run, so that every later push is refused.
    pub lost: Box<dyn FnOnce() + Send>,
    /// Whether a state that does not continue this one is overwritten: that of a clone from which this one took the run.
    pub overwrites: Box<dyn Fn() -> bool + Send>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { rest: SHORTEST_REST, look: Duration::MAX, lost: Box::new(|| {}), overwrites: Box::new(|| false) }
    }
}

pub struct Follower {
    news: Sender<News>,
    ended: Receiver<Result<()>>,
}

enum News {
    Written,
    /// Something waits until what is on disk now is pushed. The answer is why another process has the run, if one has.
    Awaited(Sender<Option<String>>),
    End,
}

/// Has the newest state of a run pushed before something is done that another clone may see.
#[derive(Clone)]
pub struct PushNow(Sender<News>);

impl PushNow {
    /// Waits until the remote has what is on disk now. While it cannot be reached, nothing waits for it.
    ///
    /// # Errors
    /// Another process has the run: nothing of it may be published here.
    pub fn push(&self) -> std::result::Result<(), String> {
        let (answer, answered) = mpsc::channel();
        let _ = self.0.send(News::Awaited(answer));
        match answered.recv() {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(reason),
            // The thread has ended, which it does only when a push was refused.
            Err(_) => Err("the run was continued elsewhere".to_owned()),
        }
    }
}

impl Follower {
    pub fn start(source: Source, remote: Remote, pace: Pace) -> io::Result<Self> {
        let (news, inbox) = mpsc::channel();
        let (report, ended) = mpsc::channel();
        let work = move || {
            let outcome = Pusher { state: StatePusher::new(source, remote.within(LAST_PUSH)), warned: false }
                .follow(&inbox, pace);
            // The receiver may have given up.
            let _ = report.send(outcome);
        };
        std::thread::Builder::new().name("state".to_owned()).spawn(work)?;
        Ok(Self { news, ended })
    }

    pub fn send(&self, records: &[Record]) {
        if records.iter().any(|it| it.event.facts().is_milestone) {
            let _ = self.news.send(News::Written);
        }
    }

    pub fn push_now(&self) -> PushNow {
        PushNow(self.news.clone())
    }

    /// Waits until the newest state is pushed, for at most a minute; after a forced stop for some seconds only.
    ///
    /// # Errors
    /// The last push failed, took longer than the limit, or its thread panicked.
    pub fn finish(self, is_forced: bool) -> Result<()> {
        let _ = self.news.send(News::End);
        let limit = if is_forced { FORCED } else { LAST_PUSH };
        match self.ended.recv_timeout(limit) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => {
                Err(StateSyncError::Failed(format!("it took longer than {} s", limit.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(StateSyncError::Failed("the thread that pushes it panicked".to_owned()))
            }
        }
    }
}

struct Pusher {
    state: StatePusher,
    warned: bool,
}

impl Pusher {
    fn follow(mut self, inbox: &Receiver<News>, pace: Pace) -> Result<()> {
        let (mut outcome, mut due) = (Ok(()), Instant::now());
        let mut waiting = Vec::new();
        while self.has_news(inbox, &pace, &mut waiting) {
            let is_end = !gather_until(due, inbox, &mut waiting);
            if outcome.is_err() {
                // The remote does not answer, which holds nothing up.
                answer(&mut waiting, None);
            }
            let began = Instant::now();
            outcome = self.push(&pace);
            if let Err(error @ (StateSyncError::Superseded { .. } | StateSyncError::Fenced { .. })) = &outcome {
                answer(&mut waiting, Some(&error.to_string()));
                (pace.lost)();
                return outcome;
            }
            answer(&mut waiting, None);
            if is_end {
                break;
            }
            due = Instant::now() + began.elapsed().max(pace.rest);
        }
        match outcome {
            Ok(()) => Ok(()),
            Err(_) => self.push(&pace),
        }
    }

    /// Waits for something to push; `false`: nothing more comes. A run that was claimed looks now and then whether it still
    /// is, because an agent may be silent for hours: then the push that follows is refused.
    fn has_news(&self, inbox: &Receiver<News>, pace: &Pace, waiting: &mut Vec<Sender<Option<String>>>) -> bool {
        loop {
            match inbox.recv_timeout(pace.look) {
                Ok(News::Written) => return true,
                Ok(News::Awaited(answer)) => {
                    waiting.push(answer);
                    return true;
                }
                Ok(News::End) | Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) if is_ours(&self.state.source, &self.state.remote) => {}
                Err(RecvTimeoutError::Timeout) => return true,
            }
        }
    }

    fn push(&mut self, pace: &Pace) -> Result<()> {
        let mut outcome = self.state.push(false).map(drop);
        if matches!(outcome, Err(StateSyncError::Superseded { .. })) && (pace.overwrites)() {
            outcome = self.state.push(true).map(drop);
        }
        if let Err(error) = &outcome
            && !std::mem::replace(&mut self.warned, true)
        {
            let reason = error.with_remedy();
            tracing::warn!("the state of run {} was not pushed: {reason}; the run continues", self.state.source.run);
        }
        outcome
    }
}

/// Receives what arrives until `due`, or until something waits for a push: all of it is on disk, and pushed together.
/// `false`: nothing more comes.
fn gather_until(due: Instant, inbox: &Receiver<News>, waiting: &mut Vec<Sender<Option<String>>>) -> bool {
    while waiting.is_empty() {
        match inbox.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(News::Written) => {}
            Ok(News::Awaited(answer)) => waiting.push(answer),
            Ok(News::End) => return false,
            Err(_) => break,
        }
    }
    true
}

fn answer(waiting: &mut Vec<Sender<Option<String>>>, lost: Option<&str>) {
    for asked in waiting.drain(..) {
        let _ = asked.send(lost.map(str::to_owned));
    }
}
