//! Ends a run whose stop was forced although its exchange or an engine does not answer: what was asked of the thread is
//! answered without it, and jobs are left to the next process of the run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lanewright_model::event::Event;

use crate::executor::elsewhere::{Answer, Errand, What};

/// How long a forced stop waits for the next answer.
const LONGEST: Duration = Duration::from_secs(10);

/// Between two looks at what was asked later, and at whether the thread has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// What was asked and is not answered to its end.
#[derive(Clone, Default)]
pub(super) struct Unanswered(Arc<Mutex<Questions>>);

#[derive(Default)]
struct Questions {
    open: Vec<(Errand, Arc<Open>)>,
    /// How many there are when those that were answered are left out.
    most: usize,
    /// When all of them are answered without the thread.
    end: Option<Instant>,
}

/// `None`: it was answered to its end.
type Open = Mutex<Option<Answer>>;

impl Unanswered {
    /// What the thread is to answer with in place of `answer`.
    pub(super) fn add(&self, errand: &Errand, answer: Answer) -> Answer {
        let (open, unanswered) = (Arc::new(Mutex::new(Some(answer))), self.clone());
        let mut questions = lock(&self.0);
        if questions.open.len() >= questions.most {
            questions.open.retain(|(_, open)| lock(open).is_some());
            questions.most = 2 * questions.open.len() + 64;
        }
        questions.open.push((errand.clone(), open.clone()));
        Box::new(move |news, is_over| {
            let mut open = lock(&open);
            if let Some(answer) = open.as_ref() {
                answer(news, is_over);
            }
            if is_over {
                *open = None;
                drop(open);
                unanswered.wait_longer();
            }
        })
    }

    /// From now on everything is answered here where the thread does not answer for a while.
    pub(super) fn end_soon(&self) {
        {
            let mut questions = lock(&self.0);
            if questions.end.is_some() {
                return;
            }
            questions.end = Some(Instant::now() + LONGEST);
        }
        let unanswered = self.clone();
        let started = thread::Builder::new().name("forced-stop".to_owned()).spawn(move || unanswered.abandon());
        if let Err(error) = started {
            tracing::warn!("the forced stop may take longer: {error}");
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        lock(&self.0).end.is_some()
    }

    fn wait_longer(&self) {
        if let Some(end) = &mut lock(&self.0).end {
            *end = Instant::now() + LONGEST;
        }
    }

    /// How much longer the thread is waited for.
    fn patience(&self) -> Option<Duration> {
        lock(&self.0).end.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Answers everything once that is due, also what is asked later.
    fn abandon(&self) {
        while Arc::strong_count(&self.0) > 1 {
            let rest = self.patience().unwrap_or_default();
            if rest.is_zero() {
                self.answer_all();
            }
            thread::sleep(rest.max(PAUSE));
        }
    }

    /// Nothing is known of what becomes of the jobs.
    fn answer_all(&self) {
        let open = std::mem::take(&mut lock(&self.0).open);
        for (errand, open) in open {
            let Some(answer) = lock(&open).take() else { continue };
            let message = "the exchange or the executor did not answer, so its job was left alone; a resume follows it";
            let note = Event::Noted { lane: Some(errand.lane), message: message.to_owned() };
            let is_of_the_job = matches!(errand.what, What::Place | What::Follow { .. });
            answer(is_of_the_job.then(|| note.into()).into_iter().collect(), true);
        }
    }

    /// Waits for the end of the thread, after a forced stop no longer than that waits.
    pub(super) fn join(&self, thread: thread::JoinHandle<()>) {
        while let Some(rest) = self.patience().filter(|_| !thread.is_finished()) {
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
    fn another_signal_does_not_put_the_end_off() {
        let unanswered = Unanswered::default();
        unanswered.end_soon();
        let end = lock(&unanswered.0).end;
        unanswered.end_soon();
        assert_eq!(lock(&unanswered.0).end, end);
    }
}
