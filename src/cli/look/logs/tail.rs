//! Where the last lines of each lane begin, found from the ends of the files.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use lanewright_agents::runner::Stream;
use lanewright_model::runner::Runner;
use lanewright_programs::process;

use super::{Elsewhere, Printed};

impl Printed<'_> {
    /// Has outputs read from where the last `tail` lines of each lane begin, or a little before.
    pub(super) fn skip_to_last(&mut self, tail: usize) -> Result<()> {
        let mut wanted: HashMap<String, usize> = HashMap::new();
        for at in (0..self.jobs.len()).rev() {
            let job = &self.jobs[at].job;
            // What its engine prints is counted from the first line.
            if self.elsewhere.as_ref().is_some_and(|elsewhere: &Elsewhere<'_>| elsewhere.has(job.id.lane.as_ref())) {
                continue;
            }
            let wanted = wanted.entry(job.label().to_owned()).or_insert(tail);
            let runner = self.runner_of(&job.id).filter(|runner| runner.has_stream());
            let output = &mut self.jobs[at];
            let (start, lines) = last_lines(&output.path, runner, *wanted)
                .with_context(|| format!("cannot read {}", output.path.display()))?;
            output.offset = start;
            *wanted = wanted.saturating_sub(lines);
        }
        Ok(())
    }
}

/// Where at least the last `count` lines of an output begin, and how many there are from there on. Of a message that begins
/// before, the first line is there in part, so there is one more.
fn last_lines(output: &Path, runner: Option<&Runner>, count: usize) -> std::io::Result<(u64, usize)> {
    let mut written = count.saturating_add(1);
    loop {
        let start = process::last_lines_start(output, written)?;
        let lines = if runner.is_none() && start > 0 { written } else { lines_from(output, start, runner)? };
        if lines > count || start == 0 {
            return Ok((start, lines));
        }
        // Most events of a stream say nothing.
        written = written.saturating_mul(4);
    }
}

fn lines_from(output: &Path, start: u64, runner: Option<&Runner>) -> std::io::Result<usize> {
    let mut stream = runner.map(Stream::new);
    let (mut offset, mut count) = (start, 0);
    loop {
        let new = process::lines_since(output, offset, true)?;
        if new.next == offset {
            return Ok(count);
        }
        offset = new.next;
        count += match &mut stream {
            Some(stream) => new.lines.iter().flat_map(|line| stream.read(line)).map(|said| said.lines().len()).sum(),
            None => new.lines.len(),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lanewright_agents::runner::Catalogue;
    use serde_json::json;

    use super::*;

    /// What is shown of an output from `start` on.
    fn shown(output: &Path, start: u64, runner: Option<&Runner>) -> Vec<String> {
        let mut stream = runner.map(Stream::new);
        let (mut next, mut lines) = (start, Vec::new());
        loop {
            let new = process::lines_since(output, next, true).unwrap();
            if new.next == next {
                return lines;
            }
            next = new.next;
            lines.extend(match &mut stream {
                Some(stream) => {
                    new.lines.iter().flat_map(|line| stream.read(line)).flat_map(|said| said.lines()).collect()
                }
                None => new.lines,
            });
        }
    }

    /// For each number of lines: the end is that of the whole output, and little before it is read.
    fn check(text: &str, runner: Option<&Runner>) {
        let output = tempfile::NamedTempFile::new().unwrap();
        fs::write(output.path(), text).unwrap();
        let all = shown(output.path(), 0, runner);
        for count in [0, 1, 5, 40, 1_000_000] {
            let (start, lines) = last_lines(output.path(), runner, count).unwrap();
            let end = shown(output.path(), start, runner);
            let wanted = count.min(all.len());
            assert_eq!(end.len(), lines);
            assert_eq!(end[end.len() - wanted..], all[all.len() - wanted..], "{count}");
            assert!(count > 100 || text.len() as u64 - start < 32 * 1024, "{count}: {start} of {}", text.len());
        }
    }

    #[test]
    fn last_lines_are_read_from_the_end() {
        let lines: String = (0..20_000).map(|number| format!("line {number}\n\n")).collect();
        check(&lines, None);
        check(&format!("{lines}without an end"), None);
    }

    #[test]
    fn last_lines_of_stream_are_those_of_whole_stream() {
        let catalogue = Catalogue::default();
        let piece = |number: usize| {
            let text = format!("piece {number}{}", if number.is_multiple_of(3) { "\nnext" } else { "," });
            json!({"type": "message", "role": "assistant", "content": text}).to_string() + "\n"
        };
        let silent = json!({"type": "tool_result", "output": "x"}).to_string() + "\n";
        let events: String = (0..5_000).map(|number| piece(number) + &silent).collect();
        check(&events, Some(&catalogue.get("gemini").unwrap()));
    }

    #[test]
    fn line_longer_than_a_piece_is_shown_from_its_end() {
        let output = tempfile::NamedTempFile::new().unwrap();
        fs::write(output.path(), vec![b'x'; 9 << 18]).unwrap();
        let (start, lines) = last_lines(output.path(), None, 2).unwrap();
        assert_eq!((start, lines), (6 << 18, 3));
    }
}
