//! What `report.json`, the page and the interface show of every lane is the same.

use std::collections::BTreeSet;
use std::time::Duration;

use lanewright_model::Usage;
use lanewright_model::cells::clean;
use lanewright_model::time::LocalTime;
use lanewright_model::time::short;
use proptest::prelude::*;
use roxmltree::{Document, Node};
use serde_json::Value;

use super::*;
use crate::history::LaneHistory;
use crate::report::escape::visible;
use crate::report::html::duration;
use crate::report::html::tests::{cells, parse, with_id, words};
use crate::ui::board::Board;
use crate::ui::material::Material;

/// A lane as one of them shows it.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    lane: String,
    state: String,
    elapsed: String,
    /// Tool calls, tokens and cost.
    used: String,
    /// The results of attempts and gates with their times, in no order.
    jobs: Vec<(String, String)>,
    /// The job of a cluster that has it.
    executor: String,
}

/// How one of them writes what `report.json` holds.
struct Hand {
    time: fn(u64) -> String,
    text: fn(&str) -> String,
}

const PAGE: Hand = Hand { time: duration, text: |text| visible(text).into_owned() };
const INTERFACE: Hand = Hand { time: |ms| short(Duration::from_millis(ms)), text: clean };

/// Wide enough for every text.
const WIDTH: usize = 20_000;

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Whether a job has not ended and runs, or is only planned: `report.json` does not tell one from the other.
fn is_open(result: &str) -> bool {
    ["running", "has not ended"].contains(&result)
}

fn job_shown(result: String, elapsed: String) -> (String, String) {
    (if is_open(&result) { "open".to_owned() } else { result }, elapsed)
}

/// The words for the state in `report.json`, and where lanes in it stand in lists.
fn words_for(state: &str, standing: &str) -> (u8, Vec<&'static str>) {
    let interrupted = |word| match standing {
        "interrupted" => vec!["interrupted"],
        "half rolled back" => vec!["interrupted", word],
        _ => vec![word],
    };
    match state {
        "waiting for approval (setup)" | "waiting for approval (plan)" | "waiting for approval (changes)" => {
            (0, vec!["needs approval"])
        }
        "waiting for a person" => (0, vec!["needs you"]),
        "failed" => (1, vec!["failed"]),
        "blocked" => (2, vec!["blocked"]),
        "stopped" => (3, vec!["stopped", "approved", "answered", "rejected"]),
        "rolled back" => (3, vec!["rolled back"]),
        "starting" => (4, interrupted("starting")),
        "running" => (4, interrupted("running")),
        "testing" => (4, interrupted("testing")),
        "reviewing" => (4, interrupted("reviewing")),
        "merging" => (4, interrupted("merging")),
        "waiting" => (5, vec!["waiting"]),
        "merged" => (6, vec!["merged"]),
        "proposed" => (6, vec!["proposed"]),
        "skipped" => (7, vec!["skipped"]),
        other => panic!("{other}"),
    }
}

fn job_of_json(job: &Value, hand: &Hand) -> (String, String) {
    let passed = job["passed"] == true;
    let said = &job["said"];
    let result = match job["cause"].as_str() {
        None => "open".to_owned(),
        Some("exited") if !job["rejected"].is_null() => "rejected".to_owned(),
        Some("exited") if passed && said["status"] == "BLOCKED" && said["decision"] != "REJECTED" => {
            "blocked".to_owned()
        }
        Some("exited") if passed => "passed".to_owned(),
        Some("exited") => format!("exit code {}", job["exit_code"]),
        Some("timed_out") => "ran out of time".to_owned(),
        Some("stopped") => "was stopped".to_owned(),
        Some("not_started") => "could not be started".to_owned(),
        Some(other) => format!("ended {}", if other == "lost" { "unseen" } else { other }),
    };
    (result, (hand.time)(job["elapsed_ms"].as_u64().unwrap()))
}

fn executor_of_json(elsewhere: &Value) -> String {
    let name = |field: &str| elsewhere[field].as_str();
    let executor = name("executor").unwrap_or_default();
    match (name("job"), name("host"), name("note")) {
        _ if elsewhere.is_null() => String::new(),
        (None, ..) => format!("waits for executor {executor}"),
        (Some(_), None, Some(note)) => note.to_owned(),
        (Some(job), None, None) => format!("waits for job {job} of {executor}"),
        (Some(job), Some(host), _) => format!("job {job} of {executor} on {host}"),
    }
}

/// The lanes in the order of lists, with the states of `others` where those are words for what is in there.
fn of_json(json: &Value, hand: &Hand, others: &[Shown]) -> Vec<Shown> {
    let standing = json["standing"].as_str().unwrap();
    let mut lanes: Vec<&Value> = json["lanes"].as_array().unwrap().iter().collect();
    lanes.sort_by_key(|lane| words_for(lane["state"].as_str().unwrap(), standing).0);
    let shown = |lane: &Value| {
        let words = words_for(lane["state"].as_str().unwrap(), standing).1;
        let id = lane["lane"].as_str().unwrap();
        let other = others.iter().find(|other| other.lane == id).map_or("", |other| &other.state);
        let state = words.iter().find(|word| **word == other).unwrap_or(&words[0]);
        let usage: Usage = serde_json::from_value(lane["usage"].clone()).unwrap();
        let jobs = ["attempts", "gates"].into_iter().flat_map(|list| lane[list].as_array().unwrap());
        let mut jobs: Vec<_> = jobs.map(|job| job_of_json(job, hand)).collect();
        jobs.sort();
        Shown {
            lane: id.to_owned(),
            state: (*state).to_owned(),
            elapsed: lane["elapsed_ms"].as_u64().map(hand.time).unwrap_or_default(),
            used: usage.to_string(),
            jobs,
            executor: letters(&(hand.text)(&executor_of_json(&lane["elsewhere"]))),
        }
    };
    lanes.into_iter().map(shown).collect()
}

fn has_class(node: &Node<'_, '_>, class: &str) -> bool {
    node.attribute("class").is_some_and(|classes| classes.split(' ').any(|own| own == class))
}

fn of_page(document: &Document<'_>) -> Vec<Shown> {
    let with_class = |node: Node<'_, '_>, class: &str| -> Vec<String> {
        node.descendants().filter(|it| has_class(it, class)).map(|it| words(it).trim().to_owned()).collect()
    };
    let shown = |row: Node<'_, '_>| {
        let cost = cells(row);
        let section = with_id(document, &format!("lane-{}", cost[0]));
        let summary = section.parent().unwrap().children().find(|it| it.has_tag_name("summary")).unwrap();
        assert_eq!(with_class(summary, "badge"), [cost[1].clone()], "two words for the state of {}", cost[0]);
        let numbers = with_class(summary, "number").concat();
        let (elapsed, used) = numbers.split_once('·').unwrap_or((&numbers, ""));
        assert_eq!(elapsed.trim(), cost[3], "two times of {}", cost[0]);
        let is_job = |it: &Node<'_, '_>| it.is_element() && it.parent().is_some_and(|list| has_class(&list, "jobs"));
        let job = |it: Node<'_, '_>| job_shown(with_class(it, "badge")[0].clone(), with_class(it, "number")[0].clone());
        let mut jobs: Vec<_> = section.descendants().filter(is_job).map(job).collect();
        jobs.sort();
        let is_executor = |it: &Node<'_, '_>| it.has_tag_name("dt") && words(*it) == "executor";
        let executor = section.descendants().find(is_executor).and_then(|it| it.next_sibling_element()).map(words);
        Shown {
            lane: cost[0].clone(),
            state: cost[1].clone(),
            elapsed: elapsed.trim().to_owned(),
            used: used.trim().to_owned(),
            jobs,
            executor: letters(&executor.unwrap_or_default()),
        }
    };
    let is_row = |it: &Node<'_, '_>| it.attribute("id").is_some_and(|id| id.starts_with("cost-"));
    document.descendants().filter(is_row).map(shown).collect()
}

/// Without colours.
fn plain(text: &str) -> String {
    let parts = text.split('\u{1b}').enumerate();
    parts.map(|(at, part)| if at == 0 { part } else { part.split_once('m').map_or("", |(_, rest)| rest) }).collect()
}

/// The cells of a line of a table, of which only the last has two spaces in it.
fn columns(line: &str) -> Vec<String> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
}

fn of_interface(board: &Board<'_>) -> Vec<Shown> {
    let material = Material::default();
    let rows = board.rows(0, usize::MAX, WIDTH, &material);
    let shown = |(lane, row): (&&LaneHistory, &String)| {
        let row = columns(&plain(row));
        let page = plain(&board.overview(lane, WIDTH, &material));
        let head = page.lines().next().unwrap().rsplit_once(" · ").unwrap().1;
        assert_eq!(head, row[1], "two words for the state of {}", lane.id);
        let fact = |name: &str| {
            page.lines().take_while(|line| !line.is_empty()).find_map(|line| {
                line.strip_prefix(name).filter(|rest| rest.starts_with(' ')).map(|rest| rest.trim().to_owned())
            })
        };
        let jobs = page.lines().skip_while(|line| columns(line).first().is_none_or(|cell| cell != "what")).skip(1);
        let jobs = jobs.take_while(|line| !line.is_empty()).map(columns);
        let mut jobs: Vec<_> = jobs.map(|job| job_shown(job[1].clone(), job[2].clone())).collect();
        jobs.sort();
        Shown {
            lane: row[0].clone(),
            state: row[1].clone(),
            elapsed: row[4].replace('-', ""),
            used: fact("used").unwrap_or_default(),
            jobs,
            executor: letters(&fact("executor").unwrap_or_default()),
        }
    };
    board.lanes().iter().zip(&rows[1..]).map(shown).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn report_page_and_interface_agree((plan, records) in any_run(), held in any::<bool>()) {
        let report = report_on(plan.as_ref().map(RunHistory::for_plan).unwrap_or_default(), &records, held);
        let json: Value = serde_json::from_str(&rendered(&report, ReportFormat::Json)).unwrap();
        let page = rendered(&report, ReportFormat::Html);
        let document = parse(&page);
        let (program, now) = (program(), records.last().map_or(at(0), |record| record.at));
        let board = Board::of(report.history, SummaryContext { now: LocalTime::utc(now), program: &program, held }, "");
        let (on_page, on_screen) = (of_page(&document), of_interface(&board));
        prop_assert_eq!(&on_page, &of_json(&json, &PAGE, &on_screen));
        prop_assert_eq!(&on_screen, &of_json(&json, &INTERFACE, &on_page));
        let counted = document.descendants().find(|it| has_class(it, "counts")).unwrap();
        let counted: BTreeSet<String> = counted.children().filter(Node::is_element).map(words).collect();
        prop_assert_eq!(counted, board.counts().into_iter().collect::<BTreeSet<_>>());
        let mut of_each = std::collections::BTreeMap::new();
        on_page.iter().for_each(|lane| *of_each.entry(lane.state.as_str()).or_insert(0) += 1);
        let of_each: BTreeSet<String> = of_each.into_iter().map(|(word, count)| format!("{count} {word}")).collect();
        prop_assert_eq!(of_each, board.counts().into_iter().collect::<BTreeSet<_>>());
        let standing = json["standing"].as_str().unwrap();
        prop_assert!(board.header(WIDTH, 9).iter().any(|line| line.contains(standing)));
        prop_assert!(words(document.descendants().find(|it| it.has_tag_name("h1")).unwrap()).ends_with(standing));
    }
}
