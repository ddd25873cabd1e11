//! What is drawn.

use lanewright_model::time::LocalTime;

use super::*;

#[test]
fn lanes_are_listed_by_state_group() {
    insta::assert_snapshot!("80x24", Interface::new().text(80, 24));
    let mut interface = Interface::new();
    interface.press("j");
    insta::assert_snapshot!("200x60", interface.text(200, 60));
}

#[test]
fn a_small_screen_shows_one_pane_at_a_time() {
    let mut interface = Interface::new();
    insta::assert_snapshot!("40x10 lanes", interface.text(40, 10));
    interface.press("l");
    insta::assert_snapshot!("40x10 detail", interface.text(40, 10));
    // Nothing to see, and no panic.
    for (width, height) in [(1, 1), (3, 2), (20, 3), (500, 2)] {
        interface.text(width, height);
    }
}

#[test]
fn a_title_that_does_not_fit_says_so() {
    let mut interface = Interface::new();
    let title = |interface: &mut Interface, width| interface.text(width, 10).lines().nth(1).unwrap().to_owned();
    assert_eq!(title(&mut interface, 35), " lanes: 1 needs approval · 1 fail…");
    interface.state.filter = "a".repeat(40);
    assert!(title(&mut interface, 35).ends_with("aaa…"));
    interface.state.filter = "UI".to_owned();
    assert!(title(&mut interface, 35).starts_with(" lanes /UI: 1 running ──"), "all of it fits");
}

#[test]
fn a_diff_is_shown_with_comments_below_their_lines() {
    let mut interface = Interface::new();
    interface.text(80, 24);
    interface.press("4jjjjjjvjcUse a constant.\n");
    insta::assert_snapshot!("diff", interface.text(80, 24));
}

#[test]
fn agent_texts_cannot_control_terminal() {
    let mut interface = Interface::new();
    interface.press("jj2");
    let mut shown = interface.text(120, 30);
    assert!(shown.contains("│done\n"), "{shown}");
    let hostile = DIFF.replace("two();", "two(\u{1b}[2J\u{202e}\u{9b}H);\u{1b}]0;t\u{7}");
    interface.material.diff = Some((lane("API"), Change::Shown(Diff::parse(&hostile))));
    interface.press("KK4");
    shown.push_str(&interface.text(120, 30));
    assert!(shown.contains("two(H);"), "{shown}");
    assert!(!shown.contains(|c| c != '\n' && lanewright_model::safe_text::is_unsafe(c)), "{shown:?}");
}

#[test]
fn cluster_lane_shows_job_and_live_output() {
    let mut interface = Interface::new();
    let (ui, executor) = (lane("UI"), "lab".to_owned());
    interface.then(Event::LaneOffered { lane: ui.clone(), number: 1, executor, budget: Budget::default() });
    let ticket = "7".to_owned();
    interface.then(Event::LanePlaced { lane: ui.clone(), number: 1, offer: commit('a'), ticket });
    interface.press("jj");
    assert!(interface.text(120, 30).contains("waits for job 7 of lab"));
    interface.then(Event::LaneClaimed { lane: ui.clone(), host: "n1".to_owned(), moved: false });
    assert!(interface.text(120, 30).contains("executor  job 7 of lab on n1"));
    interface.press("2");
    let text = interface.text(120, 30);
    assert!(text.contains("│job 7 of lab on n1\n") && !text.contains("│done"), "{text}");
    let lines = vec!["\u{1b}[2J==> UI/engineer/1".to_owned(), "compiles".to_owned()];
    interface.material.live = Some((ui, Text::new(lines)));
    let text = interface.text(120, 30);
    assert!(text.contains("│==> UI/engineer/1\n") && text.contains("│compiles\n"), "{text}");
    interface.material.live.iter_mut().for_each(|(of, _)| *of = lane("DB"));
    assert!(!interface.text(120, 30).contains("compiles"), "of another lane");
}

#[test]
fn output_colours_are_kept_unless_disabled() {
    let mut interface = Interface::new();
    interface.press("jj2");
    let has_colours = |buffer: &ratatui::buffer::Buffer| {
        let reset = ratatui::style::Color::Reset;
        buffer.content.iter().any(|cell| cell.fg != reset || cell.bg != reset)
    };
    let terminal = interface.draw(80, 24);
    let buffer = terminal.backend().buffer();
    let green = buffer.content.iter().filter(|cell| cell.fg == ratatui::style::Color::Green);
    assert!(green.map(|cell| cell.symbol()).collect::<String>().contains("ui"), "the output of the lane");
    let mut plain = ratatui::buffer::Buffer::empty(*buffer.area());
    view::draw(&mut plain, &interface.state, &interface.board(), &interface.material, false);
    assert!(has_colours(buffer) && !has_colours(&plain));
}

#[test]
fn inactive_run_shows_resume_command() {
    let mut interface = Interface::new();
    assert!(!interface.text(80, 24).contains("not active"));
    interface.held = false;
    for (width, height) in [(80, 24), (60, 10)] {
        let text = interface.text(width, height);
        let second = text.lines().nth(1).unwrap_or_default();
        assert!(second.starts_with("not active; R resumes it"), "{text}");
    }
}

#[test]
fn only_visible_lane_rows_are_built() {
    let names: Vec<String> = (0..1000).map(|number| format!("L{number:03}")).collect();
    let lanes: Vec<(&str, &[&str], &[Approval])> = names.iter().map(|name| (name.as_str(), &[][..], &[][..])).collect();
    let mut interface = Interface::new();
    interface.history = RunHistory::for_plan(&plan(&lanes)).after(&Story::begun().records);
    interface.text(80, 24);
    interface.press("G");
    let text = interface.text(80, 24);
    assert!(text.contains("L999") && !text.contains("L900"), "{text}");
    assert_eq!(interface.board().rows(0, 7, 80, &interface.material).len(), 8, "the heading and what is seen");
}

/// The interface computes nothing by itself: it shows what the report says.
#[test]
fn states_counts_and_costs_are_those_of_the_report() {
    let mut interface = Interface::new();
    let context = SummaryContext { now: LocalTime::utc(interface.now), program: &program(), held: true };
    let report = ExecutionReport::of(&interface.history, context, 0);
    let report = report.render(ReportFormat::Json, 100, Styles::plain()).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let lanes = report["lanes"].as_array().unwrap();
    let states = |word: &str| lanes.iter().filter(|lane| lane["state"] == word).count();
    assert_eq!(interface.board().lanes().len(), lanes.len());
    for listed in interface.board().lanes() {
        let reported = lanes.iter().find(|lane| lane["lane"] == listed.id.as_str()).unwrap();
        assert_eq!(reported["state"], listed.state.word(), "{}", listed.id);
        assert_eq!(reported["usage"], serde_json::json!(listed.usage()), "{}", listed.id);
        assert_eq!(reported["attempts"].as_array().unwrap().len(), listed.attempts(), "{}", listed.id);
    }
    let header = interface.board().header(200, 2).join("\n");
    assert!(header.contains(&format!("{}/{} lanes", states("merged"), lanes.len())), "{header}");
    assert!(header.contains(report["standing"].as_str().unwrap()), "{header}");
    for (filter, state) in [("failed", "failed"), ("needs approval", "waiting for approval (changes)")] {
        interface.state.filter = filter.to_owned();
        assert_eq!(interface.board().lanes().len(), states(state), "{filter}");
    }
}
