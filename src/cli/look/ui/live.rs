//! What the job of a cluster prints of a lane now, as `logs` shows it.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};

use lanewright_model::{LaneId, RunId};

use crate::cli::Result;
use crate::cli::child::Caller;

/// How many lines are kept.
const LINES: usize = 500;

const LONGEST_LINE: u64 = 64 * 1024;

/// Follows a lane until it is dropped.
pub(crate) struct Live {
    child: Child,
    printed: Arc<Mutex<Printed>>,
}

#[derive(Default)]
struct Printed {
    lines: VecDeque<String>,
    is_new: bool,
}

impl Live {
    pub(crate) fn start(caller: &Caller, run: &RunId, lane: &LaneId) -> Result<Self> {
        let tail = LINES.to_string();
        let words = ["logs", run.as_str(), lane.as_str(), "--follow", "--tail", &tail].map(str::to_owned);
        let (reader, writer) = io::pipe()?;
        // Errors of `logs` are shown between its lines.
        let child = caller.for_people(&words)?.stdout(writer.try_clone()?).stderr(writer).spawn()?;
        let printed = Arc::default();
        let shared = Arc::clone(&printed);
        std::thread::spawn(move || read(reader, &shared));
        Ok(Self { child, printed })
    }

    /// The last lines, if there are new ones since this was asked last.
    pub(crate) fn news(&self) -> Option<Vec<String>> {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut printed.is_new).then(|| printed.lines.iter().cloned().collect())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(from: PipeReader, printed: &Mutex<Printed>) {
    let (mut from, mut line) = (BufReader::new(from), Vec::new());
    while from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
        line.clear();
        let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.lines.len() == LINES {
            printed.lines.pop_front();
        }
        printed.lines.push_back(text);
        printed.is_new = true;
    }
}
