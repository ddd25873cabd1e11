//! The command line as people and programs meet it: the real binary in a pinned environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A home, a scratch directory and nothing else of the machine.
struct Scratch {
    root: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let scratch = Self { root: tempfile::tempdir().expect("a temporary directory") };
        for directory in ["home", "config/lanekeeper", "work"] {
            fs::create_dir_all(scratch.path(directory)).expect("a directory");
        }
        scratch
    }

    /// With a repository at `work`, which has one commit and one linked worktree at `linked`.
    fn with_repository() -> Self {
        let scratch = Self::new();
        scratch.git(&["init", "--quiet", "--initial-branch=main"]);
        scratch.git(&["commit", "--quiet", "--allow-empty", "--message=first"]);
        scratch.git(&["worktree", "add", "--quiet", "../linked"]);
        scratch
    }

    fn path(&self, below: &str) -> PathBuf {
        fs::canonicalize(self.root.path()).expect("the root").join(below)
    }

    fn write(&self, below: &str, text: &str) {
        fs::write(self.path(below), text).expect("a file");
    }

    fn git(&self, arguments: &[&str]) {
        let who = ["-c", "user.name=someone", "-c", "user.email=someone@example.invalid"];
        let output = self.pin(Command::new("git").args(who)).args(arguments).output().expect("git");
        assert!(output.status.success(), "{output:?}");
    }

    fn pin<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", self.path(""))
            .env("LC_ALL", "C")
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
    }

    fn lanekeeper(&self, arguments: &[&str]) -> Ended {
        self.lanekeeper_with(arguments, |_| {})
    }

    fn lanekeeper_with(&self, arguments: &[&str], more: impl FnOnce(&mut Command)) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"));
        more(self.pin(&mut command).args(arguments));
        command.output().expect("the binary starts").into()
    }
}

#[derive(Debug)]
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        let code = output.status.code().expect("an exit code");
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ended {
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("JSON on standard output")
    }

    /// The setting called `key` in the output of `status --settings --format json`: value, layer, origin.
    fn setting(&self, key: &str) -> (Value, String, String) {
        let settings = self.json();
        let rows = settings.as_array().expect("a list");
        let row = rows.iter().find(|row| row["key"] == key).expect("the setting");
        let text = |field: &str| row[field].as_str().expect("text").to_owned();
        (row["value"].clone(), text("layer"), text("origin"))
    }
}

const SETTINGS: &[&str] = &["status", "--settings", "--format", "json"];

#[test]
fn help_goes_to_standard_output_and_lists_every_exit_code() {
    for arguments in [["--help"].as_slice(), &["-h"], &["execute-phase", "--help"], &["help", "execute-lane"]] {
        let help = Scratch::new().lanekeeper(arguments);
        assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{arguments:?}");
        let table = help.stdout.split("Exit codes:").nth(1).expect("a table of exit codes");
        for code in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "124", "130", "143"] {
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
        &["execute-phase", "p.toml", "--merge", "rebase"],
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
        let ended = Scratch::new().lanekeeper(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments:?}: {ended:?}");
        assert!(!ended.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn an_unknown_command_names_the_nearest() {
    let ended = Scratch::new().lanekeeper(&["statsu"]);
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
        let ended = Scratch::new().lanekeeper(arguments);
        let error: Value = serde_json::from_str(&ended.stderr).expect("one JSON object on standard error");
        assert_eq!((ended.code, &error["code"], &error["kind"]), (2, &2.into(), &"usage".into()));
        assert!(error["message"].as_str().is_some_and(|text| text.contains(message)), "{error}");
        assert!(error["hints"].to_string().contains(hint), "{error}");
    }
}

#[test]
fn hints_are_lines_of_their_own() {
    let ended = Scratch::new().lanekeeper(&["status", "--settings"]);
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ended.stderr);
    assert!(lines[0].starts_with("error: ") && lines[1].starts_with("hint: "), "{}", ended.stderr);
}

#[test]
fn settings_come_from_flagless_layers_in_their_order() {
    let scratch = Scratch::with_repository();
    scratch.write("work/lanekeeper.toml", "retries = 1\nworktree_root = \"../elsewhere\"\n");
    scratch.write("config/lanekeeper/config.toml", "retries = 2\nbackoff = \"9s\"\nrunner = \"mine\"\n");
    let ended = scratch.lanekeeper_with(SETTINGS, |command| {
        command.env("LANEKEEPER_RUNNER", "theirs");
    });
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let repository_file = scratch.path("work/lanekeeper.toml").display().to_string();
    let user_file = scratch.path("config/lanekeeper/config.toml").display().to_string();
    let elsewhere = scratch.path("elsewhere").display().to_string();
    for (key, value, layer, origin) in [
        ("retries", Value::from(1), "file", format!("{repository_file}:1:11")),
        ("worktree_root", elsewhere.into(), "file", format!("{repository_file}:2:17")),
        ("backoff", "9s".into(), "file", format!("{user_file}:2:11")),
        ("runner", "theirs".into(), "environment", "LANEKEEPER_RUNNER".to_owned()),
        ("heartbeat", "5s".into(), "default", "default".to_owned()),
    ] {
        assert_eq!(ended.setting(key), (value, layer.to_owned(), origin));
    }
}

#[test]
fn the_repositorys_file_counts_from_every_directory_and_worktree_of_it() {
    let scratch = Scratch::with_repository();
    scratch.write("work/lanekeeper.toml", "retries = 7\n");
    fs::create_dir_all(scratch.path("work/deep/er")).expect("a directory");
    let git_directory = scratch.path("work/.git");
    for directory in ["work/deep/er", "linked", "work"] {
        let there = scratch.path(directory);
        let there = there.to_str().expect("UTF-8");
        let ended = scratch.lanekeeper_with(&[SETTINGS, &["-C", there]].concat(), |command| {
            // What a git hook leaks must not lead us to another repository.
            command.env("GIT_DIR", "/nonexistent").env("GIT_INDEX_FILE", &git_directory);
        });
        assert_eq!(ended.code, 0, "{directory}: {}", ended.stderr);
        assert_eq!(ended.setting("retries").0, 7, "{directory}");
        let lanes = format!("{}.lanes", scratch.path("work").display());
        assert_eq!(ended.setting("worktree_root").0, lanes, "{directory}");
    }
}

#[test]
fn a_faulty_configuration_exits_with_2_and_tells_all_faults_with_their_places() {
    let scratch = Scratch::with_repository();
    scratch.write("work/lanekeeper.toml", "retries = \"x\"\nmerg = \"local\"\n");
    scratch.write("config/lanekeeper/config.toml", "\nprogress = \"loud\"\n");
    let ended = scratch.lanekeeper(&["status", "--settings"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    for expected in ["(3 errors)", "work/lanekeeper.toml:1:11: `retries`", "config.toml:2:12: `progress`"] {
        assert!(ended.stderr.contains(expected), "{expected}: {}", ended.stderr);
    }
    assert!(ended.stderr.contains("\nhint: did you mean `merge`?\n"), "{}", ended.stderr);
}

#[test]
fn an_unknown_key_is_an_error_unless_it_is_allowed_and_then_the_data_stays_clean() {
    let scratch = Scratch::with_repository();
    scratch.write("work/lanekeeper.toml", "retrys = 1\n");
    assert_eq!(scratch.lanekeeper(SETTINGS).code, 2);
    let ended = scratch.lanekeeper(&[SETTINGS, &["--allow-unknown"]].concat());
    assert_eq!(ended.code, 0);
    let warning: Value = serde_json::from_str(&ended.stderr).expect("one JSON object on standard error");
    assert_eq!(warning["kind"], "warning");
    assert_eq!(warning["hints"][0], "did you mean `retries`?");
    assert!(ended.json().is_array());
}

#[test]
fn colour_is_for_those_who_ask_for_it() {
    let scratch = Scratch::new();
    let styled = |arguments: &[&str], variables: &[(&str, &str)]| {
        let ended = scratch.lanekeeper_with(arguments, |command| {
            command.envs(variables.iter().copied());
        });
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
    let scratch = Scratch::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"));
    let child = scratch.pin(&mut command).arg("man").stdout(writer).stderr(Stdio::piped()).spawn();
    let output = child.and_then(std::process::Child::wait_with_output).expect("the binary ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_a_failure() {
    let full = fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let scratch = Scratch::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanekeeper"));
    let child = scratch.pin(&mut command).arg("man").stdout(full).stderr(Stdio::piped()).spawn();
    let output = child.and_then(std::process::Child::wait_with_output).expect("the binary ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: cannot write to standard output"));
}

#[test]
fn completions_are_made_for_every_shell_and_bash_can_read_its_own() {
    let scratch = Scratch::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ended = scratch.lanekeeper(&["completions", shell]);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        assert!(ended.stdout.contains("execute-phase"), "{shell}");
    }
    let script = scratch.lanekeeper(&["completions", "bash"]).stdout;
    scratch.write("completions.bash", &script);
    let checked = Command::new("bash").arg("-n").arg(scratch.path("completions.bash")).output().expect("bash");
    assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
}

#[test]
fn the_manual_page_has_its_sections_and_there_is_one_for_every_command() {
    let scratch = Scratch::new();
    let page = scratch.lanekeeper(&["man"]);
    assert_eq!((page.code, page.stderr.as_str()), (0, ""));
    for part in [".TH lanekeeper 1", ".SH NAME", ".SH SYNOPSIS", ".SH SUBCOMMANDS", "Exit codes:"] {
        assert!(page.stdout.contains(part), "{part}");
    }
    assert_eq!(scratch.lanekeeper(&["man", "--dir", "pages"]).code, 0);
    for command in ["", "-execute-phase", "-plan-check", "-rollback"] {
        let page = scratch.path(&format!("work/pages/lanekeeper{command}.1"));
        let text = fs::read_to_string(&page).expect("a page");
        assert!(text.contains(".SH SYNOPSIS"), "{}", page.display());
    }
}

#[test]
fn diagnostics_are_written_for_those_who_ask_and_never_among_the_data() {
    let scratch = Scratch::with_repository();
    scratch.write("work/lanekeeper.toml", "");
    let stderr = |more: &[&str], filter: &str| {
        let ended = scratch.lanekeeper_with(&[SETTINGS, more].concat(), |command| {
            command.env("LANEKEEPER_LOG", filter);
        });
        assert!(ended.json().is_array());
        ended.stderr
    };
    assert_eq!(stderr(&[], ""), "");
    assert_eq!(stderr(&["-v"], "debug"), "", "a flag is stronger than a variable");
    for told in [stderr(&["-vv"], ""), stderr(&[], "lanekeeper::cli=debug")] {
        assert!(told.contains("configuration file read"), "{told}");
    }
    let line: Value = serde_json::from_str(&stderr(&["-vv", "--log-format=json"], "")).expect("one JSON object");
    assert_eq!(line["fields"]["message"], "configuration file read");
}

#[test]
fn a_wrong_filter_for_diagnostics_is_refused() {
    let ended = Scratch::new().lanekeeper_with(&["man"], |command| {
        command.env("LANEKEEPER_LOG", "a=b=c");
    });
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.starts_with("error: `LANEKEEPER_LOG` cannot be understood"), "{}", ended.stderr);
}

#[test]
fn showing_settings_leaves_no_trace() {
    let scratch = Scratch::with_repository();
    scratch.lanekeeper(SETTINGS);
    let is_empty = |path: &Path| fs::read_dir(path).expect("a directory").next().is_none();
    assert!(is_empty(&scratch.path("home")) && is_empty(&scratch.path("config/lanekeeper")));
    assert!(!scratch.path("work/.claude").exists(), "reading settings made state");
}
