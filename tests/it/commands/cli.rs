//! The command line as people and programs meet it: the real binary in a pinned environment.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::run_commands::{Run, waiting_run};
use crate::support::{Ended, TestEnv};

/// With a repository that has a linked worktree at `linked`, and a directory for the user's settings.
fn with_repository() -> TestEnv {
    let env = TestEnv::new();
    env.git(&["worktree", "add", "--quiet", "../linked"]);
    env
}

/// The setting called `key` in the output of `status --settings --format json`: value, layer, origin.
fn setting(ended: &Ended, key: &str) -> (Value, String, String) {
    let settings = ended.json();
    let rows = settings.as_array().expect("a list");
    let row = rows.iter().find(|row| row["key"] == key).expect("the setting");
    let text = |field: &str| row[field].as_str().expect("text").to_owned();
    (row["value"].clone(), text("layer"), text("origin"))
}

const SETTINGS: &[&str] = &["status", "--settings", "--format", "json"];

#[test]
fn help_goes_to_stdout_and_lists_all_exit_codes() {
    for arguments in [["--help"].as_slice(), &["execute-phase", "--help"], &["help", "execute-lane"]] {
        let help = TestEnv::without_repository().lanewright(arguments);
        assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{arguments:?}");
        let table = help.stdout.split("Exit codes:").nth(1).expect("a table of exit codes");
        for code in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "75", "124", "130", "143"] {
            let listed = table.lines().any(|line| line.split_whitespace().next() == Some(code));
            assert!(listed, "{arguments:?} does not list {code}");
        }
    }
}

#[test]
fn bad_usage_exits_with_2_and_says_so_on_standard_error() {
    let cases: &[&[&str]] = &[
        &["--no-such-flag"],
        &["execute-phase"],
        &["execute-phase", "p.toml", "--max-parallel", "0"],
        &["execute-phase", "p.toml", "--merge", "octopus"],
        &["execute-phase", "p.toml", "--base", "-x"],
        &["execute-phase", "p.toml", "--timeout", "soon"],
        &["execute-phase", "p.toml", "--lane", "../x"],
        &["execute-phase", "p.toml", "--resume", "--rollback"],
        &["execute-phase", "p.toml", "--resume", "--new-run"],
        &["logs", "../../etc"],
        &["rollback", "--to", "somewhere"],
        &["status", "--settings", "-C", "no/such/place"],
        &[],
    ];
    for arguments in cases {
        let ended = TestEnv::without_repository().lanewright(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments:?}: {ended:?}");
        assert!(!ended.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn run_is_short_for_execute_phase() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    let plan = env.path("plan.toml");
    let ended = env.lanewright(&["run", plan.to_str().expect("text"), "--dry-run"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let help = env.lanewright(&["--help"]).stdout;
    assert!(help.lines().any(|line| line.contains("execute-phase") && line.contains("[alias: run]")), "{help}");
}

#[test]
fn a_default_that_depends_on_the_machine_shows_its_rule() {
    let ended = TestEnv::new().lanewright(&["status", "--settings"]);
    let line = ended.stdout.lines().find(|line| line.starts_with("max_parallel")).expect("the setting");
    assert!(line.ends_with("default: twice the number of processors, at least 4"), "{line}");
    let limit = ended.stdout.lines().find(|line| line.starts_with("task_timeout")).expect("the setting");
    assert!(limit.contains("30m") && limit.ends_with("default"), "{limit}");
}

#[test]
fn an_unknown_command_names_the_nearest() {
    let ended = TestEnv::without_repository().lanewright(&["statsu"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("tip: some similar subcommands exist:") && ended.stderr.contains("'status'"),
        "{}",
        ended.stderr
    );
}

#[test]
fn errors_have_a_machine_form_whatever_kind_they_are() {
    let outside = ["status", "--settings", "--format", "json"];
    let cases: &[(&[&str], &str, &str)] = &[
        (&["--format", "json", "status", "--setings"], "unexpected argument '--setings' found", "'--settings'"),
        (&["statsu", "--format=json"], "unrecognized subcommand 'statsu'", "'status'"),
        (&outside, "is not inside a git repository", "git init"),
    ];
    for (arguments, message, hint) in cases {
        let ended = TestEnv::without_repository().lanewright(arguments);
        let error: Value = serde_json::from_str(&ended.stderr).expect("one JSON object on standard error");
        assert_eq!((ended.code, &error["code"], &error["kind"]), (2, &2.into(), &"usage".into()));
        assert!(error["message"].as_str().is_some_and(|text| text.contains(message)), "{error}");
        assert!(error["hints"].to_string().contains(hint), "{error}");
    }
}

#[test]
fn hints_are_lines_of_their_own() {
    let ended = TestEnv::without_repository().lanewright(&["status", "--settings"]);
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ended.stderr);
    assert!(lines[0].starts_with("error: ") && lines[1].starts_with("hint: "), "{}", ended.stderr);
}

#[test]
fn settings_come_from_flagless_layers_in_their_order() {
    let scratch = with_repository();
    scratch.write("repo/lanewright.toml", "retries = 1\nworktree_root = \"../elsewhere\"\n");
    scratch.write("config/lanewright/config.toml", "retries = 2\nbackoff = \"9s\"\nrunner = \"mine\"\n");
    let ended = scratch.lanewright_with(SETTINGS, |command| {
        command.env_remove("LANEWRIGHT_BACKOFF").env("LANEWRIGHT_RUNNER", "theirs")
    });
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let repository_file = scratch.path("repo/lanewright.toml").display().to_string();
    let user_file = scratch.path("config/lanewright/config.toml").display().to_string();
    let elsewhere = scratch.path("elsewhere").display().to_string();
    for (key, value, layer, origin) in [
        ("retries", Value::from(1), "file", format!("{repository_file}:1:11")),
        ("worktree_root", elsewhere.into(), "file", format!("{repository_file}:2:17")),
        ("backoff", "9s".into(), "file", format!("{user_file}:2:11")),
        ("runner", "theirs".into(), "environment", "LANEWRIGHT_RUNNER".to_owned()),
        ("heartbeat", "5s".into(), "default", "default".to_owned()),
    ] {
        assert_eq!(setting(&ended, key), (value, layer.to_owned(), origin));
    }
}

#[test]
fn repository_settings_apply_in_every_worktree() {
    let scratch = with_repository();
    scratch.write("repo/lanewright.toml", "retries = 7\n");
    fs::create_dir_all(scratch.path("repo/deep/er")).expect("a directory");
    let git_directory = scratch.path("repo/.git");
    for directory in ["repo/deep/er", "linked", "repo"] {
        let there = scratch.path(directory);
        let there = there.to_str().expect("UTF-8");
        let ended = scratch.lanewright_with(&[SETTINGS, &["-C", there]].concat(), |command| {
            // What a git hook leaks must not lead us to another repository.
            command.env("GIT_DIR", "/nonexistent").env("GIT_INDEX_FILE", &git_directory)
        });
        assert_eq!(ended.code, 0, "{directory}: {}", ended.stderr);
        assert_eq!(setting(&ended, "retries").0, 7, "{directory}");
        let lanes = format!("{}.lanes", scratch.path("repo").display());
        assert_eq!(setting(&ended, "worktree_root").0, lanes, "{directory}");
    }
}

#[test]
fn invalid_settings_exit_2_with_all_locations() {
    let scratch = with_repository();
    scratch.write("repo/lanewright.toml", "retries = \"x\"\nmerg = \"local\"\n");
    scratch.write("config/lanewright/config.toml", "\nprogress = \"loud\"\n");
    let ended = scratch.lanewright(&["status", "--settings"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    for expected in ["(3 errors)", "repo/lanewright.toml:1:11: `retries`", "config.toml:2:12: `progress`"] {
        assert!(ended.stderr.contains(expected), "{expected}: {}", ended.stderr);
    }
    assert!(ended.stderr.contains("\nhint: did you mean `merge`?\n"), "{}", ended.stderr);
}

#[test]
fn unknown_key_is_an_error_unless_allowed() {
    let scratch = with_repository();
    scratch.write("repo/lanewright.toml", "retrys = 1\n");
    assert_eq!(scratch.lanewright(SETTINGS).code, 2);
    let ended = scratch.lanewright(&[SETTINGS, &["--allow-unknown"]].concat());
    assert_eq!(ended.code, 0);
    let warning: Value = serde_json::from_str(&ended.stderr).expect("one JSON object on standard error");
    assert_eq!(warning["kind"], "warning");
    assert_eq!(warning["hints"][0], "did you mean `retries`?");
    assert!(ended.json().is_array());
}

#[test]
fn colour_is_for_those_who_ask_for_it() {
    let scratch = TestEnv::without_repository();
    let styled = |arguments: &[&str], variables: &[(&str, &str)]| {
        let ended = scratch.lanewright_with(arguments, |command| command.envs(variables.iter().copied()));
        ended.stderr.contains('\u{1b}')
    };
    let ask = ["status", "--settings"];
    assert!(!styled(&ask, &[]), "a pipe is no terminal");
    assert!(styled(&ask, &[("CLICOLOR_FORCE", "1")]));
    assert!(!styled(&ask, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(styled(&["status", "--settings", "--color=always"], &[("NO_COLOR", "1")]));
    assert!(!styled(&["status", "--settings", "--color=never"], &[("CLICOLOR_FORCE", "1")]));
}

#[test]
fn a_reader_who_goes_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let scratch = TestEnv::without_repository();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
    let child = scratch.pin(&mut command).arg("man").stdout(writer).stderr(Stdio::piped()).spawn();
    let output = child.and_then(std::process::Child::wait_with_output).expect("the binary ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_a_failure() {
    let full = fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let scratch = TestEnv::without_repository();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanewright"));
    let child = scratch.pin(&mut command).arg("man").stdout(full).stderr(Stdio::piped()).spawn();
    let output = child.and_then(std::process::Child::wait_with_output).expect("the binary ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: cannot write to standard output"));
}

#[test]
fn completions_exist_for_every_shell() {
    let scratch = TestEnv::without_repository();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ended = scratch.lanewright(&["completions", shell]);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        assert!(ended.stdout.contains("COMPLETE") && ended.stdout.contains("lanewright"), "{shell}");
    }
    let script = scratch.lanewright(&["completions", "bash"]).stdout;
    scratch.write("completions.bash", &script);
    let checked = Command::new("bash").arg("-n").arg(scratch.path("completions.bash")).output().expect("bash");
    assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
}

/// What fish is offered for the last of `words`.
fn offered(scratch: &TestEnv, words: &[&str]) -> Vec<String> {
    let ended = scratch.lanewright_in(&[&["--", "lanewright"], words].concat(), &[("COMPLETE", "fish")]).exits(0);
    let names = ended.stdout.lines().filter_map(|line| line.split('\t').next());
    names.filter(|name| !name.starts_with('-')).map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_runs_lanes_and_agents() {
    let scratch = TestEnv::new();
    waiting_run(&scratch, "old-1");
    let mut newer = Run::begun(&scratch, "newer-2", 3);
    newer.checkpoint();
    assert_eq!(offered(&scratch, &["report", ""]), ["newer-2", "old-1", "@latest"]);
    assert_eq!(offered(&scratch, &["status", ""])[..3], ["SL-1", "SL-2", "newer-2"]);
    assert_eq!(offered(&scratch, &["status", "o"]), ["old-1"]);
    assert_eq!(offered(&scratch, &["logs", ""])[..3], ["SL-1", "SL-2", "newer-2"]);
    assert_eq!(offered(&scratch, &["logs", "SL-1", ""]), ["engineer", "SL-2"]);
    assert_eq!(offered(&scratch, &["logs", "old-1", "SL"]), ["SL-1", "SL-2"]);
    assert_eq!(offered(&scratch, &["logs", "old-1", "SL-2", "e"]), ["engineer"]);
    assert_eq!(offered(&scratch, &["resume", "--lane", "SL-2"]), ["SL-2"]);
    assert!(offered(&scratch, &["execute-phase", "p.toml", "--runner", "c"]).contains(&"claude".to_owned()));
    assert!(offered(&scratch, &["app"]).contains(&"approve".to_owned()));
    assert_eq!(offered(&TestEnv::without_repository(), &["logs", ""]), [""; 0], "outside of a repository");
}

#[test]
fn manual_has_a_page_for_every_command() {
    let scratch = TestEnv::without_repository();
    let page = scratch.lanewright(&["man"]);
    assert_eq!((page.code, page.stderr.as_str()), (0, ""));
    for part in
        [".TH lanewright 1", ".SH NAME", ".SH SYNOPSIS", ".SH SUBCOMMANDS", ".SH \"EXIT STATUS\"", ".SH EXAMPLES"]
    {
        assert!(page.stdout.contains(part), "{part}");
    }
    assert_eq!(scratch.lanewright(&["man", "--dir", "pages"]).code, 0);
    let alias = fs::read_to_string(scratch.path("repo/pages/lanewright-run.1")).expect("a page");
    assert_eq!(alias, ".so man1/lanewright-execute-phase.1\n");
    let sentence = "Work as if started in this directory";
    assert!(page.stdout.contains(sentence), "also what short help leaves out");
    for command in ["", "-execute-phase", "-plan-check", "-rollback"] {
        let page = scratch.path(&format!("repo/pages/lanewright{command}.1"));
        let text = fs::read_to_string(&page).expect("a page");
        assert!(text.contains(".SH SYNOPSIS") && text.contains(".SH EXAMPLES"), "{}", page.display());
    }
    let plans = scratch.path("repo/pages/lanewright-plan.5");
    assert!(fs::read_to_string(&plans).expect("a page").contains("THE TABLE lane"), "{}", plans.display());
    assert_eq!(scratch.lanewright(&["man", "--dir", "share/man1"]).code, 0);
    assert!(scratch.path("repo/share/man5/lanewright-plan.5").is_file(), "where `man` looks for it");
}

#[test]
fn diagnostics_go_to_stderr_only_on_request() {
    let scratch = with_repository();
    scratch.write("repo/lanewright.toml", "");
    let stderr = |more: &[&str], filter: &str| {
        let ended =
            scratch.lanewright_with(&[SETTINGS, more].concat(), |command| command.env("LANEWRIGHT_LOG", filter));
        assert!(ended.json().is_array());
        ended.stderr
    };
    assert_eq!(stderr(&[], ""), "");
    assert_eq!(stderr(&["-v"], "debug"), "", "a flag is stronger than a variable");
    for told in [stderr(&["-vv"], ""), stderr(&[], "lanewright::cli=debug")] {
        assert!(told.contains("configuration file read"), "{told}");
    }
    let line: Value = serde_json::from_str(&stderr(&["-vv", "--log-format=json"], "")).expect("one JSON object");
    assert_eq!(line["fields"]["message"], "configuration file read");
}

#[test]
fn a_wrong_filter_for_diagnostics_is_refused() {
    let ended =
        TestEnv::without_repository().lanewright_with(&["man"], |command| command.env("LANEWRIGHT_LOG", "a=b=c"));
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.starts_with("error: `LANEWRIGHT_LOG` cannot be understood"), "{}", ended.stderr);
}

#[test]
fn showing_settings_leaves_no_trace() {
    let scratch = with_repository();
    scratch.lanewright(SETTINGS);
    let is_empty = |path: &Path| fs::read_dir(path).expect("a directory").next().is_none();
    assert!(is_empty(&scratch.path("home")) && is_empty(&scratch.path("config")));
    assert!(!scratch.path("repo/.claude").exists(), "reading settings made state");
}
