//! What a user sees on a terminal while a run works, and what is left of it.

use std::process::Command;
use std::time::Duration;

use regex::Regex;

use crate::support::{RUN, Terminal, TestEnv};

/// `A` is merged at once, the agents of `B` and `C` work, `D` asks, `E` waits.
const PLAN: &str = r#"base_branch = "main"
[[lane]]
id = "A"
command = 'echo a > a.txt'
[[lane]]
id = "B"
retries = 1
command = 'echo attempt $LANEWRIGHT_ATTEMPT; [ $LANEWRIGHT_ATTEMPT = 1 ] && exit 3; wait-for go; echo b > b.txt'
[[lane]]
id = "C-WITH-A-LONG-NAME"
command = 'printf "%0200d" 7; wait-for go; echo c > c.txt'
[[lane]]
id = "D"
approval = ["changes"]
command = 'echo d > d.txt'
[[lane]]
id = "E"
depends_on = ["B"]
command = 'echo e > e.txt'
"#;

fn started(env: &TestEnv, variables: &[(&str, &str)], rows: u16, columns: u16) -> Terminal {
    env.plan(PLAN);
    env.git(&["switch", "--quiet", "--create", "desk"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
    env.pin(&mut command).args(["execute-phase", "../plan.toml", "--run-id", RUN, "--max-parallel", "4"]);
    command.env("TERM", "xterm-256color").envs(variables.iter().copied());
    Terminal::start(command, rows, columns)
}

/// Times have no fractions of seconds.
fn has_fractions(text: &str) -> bool {
    Regex::new(r"\b\d+(ms|\.\d+ ?s)\b").expect("a pattern").is_match(text)
}

/// Asserts that the block is drawn once, as a whole, within the screen.
fn assert_drawn_once(terminal: &Terminal, columns: usize) {
    let rows = terminal.rows();
    let text = terminal.text();
    let headers: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].0.starts_with("P1 · ")).collect();
    let [header] = headers.as_slice() else { panic!("{} headers:\n{text}", headers.len()) };
    assert_eq!(rows[header - 1].0, "", "no blank line above the block:\n{text}");
    for (row, wrapped) in &rows[*header..] {
        assert!(!wrapped && row.chars().count() < columns, "wider than {columns}: {row}\n{text}");
    }
    // The lane that asks comes first; then those at work; what waits and what is merged is only counted.
    let first = &rows[header + 1].0;
    assert!(first.starts_with("D ") && first.contains("needs approval"), "{text}");
    let block: String = rows[*header..].iter().map(|(row, _)| format!("{row}\n")).collect();
    assert_eq!(block.matches("\nB ").count(), 1, "{text}");
    assert!(!block.contains("\nA ") && !block.contains("\nE "), "{text}");
    assert!(block.contains("1 waiting · 1 merged"), "{text}");
    assert!(!has_fractions(&text), "{text}");
}

#[test]
fn live_block_fits_a_resized_terminal() {
    for (rows, columns) in [(24, 80), (40, 120), (10, 40)] {
        let env = TestEnv::new();
        let mut terminal = started(&env, &[], rows, columns);
        terminal.wait_for("needs approval");
        terminal.wait_for("1 merged");
        // Ids are whole, and a narrow terminal has no room for the task besides.
        terminal.wait_for(if columns < 80 { "C-WITH-A-LONG-NAME  running" } else { "attempt 2" });
        for (rows, columns) in [(rows, columns), (10, 40), (40, 120), (24, 80), (40, 120)] {
            terminal.resize(rows, columns);
            // Several pictures.
            std::thread::sleep(Duration::from_millis(700));
            assert_drawn_once(&terminal, columns.into());
        }
        assert!(terminal.text().contains("attempt 2 "), "the row of B:\n{}", terminal.text());
        env.write("scratch/go", "");
        assert_eq!(terminal.end(), Some(3));
        let text = terminal.text();
        assert!(!text.contains("P1 · ") && !text.contains("needs approval  "), "the block is left:\n{text}");
        for said in ["E: merged into main", "run blocked after", "D waits for your approval", "lanewright approve r1 D"]
        {
            assert!(text.contains(said), "{said} is not in\n{text}");
        }
        assert!(!has_fractions(&text), "{text}");
    }
}

#[test]
fn no_color_keeps_the_block_and_drops_the_colours() {
    let env = TestEnv::new();
    env.write("scratch/go", "");
    let mut terminal = started(&env, &[("NO_COLOR", "1")], 24, 80);
    assert_eq!(terminal.end(), Some(3));
    let written = terminal.written();
    assert!(written.contains("\u{1b}[J") && written.contains("P1 · "), "{written:?}");
    assert!(!Regex::new("\u{1b}\\[[0-9;]*m").expect("a pattern").is_match(&written), "{written:?}");
}

#[test]
fn services_and_plain_terminals_get_plain_lines() {
    // All but colours.
    let controls = Regex::new("\u{1b}(\\[[0-9;?]*[^0-9;?m]|[^\\[])").expect("a pattern");
    for variables in [&[("CI", "true")][..], &[("TERM", "dumb")], &[("CI", "true"), ("NO_COLOR", "1")]] {
        let env = TestEnv::new();
        env.write("scratch/go", "");
        let mut terminal = started(&env, variables, 24, 80);
        assert_eq!(terminal.end(), Some(3), "{variables:?}");
        let written = terminal.written();
        assert!(!controls.is_match(&written) && !written.contains("P1 · "), "{variables:?}: {written:?}");
        assert!(written.contains("B agent: attempt 1 started (task 1)"), "{written:?}");
        assert!(!has_fractions(&written), "{written:?}");
        assert_eq!(written.contains('\u{1b}'), variables == [("CI", "true")], "{variables:?}: {written:?}");
    }
}
