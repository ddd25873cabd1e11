//! The part that is missing from the middle of an output that became too large (decision 52).
//!
//! An agent appends to its output itself, so nothing of it may be moved or cut off while the agent lives. But the system can
//! give back the disk space of a part of it: a hole, which is read as zeros. It begins and ends where a line does, so that
//! what is left are whole lines, and lies in the file with zeros up to the next whole block on both sides.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use lanewright_files::handle::free;
use lanewright_model::text::counted;
use rustix::io::Errno;

/// How far from where it would begin or end a gap looks for the end of a line.
const LONGEST_LINE: u64 = 1 << 20;

/// More than a block of any file system: the zeros beside a hole.
const LARGEST_BLOCK: u64 = 1 << 16;

/// Keeps an output within a limit.
#[derive(Debug)]
pub(super) struct Limiter {
    limit: u64,
    gap: Option<Range<u64>>,
    length: u64,
    is_busy: bool,
}

impl Limiter {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, gap: None, length: 0, is_busy: false }
    }

    /// Whether the output grew so much since the call before the last one that the limit may be passed soon.
    pub(super) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Leaves out what is between the first and the last quarter of the limit if `output` takes more than all of it.
    ///
    /// # Errors
    /// The file system cannot free parts of a file.
    pub(super) fn enforce(&mut self, output: &File) -> io::Result<()> {
        let length = output.metadata()?.len();
        self.is_busy = length.saturating_sub(self.length) > self.limit / 16;
        self.length = length;
        let left_out = self.gap.as_ref().map_or(0, |gap| gap.end - gap.start);
        if length.saturating_sub(left_out) <= self.limit {
            return Ok(());
        }
        let kept = self.limit / 4;
        let search = LONGEST_LINE.min(kept / 2);
        let start = match &self.gap {
            Some(gap) => gap.start,
            None => line_start_before(output, kept, search)?,
        };
        let gap = start..line_start_after(output, length - kept, search)?;
        free(output, &gap)?;
        self.gap = Some(gap);
        Ok(())
    }
}

/// The first missing part that ends after `offset`.
pub(super) fn gap_after(output: &File, offset: u64) -> io::Result<Option<Range<u64>>> {
    let length = output.metadata()?.len();
    let hole = match rustix::fs::seek(output, rustix::fs::SeekFrom::Hole(offset)) {
        // Some versions of ZFS take what was written a moment ago for a hole.
        Ok(hole) if hole < length && read_range(output, hole..hole + 1)? == [0] => hole,
        // The end of a file counts as a hole; a file system may not know of any.
        _ => return Ok(None),
    };
    let data = match rustix::fs::seek(output, rustix::fs::SeekFrom::Data(hole)) {
        Ok(data) => data,
        Err(Errno::NXIO) => length,
        Err(error) => return Err(error.into()),
    };
    let before = read_range(output, hole.saturating_sub(LARGEST_BLOCK)..hole)?;
    let after = read_range(output, data..length.min(data + LARGEST_BLOCK))?;
    let zeros_before = before.iter().rev().take_while(|&&byte| byte == 0).count() as u64;
    let zeros_after = after.iter().take_while(|&&byte| byte == 0).count() as u64;
    Ok(Some(hole - zeros_before..data + zeros_after))
}

/// The line that stands for a missing part.
pub(super) fn left_out(gap: &Range<u64>) -> String {
    let size = usize::try_from(gap.end - gap.start).unwrap_or(usize::MAX);
    format!("[lanewright: {} of the output were left out here (output_limit)]", counted(size, "byte"))
}

/// What is left of an output, with a line where something is missing.
pub(super) struct WithoutGaps {
    output: File,
    position: u64,
    gap: Option<Range<u64>>,
    is_in_line: bool,
    /// What of the line about a missing part was not read yet.
    line: io::Cursor<Vec<u8>>,
}

impl WithoutGaps {
    pub(super) fn new(output: File) -> io::Result<Self> {
        let gap = gap_after(&output, 0)?;
        Ok(Self { output, position: 0, gap, is_in_line: false, line: io::Cursor::default() })
    }
}

impl Read for WithoutGaps {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(gap) = self.gap.take_if(|gap| gap.start <= self.position) {
            let end = if self.is_in_line { "\n" } else { "" };
            self.line = io::Cursor::new(format!("{end}{}\n", left_out(&gap)).into_bytes());
            self.position = gap.end;
            self.gap = gap_after(&self.output, gap.end)?;
        }
        let read = self.line.read(buffer)?;
        if read > 0 {
            return Ok(read);
        }
        let until_gap = self.gap.as_ref().map_or(u64::MAX, |gap| gap.start - self.position);
        let size = usize::try_from(until_gap).map_or(buffer.len(), |rest| rest.min(buffer.len()));
        let read = self.output.read_at(&mut buffer[..size], self.position)?;
        self.position += read as u64;
        self.is_in_line = buffer[..read].last().is_some_and(|&byte| byte != b'\n');
        Ok(read)
    }
}

/// Where the last line begins that begins at or before `offset`; `offset` where that is further away than `search`.
fn line_start_before(output: &File, offset: u64, search: u64) -> io::Result<u64> {
    let start = offset.saturating_sub(search);
    let before = read_range(output, start..offset)?;
    Ok(before.iter().rposition(|&byte| byte == b'\n').map_or(offset, |end| start + end as u64 + 1))
}

/// Where the first line begins that begins after `offset`; `offset` where that is further away than `search`.
fn line_start_after(output: &File, offset: u64, search: u64) -> io::Result<u64> {
    let after = read_range(output, offset..offset + search)?;
    Ok(after.iter().position(|&byte| byte == b'\n').map_or(offset, |end| offset + end as u64 + 1))
}

/// The bytes of the range, as far as the file has them.
fn read_range(file: &File, range: Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap_or_default()];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], range.start + read as u64)? {
            0 => break,
            count => read += count,
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::process::output::{lines_since, same_line};

    const LIMIT: u64 = 1 << 20;

    /// Numbered lines of 16 bytes.
    fn write_lines(output: &mut File, numbers: Range<u64>) {
        let text: String = numbers.map(|number| format!("{number:015}\n")).collect();
        output.write_all(text.as_bytes()).unwrap();
    }

    fn text_of(output: &File) -> String {
        let mut text = String::new();
        WithoutGaps::new(output.try_clone().unwrap()).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    fn blocks(output: &File) -> u64 {
        output.metadata().unwrap().blocks() * 512
    }

    #[test]
    fn beginning_and_end_stay_within_the_limit() {
        let mut output = tempfile::tempfile().unwrap();
        let mut limiter = Limiter::new(LIMIT);
        let count = 200_000;
        for number in (0..count).step_by(1000) {
            write_lines(&mut output, number..number + 1000);
            limiter.enforce(&output).unwrap();
            assert!(blocks(&output) <= LIMIT + (1 << 17), "{}", blocks(&output));
        }
        assert_eq!(output.metadata().unwrap().len(), count * 16, "the agent's end of the file stays where it is");
        let text = text_of(&output);
        let lines: Vec<&str> = text.lines().collect();
        let gap = lines.iter().position(|line| line.starts_with('[')).unwrap();
        assert!(gap as u64 * 16 >= LIMIT / 5 && (lines.len() - gap) as u64 * 16 >= LIMIT / 5, "{gap} {}", lines.len());
        let first = (0..gap as u64).map(|number| format!("{number:015}"));
        let last = (count - (lines.len() - gap - 1) as u64..count).map(|number| format!("{number:015}"));
        assert!(lines[..gap].iter().copied().eq(first), "the beginning is whole");
        assert!(lines[gap + 1..].iter().copied().eq(last), "the end is whole");
        let missing = (count - (lines.len() as u64 - 1)) * 16;
        assert_eq!(lines[gap], left_out(&(0..missing)));
    }

    #[test]
    fn output_within_the_limit_is_left_as_it_is() {
        let mut output = tempfile::tempfile().unwrap();
        write_lines(&mut output, 0..LIMIT / 16);
        Limiter::new(LIMIT).enforce(&output).unwrap();
        assert_eq!(gap_after(&output, 0).unwrap(), None);
        assert_eq!(text_of(&output).len() as u64, LIMIT);
    }

    #[test]
    fn reading_on_crosses_the_gap() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let mut output = named.reopen().unwrap();
        write_lines(&mut output, 0..200_000);
        Limiter::new(LIMIT).enforce(&output).unwrap();
        let (mut lines, mut next) = (Vec::new(), 0);
        loop {
            let new = lines_since(named.path(), next, false).unwrap();
            if new.next == next {
                break;
            }
            lines.extend(new.lines);
            next = new.next;
        }
        assert_eq!(next, 200_000 * 16);
        let copy = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(copy.path(), text_of(&output)).unwrap();
        assert_eq!(lines, text_of(&output).lines().collect::<Vec<_>>());
        let end = same_line(&output, next, copy.path()).unwrap();
        assert_eq!(end, copy.path().metadata().unwrap().len(), "the next line is the same in the copy");
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let mut output = tempfile::tempfile().unwrap();
        output.write_all(&vec![b'x'; 8 << 20]).unwrap();
        Limiter::new(LIMIT).enforce(&output).unwrap();
        let text = text_of(&output);
        assert!(text.len() as u64 <= LIMIT, "{}", text.len());
        assert!(text.contains("x\n[lanewright: ") && text.contains("(output_limit)]\nx"), "{}", &text[..100]);
        assert!(text.starts_with('x') && text.ends_with('x'));
    }
}
