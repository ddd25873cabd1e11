use std::cell::RefCell;
use std::rc::Rc;

use chrono::FixedOffset;
use indicatif::{InMemoryTerm, ProgressDrawTarget};

use super::*;
use crate::event::{Event, LaneStage};
use crate::projection::testing::*;

/// A writer whose text can be read while somebody owns it.
#[derive(Clone, Default)]
struct Page(Rc<RefCell<Vec<u8>>>);

impl Page {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).unwrap()
    }
}

impl io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer that fails from the first byte on.
struct Broken(io::ErrorKind);

impl io::Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Err(self.0.into())
    }
}

fn utc() -> FixedOffset {
    FixedOffset::east_opt(0).unwrap()
}

fn view_of(lanes: &[&str]) -> RunHistory {
    RunHistory::for_plan(&plan(&lanes.iter().map(|id| (*id, &[] as &[&str], &[] as &[_])).collect::<Vec<_>>()))
}

fn show(reporters: &mut FanOut<'_>, story: &Story) {
    for record in &story.records {
        reporters.record(record);
    }
}

#[test]
fn a_reporter_that_fails_is_dropped_and_the_others_go_on() {
    let page = Page::default();
    for kind in [io::ErrorKind::BrokenPipe, io::ErrorKind::StorageFull] {
        let failing = Plain::new(Broken(kind), utc(), Styles::plain());
        let mut all = FanOut::new(view_of(&["SL-1"]))
            .with("plain", failing)
            .with("page", Plain::new(page.clone(), utc(), Styles::plain()));
        show(&mut all, &Story::begun().opened("SL-1", 1));
        assert_eq!(all.reporters.len(), 1);
        all.tick(at(100));
        assert_eq!(all.finish().lane(&lane("SL-1")).unwrap().stage, LaneStage::Implementation);
    }
    assert_eq!(page.text().matches("SL-1: starts").count(), 2);
}

#[test]
fn plain_lines_are_whole_lines() {
    let page = Page::default();
    let mut all = FanOut::new(view_of(&["SL-1"])).with("plain", Plain::new(page.clone(), utc(), Styles::plain()));
    show(&mut all, &Story::begun().opened("SL-1", 1).job(&attempt("SL-1", "engineer", 1)));
    assert!(page.text().ends_with("\n10:00:10 SL-1 engineer: attempt 1 started (task 1)\n"), "{}", page.text());
}

#[test]
fn json_lines_hold_the_columns_of_the_run_log_and_the_events_own_fields() {
    let page = Page::default();
    let mut all = FanOut::new(view_of(&["SL-1"])).with("json", Jsonl::new(page.clone()));
    let job = attempt("SL-1", "engineer", 1);
    show(&mut all, &Story::begun().opened("SL-1", 1).job(&job).exited(&job, 1));
    let text = page.text();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 12);
    let columns: Vec<&String> = lines[11].as_object().unwrap().keys().take(8).collect();
    assert_eq!(columns, ["seq", "ts", "run_id", "phase", "lane", "task", "event", "status"]);
    assert_eq!((&lines[11]["lane"], &lines[11]["task"]), (&"SL-1".into(), &"1".into()));
    assert_eq!((&lines[11]["event"], &lines[11]["status"]), (&"job_exited".into(), &"error".into()));
    assert_eq!(lines[11]["exit"]["exit_code"], 1);
    assert_eq!((&lines[0]["lane"], &lines[0]["run_id"]), (&"-".into(), &"P1-SL-AUTH-20251227".into()));
    assert_eq!(text.lines().next().unwrap().matches("\"run_id\"").count(), 1);
}

#[test]
fn progress_is_live_only_where_lines_can_be_redrawn() {
    use Progress::{Auto, Json, Live, None as Nothing, Plain};
    for (asked, terminal, term, shown) in [
        (Auto, true, Some("xterm"), Live),
        (Auto, false, Some("xterm"), Plain),
        (Auto, true, Some("dumb"), Plain),
        (Auto, true, None, Plain),
        (Live, true, Some("xterm"), Live),
        (Live, false, Some("xterm"), Plain),
        (Plain, true, Some("xterm"), Plain),
        (Json, true, Some("xterm"), Json),
        (Nothing, true, Some("xterm"), Nothing),
    ] {
        assert_eq!(choose(asked, terminal, term), shown, "{asked} {terminal} {term:?}");
    }
}

fn live(term: &InMemoryTerm, rows: usize, columns: usize) -> Live<'static> {
    let target = ProgressDrawTarget::term_like(Box::new(term.clone()));
    let last_line = Box::new(|job: &crate::model::JobId| Some(format!("\u{1b}[2Jsaid by {}", job.number)));
    Live::new(target, Box::new(move || (rows, columns)), last_line, utc(), Styles::plain())
}

#[test]
fn a_terminal_shows_what_goes_on_below_what_has_happened() {
    let term = InMemoryTerm::new(12, 72);
    let mut all = FanOut::new(view_of(&["SL-1", "SL-2", "SL-3"])).with("live", live(&term, 12, 72));
    let story = Story::begun().opened("SL-1", 1).merged("SL-1", 'd').opened("SL-2", 1);
    let story = story.job(&attempt("SL-2", "engineer", 1));
    show(&mut all, &story);
    all.tick(at(99));
    insta::assert_snapshot!(term.contents(), @r#"
    10:00:00 run P1-SL-AUTH-20251227 of P1 started on main at aaaaaaaaaa
    10:00:14 SL-1: merged into main at dddddddddd after 13s
    P1 · 1 waiting · 1 running · 1 merged · 1m 39s
    SL-2 running   engineer 1 1m 12s  said by 1
    "#);
    all.finish();
    assert!(!term.contents().contains("said by"), "{}", term.contents());
    assert!(term.contents().contains("SL-1: merged into main"));
}

#[test]
fn a_small_terminal_is_never_overrun() {
    let names: Vec<String> = (0..40).map(|number| format!("SL-LONG-NAME-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut story = Story::begun();
    for name in &names {
        story = story.opened(name, 1).job(&attempt(name, "engineer", 1));
    }
    for (rows, columns) in [(1, 1), (2, 5), (3, 10), (5, 30), (24, 80)] {
        let term = InMemoryTerm::new(rows, columns);
        let view = view_of(&names).after(&story.records);
        let reporter = live(&term, rows.into(), columns.into());
        let picture = reporter.picture(&view, at(1000));
        assert!(picture.len() <= usize::from(rows).max(1), "{rows}: {picture:?}");
        let widest = picture.iter().map(|line| crate::projection::cells::width(line)).max();
        assert!(widest < Some(usize::from(columns).max(1)), "{columns}: {picture:?}");
    }
}

#[test]
fn the_picture_is_redrawn_ten_times_a_second_at_most_whatever_the_clock_does() {
    let term = InMemoryTerm::new(10, 60);
    let mut reporter = live(&term, 10, 60);
    let view = view_of(&["SL-1"]).after(&Story::begun().opened("SL-1", 1).records);
    let millis = |millis: u64| at(50).plus(std::time::Duration::from_millis(millis));
    let redrawn = |reporter: &mut Live<'_>, now| {
        term.moves_since_last_check();
        reporter.tick(&view, now).unwrap();
        !term.moves_since_last_check().is_empty()
    };
    assert!(redrawn(&mut reporter, millis(0)));
    assert!(!redrawn(&mut reporter, millis(99)));
    assert!(redrawn(&mut reporter, millis(1100)));
    assert!(redrawn(&mut reporter, at(1)));
}

#[test]
fn a_target_that_is_no_terminal_sees_nothing() {
    let last_line = Box::new(|_: &crate::model::JobId| -> Option<String> { panic!("nothing is drawn") });
    let hidden = Live::new(ProgressDrawTarget::hidden(), Box::new(|| (24, 80)), last_line, utc(), Styles::plain());
    let mut all = FanOut::new(view_of(&["SL-1"])).with("live", hidden);
    show(&mut all, &Story::begun().opened("SL-1", 1).job(&attempt("SL-1", "engineer", 1)).failed("SL-1"));
    all.tick(at(500));
    all.finish();
}

#[test]
fn the_final_gate_is_shown_while_it_runs() {
    let term = InMemoryTerm::new(10, 60);
    let mut all = FanOut::new(view_of(&["SL-1"])).with("live", live(&term, 10, 60));
    let gate = crate::model::JobId { lane: None, role: crate::model::JobRole::Final, number: 1 };
    show(&mut all, &Story::begun().then(Event::JobPlanned { job: gate }));
    all.tick(at(70));
    assert!(term.contents().contains("final gate 1m 09s  said by 1"), "{}", term.contents());
}
