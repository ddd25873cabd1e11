//! The identity of a process: its pid together with its start time, because the kernel reuses pids.

use lanewright_model::ProcessId;

use super::platform;

/// What the system knows of a process.
pub trait LiveProcess: Sized {
    /// The process that has `pid` now, also when it has ended and was not collected yet; `None` when there is none.
    fn of(pid: i32) -> Option<Self>;

    /// This process. Its start time is 0, and it is never found alive, where the system does not provide it.
    fn current() -> Self;

    /// Whether this very process still runs. One that has ended and was not collected yet does not.
    fn is_alive(&self) -> bool;
}

impl LiveProcess for ProcessId {
    fn of(pid: i32) -> Option<Self> {
        platform::process(pid).map(|row| row.id)
    }

    fn current() -> Self {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Self::of(pid).unwrap_or(Self { pid, started: 0 })
    }

    fn is_alive(&self) -> bool {
        platform::process(self.pid).is_some_and(|row| row.id == *self && !row.ended)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: ProcessId,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// It has ended and was not collected by its parent yet.
    pub(super) ended: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_pid_is_another_process() {
        let me = ProcessId::current();
        assert!(me.is_alive());
        assert!(!ProcessId { started: me.started + 1, ..me }.is_alive());
    }

    #[test]
    fn an_ended_process_is_not_alive_though_it_has_a_row() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let id = ProcessId::of(i32::try_from(child.id()).unwrap()).unwrap();
        while id.is_alive() {
            std::thread::yield_now();
        }
        assert_eq!(ProcessId::of(id.pid), Some(id), "not collected yet");
        child.wait().unwrap();
        assert_eq!(ProcessId::of(id.pid), None);
    }
}
