//! What keys change.

use super::*;
use crate::ui::keys::HELP;
use crate::ui::state::{Dialog, Focus, Tab};
use crate::ui::update::Call;

fn words(effects: &[Effect]) -> Vec<String> {
    let words = |effect: &Effect| match effect {
        Effect::Call(Call { words, detached }) => {
            Some(format!("{}{}", if *detached { "detached " } else { "" }, words.join(" ")))
        }
        Effect::InTerminal(words) => Some(format!("terminal {}", words.join(" "))),
        Effect::Copy(text) => Some(format!("copy {text}")),
        Effect::ReadDiff => None,
        Effect::Quit => Some("quit".to_owned()),
    };
    effects.iter().filter_map(words).collect()
}

fn selected(interface: &Interface) -> String {
    interface.board().lane(interface.state.selected.as_ref()).unwrap().id.to_string()
}

#[test]
fn selection_survives_reordering() {
    let mut interface = Interface::new();
    interface.text(80, 24);
    let mut after = |keys: &str| {
        interface.press(keys);
        selected(&interface)
    };
    assert_eq!(
        ["", "j", "jjj", "j", "k", "g", "G"].map(&mut after),
        ["API", "DB", "CORE", "CORE", "DOCS", "API", "CORE"]
    );
    assert_eq!(after("gj"), "DB");
    assert_eq!(after("lJ"), "UI", "whichever pane has the focus");
    interface.then(Event::LaneBlocked { lane: lane("UI"), reason: "no key".to_owned() });
    assert_eq!(selected(&interface), "UI");
    let mut first = Interface::new();
    first.press("1");
    first.then(Event::LaneBlocked { lane: lane("API"), reason: "no key".to_owned() });
    assert_eq!(selected(&first), "API", "also the lane that was selected from the start");
}

#[test]
fn panes_and_tabs_are_chosen() {
    let mut interface = Interface::new();
    for (keys, focus, tab) in [
        ("l", Focus::Detail, Tab::Overview),
        ("h", Focus::Lanes, Tab::Overview),
        ("\n", Focus::Detail, Tab::Overview),
        ("⎋", Focus::Lanes, Tab::Overview),
        ("⇥", Focus::Detail, Tab::Overview),
        ("⇥2", Focus::Detail, Tab::Output),
        ("3", Focus::Detail, Tab::Prompt),
        ("4", Focus::Detail, Tab::Diff),
        ("5", Focus::Detail, Tab::Graph),
        ("h1", Focus::Detail, Tab::Overview),
    ] {
        interface.press(keys);
        assert_eq!((interface.state.focus, interface.state.tab), (focus, tab), "{keys}");
    }
}

#[test]
fn output_follows_end_until_scrolled() {
    let mut interface = Interface::new();
    let lines = (0..100).map(|number| format!("line {number}")).collect();
    interface.material.output.as_mut().unwrap().text = Text::new(lines);
    interface.press("jj2");
    assert!(interface.text(80, 24).contains("line 99"));
    interface.press("k");
    let text = interface.text(80, 24);
    assert!(text.contains("line 98") && !text.contains("line 99"), "{text}");
    interface.press("g");
    assert!(interface.text(80, 24).contains("line 0\n"));
    interface.press("G");
    assert_eq!(interface.state.output_top, None);
    assert!(interface.text(80, 24).contains("line 99"));
}

#[test]
fn answer_is_that_of_the_command_line() {
    let mut interface = Interface::new();
    let run = "P1-SL-AUTH-20251227";
    assert_eq!(words(&interface.press("a\n")), [format!("approve {run} API --gate=changes")]);
    assert!(interface.state.running.is_some());
    assert_eq!(words(&interface.press("aagain\n")), [""; 0], "one command at a time");
    interface.tell(Message::Ended(Ok("approved\n".to_owned())));
    interface.press("⎋");
    assert!(interface.text(80, 24).contains("approved"), "seen after the refusal");
    interface.held = false;
    let approved = format!("approve {run} API --gate=changes --message=well done");
    assert_eq!(words(&interface.press("a⎋awell done \n")), [approved], "also while no process works on the run");
    let said =
        format!("The changes of API were approved; the run is not active; continue with:\n  lanewright resume {run}\n");
    interface.tell(Message::Ended(Ok(said)));
    let text = interface.text(100, 24);
    assert!(text.contains("continue with:\n  key R: resume") && !text.contains("lanewright resume"), "{text}");
    assert_eq!(words(&interface.press("rno\n")), [format!("reject {run} API --gate=changes --message=no")]);
}

#[test]
fn an_answer_goes_to_the_question_that_was_seen() {
    let mut interface = Interface::new();
    interface.press("a");
    assert!(interface.text(80, 24).contains("approve the changes of API, message:"));
    let rejected = (LaneStage::AwaitingUserApproval, LaneStage::Implementation);
    interface.then(Event::LaneMoved { lane: lane("API"), from: rejected.0, to: rejected.1 });
    assert_eq!(words(&interface.press("\n")), ["approve P1-SL-AUTH-20251227 API --gate=changes"]);
}

#[test]
fn agents_get_what_is_typed_for_them() {
    let mut interface = Interface::new();
    assert_eq!(words(&interface.press("jjm \n")), [""; 0]);
    assert!(interface.text(80, 24).contains("there is nothing to say to the agents"));
    assert_eq!(words(&interface.press("⎋mUse v2.\n")), ["tell P1-SL-AUTH-20251227 UI --message=Use v2."]);
}

#[test]
fn rejection_needs_a_reason() {
    let mut interface = Interface::new();
    assert_eq!(words(&interface.press("r \n")), [""; 0]);
    assert!(interface.text(80, 24).contains("a rejection needs a reason"));
    assert_eq!(words(&interface.press("⎋ja")), [""; 0]);
    assert!(interface.text(80, 24).contains("lane DB does not wait for an answer"));
    interface.press("⎋");
    interface.tell(Message::Ended(Err("refused\nhint: try another".to_owned())));
    assert!(interface.text(80, 24).contains("\nrefused\nhint: try another\n"));
}

#[test]
fn comments_become_the_text_of_the_rejection() {
    let mut interface = Interface::new();
    interface.text(80, 24);
    interface.press("4jjjjjjvjcUse a constant.\n]jjjjcWhy?\n");
    let run = "P1-SL-AUTH-20251227";
    let text = "src/a.rs:2: Use a constant.\n> -    one();\n> +    two();\n\nsrc/b.rs:9 (removed): Why?\n> -old";
    assert_eq!(interface.press("r"), [Effect::ReadDiff], "what is outdated is seen");
    assert!(interface.text(80, 24).contains("reject the changes of API with 2 comments, message:"));
    let effects = interface.press("Not yet.\n");
    assert_eq!(words(&effects), [format!("reject {run} API --gate=changes --message=Not yet.\n\n{text}")]);
    interface.tell(Message::Ended(Err("held".to_owned())));
    assert_eq!(interface.state.comments_of(&lane("API")).len(), 2, "they were not sent");
    interface.press("r\n");
    interface.tell(Message::Ended(Ok(String::new())));
    assert_eq!(interface.state.comments_of(&lane("API")), []);
}

#[test]
fn comments_attach_to_diff_lines_only() {
    let mut interface = Interface::new();
    interface.text(80, 24);
    interface.press("4}jcx\n");
    assert_eq!(interface.state.comments_of(&lane("API")).len(), 1);
    interface.press("x");
    assert_eq!(interface.state.comments_of(&lane("API")).len(), 0);
    interface.press("c⎋c\n");
    assert_eq!(interface.state.comments_of(&lane("API")).len(), 0, "left, and empty");
}

#[test]
fn comment_on_header_moves_to_next_line() {
    let mut interface = Interface::new();
    interface.text(80, 24);
    for (keys, place) in [("4", "src/a.rs:1"), ("gjj", "src/a.rs:1"), ("]}", "src/b.rs:9 (removed)")] {
        interface.press(keys);
        assert_eq!(words(&interface.press("casy\n")), [""; 0]);
        let made: Vec<String> = interface.state.comments_of(&lane("API")).iter().map(|it| it.place()).collect();
        assert_eq!(made, [place], "{keys}");
        interface.press("x");
        assert_eq!(interface.state.comments_of(&lane("API")), [], "the cursor is on the line");
    }
    let without_lines = "diff --git a/x.png b/x.png\nBinary files a/x.png and b/x.png differ\n";
    let last_line = "diff --git a/y b/y\n@@ -0,0 +1 @@\n+y\n\\ No newline at end of file\n";
    interface.material.diff = Some((lane("API"), Change::Shown(Diff::parse(&format!("{without_lines}{last_line}")))));
    for end in ["\n", "⎋"] {
        interface.press("gc");
        assert!(interface.text(80, 24).contains("there is no line to comment on here"));
        assert_eq!(words(&interface.press("asyq")), [""; 0]);
        assert!(interface.text(80, 24).contains("there is no line to comment on here"), "until {end:?}");
        interface.press(end);
        assert_eq!(interface.state.dialog, None);
    }
    interface.press("Gcx\n");
    assert_eq!(interface.state.comments_of(&lane("API"))[0].place(), "y:1");
}

#[test]
fn text_typed_after_a_refusal_runs_no_commands() {
    // `DB` waits for no answer, the run is active, and a rejection needs a reason.
    for (refused, why) in [
        ("ja", "does not wait for an answer"),
        ("jr", "does not wait for an answer"),
        ("jt", "the run is active"),
        ("r\n", "a rejection needs a reason"),
    ] {
        let mut interface = Interface::new();
        interface.press(refused);
        let selected = interface.state.selected.clone();
        // Some of these stop the run, leave the interface, open a shell or copy.
        assert_eq!(words(&interface.press("sy lqRay!e")), [""; 0], "{refused}");
        assert!(interface.text(160, 24).contains(why), "{refused}");
        assert_eq!(interface.state.selected, selected, "{refused}");
        interface.press("\n");
        assert_eq!(interface.state.dialog, None, "{refused}");
    }
}

#[test]
fn outdated_comment_is_not_sent() {
    let mut interface = Interface::new();
    interface.text(80, 40);
    interface.press("4]jjjjcWhy?\ngjjjjjjcUse a constant.\n");
    let changed = Diff::parse(&DIFF.replace("one();", "none();"));
    interface.material.diff = Some((lane("API"), Change::Shown(changed)));
    assert!(interface.text(80, 40).contains("▌ outdated, src/a.rs:2 (removed): Use a constant."));
    interface.press("r");
    assert!(interface.text(160, 24).contains("with 1 comment, 1 outdated left out, message:"));
    let text = "src/b.rs:9 (removed): Why?\n> -old";
    let rejected = format!("reject P1-SL-AUTH-20251227 API --gate=changes --message={text}");
    assert_eq!(words(&interface.press("\n")), [rejected]);
    interface.tell(Message::Ended(Ok(String::new())));
    assert_eq!(interface.state.comments_of(&lane("API")).len(), 1, "what was left out is kept");
    interface.press("g]kx");
    assert_eq!(interface.state.comments_of(&lane("API")), []);
}

#[test]
fn rejected_input_is_offered_again() {
    let mut interface = Interface::new();
    let asked = |interface: &Interface| match &interface.state.dialog {
        Some(Dialog::Input(input)) => input.text.clone(),
        _ => "nothing is asked".to_owned(),
    };
    interface.press("afine\n");
    interface.press("rtoo long\n");
    interface.press("⎋r");
    assert_eq!(asked(&interface), "too long", "another command runs");
    interface.press("⎋");
    interface.tell(Message::Ended(Err("refused".to_owned())));
    interface.press("r");
    assert_eq!(asked(&interface), "", "another kind");
    interface.press("⎋a");
    assert_eq!(asked(&interface), "fine");
    interface.press("\n");
    interface.tell(Message::Ended(Ok(String::new())));
    interface.press("a");
    assert_eq!(asked(&interface), "", "it was accepted");
}

#[test]
fn typed_comment_survives_diff_change() {
    let mut interface = Interface::new();
    interface.text(80, 24);
    interface.press("4jjjjjjcUse");
    interface.material.diff = Some((lane("API"), Change::Shown(Diff::parse(""))));
    interface.press(" a constant.\n");
    let comments = interface.state.comments_of(&lane("API"));
    assert_eq!(
        comments.iter().map(|it| (it.place(), it.text.as_str())).collect::<Vec<_>>(),
        [("src/a.rs:2 (removed)".to_owned(), "Use a constant.")]
    );
    assert!(interface.text(80, 24).contains("▌ outdated, src/a.rs:2 (removed): Use a constant."));
}

#[test]
fn jump_to_file_or_hunk_scrolls_cursor_into_view() {
    let mut interface = Interface::new();
    let at = |interface: &Interface| (interface.state.diff.cursor, interface.state.diff.top);
    interface.press("l4");
    interface.text(40, 10);
    assert_eq!(interface.state.extent.detail, 7);
    for (keys, cursor) in [("]", 10), ("[", 0), ("}", 4), ("}", 13), ("{", 4), ("G", 15), ("g", 0)] {
        interface.press(keys);
        let (now, top) = at(&interface);
        assert_eq!(now, cursor, "{keys}");
        assert!((top..top + 7).contains(&now), "{keys}: {now} from {top}");
    }
    interface.press(">");
    assert!(!interface.text(40, 10).contains("fn a()") && interface.text(40, 10).contains("2 ();"));
}

#[test]
fn a_stop_is_confirmed() {
    let mut interface = Interface::new();
    let run = "P1-SL-AUTH-20251227";
    assert_eq!(words(&interface.press("sn")), [""; 0]);
    assert_eq!(words(&interface.press("sy")), [format!("stop {run}")]);
    interface.state.running = None;
    assert_eq!(words(&interface.press("sl")), [format!("stop {run} API")]);
    interface.state.running = None;
    interface.press("Gs");
    assert!(
        interface.text(80, 24).contains("Stop? y: the run, any other key: no"),
        "nothing of a merged lane is stopped"
    );
    assert_eq!(words(&interface.press("lg")), [""; 0]);
    interface.held = false;
    assert_eq!(words(&interface.press("sy")), [format!("copy lanewright diff {run} API")], "nothing to stop: y copies");
}

#[test]
fn resume_and_retry_are_detached() {
    let mut interface = Interface::new();
    let run = "P1-SL-AUTH-20251227";
    assert_eq!(words(&interface.press("R")), [""; 0], "a process works on it");
    interface.press("t");
    let text = interface.text(160, 24);
    assert!(text.contains("the run is active; stop it first"), "{text}");
    interface.press("⎋z");
    assert!(!interface.text(160, 24).contains("t retry"));
    interface.held = false;
    let flags = "--yes --progress=plain --on-lock-conflict=fail";
    assert_eq!(words(&interface.press("R")), [format!("detached resume {run} {flags}")]);
    interface.state.running = None;
    assert_eq!(words(&interface.press("jt\n")), [format!("detached retry {run} DB {flags}")]);
    interface.state.running = None;
    assert_eq!(words(&interface.press("Gt\ny")), [format!("copy lanewright logs {run} CORE")], "nothing is asked");
    interface.press("gj");
    assert_eq!(words(&interface.press("ttyr⌫y\n")), [format!("detached retry {run} DB --message=tyy {flags}")]);
}

#[test]
fn a_budget_is_not_raised_without_a_question() {
    let mut interface = Interface::new();
    interface.held = false;
    interface.history.run.budget.tokens = Some(0);
    assert_eq!(words(&interface.press("R")), [""; 0]);
    let text = interface.text(160, 24);
    assert!(text.contains("Resume with --max-tokens 1? y: yes, any other key: no"), "{text}");
    assert_eq!(words(&interface.press("n")), [""; 0]);
    let raised = "--yes --progress=plain --on-lock-conflict=fail --max-tokens 1";
    assert_eq!(words(&interface.press("Ry")), [format!("detached resume P1-SL-AUTH-20251227 {raised}")]);
}

#[test]
fn programs_get_the_terminal_and_commands_are_copied() {
    let mut interface = Interface::new();
    let run = "P1-SL-AUTH-20251227";
    assert_eq!(words(&interface.press("e")), [format!("terminal open {run} API")]);
    assert_eq!(words(&interface.press("!")), [format!("terminal open {run} API --with exec \"${{SHELL:-sh}}\"")]);
    assert_eq!(words(&interface.press("y")), [format!("copy lanewright diff {run} API")]);
    assert!(interface.text(80, 24).contains("copied: lanewright diff"));
    assert_eq!(words(&interface.press("jjy")), [format!("copy lanewright logs {run} UI")]);
    interface.held = false;
    assert_eq!(words(&interface.press("ky")), [format!("copy lanewright resume {run}")], "what is to be decided");
}

#[test]
fn a_filter_has_its_effect_while_it_is_typed() {
    let mut interface = Interface::new();
    let listed = |interface: &Interface| interface.board().lanes().len();
    interface.press("/do");
    assert_eq!((listed(&interface), selected(&interface).as_str()), (1, "DOCS"));
    interface.press("⌫⌫UI\n");
    assert_eq!(selected(&interface), "UI");
    assert!(interface.text(80, 24).contains("lanes /UI: 1 running"));
    interface.press("⎋");
    assert_eq!(listed(&interface), 5);
    interface.press("/nothing\n");
    let text = interface.text(80, 24);
    assert!(text.contains("lanes /nothing: no lane"), "{text}");
    for key in ["a", "r", "t"] {
        interface.press(key);
        assert!(interface.text(80, 24).contains("no lane is selected"), "{key}");
    }
    // No key panics.
    interface.press("jk4cvxartsyeJ]}>");
}

#[test]
fn typing_in_dialog_triggers_no_keys() {
    let mut interface = Interface::new();
    assert_eq!(words(&interface.press("aq?")), [""; 0]);
    interface.tell(Message::Pasted("two\nlines\u{1b}".to_owned()));
    let Some(Dialog::Input(input)) = &interface.state.dialog else { panic!("no question") };
    assert_eq!(input.text, "q?two lines ");
    assert!(interface.press("⎋").is_empty() && interface.state.dialog.is_none());
    let ctrl_c = Message::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    interface.press("a");
    assert_eq!(words(&interface.tell(ctrl_c)), ["quit"], "also while something is asked");
    assert_eq!(words(&interface.press("⎋q")), ["quit"]);
}

#[test]
fn a_message_that_no_command_can_take_is_kept() {
    let mut interface = Interface::new();
    interface.press("r");
    interface.tell(Message::Pasted(format!("{}the end", "x".repeat(121 * 1024))));
    let text = interface.text(80, 24);
    assert!(text.lines().last().is_some_and(|line| line.ends_with("xxthe end")), "its end is seen\n{text}");
    assert_eq!(words(&interface.press("\n")), [""; 0]);
    assert!(interface.text(80, 24).contains("a message may have at most 120 KiB; this one has 121 KiB"));
    interface.press("⎋r");
    assert!(interface.text(80, 24).contains("xxthe end"), "it can be shortened");
}

#[test]
fn the_help_lists_every_key_and_any_key_closes_it() {
    let mut interface = Interface::new();
    interface.press("?");
    let text = interface.text(80, 30);
    for (keys, what) in HELP {
        assert!(text.contains(keys) && text.contains(&what[..what.len().min(20)]), "{keys} is not in\n{text}");
    }
    interface.text(40, 10);
    interface.press("G");
    let text = interface.text(40, 10);
    assert!(text.contains("q Ctrl-C") && !text.contains("next, previous lane or line"), "{text}");
    interface.text(120, 10);
    interface.press("G");
    let text = interface.text(120, 10);
    assert!(text.contains("q Ctrl-C") && text.lines().all(|line| !line.is_empty()), "the last full page\n{text}");
    assert!(interface.press("q").is_empty() && interface.state.dialog.is_none());
}

#[test]
fn the_documentation_has_the_same_keys() {
    let documented = include_str!("../../../../../docs/ui.md");
    let rows: String = HELP.iter().map(|(keys, what)| format!("| `{keys}` | {what} |\n")).collect();
    assert!(documented.contains(&rows), "the table in docs/ui.md is to be\n{rows}");
}
