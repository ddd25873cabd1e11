//! The page is written so that it is XML as well: that is how these tests read it.

use std::collections::BTreeSet;

use lanewright_model::event::Event;
use lanewright_model::testing::*;
use lanewright_model::{Approval, ReportFormat, Transcript, Usage};
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::Value;

use super::super::tests::*;
use super::super::{ChangedFile, LaneChanges};
use super::*;

/// All that a page may have: nothing that runs, loads or submits something.
const ELEMENTS: &[&str] = &[
    "a", "b", "body", "circle", "code", "dd", "defs", "del", "details", "div", "dl", "dt", "footer", "g", "h1", "h2",
    "h3", "h4", "head", "header", "html", "i", "ins", "li", "line", "link", "main", "marker", "meta", "nav", "ol", "p",
    "path", "pattern", "polygon", "polyline", "pre", "rect", "section", "span", "style", "summary", "svg", "table",
    "tbody", "td", "text", "tfoot", "th", "thead", "title", "tr", "tspan", "ul",
];

pub(crate) fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}: {page}"))
}

/// Checks what must hold of every page.
pub(crate) fn check(document: &Document<'_>) {
    let mut ids = BTreeSet::new();
    let mut level = 0;
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        assert!(ELEMENTS.contains(&name), "<{name}>");
        for attribute in node.attributes() {
            assert!(!attribute.name().starts_with("on") && attribute.name() != "style", "{attribute:?}");
        }
        if let Some(id) = node.attribute("id") {
            assert!(ids.insert(id), "{id} twice");
        }
        if matches!(name, "h1" | "h2" | "h3" | "h4") {
            let own = name[1..].parse().unwrap();
            assert!(own <= level + 1, "{:?} comes after a heading of level {level}", words(node));
            level = own;
        }
    }
    for link in document.descendants().filter_map(|node| node.attribute("href")).filter(|link| *link != "data:,") {
        assert!(link.strip_prefix('#').is_some_and(|id| ids.contains(id)), "{link} leads nowhere");
    }
}

pub(crate) fn words(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|text| text.text()).collect()
}

fn all<'d>(document: &'d Document<'_>, name: &str) -> Vec<Node<'d, 'd>> {
    document.descendants().filter(|node| node.has_tag_name(name)).collect()
}

pub(crate) fn with_id<'d>(document: &'d Document<'_>, id: &str) -> Node<'d, 'd> {
    document.descendants().find(|node| node.attribute("id") == Some(id)).unwrap_or_else(|| panic!("no {id}"))
}

pub(crate) fn cells(row: Node<'_, '_>) -> Vec<String> {
    row.children().filter(Node::is_element).map(|cell| words(cell).trim().to_owned()).collect()
}

#[test]
fn the_page_says_what_json_says() {
    let mut story = fixed_and_failed();
    let usage = Usage { input_tokens: 1234, output_tokens: 56, cost: Dollars::new(0.25), ..Usage::default() };
    for record in &mut story.records {
        if let Event::JobExited { transcript, .. } = &mut record.event {
            *transcript = Some(Box::new(Transcript { usage, ..Transcript::default() }));
        }
    }
    let report = report(&story);
    let json: Value = serde_json::from_str(&rendered(&report, ReportFormat::Json)).unwrap();
    let page = rendered(&report, ReportFormat::Html);
    let document = parse(&page);
    check(&document);
    let time = |value: &Value| value.as_u64().map(duration).unwrap_or_default();
    let figures: Vec<String> =
        all(&document, "dl")[0].descendants().filter(|it| it.has_tag_name("dd")).map(words).collect();
    let times = ["makespan_ms", "work_ms", "waiting_ms", "at_rest_ms"].map(|name| time(&json["times"][name]));
    assert_eq!(figures[..4], times);
    assert_eq!(figures[4], report.summary.usage().to_string());
    for lane in json["lanes"].as_array().unwrap() {
        let id = lane["lane"].as_str().unwrap();
        let cost = cells(with_id(&document, &format!("cost-{id}")));
        let attempts = lane["attempts"].as_array().unwrap();
        let tokens = |name: &str| grouped(lane["usage"][name].as_u64().unwrap());
        let dollars = Dollars::new(lane["usage"]["cost_usd"].as_f64().unwrap()).unwrap().to_string();
        let expected = [id, lane["state"].as_str().unwrap()].map(str::to_owned);
        assert_eq!(cost[..4], [&expected[..], &[attempts.len().to_string(), time(&lane["elapsed_ms"])]].concat());
        assert_eq!((&cost[7], &cost[8], &cost[11]), (&tokens("input_tokens"), &tokens("output_tokens"), &dollars));
        let section = with_id(&document, &format!("lane-{id}"));
        let jobs: Vec<String> = section.descendants().filter(|it| it.has_tag_name("b")).map(words).collect();
        let gates = lane["gates"].as_array().unwrap();
        assert_eq!(jobs.len(), attempts.len() + gates.len());
        let is_in_list = |it: &Node<'_, '_>| it.parent().is_some_and(|list| list.attribute("class") == Some("jobs"));
        let is_job = |it: &Node<'_, '_>| it.is_element() && is_in_list(it);
        for (job, shown) in attempts.iter().chain(gates).zip(section.descendants().filter(is_job)) {
            assert!(words(shown).contains(&time(&job["elapsed_ms"])), "{}", words(shown));
        }
        assert_eq!(cells(with_id(&document, &format!("time-{id}")))[2], time(&lane["elapsed_ms"]));
    }
    let commands: Vec<String> = all(&document, "code").into_iter().map(words).collect();
    for command in json["next_steps"].as_array().unwrap().iter().flat_map(|step| step["commands"].as_array().unwrap()) {
        let line = shell_line(command.as_array().unwrap().iter().map(|word| word.as_str().unwrap()));
        assert!(commands.contains(&line), "{line}");
    }
}

#[test]
fn the_style_is_the_one_that_the_page_allows() {
    let page = rendered(&report(&fixed_and_failed()), ReportFormat::Html);
    let document = parse(&page);
    let policy = all(&document, "meta").into_iter().find_map(|meta| {
        meta.attribute("http-equiv").filter(|name| *name == "Content-Security-Policy").and(meta.attribute("content"))
    });
    let [style] = all(&document, "style")[..] else { panic!("one style") };
    let hash = base64(&Sha256::digest(words(style).as_bytes()));
    let expected =
        format!("default-src 'none'; style-src 'sha256-{hash}'; img-src data:; base-uri 'none'; form-action 'none'");
    assert_eq!(policy, Some(expected.as_str()));
    assert_eq!(
        ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes())),
        ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
    );
}

#[test]
fn a_bar_is_where_its_time_is() {
    let report = report(&fixed_and_failed());
    let page = rendered(&report, ReportFormat::Html);
    let document = parse(&page);
    let whole = report.times.makespan_ms;
    for bar in report.timeline.bars.iter().filter(|bar| bar.kind == "attempt") {
        let row = with_id(&document, &format!("time-{}", bar.lane.as_ref().unwrap()));
        let x = format!("{:.2}%", bar.start_ms as f64 * 100.0 / whole as f64);
        let class = if bar.passed == Some(true) { "attempt good" } else { "attempt bad" };
        let is_it =
            |node: &Node<'_, '_>| node.attribute("x") == Some(x.as_str()) && node.attribute("class") == Some(class);
        assert!(row.descendants().any(|node| is_it(&node)), "{bar:?}");
    }
    let second = with_id(&document, "time-SL-1");
    let titles: Vec<String> = second.descendants().filter(|it| it.has_tag_name("title")).map(words).collect();
    let expected = ["waiting for a retry (engineer), 5s", "attempt 1 of engineer at task 1: exit code 101, 1m 00s"];
    assert!(expected.iter().all(|title| titles.iter().any(|it| it == title)), "{titles:?}");
    assert!(titles.iter().any(|title| title.starts_with("merge, ")), "{titles:?}");
}

#[test]
fn jobs_that_overlap_are_drawn_beside_each_other() {
    let [one, two, three] = [("one", 1), ("two", 1), ("one", 2)].map(|(agent, number)| attempt("SL-1", agent, number));
    let story = Story::begun().opened("SL-1", 1).job(&one).job(&two).exited(&one, 0).exited(&two, 0);
    let mut story = story.job(&three).exited(&three, 0);
    let exits = story.records.iter_mut().filter_map(|record| match &mut record.event {
        Event::JobExited { exit, .. } => Some(exit),
        _ => None,
    });
    let mut began = None;
    for exit in exits.take(2) {
        exit.started_at = *began.get_or_insert(exit.started_at);
    }
    let report = report(&story);
    let chart = chart::chart(&report);
    let shapes = chart["rows"][0]["shapes"].as_array().unwrap();
    let tracks: Vec<&Value> = shapes.iter().filter(|it| it["kind"] == "attempt").map(|it| &it["track"]).collect();
    assert_eq!((tracks, &chart["rows"][0]["tracks"]), (vec![&0.into(), &1.into(), &0.into()], &2.into()));
}

#[test]
fn hostile_text_is_escaped() {
    let hostile = "</style></pre><script>alert(1)</script>\u{202e}\u{1b}[2J\"' onload=x";
    let mut story = fixed_and_failed();
    story = story.then(Event::Noted { lane: Some(lane("SL-2")), message: hostile.to_owned() });
    let file =
        ChangedFile { path: hostile.to_owned(), lines: Some((1, 0)), text: format!("@@\n+{hostile}\n"), whole: true };
    let changes = LaneChanges { files: vec![file], others: 3 };
    let report = report(&story).with_changes([(lane("SL-2"), changes)].into());
    let page = rendered(&report, ReportFormat::Html);
    let document = parse(&page);
    check(&document);
    let shown = escape::visible(hostile).into_owned();
    let section = with_id(&document, "lane-SL-2");
    let texts: Vec<String> = section.descendants().filter(Node::is_element).map(words).collect();
    assert!(texts.iter().filter(|text| text.trim() == shown).count() >= 2, "{texts:?}");
    assert!(texts.iter().any(|text| *text == format!("+{shown}\n")), "{texts:?}");
    assert!(!page.contains(lanewright_model::safe_text::is_unsafe));
}

#[test]
fn page_of_thousand_lanes_is_below_ten_megabytes() {
    let names: Vec<String> = (0..1000).map(|number| format!("SL-{number}")).collect();
    let lanes: Vec<(&str, &[&str], &[Approval])> = names.iter().map(|name| (name.as_str(), &[][..], &[][..])).collect();
    let long = "<&\"'".repeat(5000);
    let mut story = Story::begun();
    let mut changes = std::collections::HashMap::new();
    for name in &names {
        let only = attempt(name, "engineer", 1);
        story = story.opened(name, 1).job(&only).exited(&only, 1).noted(name).failed(name);
        story = story.then(Event::Noted { lane: Some(lane(name)), message: long.clone() });
        let file =
            ChangedFile { path: "a".to_owned(), lines: Some((1, 0)), text: format!("@@\n+{long}\n"), whole: true };
        changes.insert(lane(name), LaneChanges { files: vec![file; 3], others: 0 });
    }
    let report = report_of(&plan(&lanes), &story.records, false).with_changes(changes);
    let page = rendered(&report, ReportFormat::Html);
    assert!(page.len() < 10_000_000, "{}", page.len());
    let document = parse(&page);
    assert_eq!(all(&document, "h3").iter().filter(|it| words(**it).starts_with("SL-")).count(), 1010);
    assert!(page.contains("more characters)") && page.contains("Not all of it fits in here"));
}
