//! A Lanekeeper that died anywhere leaves nothing that the doctor would not repair, and a doctor in between changes
//! nothing about where the run comes to.

use std::fs;

use lanekeeper::schedule::Action;

use crate::patient::Patient;
use crate::repository::Scratch;

const ONE: (&str, &[&str], &str) = ("SL-1", &[], "mkdir -p SL-1 && echo one > SL-1/a");
const TWO: (&str, &[&str], &str) =
    ("SL-2", &["SL-1"], "mkdir -p SL-2; echo two > SL-2/b; [ -e $SCRATCH/again ] || { touch $SCRATCH/again; exit 3; }");

/// Whether the run came to `point` and died there.
fn dies_and_recovers(point: &str) -> bool {
    let scratch = Scratch::new();
    scratch.plan(&[ONE, TWO]);
    let plan = fs::read_to_string(scratch.path("plan.toml")).unwrap().replace("retries = 0", "retries = 1");
    scratch.write("plan.toml", &format!("{plan}\n[gates]\nfinal = [\"test -e SL-2/b\"]\n"));
    let arguments = ["execute-phase", "../plan.toml", "--run-id", "r1", "--progress", "none"];
    let chosen = format!("{point}:1");
    let variables = [("LANEKEEPER_CRASH_POINT", chosen.as_str()), ("LANEKEEPER_BACKOFF", "1ms")];
    let died = scratch.lanekeeper_with(&arguments, &variables);
    if died.code != -1 {
        return false;
    }
    let patient = Patient { scratch };
    let looked = patient.look();
    let report = looked.json();
    let person =
        report["findings"].as_array().unwrap().iter().find(|it| it["needs_action"] == true && it["fixable"] == false);
    assert!(person.is_none(), "{point}: {person:#?}");
    patient.fix().with(0);
    let resumed = patient.scratch.resume();
    assert!([0, 7, 8].contains(&resumed.code), "{point}: {}", resumed.stderr);
    if resumed.code == 8 {
        // No lane had begun.
        return true;
    }
    let files = patient.scratch.tree("main");
    assert!(files.contains("SL-1/a") && files.contains("SL-2/b"), "{point}: {files}");
    assert_eq!(patient.kinds(&patient.look().with(0)), Vec::<String>::new(), "{point}");
    true
}

fn all_of(half: usize) {
    let points = Action::WORDS.iter().map(|word| format!("after_{word}")).enumerate();
    let reached = points.filter(|(at, _)| at % 2 == half).filter(|(_, point)| dies_and_recovers(point)).count();
    assert!(reached > 4, "only {reached} points were reached");
}

#[test]
fn after_every_other_action() {
    all_of(0);
}

#[test]
fn after_the_actions_between() {
    all_of(1);
}
