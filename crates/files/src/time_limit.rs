//! Programs that may not take for ever, such as a git that waits for another machine.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::awake::AwakeClock;

/// Between two looks whether the program has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs `command` in a process group of its own. `None`: it took longer than `limit`, not counting the time that this
/// process was asleep, and the group was killed.
///
/// What it says goes through files, not pipes: a helper that outlives it cannot keep us waiting.
pub fn output_within(command: Command, limit: Duration) -> io::Result<Option<Output>> {
    run(command, limit, None, false)
}

/// The same for a program that may print without end: it is killed once it has printed more than 16 MiB.
///
/// # Errors
/// Of the kind `FileTooLarge` where it printed more.
pub fn end_of_output_within(command: Command, limit: Duration) -> io::Result<Option<Output>> {
    run(command, limit, Some(LARGEST), false)
}

/// The same for a program that nothing may outlive which it started.
///
/// # Errors
/// Those of [`end_of_output_within`].
pub fn output_of_group_within(command: Command, limit: Duration) -> io::Result<Option<Output>> {
    run(command, limit, Some(LARGEST), true)
}

const LARGEST: u64 = 16 << 20;

/// `most`: how many bytes it may print. `as_group`: whether what it started ends with it.
fn run(mut command: Command, limit: Duration, most: Option<u64>, as_group: bool) -> io::Result<Option<Output>> {
    let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.process_group(0).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let mut child = command.spawn()?;
    let check = |most: u64| -> io::Result<()> {
        let printed = stdout.metadata()?.len().max(stderr.metadata()?.len());
        if printed > most {
            Err(io::Error::new(ErrorKind::FileTooLarge, "it printed more than 16 MiB"))
        } else {
            Ok(())
        }
    };
    let mut clock = AwakeClock::start();
    let status = loop {
        // The group is killed before its leader is reaped: its number may be another's afterwards.
        let ended = if !as_group {
            child.try_wait()?
        } else if has_ended(&child)? {
            Some(kill(&mut child)?)
        } else {
            None
        };
        if let Some(status) = ended {
            most.map(check).transpose()?;
            break status;
        }
        if clock.elapsed() >= limit {
            kill(&mut child)?;
            return Ok(None);
        }
        if let Err(error) = most.map_or(Ok(()), check) {
            kill(&mut child)?;
            return Err(error);
        }
        sleep(PAUSE);
    };
    Ok(Some(Output { status, stdout: whole(stdout)?, stderr: whole(stderr)? }))
}

/// Whether `child` has ended, which it can be asked for again.
fn has_ended(child: &Child) -> io::Result<bool> {
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return Ok(false) };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Ok(waitid(WaitId::Pid(pid), options)?.is_some())
}

/// Kills the process group of `child`; how `child` ended.
fn kill(child: &mut Child) -> io::Result<ExitStatus> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // Whatever ended meanwhile needs no killing.
        let _ = kill_process_group(group, Signal::KILL);
    }
    child.wait()
}

fn whole(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
