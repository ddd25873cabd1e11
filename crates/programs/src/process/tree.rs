//! Process trees: finds and signals all descendants of a process.

use std::collections::{BTreeSet, HashMap};

use rustix::process::{Pid, Signal};

use super::identity::Row;
use super::platform;

/// Everything in `rows` that is one of `roots` or comes from one, without what has ended.
pub(super) fn grown_from(roots: impl IntoIterator<Item = i32>, rows: &[Row]) -> Vec<Row> {
    let mut children: HashMap<i32, Vec<&Row>> = HashMap::new();
    for row in rows {
        children.entry(row.parent).or_default().push(row);
    }
    let mut found: BTreeSet<i32> = roots.into_iter().collect();
    let mut unvisited: Vec<i32> = found.iter().copied().collect();
    while let Some(pid) = unvisited.pop() {
        for child in children.get(&pid).into_iter().flatten() {
            if found.insert(child.id.pid) {
                unvisited.push(child.id.pid);
            }
        }
    }
    rows.iter().filter(|row| found.contains(&row.id.pid) && !row.ended).copied().collect()
}

/// Everything that comes from this process, itself excluded.
///
/// Where the system has no subreapers, an orphan is still found by one of `groups`, unless it changed its group.
pub(super) fn descendants(groups: &[i32]) -> Vec<Row> {
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let rows = platform::processes();
    let strays = rows.iter().filter(|row| !platform::ADOPTS_ORPHANS && groups.contains(&row.group));
    let roots = strays.map(|row| row.id.pid).chain([me]);
    grown_from(roots, &rows).into_iter().filter(|row| row.id.pid != me).collect()
}

/// Sends `signal` once to each of `targets`: by groups, which a process that forks at this moment cannot slip out of,
/// and one by one to those that share this process's own group.
pub(super) fn signal_all(targets: &[Row], signal: Signal) {
    // From the table and not `getpgrp`: in a container the group's leader may be outside, which makes it 0.
    let own_group = platform::process(rustix::process::getpid().as_raw_nonzero().get()).map(|row| row.group);
    let mut reached = BTreeSet::new();
    for target in targets {
        if own_group == Some(target.group) {
            // It may be gone, or belong to another user; there is nothing to do then.
            let _ = platform::signal(target.id, signal);
        } else if platform::process(target.id.pid) == Some(*target) && reached.insert(target.group) {
            let _ = Pid::from_raw(target.group).map(|group| rustix::process::kill_process_group(group, signal));
        }
    }
}

/// Kills this process's own children. Their pids cannot be reused before this process collects them, so this is
/// exact without a look at the process table, and fast enough for children that fork and end all the time.
pub(super) fn kill_children() {
    for child in platform::children().into_iter().filter_map(Pid::from_raw) {
        let _ = rustix::process::kill_process(child, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::ProcessId;

    fn row(pid: i32, parent: i32, ended: bool) -> Row {
        Row { id: ProcessId { pid, started: 1 }, parent, group: pid, ended }
    }

    #[test]
    fn all_generations_are_found_and_neighbours_are_not() {
        let rows = [row(9, 5, false), row(5, 2, false), row(2, 1, false), row(3, 1, false), row(6, 2, true)];
        let found: Vec<i32> = grown_from([2], &rows).iter().map(|row| row.id.pid).collect();
        assert_eq!(found, [9, 5, 2]);
    }

    #[test]
    fn the_living_child_of_an_ended_process_is_found() {
        let rows = [row(6, 2, true), row(7, 6, false)];
        let found: Vec<i32> = grown_from([2], &rows).iter().map(|row| row.id.pid).collect();
        assert_eq!(found, [7]);
    }
}
