//! Work on many things that are independent of each other, such as files.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

/// The results of `work`, in the order of `items`. Each thread takes `share` of them; if one takes all, none is started.
pub fn map_shares<T: Sync, R: Send>(items: &[T], share: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let map = |items: &[T]| items.iter().map(&work).collect::<Vec<R>>();
    if items.len() <= share {
        return map(items);
    }
    thread::scope(|scope| {
        let threads: Vec<_> = items.chunks(share).map(|items| scope.spawn(move || map(items))).collect();
        threads.into_iter().flat_map(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// The share of `count` items with which every core gets one, at least `least`.
pub fn share_of_core(count: usize, least: usize) -> usize {
    count.div_ceil(thread::available_parallelism().map_or(1, NonZero::get)).max(least)
}
