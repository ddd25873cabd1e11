//! The first line about a run: how far it is, how long it takes and what it costs.

use std::collections::BTreeMap;

use lanewright_model::cells::{clean, cut, width};
use lanewright_model::time::{LocalTime, short};
use lanewright_model::{PhaseId, Timestamp};

use crate::history::{LaneHistory, LaneState, RunHistory, StateGroup};
use crate::status::eta::time_left;
use crate::status::lane_row::shown;
use crate::status::styles::{Styles, Tone};

/// How wide a phase's title is at most, in cells: what became of the lanes stands behind it in the same line.
const TITLE: usize = 30;

/// A title that is cut to less than this says nothing.
const SHORTEST_TITLE: usize = 5;

/// `P1 Billing`, with a title that leaves room for `others` behind it in a line of `cells`.
pub(crate) fn subject(history: &RunHistory, others: &[String], cells: usize) -> String {
    let phase = history.run.phase.as_ref().map_or("run", PhaseId::as_str);
    let taken: usize = others.iter().map(|word| width(word) + width(GAP)).sum();
    let room = cells.saturating_sub(taken + width(phase) + 1).min(TITLE);
    match &history.run.title {
        Some(title) if room >= SHORTEST_TITLE => format!("{phase} {}", cut(&clean(title), room)),
        _ => phase.to_owned(),
    }
}

/// `5/8 lanes`, the time, tokens and cost, and how long it will take if that can be said, the most important first.
pub(crate) fn progress(history: &RunHistory, held: bool, until: Timestamp, now: LocalTime) -> Vec<String> {
    let all = history.lanes().iter().filter(|lane| lane.state != LaneState::Skipped).count();
    let mut words = vec![format!("{}/{all} lanes", history.done())];
    words.extend(history.awaited_runners(now, held).map(|(_, words)| words));
    words.extend(history.elapsed(until).map(short));
    words.extend(history.spent());
    words
}

/// `about 4m left`; `None` while that cannot be said.
pub(crate) fn left(history: &RunHistory, now: Timestamp) -> Option<String> {
    let minutes = time_left(history, now)?.as_secs().div_ceil(60);
    Some(match minutes {
        0 | 1 => "about 1m left".to_owned(),
        2..60 => format!("about {minutes}m left"),
        _ => format!("about {}h {:02}m left", minutes / 60, minutes % 60),
    })
}

pub fn header(history: &RunHistory, now: LocalTime, cells: usize) -> String {
    let mut words = vec![history.run.phase.as_ref().map_or("run", PhaseId::as_str).to_owned()];
    words.extend(history.run.stop.map(|_| "stopping".to_owned()));
    words.extend(progress(history, true, now.at, now));
    words.extend(left(history, now.at));
    fitting(&words, cells)
}

/// As many of `words` as fit into a line, the first at least.
pub(crate) fn fitting(words: &[String], cells: usize) -> String {
    let mut line = cut(words.first().map_or("", String::as_str), cells);
    for word in words.iter().skip(1) {
        if width(&line) + width(GAP) + width(word) > cells {
            break;
        }
        line.push_str(GAP);
        line.push_str(word);
    }
    line
}

/// All of `words`, on as many lines as they need.
pub(crate) fn folded(words: &[String], cells: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if width(line) + width(GAP) + width(word) <= cells => line.push_str(&format!("{GAP}{word}")),
            _ => lines.push(cut(word, cells)),
        }
    }
    lines
}

pub(crate) const GAP: &str = " · ";

/// The lanes that have no line of their own, counted: `2 failed · 3 waiting · 5 merged`.
pub fn counts(history: &RunHistory, hidden: usize, cells: usize, styles: Styles) -> Option<String> {
    let rests = |lane: &&LaneHistory| !lane.state.is_active() && lane.state != LaneState::Skipped;
    let states = state_counts(history.lanes().iter().filter(rests), history, true);
    let more = (hidden > 0).then(|| format!("{hidden} more at work"));
    let words: Vec<String> =
        more.into_iter().chain(states.iter().map(|((_, word), count)| format!("{count} {word}"))).collect();
    (!words.is_empty()).then(|| styles.paint(Tone::Faint, &fitting(&words, cells)))
}

/// How many of `lanes` are in which state, by its group and its word. `held`: whether a live process works on the run.
pub(crate) fn state_counts<'l>(
    lanes: impl Iterator<Item = &'l LaneHistory>,
    history: &RunHistory,
    held: bool,
) -> BTreeMap<(StateGroup, &'static str), usize> {
    let mut counts = BTreeMap::new();
    for lane in lanes {
        *counts.entry((lane.state.group(), shown(history, lane, held).0)).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::Approval;
    use lanewright_model::event::{Event, LaneStage, RunOutcome};
    use lanewright_model::testing::*;

    #[test]
    fn a_header_drops_whole_words_where_it_does_not_fit() {
        let history = RunHistory::for_plan(&plan(&[("SL-1", &[], &[]), ("SL-2", &[], &[])]));
        let story = Story::begun().opened("SL-1", 1).merged("SL-1", 'd');
        let history = history.after(&story.records);
        let shown = |cells| header(&history, LocalTime::utc(at(99)), cells);
        assert_eq!(shown(80), "P1 · 1/2 lanes · 1m 39s");
        assert_eq!(shown(20), "P1 · 1/2 lanes");
        assert_eq!(shown(12), "P1");
        assert_eq!(shown(1), "…");
        let counted = |hidden| counts(&history, hidden, 80, Styles::plain());
        assert_eq!(counted(3).as_deref(), Some("3 more at work · 1 waiting · 1 merged"));
    }

    #[test]
    fn approved_lane_is_not_counted_as_stopped() {
        let moved = (LaneStage::Implementation, LaneStage::AwaitingUserApproval);
        let (gate, message) = (Approval::Changes.into(), String::new());
        let answer = Event::GateAnswered { lane: lane("SL-1"), gate, approved: true, message };
        let story = Story::begun().opened("SL-1", 1).moved("SL-1", moved.0, moved.1);
        let story = story.finished(RunOutcome::Blocked, 3).then(answer);
        let plan = plan(&[("SL-1", &[], &[Approval::Changes]), ("SL-2", &[], &[])]);
        let history = RunHistory::for_plan(&plan).after(&story.records);
        assert_eq!(counts(&history, 0, 80, Styles::plain()).as_deref(), Some("1 approved · 1 waiting"));
    }

    #[test]
    fn long_title_leaves_room_for_counts() {
        let mut history = RunHistory::for_plan(&plan(&[("SL-1", &[], &[])]));
        history.run.phase = Some(PhaseId::new("P1").unwrap());
        history.run.title = Some("Billing for everybody ".repeat(9));
        assert_eq!(subject(&history, &[], 99), "P1 Billing for everybody Billing…");
        assert_eq!(subject(&history, &[], 20), "P1 Billing for ever…");
        assert_eq!(subject(&history, &["failed".to_owned()], 29), "P1 Billing for ever…");
        assert_eq!(subject(&history, &[], 7), "P1");
    }
}
