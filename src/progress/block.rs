//! Lines at the bottom of a terminal that are drawn again and again, below lines that last.
//!
//! The cursor rests on a blank line above the block. So what another writer prints meanwhile ends up above the block,
//! and a terminal that breaks lines anew when it is resized moves the cursor with the place that the block begins at.

use std::io::{self, Write};

/// Where to draw: rows and columns.
pub(crate) type Size = (usize, usize);

/// Every change is one write, and on terminals that can, shown at once.
#[derive(Debug)]
pub(crate) struct Block<W> {
    out: W,
    drawn: (Vec<String>, Size),
}

/// Shown at once from the first to the second.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";
const ERASE_LINE: &str = "\u{1b}[K";
/// Erases all from the cursor on.
const ERASE: &str = "\u{1b}[J";
/// Erases the line and those below it. Not in one step: what is erased from the top left corner on, tmux keeps as if it had
/// scrolled.
const ERASE_BLOCK: &str = "\u{1b}[K\u{1b}7\u{1b}[B\u{1b}[J\u{1b}8";

impl<W: Write> Block<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, drawn: (Vec::new(), (0, 0)) }
    }

    /// Writes the lines `above`, and `picture` below them: lines that are less wide than the terminal, fewer than it
    /// has rows. Both are safe to show.
    pub(crate) fn draw(&mut self, above: &str, picture: Vec<String>, size: Size) -> io::Result<()> {
        let drawn = (picture, size);
        if above.is_empty() && drawn == self.drawn {
            return Ok(());
        }
        // Without a change of the place each line is written over, so that nothing flickers.
        let erase = if above.is_empty() && size == self.drawn.1 { ERASE_LINE } else { ERASE_BLOCK };
        let rows = drawn.0.len();
        let lines: String = drawn.0.iter().map(|line| format!("\n{line}{ERASE_LINE}")).collect();
        let back = if rows == 0 { String::new() } else { format!("\u{1b}[{rows}A") };
        // A line that is too wide for a terminal that has just become smaller is cut.
        let frame = format!("{BEGIN}\r{erase}{above}\u{1b}[?7l{lines}{ERASE}\r{back}\u{1b}[?7h{END}");
        self.drawn = drawn;
        self.write(&frame)
    }

    /// Removes the block.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.drawn = (Vec::new(), (0, 0));
        self.write(&format!("\r{ERASE_BLOCK}"))
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}
