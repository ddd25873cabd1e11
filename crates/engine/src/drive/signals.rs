//! Signals as events: the first asks the agents to end, the second kills them. A hang-up is no request to stop.

use std::io;

use lanewright_model::event::StopReason;
use lanewright_programs::process;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None`: it was ignored when this process began, as by `nohup`, and is not listened to.
    hang_up: Option<Signal>,
    seen: bool,
}

pub(super) enum SignalRequest {
    Stop {
        reason: StopReason,
        /// Kill the agents instead of asking them.
        force: bool,
    },
    /// The terminal was closed: this process ends, and the jobs of the run do not.
    HangUp,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        let hang_up = (!process::ignores_hang_up()).then(|| signal(SignalKind::hangup())).transpose()?;
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up,
            seen: false,
        })
    }

    pub(super) async fn next(&mut self) -> SignalRequest {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        let reason = tokio::select! {
            _ = self.interrupt.recv() => StopReason::Interrupt,
            _ = self.terminate.recv() => StopReason::Terminate,
            _ = hang_up => return SignalRequest::HangUp,
        };
        let force = std::mem::replace(&mut self.seen, true);
        SignalRequest::Stop { reason, force }
    }
}
