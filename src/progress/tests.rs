use std::cell::RefCell;
use std::rc::Rc;

use chrono::FixedOffset;
use lanewright_model::Approval;
use lanewright_model::event::{Event, LaneStage};
use lanewright_model::testing::*;

use super::*;

#[path = "width_tests.rs"]
mod widths;

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
fn failing_reporter_is_dropped_and_others_continue() {
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
fn json_lines_have_log_columns_and_event_fields() {
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

/// A terminal without a process, that a reporter draws on.
#[derive(Clone)]
struct Screen(Rc<RefCell<vt100::Parser>>);

impl Screen {
    fn new(rows: u16, columns: u16) -> Self {
        Self(Rc::new(RefCell::new(vt100::Parser::new(rows, columns, 0))))
    }

    fn size(&self) -> (usize, usize) {
        let (rows, columns) = self.0.borrow().screen().size();
        (rows.into(), columns.into())
    }

    fn resize(&self, rows: u16, columns: u16) {
        self.0.borrow_mut().screen_mut().set_size(rows, columns);
    }

    fn text(&self) -> String {
        let text = self.0.borrow().screen().contents();
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }
}

impl io::Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // As the line discipline of a terminal does.
        let text = String::from_utf8_lossy(bytes).replace('\n', "\r\n");
        self.0.borrow_mut().process(text.as_bytes());
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn live<W: io::Write>(out: W, screen: &Screen) -> Live<'static, W> {
    let last_said = Box::new(|job: &lanewright_model::JobId| Some(format!("\u{1b}[2Jsaid by {}", job.number)));
    let screen = screen.clone();
    Live::new(out, Box::new(move || screen.size()), last_said, utc(), Styles::plain())
}

/// `SL-1` is merged, an agent of `SL-2` works, `SL-3` waits.
fn one_of_three() -> Story {
    let story = Story::begun().opened("SL-1", 1).merged("SL-1", 'd').opened("SL-2", 1);
    story.job(&attempt("SL-2", "engineer", 1))
}

#[test]
fn live_block_is_drawn_below_finished_events() {
    let screen = Screen::new(12, 80);
    let mut all = FanOut::new(view_of(&["SL-1", "SL-2", "SL-3"])).with("live", live(screen.clone(), &screen));
    show(&mut all, &one_of_three());
    all.tick(at(99));
    insta::assert_snapshot!(screen.text(), @"
    10:00:00 run P1-SL-AUTH-20251227 of P1 started on main at aaaaaaaaaa
    10:00:14 SL-1: merged into main at dddddddddd after 13s

    P1 · 1/3 lanes · 1m 39s
    SL-2  running    engineer  1/1  1m 21s   said by 1
    1 waiting · 1 merged
    ");
    all.finish();
    insta::assert_snapshot!(screen.text(), @"
    10:00:00 run P1-SL-AUTH-20251227 of P1 started on main at aaaaaaaaaa
    10:00:14 SL-1: merged into main at dddddddddd after 13s
    ");
}

#[test]
fn lanes_that_need_the_user_come_first() {
    let screen = Screen::new(12, 80);
    let story = one_of_three().opened("SL-3", 1).retried("SL-3", 1, 3).job(&attempt("SL-3", "engineer", 2));
    let asks = |story: Story| story.moved("SL-3", LaneStage::Implementation, LaneStage::AwaitingUserApproval);
    let lanes: [(&str, &[&str], &[Approval]); 3] =
        [("SL-1", &[], &[]), ("SL-2", &[], &[]), ("SL-3", &[], &[Approval::Changes])];
    let picture = |story: &Story| {
        let view = RunHistory::for_plan(&plan(&lanes)).after(&story.records);
        live(screen.clone(), &screen).picture(&view, story.now(), (12, 80)).join("\n")
    };
    insta::assert_snapshot!(picture(&story), @"
    P1 · 1/3 lanes · 1m 43s
    SL-2  running    engineer  1/1            1m 25s   said by 1
    SL-3  running    engineer  1/1 attempt 2  1m 15s   said by 2
    1 merged
    ");
    insta::assert_snapshot!(picture(&asks(story)), @"
    P1 · 1/3 lanes · 1m 44s
    SL-3  needs approval  engineer  1/1 attempt 2  1m 16s   said by 2
    SL-2  running         engineer  1/1            1m 26s   said by 1
    1 merged
    ");
}

#[test]
fn a_small_terminal_is_never_overrun() {
    let names: Vec<String> = (0..40).map(|number| format!("SL-LONG-NAME-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut story = Story::begun();
    for name in &names {
        story = story.opened(name, 1).job(&attempt(name, "engineer", 1));
    }
    let view = view_of(&names).after(&story.records);
    for (rows, columns) in [(1, 1), (2, 5), (3, 10), (5, 30), (10, 40), (24, 80), (40, 120)] {
        let screen = Screen::new(rows, columns);
        let picture = live(screen.clone(), &screen).picture(&view, at(1000), screen.size());
        assert!(picture.len() < usize::from(rows).max(1), "{rows}: {picture:?}");
        let widest = picture.iter().map(|line| lanewright_model::cells::width(line)).max();
        assert!(widest < Some(usize::from(columns)), "{columns}: {picture:?}");
    }
}

#[test]
fn resized_terminal_keeps_log_and_redraws_one_block() {
    let screen = Screen::new(24, 100);
    let mut all = FanOut::new(view_of(&["SL-1", "SL-2", "SL-3"])).with("live", live(screen.clone(), &screen));
    show(&mut all, &one_of_three());
    for (second, (rows, columns)) in (100..).zip([(40, 120), (10, 40), (24, 80), (6, 20), (24, 80)]) {
        screen.resize(rows, columns);
        all.tick(at(second));
        assert_eq!(screen.text().matches("P1 · 1/3").count(), 1, "{}", screen.text());
    }
    // Another writer's line ends up above the block.
    io::Write::write_all(&mut screen.clone(), b"warning: of another writer\n").unwrap();
    all.tick(at(200));
    let text = screen.text();
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(place("warning: of another writer\n\nP1 · 1/3") < place("SL-2"), "{text}");
    all.finish();
    assert!(!screen.text().contains("SL-2") && screen.text().contains("of another writer"), "{}", screen.text());
}

#[test]
fn ci_with_a_terminal_is_unattended() {
    let says = |name: &str, value: &str| is_unattended(&Environment::from([(name.to_owned(), value.into())]));
    assert!(says("CI", "true") && says("CI", "1") && says("GITHUB_ACTIONS", "true") && says("GITLAB_CI", "true"));
    assert!(!says("CI", "") && !says("CI", "false") && !says("CI", "0") && !says("TERM", "xterm"));
}

#[test]
fn block_is_not_erased_from_the_cursor_on() {
    let page = Page::default();
    let mut block = Block::new(page.clone());
    for (above, picture) in [("", "one"), ("line\n", "two")] {
        block.draw(above, vec![picture.to_owned()], (9, 40)).unwrap();
    }
    block.draw("", vec!["two".to_owned()], (9, 30)).unwrap();
    block.clear().unwrap();
    // From the top left corner on, tmux keeps what is erased so in its scrollback.
    assert!(!page.text().contains("\r\u{1b}[J") && page.text().contains("\u{1b}[J"), "{:?}", page.text());
}

#[test]
fn live_redraw_rate_is_limited_to_five_per_second() {
    let (page, screen) = (Page::default(), Screen::new(10, 60));
    let mut reporter = live(page.clone(), &screen);
    let view = view_of(&["SL-1"]).after(&Story::begun().opened("SL-1", 1).records);
    let millis = |millis: u64| at(50).plus(std::time::Duration::from_millis(millis));
    let redrawn = |reporter: &mut Live<'_, Page>, now| {
        let before = page.text().len();
        reporter.tick(&view, now).unwrap();
        page.text().len() > before
    };
    assert!(redrawn(&mut reporter, millis(0)));
    assert!(!redrawn(&mut reporter, millis(199)));
    assert!(!redrawn(&mut reporter, millis(900)), "nothing has changed");
    assert!(redrawn(&mut reporter, millis(1100)));
    assert!(redrawn(&mut reporter, at(1)));
}

#[test]
fn the_final_gate_is_shown_while_it_runs() {
    let screen = Screen::new(10, 80);
    let mut all = FanOut::new(view_of(&["SL-1"])).with("live", live(screen.clone(), &screen));
    let gate = lanewright_model::JobId { lane: None, role: lanewright_model::JobRole::Final, number: 1 };
    show(&mut all, &Story::begun().then(Event::planned(gate)));
    all.tick(at(70));
    assert!(screen.text().contains("1m 09s   final gate: said by 1"), "{}", screen.text());
}

#[test]
fn a_lane_that_fails_leaves_one_line() {
    let page = Page::default();
    let live = Live::new(page.clone(), Box::new(|| (24, 80)), Box::new(|_| None), utc(), Styles::plain());
    let mut all = FanOut::new(view_of(&["SL-1"])).with("live", live);
    let job = attempt("SL-1", "engineer", 1);
    let counted = "implementation agents: 0/1 complete, 1 error, 0 timeouts, 0 missing".to_owned();
    let story = Story::begun().opened("SL-1", 1).job(&job).exited(&job, 1).retried("SL-1", 1, 1).noted("SL-1");
    let story = story.then(Event::Noted { lane: Some(lane("SL-1")), message: counted });
    show(&mut all, &story.failed("SL-1"));
    all.finish();
    let lines: Vec<String> = page.text().lines().filter(|line| line.contains("SL-1")).map(str::to_owned).collect();
    let lasting: Vec<&String> = lines.iter().filter(|line| line.contains(":")).collect();
    assert_eq!(lasting.iter().filter(|line| line.contains("SL-1: failed")).count(), 1, "{lines:#?}");
    assert!(!page.text().contains("0/1 complete"), "{lines:#?}");
    assert_eq!(page.text().matches("undefined is not a function").count(), 2, "the retry and the end: {lines:#?}");
}
