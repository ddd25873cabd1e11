//! The driver: the event loop of a run, with one place that waits.
//!
//! It waits for answers of tasks, for signals and requests, and for the clock. Everything that has arrived is
//! handed to the run loop in one batch, so that one sync makes all of it durable; then it starts the resulting actions.
//!
//! The moment of a batch is that of the last look at the clock, which also shows whether the process was asleep before
//! it. So no decision is made at a moment after a sleep that the state does not know of yet.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lanewright_files::awake::asleep;
use lanewright_files::timing::TARGET;
use lanewright_model::event::{Event, Incoming, Log, Record, RunStarted, StopReason};
use lanewright_model::{OnOrphan, Timestamp};
use lanewright_programs::process::{Changes, Watch};
use lanewright_schedule::{Action, Finish, RunLoop, RunLoopError, RunState, Step};
use lanewright_store::{Journal, LogError, requests};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use super::signals::{SignalRequest, Signals};
use crate::executor::Executor;
use crate::executor::crash::{CrashPoint, crash_point};
use crate::executor::placements::Answer;
use crate::executor::timed::sync_log;

/// How often requests are looked for where their directory cannot be watched.
const UNWATCHED_TICK: Duration = Duration::from_millis(200);

/// What the driver reports to its observer, once it is durable.
pub enum Update<'a> {
    Records(&'a [Record]),
    /// The worktree pool is being emptied from now on.
    EmptyingPool(Timestamp),
    Tick(Timestamp),
}

#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    #[error(transparent)]
    RunLoop(#[from] RunLoopError<LogError>),
    #[error("the system does not let the engine wait: {0}")]
    System(#[from] std::io::Error),
    /// A task panicked: a mistake of Lanewright's, or the system refused it memory or a thread.
    #[error("`{action}` panicked: {message}")]
    Panicked { action: &'static str, message: String },
    /// SIGHUP: the record about it is the last one of the log.
    #[error("the terminal was closed (SIGHUP)")]
    HungUp,
}

/// The run log; the jobs that it plans find their places empty.
struct RunLog {
    journal: Journal,
    executor: Arc<Executor>,
}

impl Log for RunLog {
    type Error = LogError;

    fn append(&mut self, at: Timestamp, incoming: &Incoming) -> Result<Record, LogError> {
        if let (Event::JobPlanned { job, .. }, None) = (&incoming.event, incoming.origin) {
            self.executor.make_room(job)?;
        }
        Log::append(&mut self.journal, at, incoming)
    }

    fn sync(&mut self) -> Result<(), LogError> {
        sync_log(&mut self.journal)
    }
}

enum Message {
    Events(Vec<Incoming>),
    Done(Action, Vec<Event>),
    /// What the task did is unknown; a resume finds out. Without this message the run would wait for it for ever.
    Panicked(DriverError),
}

/// Runs a run to its end: `first` are the events that this life of the run begins with. With `awaits_answers` it does not
/// end while a lane waits for the user. `watch` gets an [`Update::Tick`] about once in a `tick`, which is the longest time
/// between two looks at the clock.
///
/// # Errors
/// [`DriverError`]; running jobs continue under their supervisors, and a resume finds them.
pub fn drive(
    executor: Arc<Executor>,
    journal: Journal,
    state: RunState,
    (first, awaits_answers): (Vec<Event>, bool),
    tick: Duration,
    watch: &mut dyn FnMut(Update<'_>),
) -> Result<Finish, DriverError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(4096).build()?;
    let ended = runtime.block_on(async {
        let (sender, inbox) = unbounded_channel();
        let log = RunLog { journal, executor: executor.clone() };
        let run_loop = RunLoop::new(log, state).awaiting_answers(awaits_answers);
        let signals = Signals::new()?;
        let requests = watch_requests(&executor, sender.clone());
        let tick = if requests.is_some() { tick } else { tick.min(UNWATCHED_TICK) };
        let (now, taken) = (executor.clock.now(), Vec::new());
        let mut driver =
            Driver { run_loop, executor, sender, inbox, signals, tick, now, wake_at: None, taken, ended: None };
        driver.run(first, watch).await
    });
    // After an error tasks may still wait for jobs that run for hours.
    runtime.shutdown_background();
    ended
}

/// Wakes the driver when another process leaves a request; `None`: they are to be looked for.
fn watch_requests(executor: &Executor, sender: UnboundedSender<Message>) -> Option<(Changes, Watch)> {
    let changes = Changes::start(Duration::ZERO)?;
    let look = move || drop(sender.send(Message::Events(Vec::new())));
    let watch = changes.watch(&executor.run.requests(), None, look)?;
    Some((changes, watch))
}

struct Driver {
    run_loop: RunLoop<RunLog>,
    executor: Arc<Executor>,
    sender: UnboundedSender<Message>,
    inbox: UnboundedReceiver<Message>,
    signals: Signals,
    tick: Duration,
    /// The last look at the clock.
    now: Timestamp,
    wake_at: Option<Timestamp>,
    /// Requests whose events are not durable yet.
    taken: Vec<PathBuf>,
    /// Why the run does not go on in this process.
    ended: Option<DriverError>,
}

impl Driver {
    async fn run(&mut self, first: Vec<Event>, watch: &mut dyn FnMut(Update<'_>)) -> Result<Finish, DriverError> {
        let first = first.into_iter().map(Incoming::from).collect();
        let mut step = self.absorb(first, Vec::new())?;
        loop {
            watch(Update::Records(&step.records));
            if let Some((outcome, code)) = self.run_loop.state().finished() {
                return Ok(Finish { outcome, code });
            }
            if step.actions.contains(&Action::EmptyPool) {
                watch(Update::EmptyingPool(self.now));
            }
            self.start(&mut step);
            let (events, finished) = self.wait(watch).await;
            step = self.absorb(events, finished)?;
            requests::forget(&std::mem::take(&mut self.taken));
            if let Some(error) = self.ended.take() {
                watch(Update::Records(&step.records));
                return Err(error);
            }
        }
    }

    fn absorb(&mut self, events: Vec<Incoming>, finished: Vec<Action>) -> Result<Step, DriverError> {
        let _span = tracing::debug_span!(target: TARGET, "absorb", events = events.len()).entered();
        let step = self.run_loop.absorb(events, finished, self.now)?;
        if step.records.iter().any(|record| record.event.is_forced_stop()) {
            self.executor.placements.iter().for_each(|placements| placements.stop_waiting());
        }
        // On a very slow disk one record of a sleep would follow the other.
        if step.records.iter().any(|record| matches!(record.event, Event::Slept { .. })) {
            self.now = self.executor.clock.now();
        }
        Ok(step)
    }

    fn start(&mut self, step: &mut Step) {
        self.wake_at = step.wake_at;
        for action in step.actions.drain(..) {
            let task = self.executor.placement_task(&action, self.run_loop.state());
            if let Some((task, placements)) = task.zip(self.executor.placements.as_ref()) {
                placements.take(task, answer(self.sender.clone(), action));
                continue;
            }
            let task = self.executor.prepare(&action, self.run_loop.state());
            let (sender, executor) = (self.sender.clone(), self.executor.clone());
            tokio::task::spawn_blocking(move || {
                let emit = |event: Event| drop(sender.send(Message::Events(vec![event.into()])));
                let carried_out = catch_unwind(AssertUnwindSafe(|| {
                    crash_point(CrashPoint::before(&action));
                    let events = executor.timed(&action, task, &emit);
                    crash_point(CrashPoint::after(&action));
                    events
                }));
                let _ = sender.send(match carried_out {
                    Ok(events) => Message::Done(action, events),
                    Err(panic) => Message::Panicked(panicked(&action, panic.as_ref())),
                });
            });
        }
    }

    async fn wait(&mut self, watch: &mut dyn FnMut(Update<'_>)) -> (Vec<Incoming>, Vec<Action>) {
        let (mut events, mut finished) = (Vec::new(), Vec::new());
        loop {
            let alarm = self.wake_at.map_or(self.tick, |moment| moment.since(self.now).min(self.tick));
            tokio::select! {
                biased;
                request = self.signals.next() => events.push(self.handle_signal(request).into()),
                message = self.inbox.recv() => self.take(message, &mut events, &mut finished),
                () = sleep(alarm) => {}
            }
            while let Ok(message) = self.inbox.try_recv() {
                self.take(Some(message), &mut events, &mut finished);
            }
            events.extend(self.requests().into_iter().map(Incoming::from));
            // First, for whatever else has come, limits are judged by it.
            if let Some(slept) = self.read_clock() {
                events.insert(0, slept.into());
            }
            watch(Update::Tick(self.now));
            let woken = self.wake_at.is_some_and(|moment| moment <= self.now);
            if woken || !events.is_empty() || !finished.is_empty() || self.ended.is_some() {
                return (events, finished);
            }
        }
    }

    fn handle_signal(&mut self, request: SignalRequest) -> Event {
        match request {
            SignalRequest::Stop { reason, force } => Event::StopRequested { lane: None, reason, force },
            // The end of a cluster's job ends its supervisors, too.
            SignalRequest::HangUp if self.executor.facts.options.placed_by.is_some() => {
                Event::StopRequested { lane: None, reason: StopReason::Terminate, force: false }
            }
            SignalRequest::HangUp => {
                self.ended = Some(DriverError::HungUp);
                self.executor.placements.iter().for_each(|placements| placements.stop_waiting());
                Event::Noted { lane: None, message: hang_up_note(&self.executor.facts) }
            }
        }
    }

    fn take(&mut self, message: Option<Message>, events: &mut Vec<Incoming>, finished: &mut Vec<Action>) {
        match message {
            Some(Message::Events(event)) => events.extend(event),
            Some(Message::Done(action, answers)) => {
                events.extend(answers.into_iter().map(Incoming::from));
                finished.push(action);
            }
            Some(Message::Panicked(error)) => self.ended = Some(error),
            None => {}
        }
    }

    fn requests(&mut self) -> Vec<Event> {
        let taken = match requests::take(&self.executor.run.requests()) {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!("requests cannot be read: {error}");
                return Vec::new();
            }
        };
        for malformed in &taken.malformed {
            tracing::warn!("a request was set aside as {}: {}", malformed.path.display(), malformed.reason);
        }
        self.taken.extend(taken.files);
        let is_known = |event: &Event| self.run_loop.state().has_subject_of(event);
        taken.requests.into_iter().map(Event::from).filter(is_known).collect()
    }

    /// Looks at the clock; what is to be noted if the process was asleep since the last time.
    fn read_clock(&mut self) -> Option<Event> {
        let before = std::mem::replace(&mut self.now, self.executor.clock.now());
        let duration = asleep(self.now.since(before), self.tick);
        (!duration.is_zero()).then_some(Event::Slept { duration })
    }
}

/// What the run log says where it ends because of SIGHUP.
fn hang_up_note(run: &RunStarted) -> String {
    let agents = match run.options.on_orphan {
        OnOrphan::Continue => "agents continue under their supervisors",
        OnOrphan::Stop => "supervisors stop their agents (on_orphan = \"stop\")",
    };
    format!("the terminal was closed (SIGHUP): {agents}; to continue: lanewright resume {}", run.run_id)
}

/// Hands what becomes known of a task to the inbox.
fn answer(sender: UnboundedSender<Message>, action: Action) -> Answer {
    Box::new(move |events, is_over| {
        // The run may be over.
        let _ = sender.send(Message::Events(events));
        if is_over {
            let _ = sender.send(Message::Done(action.clone(), Vec::new()));
        }
    })
}

fn panicked(action: &Action, panic: &(dyn Any + Send)) -> DriverError {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    DriverError::Panicked { action: action.word(), message: text.unwrap_or("it says nothing").to_owned() }
}
