//! The signals that a supervisor listens to, as bytes in sockets that can be waited for.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::termination::StopRequest;

pub(super) struct Signals {
    stop: UnixStream,
    kill: UnixStream,
    child: UnixStream,
}

impl Signals {
    /// Takes the signals over from their defaults. A hang-up is heard and ignored; children get the defaults back.
    pub(super) fn install() -> io::Result<Self> {
        signal_hook::flag::register(SIGHUP, Arc::new(AtomicBool::new(false)))?;
        Ok(Self { stop: arrival_of(SIGTERM)?, kill: arrival_of(SIGINT)?, child: arrival_of(SIGCHLD)? })
    }

    /// Sleeps until a signal arrives or the process of the pidfd `launcher` ends, but not longer than `at_most`.
    pub(super) fn sleep(&self, launcher: Option<&OwnedFd>, at_most: Duration) {
        let arrivals = [&self.stop, &self.kill, &self.child].map(|arrival| PollFd::new(arrival, PollFlags::IN));
        let launcher = launcher.map(|launcher| PollFd::new(launcher, PollFlags::IN));
        let limit = Timespec::try_from(at_most).ok();
        // An interrupted or failed poll only means that the caller looks again earlier.
        let _ = poll(&mut arrivals.into_iter().chain(launcher).collect::<Vec<_>>(), limit.as_ref());
        drain(&self.child);
    }

    pub(super) fn requests(&self) -> Vec<StopRequest> {
        let stops = std::iter::repeat_n(StopRequest::Stop, drain(&self.stop));
        let kills = std::iter::repeat_n(StopRequest::Kill, drain(&self.kill));
        stops.chain(kills).collect()
    }
}

fn arrival_of(signal: i32) -> io::Result<UnixStream> {
    let (arrival, departure) = UnixStream::pair()?;
    arrival.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, departure)?;
    Ok(arrival)
}

fn drain(mut arrival: &UnixStream) -> usize {
    let mut bytes = [0; 64];
    let mut count = 0;
    while let Ok(read) = arrival.read(&mut bytes)
        && read > 0
    {
        count += read;
    }
    count
}
