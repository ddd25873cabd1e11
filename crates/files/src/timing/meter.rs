//! How long programs of others worked, thread by thread.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    static OUTSIDE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Does `work`, which waits for a program of others, and counts how long that takes.
pub fn outside<T>(work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let answer = work();
    OUTSIDE.set(OUTSIDE.get() + began.elapsed());
    answer
}

/// How long programs of others worked for this thread since it was asked before.
pub fn take() -> Duration {
    OUTSIDE.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_time_is_counted_per_thread() {
        take();
        let answer = outside(|| {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(2) {
                std::hint::spin_loop();
            }
            "done"
        });
        assert_eq!(answer, "done");
        assert_eq!(std::thread::spawn(take).join().unwrap(), Duration::ZERO);
        assert!(take() >= Duration::from_millis(2));
        assert_eq!(take(), Duration::ZERO);
    }
}
