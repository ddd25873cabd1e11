//! Every command that prints, in every format, on a run of which plan, agents, statuses, file names and gate outputs are
//! hostile: nothing that a terminal would obey reaches it.

use std::process::Command;

use crate::support::{RUN, TestEnv};

/// What a terminal or a reader obeys: a title, a cleared screen, a hidden text, C1, overrides, separators, lone returns.
const HOSTILE: &str =
    "T\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{1b}[8mH\u{9b}2J\rR\u{8}\u{202e}B\u{2066}\u{61c}\u{200f}\u{2028}\u{7f}E";

/// Commands of the top level whose output holds nothing of plans, agents or files.
const OF_OUR_OWN: &[&str] = &["demo", "completions", "man", "help", "init", "mcp"];

fn toml(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii_graphic() { c.to_string() } else { format!("\\u{:04x}", u32::from(c)) })
        .collect()
}

fn hostile_run() -> TestEnv {
    let env = TestEnv::new();
    env.git_at("", &["init", "--quiet", "--bare", "remote.git"]);
    env.git(&["remote", "add", "origin", env.path("remote.git").to_str().expect("UTF-8")]);
    let agent = r#"#!/usr/bin/env python3
import json, os, sys
text = open(os.environ['SCRATCH'] + '/hostile').read()
print(text)
sys.stderr.write(text + '\n')
name = text.replace('/', '')
open(name + '.txt', 'w').write(text)
status = {'agent': 'agent', 'task': '1', 'status': sys.argv[1], 'decision': 'REJECTED', 'error_message': text,
    'feedback': text, 'blocked_by': [text]}
json.dump(status, open(os.environ['LANEWRIGHT_STATUS_FILE'], 'w'), ensure_ascii=False)
if sys.argv[1] == 'ERROR':
    sys.exit(3)
"#;
    env.program("hostile", agent);
    env.write("scratch/hostile", HOSTILE);
    let text = toml(HOSTILE);
    env.write(
        "plan.toml",
        format!(
            "phase = \"P1\"\ntitle = \"{text}\"\n\
             [[lane]]\nid = \"A\"\nname = \"{text}\"\nretries = 0\ncommand = ['hostile', 'COMPLETE']\nprompt = \"{text}\"\n\
             tests = \"cat $SCRATCH/hostile; true\"\n\
             [[lane]]\nid = \"B\"\nretries = 0\ncommand = ['hostile', 'BLOCKED', \"{text}\"]\n\
             [[lane]]\nid = \"C\"\nretries = 0\nowns = [\"c/**\"]\ncommand = ['hostile', 'ERROR']\n\
             [[lane]]\nid = \"D\"\nretries = 0\ncommand = ['hostile', 'COMPLETE']\ntests = \"cat $SCRATCH/hostile; exit 4\"\n\
             [[lane]]\nid = \"W\"\nname = \"{text}\"\nretries = 0\napproval = ['changes']\ncommand = ['hostile', 'COMPLETE']\n"
        ),
    );
    env.write("bad.toml", format!("phase = \"{text}\"\nbad{HOSTILE} = 3\n[[lane]]\nid = \"{text}\"\n"));
    env
}

/// What is unsafe in `output`, of which styles of our own are not.
fn unsafe_part(output: &[u8]) -> Option<String> {
    let text = String::from_utf8(output.to_vec()).expect("UTF-8");
    let mut rest = text.clone();
    for own in ["0", "1", "2", "3", "4", "31", "32", "33", "34", "35", "36", ""] {
        rest = rest.replace(&format!("\u{1b}[{own}m"), "");
    }
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let at = rest.find(steers)?;
    let [from, to] =
        [rest.floor_char_boundary(at.saturating_sub(80)), rest.ceil_char_boundary((at + 80).min(rest.len()))];
    Some(format!("{:?}", &rest[from..to]))
}

#[test]
fn no_command_prints_anything_that_a_terminal_obeys() {
    let env = hostile_run();
    let plan = "../plan.toml";
    let mut walked = Vec::new();
    let mut check = |arguments: &[&str], formats: &[&str]| {
        walked.push(arguments[0].to_owned());
        for format in formats {
            for colour in ["always", "never"] {
                let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
                env.pin(&mut command).args(["--color", colour, "--format", format]).args(arguments);
                let output = command.output().expect("it runs");
                for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
                    if let Some(found) = unsafe_part(bytes) {
                        panic!("{arguments:?} --format {format} --color {colour}, {name}: {found}");
                    }
                }
            }
        }
    };
    let both = ["text", "json"];
    check(&["execute-phase", plan, "--run-id", RUN, "--progress", "plain"], &["text"]);
    check(&["execute-phase", plan, "--run-id", "r2", "--new-run", "--progress", "json"], &["text"]);
    check(&["execute-phase", plan, "--dry-run", "--new-run"], &both);
    check(&["execute-lane", plan, "C", "--run-id", "r3", "--new-run", "--progress", "plain", "-vv"], &both);
    check(&["execute-lane", plan, "C", "--run-id", "r4", "--new-run", "-v", "--log-format", "json"], &["json"]);
    for arguments in [
        &["status"] as &[&str],
        &["status", RUN],
        &["status", "--settings"],
        &["logs", RUN],
        &["logs", RUN, "A"],
        &["logs", RUN, "--raw"],
        &["plan", "check", plan],
        &["plan", "show", plan],
        &["plan", "graph", plan],
        &["plan", "graph", plan, "--as", "mermaid", "--run", RUN],
        &["plan", "graph", plan, "--as", "svg", "--run", RUN],
        &["plan", "graph", plan, "--as", "text", "--run", RUN],
        &["plan", "convert", plan],
        &["plan", "check", "../bad.toml"],
        &["plan", "show", "../no\u{1b}[2Jfile\u{202e}"],
        &["doctor"],
        &["checkpoints", "list", RUN],
        &["log-error", "--lane", "A", "--details", HOSTILE],
        &["state", "push", RUN, "--remote", "origin"],
        &["state", "list", "--remote", "origin"],
        &["hook", "session-start"],
        &["stop", RUN],
        &["list"],
        &["notify"],
        // The changes themselves are git's to show, to its pager or as they are, like those of `git diff`.
        &["diff", RUN, "W", "--stat"],
        &["diff", RUN, "W", "--name-only"],
        &["diff", HOSTILE],
        &["path", RUN, "W"],
        &["open", RUN, "W", "--with", "true"],
        &["retry", RUN, "C", "--message", HOSTILE, "--progress", "plain"],
        &["retry", RUN, "C", "--runner", HOSTILE],
        &["retry", RUN, "C", "--prompt-file", HOSTILE],
        &["reject", RUN, "W", "--message", HOSTILE],
        &["approve", RUN, HOSTILE],
        &["resume", HOSTILE],
    ] {
        check(arguments, &both);
    }
    check(&["report", RUN], &["text", "json", "md", "html", "junit", "codequality"]);
    check(&["resume", RUN, "--yes", "--progress", "plain", "--message", HOSTILE], &both);
    check(&["skip", RUN, "C", "--message", HOSTILE], &both);
    check(&["status", RUN], &both);
    check(&["rollback", RUN, "--yes"], &both);
    check(&["clean", RUN, "--yes", "--logs"], &both);
    let help = env.lanewright(&["--help"]).stdout;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = commands.filter(|line| !line.starts_with("     ")).filter_map(|line| line.split_whitespace().next());
    for name in names {
        assert!(walked.iter().any(|known| known == name) || OF_OUR_OWN.contains(&name), "nothing checks `{name}`");
    }
}

#[test]
fn a_converted_plan_keeps_its_text_in_escapes() {
    let env = hostile_run();
    let converted = env.lanewright(&["plan", "convert", "../plan.toml"]).exits(0).stdout;
    env.write("converted.toml", &converted);
    let show = |plan: &str| env.lanewright(&["--format", "json", "plan", "show", plan]).exits(0).stdout;
    assert_eq!(show("../converted.toml"), show("../plan.toml"));
    assert!(converted.contains("\\u202E") && converted.contains("\\u009B"), "{converted}");
}

#[test]
fn json_keeps_the_data_in_escapes() {
    let env = hostile_run();
    env.execute(&["--progress", "none"]);
    let status = env.lanewright(&["--format", "json", "status", RUN]).stdout;
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["title"], HOSTILE, "{status:#}");
}
