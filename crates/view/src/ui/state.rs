//! What the user has chosen, and what the interface asks or says.

use std::collections::HashMap;

use lanewright_model::{HumanGate, LaneId};

use super::comments::Comment;
use super::material::{Change, Material};

/// The state of the interface itself; that of the run is in its log.
#[derive(Debug, Default)]
pub struct State {
    /// `None`: the first lane of the list.
    pub selected: Option<LaneId>,
    pub(crate) focus: Focus,
    pub tab: Tab,
    /// Whether the pane in focus has the whole screen.
    pub(crate) zoomed: bool,
    pub filter: String,
    /// The first row that is shown of a text.
    pub(crate) top: usize,
    /// The first line that is shown of the output; `None`: it follows the end.
    pub output_top: Option<usize>,
    /// How many jobs before the newest is the one that is shown.
    pub back: usize,
    pub(crate) diff: DiffPlace,
    /// On the diffs of lanes, until they are sent.
    pub(crate) comments: HashMap<LaneId, Vec<Comment>>,
    pub dialog: Option<Dialog>,
    pub notice: Option<Notice>,
    /// The command that runs for the user.
    pub running: Option<String>,
    /// What that command was typed as, and the comments that it sends.
    pub(crate) sent: Option<(Input, Vec<Comment>)>,
    /// Messages that were not accepted: offered when the same is asked again.
    pub(crate) unsent: Vec<Input>,
    /// As it was drawn last.
    pub extent: Extent,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Focus {
    #[default]
    Lanes,
    Detail,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tab {
    #[default]
    Overview,
    Output,
    Prompt,
    Diff,
    Graph,
}

impl Tab {
    pub(crate) const ALL: [(Self, &str); 5] = [
        (Self::Overview, "overview"),
        (Self::Output, "tail"),
        (Self::Prompt, "prompt"),
        (Self::Diff, "diff"),
        (Self::Graph, "DAG"),
    ];
}

/// Where the user is in a diff.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DiffPlace {
    pub(crate) cursor: usize,
    /// The other end of the marked rows.
    pub(crate) mark: Option<usize>,
    pub(crate) top: usize,
    /// The cells that are left out on the left.
    pub(crate) shift: usize,
}

impl DiffPlace {
    pub(crate) fn marked(&self) -> (usize, usize) {
        let mark = self.mark.unwrap_or(self.cursor);
        (mark.min(self.cursor), mark.max(self.cursor))
    }
}

/// How much there was to show, and the place for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    pub(crate) rows: usize,
    pub(crate) detail: usize,
    pub lanes: usize,
    /// How many of the last keys fit into the help.
    pub(crate) help: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialog {
    /// The keys, from this one on.
    Help {
        top: usize,
    },
    /// Why there is nothing to type a text for. It takes the keys of a text that is typed nevertheless.
    Refused(String),
    /// What to stop: the run, or the lane if there is one.
    Stop {
        lane: Option<LaneId>,
    },
    /// Whether to resume the run with these flags, which raise its budget.
    Resume {
        more: Vec<String>,
    },
    Input(Input),
}

/// A line that is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    pub(crate) purpose: Purpose,
    pub(crate) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    Filter,
    /// On the diff of this lane; its text is still missing.
    Comment(LaneId, Comment),
    /// A command that gets what is typed as its message.
    Message {
        lane: LaneId,
        kind: Command,
        /// What is answered: what was open when the question was asked.
        gate: Option<HumanGate>,
    },
}

impl Purpose {
    /// Whether it is a message of the same kind for the same lane.
    fn is_like(&self, other: &Self) -> bool {
        let of = |purpose: &Self| match purpose {
            Self::Message { lane, kind, .. } => Some((lane.clone(), *kind)),
            Self::Filter | Self::Comment(..) => None,
        };
        of(self).is_some() && of(self) == of(other)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Approve,
    Reject,
    Retry,
    Tell,
}

impl Command {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Retry => "retry",
            Self::Tell => "tell",
        }
    }

    /// Whether it answers what a lane waits for.
    pub(super) fn is_answer(self) -> bool {
        matches!(self, Self::Approve | Self::Reject)
    }
}

/// What the interface says until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

impl Notice {
    pub(crate) fn good(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false }
    }

    pub fn bad(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }
}

impl State {
    pub(crate) fn comments_of(&self, lane: &LaneId) -> &[Comment] {
        self.comments.get(lane).map(Vec::as_slice).unwrap_or_default()
    }

    /// What was typed for the same and was not accepted.
    pub(super) fn take_unsent(&mut self, purpose: &Purpose) -> Option<String> {
        let at = self.unsent.iter().position(|unsent| unsent.purpose.is_like(purpose))?;
        Some(self.unsent.remove(at).text)
    }

    pub(super) fn keep_unsent(&mut self, input: Input) {
        self.take_unsent(&input.purpose);
        self.unsent.push(input);
    }

    /// The comments that a rejection sends, and how many are left out: those whose lines the diff no longer has.
    pub(crate) fn current_comments(&self, lane: &LaneId, material: &Material) -> (Vec<&Comment>, usize) {
        let is_current = |comment: &&Comment| match material.diff_of(lane) {
            Some(Change::Shown(diff)) => comment.row(diff).is_some(),
            Some(Change::Missing(_)) => false,
            None => true,
        };
        let all = self.comments_of(lane);
        let current: Vec<&Comment> = all.iter().filter(is_current).collect();
        let left_out = all.len() - current.len();
        (current, left_out)
    }

    /// Another text is shown, from its beginning.
    pub(super) fn show_from_top(&mut self) {
        (self.top, self.output_top, self.back) = (0, None, 0);
        self.diff = DiffPlace::default();
    }
}
