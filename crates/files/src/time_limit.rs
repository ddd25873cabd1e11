//! Programs that may not take for ever, such as a git that waits for another machine.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::awake::AwakeClock;

/// Between two looks whether the program has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs `command` in a process group of its own. `None`: it took longer than `limit`, not counting the time that this
/// process was asleep, and the group was killed.
///
/// What it says goes through files, not pipes: a helper that outlives it cannot keep us waiting.
pub fn output_within(command: Command, limit: Duration) -> io::Result<Option<Output>> {
    run(command, limit, |_| Ok(()))
}

/// The same for a program that may print without end: it is killed once it has printed more than 16 MiB.
pub fn end_of_output_within(command: Command, limit: Duration) -> io::Result<Option<Output>> {
    const LARGEST: u64 = 16 << 20;
    run(command, limit, |file| match file.metadata()?.len() {
        length if length > LARGEST => Err(io::Error::other("it printed more than 16 MiB")),
        _ => Ok(()),
    })
}

fn run(mut command: Command, limit: Duration, watch: fn(&File) -> io::Result<()>) -> io::Result<Option<Output>> {
    let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.process_group(0).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let mut child = command.spawn()?;
    let watch = || watch(&stdout).and_then(|()| watch(&stderr));
    let Some(status) = wait_for(&mut child, limit, watch)? else { return Ok(None) };
    Ok(Some(Output { status, stdout: whole(stdout)?, stderr: whole(stderr)? }))
}

fn wait_for(child: &mut Child, limit: Duration, watch: impl Fn() -> io::Result<()>) -> io::Result<Option<ExitStatus>> {
    let mut clock = AwakeClock::start();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if clock.elapsed() >= limit {
            kill(child)?;
            return Ok(None);
        }
        if let Err(error) = watch() {
            kill(child)?;
            return Err(error);
        }
        sleep(PAUSE);
    }
}

fn kill(child: &mut Child) -> io::Result<()> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // Whatever ended meanwhile needs no killing.
        let _ = kill_process_group(group, Signal::KILL);
    }
    child.wait().map(drop)
}

fn whole(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
