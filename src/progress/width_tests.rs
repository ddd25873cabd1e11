//! What is drawn fits every terminal, and the cells of a table stand below each other.

use lanewright_model::cells::width;
use lanewright_model::time::LocalTime;
use lanewright_model::{Failure, FailureKind};
use lanewright_view::status::ending::ending;
use lanewright_view::status::summary::{Summary, SummaryContext};

use super::*;

const WIDTHS: [u16; 4] = [40, 60, 80, 120];

const LANES: [&str; 5] = ["SL-1", "SL-AUTHENTICATION", "SL-PAYMENT-GATEWAY", "SL-4", "SL-5"];

const WHY: &str = "the connection to the database was refused by the server";

/// One lane merged, one failed for a long reason, two at work; the last one waits.
fn story() -> Story {
    let failure = Failure::new(FailureKind::Crash, WHY);
    let story = Story::begun().opened("SL-1", 1).merged("SL-1", 'd').opened("SL-AUTHENTICATION", 1);
    let story = story.then(Event::LaneFailed { lane: lane("SL-AUTHENTICATION"), failure });
    let story = story.opened("SL-PAYMENT-GATEWAY", 2).job(&attempt("SL-PAYMENT-GATEWAY", "engineer", 1));
    story.opened("SL-4", 3).retried("SL-4", 1, 3).job(&attempt("SL-4", "engineer", 2))
}

/// With a title that no headline has room for.
fn titled(records: &[Record]) -> RunHistory {
    let mut history = view_of(&LANES).after(records);
    history.run.title = Some("Billing and invoices for all customers".to_owned());
    history
}

fn status(history: &RunHistory, story: &Story, width: u16) -> String {
    let program = program();
    let summary =
        Summary::of(history, SummaryContext { now: LocalTime::utc(story.now()), program: &program, held: true });
    summary.render(width.into(), Styles::plain())
}

fn end(story: Story, width: u16) -> String {
    let story = story.finished(lanewright_model::event::RunOutcome::Failed, 1);
    let (history, program) = (titled(&story.records), program());
    let summary =
        Summary::of(&history, SummaryContext { now: LocalTime::utc(story.now()), program: &program, held: false });
    ending(&summary, &program, &|_| Vec::new(), width.into(), Styles::plain())
}

/// Commands are not cut: they are there to be copied.
fn assert_fits(text: &str, columns: u16) {
    for line in text.lines().filter(|line| !line.trim_start().starts_with("lanewright")) {
        assert!(width(line) <= columns.into(), "wider than {columns}: {line}\n{text}");
    }
}

/// `word` begins in the same column of every row that has one of `words`.
fn assert_below_each_other(rows: &[&str], words: &[&str]) {
    let begins = |row: &&str| words.iter().find_map(|word| row.find(&format!("  {word}"))).map(|at| width(&row[..at]));
    let places: Vec<usize> = rows.iter().filter_map(begins).collect();
    assert_eq!(places.len(), rows.len(), "{words:?} in every row: {rows:#?}");
    assert!(places.iter().all(|place| *place == places[0]), "{words:?}: {rows:#?}");
}

#[test]
fn output_fits_every_width_with_aligned_tables() {
    let states = ["state", "merged", "failed", "running", "waiting"];
    for columns in WIDTHS {
        let history = titled(&story().records);
        let text = status(&history, &story(), columns);
        assert_fits(&text, columns);
        let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("lane ")).collect();
        let rows = &rows[..=LANES.len()];
        assert_below_each_other(rows, &states);
        assert_fits(&end(story(), columns), columns);
        let screen = Screen::new(24, columns);
        let block = live(screen.clone(), &screen).picture(&history, story().now(), (24, columns.into()));
        assert_fits(&block.join("\n"), columns);
        let at_work: Vec<&str> = block.iter().map(String::as_str).filter(|line| line.contains("running")).collect();
        assert_eq!(at_work.len(), 2, "{block:#?}");
        assert_below_each_other(&at_work, &states);
    }
}

#[test]
fn at_every_width_ids_counts_and_reasons_are_whole() {
    for columns in WIDTHS {
        let history = titled(&story().records);
        let text = status(&history, &story(), columns);
        let headline = text.lines().next().unwrap();
        assert!(headline.starts_with("P1 Bill") && headline.contains(" · running · 1/5 lanes"), "{headline}");
        assert!(LANES.iter().all(|lane| text.contains(&format!("{lane} "))), "{text}");
        let screen = Screen::new(24, columns);
        let block = live(screen.clone(), &screen).picture(&history, story().now(), (24, columns.into())).join("\n");
        assert!(block.contains("SL-PAYMENT-GATEWAY  "), "{block}");
        let end = end(story(), columns);
        let words = end.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!("SL-AUTHENTICATION failed: {WHY}")), "{end}");
        assert!(["1 failed", "2 stopped", "1 waiting", "1 merged"].iter().all(|it| words.contains(it)), "{end}");
    }
}
