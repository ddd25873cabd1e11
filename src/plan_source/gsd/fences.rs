//! Where code fences begin, and whether anything closes them.

use std::ops::Range;

use super::front_matter::lines;

/// Mark, length and what follows where `line` begins with a code fence.
pub(super) fn fence_marks(line: &str) -> Option<(u8, usize, &str)> {
    let line = line.trim_start();
    let mark = *line.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
    let length = line.bytes().take_while(|&byte| byte == mark).count();
    (length >= 3).then(|| (mark, length, &line[length..]))
}

/// Where fences can close: for every such line how long the longest fence is that it or a later one closes.
pub(super) struct Closers {
    lines: Vec<(usize, u8, usize)>,
}

impl Closers {
    pub(super) fn new(text: &str, body: &Range<usize>) -> Self {
        let mut found = Vec::new();
        for line in lines(&text[body.clone()]) {
            if let Some((mark, length, rest)) = fence_marks(line.text)
                && (rest.trim().is_empty() || rest.trim().starts_with("</"))
            {
                found.push((body.start + line.start, mark, length));
            }
        }
        for mark in [b'`', b'~'] {
            let mut longest = 0;
            for (_, _, length) in found.iter_mut().rev().filter(|(_, own, _)| *own == mark) {
                longest = longest.max(*length);
                *length = longest;
            }
        }
        Self { lines: found }
    }

    pub(super) fn any_after(&self, position: usize, mark: u8, length: usize) -> bool {
        let first = self.lines.partition_point(|(start, _, _)| *start < position);
        // The two kinds of marks may alternate; the next of the same kind tells.
        let next = self.lines[first..].iter().take(64).find(|(_, own, _)| *own == mark);
        next.is_some_and(|(_, _, longest)| *longest >= length)
    }
}
