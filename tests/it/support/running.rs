//! The binary while it runs.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Ended, PATIENCE};

/// A process of the binary, ended with its test. What it says goes into files, so it never waits for a reader.
pub(crate) struct Running {
    child: Child,
    stdout: File,
    stderr: File,
}

impl Running {
    /// Starts the command.
    pub(crate) fn start(mut command: Command) -> Self {
        let (stdout, stderr) = (tempfile::tempfile().expect("a file"), tempfile::tempfile().expect("a file"));
        command.stdout(stdout.try_clone().expect("a file")).stderr(stderr.try_clone().expect("a file"));
        Self { child: command.spawn().expect("the binary starts"), stdout, stderr }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it still runs");
    }

    /// Kills it, unless it has ended by itself.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
    }

    /// Whether its stderr has these words by now.
    pub(crate) fn has_said(&self, words: &str) -> bool {
        let mut said = vec![0; 1 << 16];
        // It writes at the place where a plain read would end.
        let length = self.stderr.read_at(&mut said, 0).expect("its output");
        String::from_utf8_lossy(&said[..length]).contains(words)
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("its status").is_some()
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("its status") {
                break status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!("it does not end; stderr:\n{}", text(&mut self.stderr));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).expect("an exit");
        Ended { code, stdout: text(&mut self.stdout), stderr: text(&mut self.stderr) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(file: &mut File) -> String {
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("UTF-8");
    text
}
