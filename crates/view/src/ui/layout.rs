//! Where the parts of the screen are.

use ratatui::layout::Rect;

use super::state::{Focus, State};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Panes {
    pub(super) header: Rect,
    pub(super) lanes: Option<Rect>,
    pub(super) detail: Option<Rect>,
    pub(super) footer: Rect,
}

/// Smaller screens show one pane at a time.
const LEAST_FOR_BOTH_PANES: (u16, u16) = (60, 18);

/// Wider ones show the panes side by side.
const WIDTH_FOR_SIDE_BY_SIDE: u16 = 110;

/// The lanes' share of a pane's place, in parts of ten.
const LANES: u16 = 4;

impl Panes {
    /// `header` and `footer`: how many lines these have.
    pub(super) fn of(area: Rect, state: &State, header: u16, footer: u16) -> Self {
        let header_height = header.min(area.height.saturating_sub(1));
        let footer_height = footer.min(area.height.saturating_sub(header_height));
        let middle = Rect { y: area.y + header_height, height: area.height - header_height - footer_height, ..area };
        let (lanes, detail) = panes(middle, area, state);
        Self {
            header: Rect { height: header_height, ..area },
            lanes,
            detail,
            footer: Rect { y: middle.bottom(), height: footer_height, ..area },
        }
    }
}

fn panes(middle: Rect, area: Rect, state: &State) -> (Option<Rect>, Option<Rect>) {
    if state.zoomed || area.width < LEAST_FOR_BOTH_PANES.0 || area.height < LEAST_FOR_BOTH_PANES.1 {
        return match state.focus {
            Focus::Lanes => (Some(middle), None),
            Focus::Detail => (None, Some(middle)),
        };
    }
    let (mut lanes, mut detail) = (middle, middle);
    if area.width >= WIDTH_FOR_SIDE_BY_SIDE {
        lanes.width = middle.width * LANES / 10;
        detail.x += lanes.width + 1;
        detail.width -= lanes.width + 1;
    } else {
        lanes.height = middle.height * LANES / 10;
        detail.y += lanes.height;
        detail.height -= lanes.height;
    }
    (Some(lanes), Some(detail))
}
