//! Signals as events: the first asks the agents to end, the second kills them.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::event::{Event, StopReason};

pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    seen: bool,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            seen: false,
        })
    }

    pub(super) async fn next(&mut self) -> Event {
        let reason = tokio::select! {
            _ = self.interrupt.recv() => StopReason::Interrupt,
            _ = self.terminate.recv() => StopReason::Terminate,
            _ = self.hang_up.recv() => StopReason::Terminate,
        };
        let force = std::mem::replace(&mut self.seen, true);
        Event::StopRequested { lane: None, reason, force }
    }
}
