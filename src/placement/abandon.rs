//! Ends a run whose stop was forced although its exchange or an engine does not answer: what was asked of the thread is
//! answered without it, and jobs are left to the next process of the run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::event::Event;
use crate::executor::elsewhere::{Answer, Errand, What};

/// How long a forced stop waits for answers.
const LONGEST: Duration = Duration::from_secs(10);

/// What was asked and is not answered to its end.
#[derive(Clone, Default)]
pub(super) struct Unanswered(Arc<Mutex<Questions>>);

#[derive(Default)]
struct Questions {
    open: Vec<(Errand, Arc<Open>)>,
    /// When all of them are answered without the thread.
    end: Option<Instant>,
}

/// `None`: it was answered to its end.
type Open = Mutex<Option<Answer>>;

impl Unanswered {
    /// What the thread is to answer with in place of `answer`. A forced stop of the run sets the end of its patience.
    pub(super) fn add(&self, errand: &Errand, answer: Answer) -> Answer {
        let open = Arc::new(Mutex::new(Some(answer)));
        let mut questions = lock(&self.0);
        questions.open.retain(|(_, open)| lock(open).is_some());
        questions.open.push((errand.clone(), open.clone()));
        if errand.what.is_last() && questions.end.is_none() {
            questions.end = Some(Instant::now() + LONGEST);
            let unanswered = self.clone();
            let wait = move || {
                thread::sleep(LONGEST);
                unanswered.abandon();
            };
            if let Err(error) = thread::Builder::new().name("forced-stop".to_owned()).spawn(wait) {
                tracing::warn!("the forced stop may take longer: {error}");
            }
        }
        Box::new(move |news, is_over| {
            let mut open = lock(&open);
            if let Some(answer) = open.as_ref() {
                answer(news, is_over);
            }
            if is_over {
                *open = None;
            }
        })
    }

    /// Answers everything: nothing is known of what becomes of the jobs.
    fn abandon(&self) {
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
        while let Some(end) = lock(&self.0).end
            && !thread.is_finished()
        {
            if Instant::now() >= end {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        // A panic has been shown.
        let _ = thread.join();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
