//! Ends a run whose stop was forced although its exchange or an engine does not answer: what was asked of the thread is
//! answered without it, and jobs are left to the next process of the run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lanewright_model::event::Event;

use crate::executor::placements::{Answer, Operation, PlacementTask};

/// How long a forced stop waits for the next answer.
const LONGEST: Duration = Duration::from_secs(10);

/// Between two looks at what was asked later, and at whether the thread has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// What was asked and is not answered to its end.
#[derive(Clone, Default)]
pub(super) struct Unanswered(Arc<Mutex<Questions>>);

#[derive(Default)]
struct Questions {
    /// By the number of the question.
    open: BTreeMap<u64, (PlacementTask, Answer)>,
    asked: u64,
    /// When all of them are answered without the thread.
    end: Option<Instant>,
}

impl Unanswered {
    /// What the thread is to answer with in place of `answer`.
    pub(super) fn add(&self, task: &PlacementTask, answer: Answer) -> Answer {
        let mut questions = lock(&self.0);
        questions.asked += 1;
        let number = questions.asked;
        questions.open.insert(number, (task.clone(), answer));
        let unanswered = self.clone();
        Box::new(move |news, is_over| {
            let mut questions = lock(&unanswered.0);
            if let Some((_, answer)) = questions.open.get(&number) {
                answer(news, is_over);
            }
            if is_over {
                questions.open.remove(&number);
                questions.end = questions.end.map(|_| Instant::now() + LONGEST);
            }
        })
    }

    /// From now on everything is answered here where the thread does not answer for a while.
    pub(super) fn stop_waiting(&self) {
        {
            let mut questions = lock(&self.0);
            if questions.end.is_some() {
                return;
            }
            questions.end = Some(Instant::now() + LONGEST);
        }
        let unanswered = self.clone();
        let started = thread::Builder::new().name("forced-stop".to_owned()).spawn(move || unanswered.answer_when_due());
        if let Err(error) = started {
            tracing::warn!("the forced stop may take longer: {error}");
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        lock(&self.0).end.is_some()
    }

    fn remaining_wait(&self) -> Option<Duration> {
        lock(&self.0).end.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Answers everything once that is due, also what is asked later.
    fn answer_when_due(&self) {
        while Arc::strong_count(&self.0) > 1 {
            let rest = self.remaining_wait().unwrap_or_default();
            if rest.is_zero() {
                self.answer_all();
            }
            thread::sleep(rest.max(PAUSE));
        }
    }

    /// Nothing is known of what becomes of the jobs.
    fn answer_all(&self) {
        let open = std::mem::take(&mut lock(&self.0).open);
        for (task, answer) in open.into_values() {
            let message = "the exchange or the executor did not answer, so its job was left alone; a resume follows it";
            let note = Event::Noted { lane: Some(task.lane), message: message.to_owned() };
            let is_of_the_job = matches!(task.operation, Operation::Place | Operation::Follow { .. });
            answer(is_of_the_job.then(|| note.into()).into_iter().collect(), true);
        }
    }

    /// Waits for the end of the thread, after a forced stop no longer than that waits.
    pub(super) fn join(&self, thread: thread::JoinHandle<()>) {
        while let Some(rest) = self.remaining_wait().filter(|_| !thread.is_finished()) {
            if rest.is_zero() {
                return;
            }
            thread::sleep(rest.min(PAUSE));
        }
        // A panic has been shown.
        let _ = thread.join();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_signal_does_not_delay_the_end() {
        let unanswered = Unanswered::default();
        unanswered.stop_waiting();
        let end = lock(&unanswered.0).end;
        unanswered.stop_waiting();
        assert_eq!(lock(&unanswered.0).end, end);
    }
}
