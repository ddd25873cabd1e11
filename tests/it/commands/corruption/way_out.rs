//! What a person does with a run whose state is damaged, and what must hold on the way.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::commands::content_manifest::BlobManifest;
use crate::commands::doctor::patient::Patient;
use crate::support::Ended;

/// Damages a run that stands still, and asserts that `way` leads out.
#[track_caller]
pub fn leads_out(way: &str, damage: impl FnOnce(&Patient)) {
    let patient = Patient::new();
    let manifest = patient.manifest();
    damage(&patient);
    let manifest = manifest.and_files_below(&patient.scratch.path("repo.lanes/slots"));
    let manifest = manifest.without_files_like("/ignored/").without_files_like(".claim");
    fs::write(patient.scratch.path("scratch/may-pass"), "").unwrap();
    assert_eq!(way_out(&patient, &manifest), way);
    assert_eq!(patient.scratch.tree("main"), undisturbed());
    let ran = fs::read_to_string(patient.scratch.path("scratch/ran")).unwrap();
    assert!(ran == "SL-1\n" || way.starts_with("chosen"), "what was merged was done again");
}

/// What `main` holds after a run that nobody has damaged.
fn undisturbed() -> &'static str {
    static TREE: OnceLock<String> = OnceLock::new();
    TREE.get_or_init(|| {
        let patient = Patient::new();
        patient.goes_on();
        patient.scratch.tree("main")
    })
}

/// Goes through everything that a person would try, until the phase is done. Answers what it took: `resumed`, `resumed
/// again`, `fixed:` with what the doctor repaired, before the resume or `afterwards`, `told:` with what a person was told
/// to do and did, or `chosen:` with what a person had to choose about; `put back`: the lane had to begin anew.
#[track_caller]
pub fn way_out(patient: &Patient, manifest: &BlobManifest) -> String {
    for question in [["status", "r1"].as_slice(), &["status", "--format", "json"], &["logs", "r1"], &["doctor"]] {
        says_something(&patient.scratch.lanewright(question));
    }
    // Without `--accept-plan-change`, by which the plan file takes the place of a damaged `plan.json`.
    let resumed = patient.scratch.lanewright(&["resume", "r1", "--progress", "none"]);
    says_something(&resumed);
    is_kept(patient, manifest);
    let fixed = patient.fix();
    says_something(&fixed);
    is_kept(patient, manifest);
    let repaired = kinds_with(&fixed, |finding| finding["outcome"] == "repaired");
    let way = match (fixed.code, resumed.code, repaired.as_str()) {
        (0, 0, "") => "resumed".to_owned(),
        (0, 0, kinds) => format!("resumed, afterwards fixed: {kinds}"),
        (0, _, "") => "resumed again".to_owned(),
        (0, _, kinds) => format!("fixed: {kinds}"),
        (6, ..) => acted_upon(patient, &fixed),
        _ => panic!("{fixed:?}, after {resumed:?}"),
    };
    let goes_on = resumed.code != 0 && !way.starts_with("chosen");
    let was_put_back = goes_on && resumed_with_what_it_asks_for(patient);
    if !way.starts_with("chosen") {
        patient.look().exits(0);
    }
    manifest.assert_all_there();
    if was_put_back { format!("{way}, put back") } else { way }
}

/// Nothing is lost, as far as git can list what it has at this moment.
#[track_caller]
fn is_kept(patient: &Patient, manifest: &BlobManifest) {
    let listed = patient.scratch.try_git(&["rev-list", "--objects", "--all"]);
    if listed {
        manifest.assert_all_there();
    }
}

/// Resumes the run; what it names as the way out meanwhile is done: a branch in the way is renamed, a lane that is
/// blocked is put back. Answers whether one had to be.
#[track_caller]
fn resumed_with_what_it_asks_for(patient: &Patient) -> bool {
    let mut was_put_back = false;
    for number in 0..6 {
        let resumed = patient.scratch.resume(&["--accept-plan-change"]);
        let said = format!("{}{}", resumed.stdout, resumed.stderr);
        if resumed.code == 0 {
            return was_put_back;
        }
        says_something(&resumed);
        match said.split('`').find(|it| it.ends_with(" NEW-NAME")) {
            Some(command) => patient.paste(&[command.replace("NEW-NAME", &format!("kept-{number}"))]),
            // What failed before the damage is found to have failed.
            None if resumed.code == 1 => {}
            None => {
                assert!(!was_put_back && said.contains("lanewright status r1 SL-2"), "{said}");
                let page = patient.scratch.lanewright(&["status", "r1", "SL-2"]).stdout;
                assert!(page.contains("lanewright rollback r1 --lane SL-2"), "{page}");
                follow(patient, &["lanewright rollback r1 --lane SL-2".to_owned()]);
                was_put_back = true;
            }
        }
    }
    panic!("it does not come to its end");
}

/// No panic; and a command that fails says why.
#[track_caller]
pub fn says_something(ended: &Ended) {
    assert!(!ended.stderr.contains("panicked") && (0..=8).contains(&ended.code), "{ended:?}");
    assert!(ended.code == 0 || !ended.stderr.is_empty() || !ended.stdout.is_empty(), "{ended:?}");
}

fn findings(ended: &Ended) -> Vec<Value> {
    ended.json()["findings"].as_array().unwrap().clone()
}

fn kinds_with(ended: &Ended, which: impl Fn(&Value) -> bool) -> String {
    let mut kinds: Vec<String> =
        findings(ended).iter().filter(|it| which(it)).map(|it| it["kind"].as_str().unwrap().to_owned()).collect();
    kinds.dedup();
    kinds.join(" ")
}

/// Does what the doctor leaves to a person: the first of the ways that it names, or the command in its remedy.
#[track_caller]
fn acted_upon(patient: &Patient, fixed: &Ended) -> String {
    let left: Vec<Value> = findings(fixed).into_iter().filter(|it| it["needs_action"] == true).collect();
    let left: Vec<Value> = left.into_iter().filter(|it| it["outcome"] != "repaired").collect();
    let escalated = |finding: &Value| !finding["escalation"].is_null();
    if let Some(finding) = left.iter().find(|it| escalated(it)) {
        let commands = finding["escalation"]["options"][0]["commands"].as_array().unwrap();
        let commands: Vec<String> = commands.iter().map(|it| it.as_str().unwrap().to_owned()).collect();
        assert!(!commands.is_empty(), "{finding:#}");
        follow(patient, &commands);
        return format!("chosen: {}", finding["kind"].as_str().unwrap());
    }
    for finding in &left {
        let remedy = finding["remedy"].as_str().unwrap();
        let command =
            remedy.split(": ").find(|part| ["rm ", "mv ", "git ", "kill "].iter().any(|it| part.starts_with(it)));
        let command = command.unwrap_or_else(|| panic!("no command in {finding:#}"));
        patient.paste(&[command.trim_end_matches('.').to_owned()]);
    }
    format!(
        "told: {}",
        kinds_with(fixed, |finding| finding["outcome"] != "repaired" && finding["needs_action"] == true)
    )
}

/// Runs commands that were printed; where one says what has to be done first, that.
#[track_caller]
fn follow(patient: &Patient, commands: &[String]) {
    for command in commands {
        let mut ended = patient.shell(command);
        for _ in 0..3 {
            let hint = |line: &str| line.strip_prefix("hint: leave the branch: ").map(str::to_owned);
            let Some(first) = ended.stderr.lines().find_map(hint).filter(|_| ended.code != 0) else { break };
            patient.paste(&[first]);
            ended = patient.shell(command);
        }
        ended.exits(0);
    }
}

/// What a file may become, without its being gone.
pub const GARBAGE: &[u8] = b"\x00\xff\xfe{{{ no, \"not this";

/// Puts something else into a file that is there.
#[track_caller]
pub fn overwrite(path: &Path, bytes: &[u8]) {
    assert!(path.is_file(), "{} is no file", path.display());
    fs::write(path, bytes).unwrap();
}

/// The first half of a file only.
#[track_caller]
pub fn halve(path: &Path) {
    let bytes = fs::read(path).unwrap();
    overwrite(path, &bytes[..bytes.len() / 2]);
}

/// A file of the failed attempt's.
pub fn job(patient: &Patient, name: &str) -> PathBuf {
    patient.state("r1/lanes/SL-2/agents/engineer/tasks/1/attempt-1").join(name)
}

/// The same file of a run in another repository.
#[track_caller]
pub fn of_another_run(place: impl Fn(&Patient) -> PathBuf) -> Vec<u8> {
    static OTHER: OnceLock<Patient> = OnceLock::new();
    fs::read(place(OTHER.get_or_init(Patient::new))).unwrap()
}

/// A log with other lines, each with the right checksum.
pub fn resealed(log: &str, change: impl Fn(&str) -> String) -> String {
    let line = |line: &str| {
        let body = change(line.rsplit_once(",\"crc\":").unwrap().0);
        format!("{body},\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes()))
    };
    log.lines().map(line).collect()
}
