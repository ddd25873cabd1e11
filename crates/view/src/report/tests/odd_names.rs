//! Names, commands and messages that try to be more than text, through every form and back.

use std::collections::HashSet;

use lanewright_model::{Demand, Diagnosis, Failure, FailureClass, FailureKind, Finding, PlanParts, Verdict};
use pulldown_cmark::{CodeBlockKind, Event as Mark, Options, Parser, Tag, TagEnd};
use roxmltree::Document;

use super::*;
use crate::report::escape::visible;

/// Fifty of them, and one that is long.
fn odd() -> Vec<String> {
    let mut names: Vec<String> = [
        "plain",
        "\"double\" and 'single'",
        "<script>alert(1)</script>",
        "a < b && c > d",
        "]]>",
        "<![CDATA[ x ]]>",
        "<!-- comment -->",
        "&amp; &lt; &#10; &nbsp;",
        "emoji 🚀👩‍👩‍👧‍👦🏳️‍🌈",
        "two\nlines",
        "crlf\r\nline",
        "\n\nblank lines\n\nbetween\n\n",
        "tab\tbetween",
        "עברית and العربية",
        "right \u{202e}to\u{202c} left",
        "isolate \u{2066}x\u{2069}",
        "zero\u{200b}width\u{200d}joiner\u{feff}",
        "nul \0 byte",
        "bell \u{7} backspace \u{8} delete \u{7f}",
        "escape \u{1b}[31mred\u{1b}[0m",
        "title \u{1b}]0;owned\u{7}",
        "c1 \u{9b}31m",
        "not a character \u{ffff} \u{fffe}",
        "`code`",
        "``` fence",
        "```\nfence of its own\n```",
        "~~~~ other fence",
        "pipe | in | cell",
        "\\| escaped \\\\ backslashes \\",
        "</details>",
        "</summary><b>bold</b>",
        "::error::an annotation",
        "::error file=a,line=1::x",
        "##[error]old command",
        "%0A%25 percent",
        "comma, colon: and = sign",
        "*stars* _underscores_ **bold**",
        "[link](javascript:alert(1))",
        "![image](http://x.invalid/y.png)",
        "# heading",
        "- list",
        "1. number",
        "> quote",
        "---",
        "https://x.invalid/?a=1&b=2 www.x.invalid",
        "@someone #12 :tada: $math$",
        "e\u{301} and é",
        "日本語の名前",
        "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY a \"b\">]>",
        "${HOME} $(id) `id`; rm -rf /",
    ]
    .map(str::to_owned)
    .to_vec();
    assert_eq!(names.len(), 50);
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), 50);
    names.push(format!("long {}", "|`<&".repeat(2600)));
    names
}

/// A failed lane for each of them, which has it as a name, a command, a message, an output, a file, a demand and a note.
fn run_of(names: &[String]) -> ExecutionReport<'static> {
    let ids: Vec<String> = (0..names.len()).map(|number| format!("L{number}")).collect();
    let lanes: Vec<(&str, &[&str], &[lanewright_model::Approval])> =
        ids.iter().map(|id| (id.as_str(), &[][..], &[][..])).collect();
    let mut parts = PlanParts::from(plan(&lanes));
    let mut story = Story::begun();
    for ((id, name), planned) in ids.iter().zip(names).zip(&mut parts.lanes) {
        planned.name = Some(name.clone());
        for event in events(id, name) {
            story = story.then(event);
        }
    }
    report_of(&Plan::new(parts).unwrap(), &story.records, false)
}

fn events(id: &str, name: &str) -> Vec<Event> {
    let text = || name.to_owned();
    let finding = Finding { file: Some(text()), line: Some(3), column: None, message: text() };
    let diagnosis =
        Diagnosis { class: FailureClass::Test, tool: None, findings: vec![finding], count: 1, in_base: None };
    let failure = Failure {
        command: Some(text()),
        diagnosis: Some(Box::new(diagnosis)),
        log: vec![text()],
        ..Failure::new(FailureKind::Gate, name)
    };
    let verdict = Verdict {
        kind: Demand::Truth,
        about: text(),
        asked: vec![text()],
        holds: Some(false),
        missing: false,
        why: vec![text()],
    };
    let mut events = vec![begun(id)];
    events.extend(ended(id, JobRole::Tests, name, 1, vec![text()]));
    events.push(Event::MustHavesChecked { lane: lane(id), head: commit('a'), verdicts: vec![verdict] });
    events.push(Event::FailureNoted { lane: lane(id), agent: None, task: None, failure: failure.clone() });
    events.push(Event::Noted { lane: Some(lane(id)), message: text() });
    events.push(Event::LaneFailed { lane: lane(id), failure });
    events
}

#[test]
fn json_says_them_exactly() {
    let names = odd();
    let report = run_of(&names);
    let value: serde_json::Value = serde_json::from_str(&rendered(&report, ReportFormat::Json)).unwrap();
    Schema::named("report").accepts(&value);
    for (lane, name) in value["lanes"].as_array().unwrap().iter().zip(&names) {
        assert_eq!(lane["name"], **name);
        assert_eq!(lane["gates"][0]["command"], **name);
        assert_eq!(lane["gates"][0]["tail"][0], **name);
        assert_eq!(lane["failure"]["message"], **name);
        assert_eq!(lane["must_haves"][0]["about"], **name);
    }
    let issues: serde_json::Value = serde_json::from_str(&rendered(&report, ReportFormat::CodeQuality)).unwrap();
    for (issue, name) in issues.as_array().unwrap().iter().zip(&names) {
        assert_eq!((&issue["description"], &issue["location"]["path"]), (&(**name).into(), &(**name).into()));
    }
}

#[test]
fn junit_replaces_characters_invalid_in_xml() {
    let names = odd();
    let xml = rendered(&run_of(&names), ReportFormat::Junit);
    assert_eq!(junit_faults(&xml), Vec::<String>::new());
    let document = Document::parse(&xml).unwrap();
    let suites: Vec<_> = document.descendants().filter(|it| it.has_tag_name("testsuite")).collect();
    assert_eq!(suites.len(), names.len());
    for ((suite, name), number) in suites.iter().zip(&names).zip(0..) {
        let about = visible(&name.chars().take(100).collect::<String>()).into_owned();
        let name = visible(name).into_owned();
        let cases: Vec<_> = suite.children().filter(|it| it.has_tag_name("testcase")).collect();
        let titles: Vec<&str> = cases.iter().filter_map(|case| case.attribute("name")).collect();
        assert_eq!(titles, [&format!("L{number}: {name}"), "tests", &format!("must-have: truth {about}")]);
        let output = suite.children().find(|it| it.has_tag_name("system-out")).unwrap();
        assert!(output.text().unwrap().contains(&format!("tests: {name}")), "{name:?}");
        let failure = cases[0].children().find(|it| it.has_tag_name("failure")).unwrap();
        assert_eq!(failure.attribute("message"), Some(name.as_str()));
        assert!(failure.text().unwrap().contains(&name), "{name:?}");
    }
}

/// What a reader sees of a name in running Markdown.
fn seen(name: &str) -> String {
    visible(name.trim()).replace('\t', " ")
}

/// Tables by their rows, blocks of code, and all HTML, as a reader of Markdown finds them.
#[derive(Default)]
struct Found {
    rows: Vec<Vec<String>>,
    code: Vec<String>,
    html: String,
}

fn parse(text: &str) -> Found {
    let mut found = Found::default();
    let (mut cell, mut code) = (None::<String>, None::<String>);
    for mark in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match mark {
            Mark::Start(Tag::TableHead | Tag::TableRow) => found.rows.push(Vec::new()),
            Mark::End(TagEnd::TableHead) => drop(found.rows.pop()),
            Mark::Start(Tag::TableCell) => cell = Some(String::new()),
            Mark::End(TagEnd::TableCell) => {
                if let (Some(row), Some(cell)) = (found.rows.last_mut(), cell.take()) {
                    row.push(cell);
                }
            }
            Mark::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => code = Some(String::new()),
            Mark::End(TagEnd::CodeBlock) => found.code.extend(code.take()),
            Mark::Text(text) => match (&mut cell, &mut code) {
                (_, Some(code)) => code.push_str(&text),
                (Some(cell), None) => cell.push_str(&text),
                (None, None) => {}
            },
            Mark::InlineHtml(html) if &*html == "<br>" => cell.iter_mut().for_each(|cell| cell.push('\n')),
            Mark::Html(html) | Mark::InlineHtml(html) => found.html.push_str(&html),
            Mark::Start(
                Tag::Link { .. } | Tag::Image { .. } | Tag::Strong | Tag::Strikethrough | Tag::BlockQuote(_),
            ) => {
                panic!("a name became markup: {mark:?}")
            }
            _ => {}
        }
    }
    found
}

#[test]
fn markdown_shows_them_and_nothing_else() {
    let names = odd();
    let found = parse(&rendered(&run_of(&names), ReportFormat::Markdown));
    let with = |columns: usize| found.rows.iter().filter(move |row| row.len() == columns);
    let lanes: Vec<&Vec<String>> = with(7).take(names.len()).collect();
    for ((row, name), number) in lanes.iter().zip(&names).zip(0..) {
        assert_eq!(row[0], format!("L{number}"));
        assert_eq!(row[1], seen(name));
    }
    let gates: Vec<&Vec<String>> = with(6).collect();
    assert_eq!(gates.len(), names.len());
    assert!(gates.iter().zip(&names).all(|(row, name)| row[2] == seen(name)));
    let tails: Vec<&String> = found.code.iter().rev().skip(1).take(names.len()).collect();
    for (tail, name) in tails.into_iter().rev().zip(&names) {
        assert_eq!(*tail, format!("{}\n", visible(name.trim_end())));
    }
    let mut tags = found.html.clone();
    for own in ["<details>", "</details>", "<summary>", "</summary>", "<br>"] {
        tags = tags.replace(own, "");
    }
    assert!(!tags.contains('<'), "{tags}");
}

/// A workflow command as GitHub's runner takes it apart.
fn command(line: &str) -> (Vec<(String, String)>, String) {
    let (head, message) = line.strip_prefix("::").unwrap().split_once("::").unwrap();
    let undo = |text: &str| {
        text.replace("%0A", "\n").replace("%0D", "\r").replace("%2C", ",").replace("%3A", ":").replace("%25", "%")
    };
    let (_, properties) = head.split_once(' ').unwrap();
    let pair = |text: &str| text.split_once('=').map(|(name, value)| (name.to_owned(), undo(value))).unwrap();
    (properties.split(',').map(pair).collect(), undo(message))
}

#[test]
fn annotations_stay_one_command_each() {
    for name in odd() {
        let shown = annotations(&run_of(std::slice::from_ref(&name)));
        let text = shown[0].to_string();
        assert_eq!(text.lines().count(), 1, "{text:?}");
        let (properties, message) = command(&text);
        assert_eq!(message, visible(&name));
        assert_eq!(properties[0], ("file".to_owned(), visible(&name).into_owned()));
        assert_eq!(properties.last().unwrap(), &("title".to_owned(), "L0: gate".to_owned()));
    }
}

#[test]
fn text_for_a_terminal_obeys_none_of_them() {
    let text = rendered(&run_of(&odd()), ReportFormat::Text);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    assert!(!text.contains(|c: char| ('\u{202a}'..='\u{202e}').contains(&c)));
}
