//! Limits how many worktrees are created at once: several checkouts are no faster than one after the other once all cores
//! are busy, and a slot that is given back meanwhile need not be created.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest wait: a checkout whose filters download something does not block the others for longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A checkout keeps about two cores busy: git's, and the kernel's writing.
const CORES_FOR_EACH: usize = 2;

#[derive(Debug, Default)]
pub(crate) struct CreationQueue {
    creating: Mutex<usize>,
    ended: Condvar,
}

#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a CreationQueue);

impl CreationQueue {
    pub(crate) fn wait(&self) -> Turn<'_> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.wait_for(cores.div_ceil(CORES_FOR_EACH), PATIENCE)
    }

    fn wait_for(&self, at_once: usize, patience: Duration) -> Turn<'_> {
        let busy = |creating: &mut usize| *creating >= at_once;
        let waited = self.ended.wait_timeout_while(self.lock(), patience, busy);
        *waited.unwrap_or_else(PoisonError::into_inner).0 += 1;
        Turn(self)
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.creating.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creation_waits_for_earlier_turn() {
        let queue = CreationQueue::default();
        let turn = queue.wait_for(1, Duration::MAX);
        std::thread::scope(|scope| {
            let next = scope.spawn(|| drop(queue.wait_for(1, Duration::MAX)));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!next.is_finished());
            drop(turn);
        });
        assert_eq!(*queue.lock(), 0);
    }

    #[test]
    fn creation_wait_is_limited() {
        let queue = CreationQueue::default();
        let _first = queue.wait_for(1, Duration::ZERO);
        let _second = queue.wait_for(1, Duration::ZERO);
        assert_eq!(*queue.lock(), 2);
    }
}
