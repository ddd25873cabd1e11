//! The binary on a terminal that the test reads.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use vt100::{MouseProtocolMode, Parser};

use super::{PATIENCE, wait_until};

/// What a process wrote to its terminal, and what that shows.
struct Shown {
    screen: Parser,
    bytes: Vec<u8>,
}

/// A pseudo terminal, and the process that has it as standard output and standard error, and as standard input if it asks.
pub(crate) struct Terminal {
    master: File,
    child: Child,
    shown: Arc<Mutex<Shown>>,
    reader: Option<JoinHandle<()>>,
    /// The reader ends when this does.
    reads: Option<UnixStream>,
}

impl Terminal {
    /// Starts `command`, which cannot ask, on a terminal of so many rows and columns.
    pub(crate) fn start(mut command: Command, rows: u16, columns: u16) -> Self {
        command.stdin(Stdio::null());
        Self::open(rows, columns, command, |_, command| command)
    }

    /// Starts `command`, which can ask, on a terminal of 24 rows and 100 columns.
    pub(crate) fn asking(command: Command) -> Self {
        Self::open(24, 100, command, |slave, command| command.stdin(slave))
    }

    fn open(
        rows: u16,
        columns: u16,
        mut command: Command,
        input: impl FnOnce(File, &mut Command) -> &mut Command,
    ) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("a terminal");
        let name = ptsname(&master, Vec::new()).expect("its name").into_string().expect("UTF-8");
        tcsetwinsize(&master, size(rows, columns)).expect("its size");
        let slave = OpenOptions::new().read(true).write(true).open(name).expect("its other end");
        let other_end = || slave.try_clone().expect("a terminal");
        input(other_end(), &mut command).stdout(other_end()).stderr(other_end());
        drop(slave);
        let child = command.spawn().expect("the binary starts");
        // The command holds the other end until it is gone.
        drop(command);
        let shown = Arc::new(Mutex::new(Shown { screen: Parser::new(rows, columns, 0), bytes: Vec::new() }));
        let master = File::from(master);
        let (reads, ends) = UnixStream::pair().expect("a socket");
        let reader = read(master.try_clone().expect("a terminal"), ends, Arc::clone(&shown));
        Self { master, child, shown, reader: Some(reader), reads: Some(reads) }
    }

    /// Types a line.
    pub(crate) fn enter(&self, line: &str) {
        (&self.master).write_all(format!("{line}\n").as_bytes()).expect("the terminal takes it");
    }

    /// Presses keys: what they send.
    pub(crate) fn press(&self, keys: &str) {
        (&self.master).write_all(keys.as_bytes()).expect("the terminal takes it");
    }

    /// Sends its process a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("its id");
        kill_process(pid, signal).expect("it runs");
    }

    /// Whether the terminal is as programs find it: it echoes lines, and shows its first screen with a cursor.
    pub(crate) fn is_whole(&self) -> bool {
        let modes = tcgetattr(&self.master).expect("its modes").local_modes;
        let shown = self.shown.lock().expect("the screen");
        let screen = shown.screen.screen();
        let has_mouse = screen.mouse_protocol_mode() != MouseProtocolMode::None;
        let is_drawn_on = screen.alternate_screen() || screen.hide_cursor() || screen.bracketed_paste() || has_mouse;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG) && !is_drawn_on
    }

    /// Changes its size. The process learns of it when it asks.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let mut shown = self.shown.lock().expect("the screen");
        tcsetwinsize(&self.master, size(rows, columns)).expect("its size");
        shown.screen.screen_mut().set_size(rows, columns);
    }

    /// The rows of the screen, and whether each is continued in the next one.
    pub(crate) fn rows(&self) -> Vec<(String, bool)> {
        let shown = self.shown.lock().expect("the screen");
        let screen = shown.screen.screen();
        let columns = screen.size().1;
        let rows = screen.rows(0, columns).map(|row| row.trim_end().to_owned());
        (0..).zip(rows).map(|(at, row)| (row, screen.row_wrapped(at))).collect()
    }

    pub(crate) fn text(&self) -> String {
        self.rows().into_iter().map(|(row, _)| row + "\n").collect()
    }

    /// Everything that was written.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().expect("the screen").bytes).into_owned()
    }

    pub(crate) fn wait_for(&self, what: &str) {
        let deadline = Instant::now() + PATIENCE / 3;
        while !self.text().contains(what) {
            assert!(Instant::now() < deadline, "waited in vain for {what}:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Closes the terminal, as the end of a window or of an ssh connection does.
    pub(crate) fn close(&mut self) {
        drop(self.reads.take());
        self.reader.take().expect("not closed before").join().expect("all is read");
        self.master = File::open("/dev/null").expect("a file");
    }

    /// Waits for the end of the process, and returns its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        wait_until("the end", || self.child.try_wait().expect("its status").is_some());
        self.reader.take().into_iter().for_each(|reader| reader.join().expect("all is read"));
        self.child.wait().expect("its status").code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Reads until no process has the terminal any more, or `ends` says that it is closed.
fn read(mut master: File, ends: UnixStream, shown: Arc<Mutex<Shown>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        loop {
            let mut awaited = [PollFd::new(&master, PollFlags::IN), PollFd::new(&ends, PollFlags::IN)];
            poll(&mut awaited, None).expect("the terminal or its end");
            if !awaited[1].revents().is_empty() {
                return;
            }
            let Ok(count @ 1..) = master.read(&mut bytes) else { return };
            let mut shown = shown.lock().expect("the screen");
            shown.screen.process(&bytes[..count]);
            shown.bytes.extend_from_slice(&bytes[..count]);
        }
    })
}
