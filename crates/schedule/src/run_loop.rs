//! The only owner of a run's state: events in, durable records, then actions out.
//!
//! Everything that is known together is made durable together: one sync for all events that waited and for all
//! decisions that follow from them. Nothing is acted upon before that sync.

use std::collections::HashSet;

use lanewright_model::Timestamp;
use lanewright_model::event::{Event, Incoming, Log, Record};

use super::{Action, Fault, RunState, decide};

/// A run that is being worked on.
pub struct RunLoop<L> {
    log: L,
    state: RunState,
    in_flight: HashSet<Action>,
    /// Whether the run continues while a lane waits for an answer of the user and nothing else is left to do.
    awaits_answers: bool,
}

/// What follows from a batch of events.
#[derive(Debug, Default)]
pub struct Step {
    /// The batch and the decisions that followed from it, all durable.
    pub records: Vec<Record>,
    /// To be carried out now; each counts as in flight until it is handed back.
    pub actions: Vec<Action>,
    /// When to come back even if nothing happens.
    pub wake_at: Option<Timestamp>,
}

/// Why a run cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum RunLoopError<E> {
    /// The log does not take records any more.
    #[error(transparent)]
    Log(E),
    /// An event contradicts those before it.
    #[error("the run's events contradict each other: {0}")]
    Fault(#[from] Fault),
    /// One decision follows from the other without end: a mistake of Lanewright's, stopped before it fills the disk.
    #[error("the run's decisions do not end; please report this, with the run log")]
    Unsettled,
}

/// How often decisions may follow from each other at one moment: far more than a lane has steps.
const MOST_ROUNDS: u32 = 10_000;

impl<L: Log> RunLoop<L> {
    /// A run whose state was folded from everything in `log`.
    pub fn new(log: L, state: RunState) -> Self {
        Self { log, state, in_flight: HashSet::new(), awaits_answers: false }
    }

    /// The same; while a lane waits for an answer of the user, the run does not end by itself.
    #[must_use]
    pub fn awaiting_answers(self, awaits_answers: bool) -> Self {
        Self { awaits_answers, ..self }
    }

    /// The state, folded from every record so far.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// Where its records are kept.
    pub fn log(&self) -> &L {
        &self.log
    }

    /// Whether no action is in flight.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Appends and applies what happened, and returns what to do next.
    ///
    /// `finished` are actions that were handed out earlier and are over. The run ends by itself (`RunFinished` is among
    /// the records) when nothing is left to do and nothing is in flight.
    ///
    /// # Errors
    /// [`RunLoopError`]; nothing was acted upon, and the run loop must not be used any more.
    pub fn absorb(
        &mut self,
        events: impl IntoIterator<Item = impl Into<Incoming>>,
        finished: impl IntoIterator<Item = Action>,
        now: Timestamp,
    ) -> Result<Step, RunLoopError<L::Error>> {
        let finished: Vec<Action> = finished.into_iter().collect();
        for action in &finished {
            self.in_flight.remove(action);
        }
        let mut step = Step::default();
        for event in events {
            let incoming: Incoming = event.into();
            if !self.state.is_stale(&incoming.event) {
                self.append(&mut step, now, incoming)?;
            }
        }
        self.state.release_placements(&finished);
        let mut decisions = decide(&self.state, now);
        for round in 0.. {
            if decisions.events.is_empty() {
                break;
            }
            if round == MOST_ROUNDS {
                return Err(RunLoopError::Unsettled);
            }
            for event in std::mem::take(&mut decisions.events) {
                self.append(&mut step, now, event.into())?;
            }
            decisions = decide(&self.state, now);
        }
        if let Some(finish) = decisions.finish.filter(|_| self.is_idle() && !self.is_awaiting()) {
            self.append(&mut step, now, Event::RunFinished { outcome: finish.outcome, code: finish.code }.into())?;
        }
        if !step.records.is_empty() {
            self.log.sync().map_err(RunLoopError::Log)?;
        }
        step.actions = decisions.actions.into_iter().filter(|action| self.in_flight.insert(action.clone())).collect();
        step.wake_at = decisions.wake_at;
        Ok(step)
    }

    /// Whether an answer of the user is waited for. A run that was asked to stop waits for none.
    fn is_awaiting(&self) -> bool {
        self.awaits_answers && self.state.stop().is_none() && self.state.asks_user()
    }

    fn append(&mut self, step: &mut Step, now: Timestamp, incoming: Incoming) -> Result<(), RunLoopError<L::Error>> {
        let record = self.log.append(now, &incoming).map_err(RunLoopError::Log)?;
        self.state.apply(&record)?;
        step.records.push(record);
        Ok(())
    }
}
