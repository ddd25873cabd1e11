//! Reads a job's output, which may be many gigabytes and contain any bytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

use lanewright_files::regular_file::{Links, open_with};
use lanewright_model::safe_text::last_shown;

use super::gap::{WithoutGaps, gap_after, left_out};

/// How much of the end of the output is looked at for its last lines.
const TAIL_BYTES: u64 = 64 * 1024;

/// How much of the end of the output is looked at for its last line.
const LAST_LINE_BYTES: u64 = 4 * 1024;

/// The longest piece of output that is looked at as one line.
const LONGEST_LINE: u64 = 1 << 20;

/// How much output one call of [`lines_since`] reads at most, and so the longest piece of a line that is shown as one.
const CHUNK_BYTES: u64 = 256 * 1024;

/// How much is looked at in one step to find the ends of lines.
const BLOCK_BYTES: usize = 64 * 1024;

/// The last `count` lines that are not blank, oldest first, without escape sequences and control characters.
/// Looks at the last 64 KiB; output that does not exist has no lines.
pub fn tail(output: &Path, count: usize) -> io::Result<Vec<String>> {
    let mut lines = last_of(output, TAIL_BYTES)?;
    Ok(lines.split_off(lines.len().saturating_sub(count)))
}

/// The first and the last bytes of the output, whole lines of them, with a blank line where something is left out. A last
/// line that is longer is there in part.
pub fn both_ends(output: &Path, first: usize, last: usize) -> io::Result<String> {
    let mut file = open_with(output, Links::Refuse)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= (first + last) as u64 {
        file.read_to_end(&mut bytes)?;
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    Read::by_ref(&mut file).take(first as u64).read_to_end(&mut bytes)?;
    bytes.truncate(bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
    bytes.push(b'\n');
    let kept = bytes.len();
    file.seek(SeekFrom::Start(length - last as u64))?;
    file.read_to_end(&mut bytes)?;
    let torn = bytes[kept..].iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    if kept + torn < bytes.len() {
        bytes.drain(kept..kept + torn);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last line that is not blank, for a live display; looks at the last 4 KiB.
pub fn last_line(output: &Path) -> io::Result<Option<String>> {
    Ok(last_of(output, LAST_LINE_BYTES)?.pop())
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewLines {
    /// Whole lines, cleaned as in [`tail`], blank ones included.
    pub lines: Vec<String>,
    /// Where to read on, in bytes from the start.
    pub next: u64,
}

/// The lines written since byte `offset`, at most 256 KiB of them. A longer line comes in pieces. A last line without its
/// end is left for the next call, unless `ended` says that no more will be written. Output that does not exist has no
/// lines.
pub fn lines_since(output: &Path, offset: u64, ended: bool) -> io::Result<NewLines> {
    let Some(mut file) = open(output)? else { return Ok(NewLines { lines: Vec::new(), next: offset }) };
    let gap = gap_after(&file, offset)?;
    if let Some(gap) = gap.as_ref().filter(|gap| gap.start <= offset) {
        return Ok(NewLines { lines: vec![left_out(gap)], next: gap.end });
    }
    let until_gap = gap.map_or(u64::MAX, |gap| gap.start - offset);
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    let limit = CHUNK_BYTES.min(until_gap);
    file.take(limit).read_to_end(&mut bytes)?;
    let full = bytes.len() as u64 == limit;
    match bytes.iter().rposition(|&byte| byte == b'\n') {
        Some(end) if full || !ended => bytes.truncate(end + 1),
        None if full => bytes.truncate(whole_characters(&bytes)),
        None if !ended => bytes.clear(),
        _ => {}
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(NewLines { lines: text.lines().map(last_shown).collect(), next: offset + bytes.len() as u64 })
}

/// The length of `bytes` without a character that is cut off at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    let is_first = |byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
    let last = bytes.iter().rposition(is_first).unwrap_or_default();
    let is_cut = bytes.get(last).is_some_and(|first| first.leading_ones() as usize > bytes.len() - last);
    if is_cut { last } else { bytes.len() }
}

/// Where the last `count` lines of `output` begin, in bytes from the start, for [`lines_since`]; reads only these lines. A
/// line without an end is one, and so is each piece of a line longer than 256 KiB.
pub fn last_lines_start(output: &Path, count: usize) -> io::Result<u64> {
    let Some(file) = open(output)? else { return Ok(0) };
    let length = file.metadata()?.len();
    let longest = u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(CHUNK_BYTES);
    let nearest = length.saturating_sub(longest);
    let mut block = vec![0; BLOCK_BYTES];
    // The end of the last line is the end of the file.
    let (mut start, mut left) = (length.saturating_sub(1), count);
    while start > nearest {
        let size = usize::try_from(start - nearest).map_or(BLOCK_BYTES, |rest| rest.min(BLOCK_BYTES));
        start -= size as u64;
        file.read_exact_at(&mut block[..size], start)?;
        let ends = ends_of_lines(&block[..size]);
        if ends >= left {
            let end = nth_end(&block[..size], ends - left);
            return Ok(start + end as u64 + 1);
        }
        left -= ends;
    }
    Ok(nearest)
}

/// Where the line begins in the file at `copy` that begins at `offset` in `original`: a copy has the same lines with other
/// contents, such as one without secrets. A gap in the original is closed by a line in the copy.
pub fn same_line(original: &File, offset: u64, copy: &Path) -> io::Result<u64> {
    let mut block = vec![0; BLOCK_BYTES];
    let (mut position, mut left) = (0, 0);
    while position < offset {
        let size = usize::try_from(offset - position).map_or(BLOCK_BYTES, |rest| rest.min(BLOCK_BYTES));
        let read = original.read_at(&mut block[..size], position)?;
        if read == 0 {
            break;
        }
        left += ends_of_lines(&block[..read]);
        position += read as u64;
    }
    left += usize::from(gap_after(original, 0)?.is_some_and(|gap| gap.end <= offset));
    let Some(copy) = open(copy)? else { return Ok(0) };
    let mut position = 0;
    while left > 0 {
        let read = copy.read_at(&mut block, position)?;
        let ends = ends_of_lines(&block[..read]);
        if ends >= left {
            return Ok(position + nth_end(&block[..read], left - 1) as u64 + 1);
        }
        if read == 0 {
            break;
        }
        left -= ends;
        position += read as u64;
    }
    Ok(position)
}

fn ends_of_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

/// Where the end of a line is that `number` others come before.
fn nth_end(bytes: &[u8], number: usize) -> usize {
    let mut ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.nth(number).map_or(bytes.len(), |(at, _)| at)
}

/// Hands over line after line, each with its end, for as long as `act` says that it wants more. A line of more than
/// 1 MiB comes in pieces.
pub fn each_line(path: &Path, mut act: impl FnMut(&[u8]) -> io::Result<bool>) -> io::Result<()> {
    let mut input = BufReader::new(WithoutGaps::new(open_with(path, Links::Refuse)?)?);
    let mut line = Vec::new();
    while input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? > 0 && act(&line)? {
        line.clear();
    }
    Ok(())
}

/// The lines in the last `window` bytes that are not blank. One that begins before the window is left out unless it is
/// the only one.
fn last_of(output: &Path, window: u64) -> io::Result<Vec<String>> {
    let Some(mut file) = open(output)? else { return Ok(Vec::new()) };
    let start = file.metadata()?.len().saturating_sub(window);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(window).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let torn = usize::from(start > 0 && lines.len() > 1);
    Ok(lines[torn..].iter().map(|line| last_shown(line)).filter(|line| !line.trim().is_empty()).collect())
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match open_with(path, Links::Refuse) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn with_output<T>(bytes: &[u8], read: impl Fn(&Path) -> T) -> T {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("output.log");
        fs::write(&path, bytes).unwrap();
        read(&path)
    }

    #[test]
    fn only_the_end_of_long_output_is_read() {
        let mut bytes = vec![b'x'; 200 * 1024];
        bytes.extend_from_slice(b"\nfirst\n\nsecond\n");
        assert_eq!(with_output(&bytes, |path| tail(path, 20).unwrap()), ["first", "second"]);
        assert_eq!(with_output(&bytes, |path| tail(path, 1).unwrap()), ["second"]);
    }

    #[test]
    fn a_line_longer_than_the_window_is_shown_in_part() {
        let end = with_output(&[&vec![b'x'; 2000], &b"end\n"[..]].concat(), |path| both_ends(path, 0, 10).unwrap());
        assert_eq!(end, "\nxxxxxxend\n");
        let shown = with_output(&vec![b'x'; 200 * 1024], |path| last_line(path).unwrap().unwrap());
        assert_eq!(shown.len(), 4 * 1024);
    }

    #[test]
    fn escape_sequences_are_removed() {
        let bytes = b"\x1b[1;31merror\x1b[0m: no\x07\n\x1b]0;title\x07shown\n 10%\r 50%\r100%\r\n\xff\xfe\n";
        assert_eq!(
            with_output(bytes, |path| tail(path, 9).unwrap()),
            ["error: no", "shown", "100%", "\u{fffd}\u{fffd}"]
        );
    }

    #[test]
    fn output_that_does_not_exist_has_no_lines() {
        let missing = Path::new("/nonexistent/output.log");
        assert_eq!(tail(missing, 3).unwrap(), [""; 0]);
        assert_eq!(last_line(missing).unwrap(), None);
        assert_eq!(lines_since(missing, 7, true).unwrap(), NewLines { lines: vec![], next: 7 });
    }

    #[test]
    fn a_long_line_comes_in_pieces_of_whole_characters() {
        let piece = |text: &str| {
            let bytes = text.repeat(1 << 18);
            let new = with_output(bytes.as_bytes(), |path| lines_since(path, 0, true).unwrap());
            assert_eq!(new.lines.iter().map(|line| line.len() as u64).collect::<Vec<_>>(), [new.next]);
            (1 << 18) - new.next
        };
        assert_eq!([piece("x"), piece("ä"), piece("€"), piece("😀")], [0, 0, 1, 0]);
    }

    #[test]
    fn the_last_lines_are_found_from_the_end() {
        let start = |bytes: &[u8], count| with_output(bytes, |path| last_lines_start(path, count).unwrap());
        let bytes = b"one\n\nthree\nfour";
        assert_eq!([1, 2, 3, 4, 5].map(|count| start(bytes, count)), [11, 5, 4, 0, 0]);
        assert_eq!([1, 2].map(|count| start(b"one\ntwo\n", count)), [4, 0]);
        assert_eq!(start(b"", 3), 0);
        let long = [&b"one\n"[..], &vec![b'x'; 5 << 18]].concat();
        assert_eq!([1, 2, 6].map(|count| start(&long, count)), [(4 << 18) + 4, (3 << 18) + 4, 0]);
        assert_eq!(last_lines_start(Path::new("/nonexistent/output.log"), 3).unwrap(), 0);
    }

    #[test]
    fn a_line_is_found_again_in_a_copy() {
        let original = tempfile::NamedTempFile::new().unwrap();
        fs::write(original.path(), "secret\n\ntwo\nthree").unwrap();
        let again = |offset, copy: &str| {
            with_output(copy.as_bytes(), |path| same_line(original.as_file(), offset, path).unwrap())
        };
        assert_eq!([0, 7, 8, 12].map(|offset| again(offset, "[redacted]\n\ntwo\nthree\n")), [0, 11, 12, 16]);
        assert_eq!(again(12, "short\n"), 6);
    }

    #[test]
    fn a_line_is_returned_once_and_whole() {
        let whole = with_output("one\ntwö\nthr".as_bytes(), |path| lines_since(path, 0, false).unwrap());
        assert_eq!(whole, NewLines { lines: vec!["one".into(), "twö".into()], next: 9 });
        let rest = with_output("one\ntwö\nthree".as_bytes(), |path| lines_since(path, 9, true).unwrap());
        assert_eq!(rest, NewLines { lines: vec!["three".into()], next: 14 });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn following_output_equals_reading_it(
            text in "[a-zä\n]{0,60}", cuts in proptest::collection::vec(0usize..60, 0..6)
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let (mut lines, mut next) = (Vec::new(), 0);
            for (cut, ended) in cuts.into_iter().map(|cut| (cut, false)).chain([(bytes.len(), true)]) {
                let new = with_output(&bytes[..cut], |path| lines_since(path, next, ended).unwrap());
                lines.extend(new.lines);
                next = new.next;
            }
            prop_assert_eq!(lines, text.lines().map(str::to_owned).collect::<Vec<_>>());
        }
    }
}
