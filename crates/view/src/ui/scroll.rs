//! Positions in lists and texts, kept within what there is.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Lines(isize),
    Pages(isize),
    First,
    Last,
}

impl Step {
    /// Where one is after the step from `at`, in `count` places of which a page has `page`.
    pub(crate) fn applied_to(self, at: usize, count: usize, page: usize) -> usize {
        let by = |lines: isize| at.saturating_add_signed(lines).min(count.saturating_sub(1));
        match self {
            Self::Lines(lines) => by(lines),
            Self::Pages(pages) => by(pages.saturating_mul(isize::try_from(page.max(1)).unwrap_or(1))),
            Self::First => 0,
            Self::Last => count.saturating_sub(1),
        }
    }
}

/// The first line of a window of `height` lines that has line `at` in its middle, as far as there are lines.
pub fn window_start(at: usize, height: usize, count: usize) -> usize {
    at.saturating_sub(height / 2).min(count.saturating_sub(height))
}
