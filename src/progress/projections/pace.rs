//! When the files for other programs are written: as soon as their content changed, after a rest since the last write.
//!
//! `checkpoints.json` is written whole and grows with every lane of every run. Without a limit of the bytes per second
//! a run of 3,000 lanes writes it as often as one of ten, which takes gigabytes.

use std::time::{Duration, Instant};

/// The shortest rest between two writes of `checkpoints.json`: each takes two syncs, for which the run log waits.
const SHORTEST_REST: Duration = Duration::from_millis(500);

/// How many bytes of `checkpoints.json` are written in a second, at most in the long run.
const BYTES_PER_SECOND: u32 = 100_000;

/// Between two writes of the small files, which are not synced.
const SMALL_FILES_REST: Duration = Duration::from_millis(100);

/// What has changed since it was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct News {
    pub(super) checkpoints: bool,
    /// Whether a user may have to act because of a record of `checkpoints.json`.
    pub(super) is_urgent: bool,
    pub(super) small_files: bool,
}

/// The moments before which nothing is written.
pub(super) struct Pace {
    small_files: Instant,
    checkpoints: Instant,
    /// How much earlier an urgent write may be: it may take the rest that another write needs.
    urgent_lead: Duration,
}

impl Pace {
    /// Before the first write, which may be `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self { small_files: now, checkpoints: now, urgent_lead: Duration::ZERO }
    }

    /// When the next write of what is `news` is due; `None`: there is nothing to write.
    pub(super) fn next(&self, news: News) -> Option<Instant> {
        let small_files = news.small_files.then_some(self.small_files);
        small_files.into_iter().chain(news.checkpoints.then(|| self.checkpoints_due(news))).min()
    }

    /// What of `news` is due `now`.
    pub(super) fn due(&self, news: News, now: Instant) -> News {
        News {
            checkpoints: news.checkpoints && self.checkpoints_due(news) <= now,
            small_files: news.small_files && self.small_files <= now,
            ..news
        }
    }

    pub(super) fn wrote_small_files(&mut self, now: Instant) {
        self.small_files = now + SMALL_FILES_REST;
    }

    /// Notes a write of `checkpoints.json` that ended `now` and took `bytes`.
    pub(super) fn wrote_checkpoints(&mut self, bytes: usize, now: Instant) {
        let rest = Duration::from_secs(bytes as u64) / BYTES_PER_SECOND;
        self.urgent_lead = rest.max(SHORTEST_REST);
        self.checkpoints = self.checkpoints.max(now) + self.urgent_lead;
    }

    fn checkpoints_due(&self, news: News) -> Instant {
        let lead = if news.is_urgent { self.urgent_lead } else { Duration::ZERO };
        self.checkpoints.checked_sub(lead).unwrap_or(self.checkpoints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEWS: News = News { checkpoints: true, is_urgent: false, small_files: false };
    const URGENT: News = News { is_urgent: true, ..NEWS };

    /// How many bytes a run of `lanes` lanes writes that takes a second for ten lanes, with a change every millisecond.
    fn bytes_of_run(lanes: usize, is_urgent: impl Fn(usize) -> bool) -> usize {
        let start = Instant::now();
        let (mut pace, mut written, mut pending) = (Pace::new(start), 0, NEWS);
        for ms in 0..lanes * 100 {
            let now = start + Duration::from_millis(ms as u64);
            pending = News { is_urgent: pending.is_urgent || is_urgent(ms), ..NEWS };
            if pace.due(pending, now).checkpoints {
                // A lane has three records of 900 bytes.
                let size = 2_700 * ms / 100;
                pace.wrote_checkpoints(size, now);
                (written, pending) = (written + size, NEWS);
            }
        }
        written
    }

    #[test]
    fn bytes_grow_with_lanes_also_where_all_are_urgent() {
        let all: [fn(usize) -> bool; 3] = [|_| false, |_| true, |ms| ms % 700 == 0];
        for is_urgent in all {
            let [few, many] = [1_000, 10_000].map(|lanes| bytes_of_run(lanes, is_urgent) as f64);
            assert!((many / few).log10() < 1.1, "{few} and {many} bytes");
        }
    }

    #[test]
    fn urgent_record_waits_for_no_rest_but_that_of_another_urgent_one() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        pace.wrote_checkpoints(10_000_000, now);
        assert_eq!(pace.next(NEWS), Some(now + Duration::from_secs(100)));
        assert_eq!(pace.next(URGENT), Some(now));
        pace.wrote_checkpoints(10_000_000, now);
        assert_eq!(pace.next(URGENT), Some(now + Duration::from_secs(100)));
    }

    #[test]
    fn small_files_do_not_wait_for_checkpoints() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        pace.wrote_checkpoints(1, now);
        assert_eq!(pace.next(NEWS), Some(now + SHORTEST_REST));
        let both = News { small_files: true, ..NEWS };
        assert_eq!(pace.next(both), Some(now));
        assert_eq!(pace.due(both, now), News { checkpoints: false, ..both });
        pace.wrote_small_files(now);
        assert_eq!(pace.next(both), Some(now + SMALL_FILES_REST));
        assert_eq!(pace.next(News::default()), None);
    }
}
