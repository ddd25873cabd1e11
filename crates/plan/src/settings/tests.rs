mod programs;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use lanewright_model::{CommandLine, Gates, MergeChoice, PhaseId, Plan, Timeouts, plan::PlanParts};
use proptest::prelude::*;

use super::key::Kind;
use super::*;

fn invocation() -> Invocation {
    Invocation {
        repository: "/home/u/repo".into(),
        directory: "/home/u/repo/src".into(),
        home: Some("/home/u".into()),
        cores: 8,
    }
}

fn file(text: &str) -> ConfigFile {
    ConfigFile { path: "/home/u/repo/lanewright.toml".into(), text: text.to_owned() }
}

fn environment_of(pairs: &[(&str, &str)]) -> Environment {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect()
}

fn read_file(text: &str) -> Result<Layers, Faults> {
    Layers::read(Layer::default(), &Environment::new(), &[file(text)], &invocation())
}

fn faults(text: &str) -> Vec<String> {
    let shown = |fault: &Fault| {
        let help = fault.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        let severity = if fault.severity == Severity::Warning { "warning: " } else { "" };
        format!("{severity}{fault}{help}").replace("/home/u/repo/lanewright.toml:", "")
    };
    match read_file(text) {
        Ok(layers) => layers.warnings.iter().map(shown).collect(),
        Err(Faults(faults)) => faults.iter().map(shown).collect(),
    }
}

/// Four values that are valid for `key`, different from each other where there are so many.
fn samples(key: &Key) -> [String; 4] {
    [0, 1, 2, 3].map(|n| match key.kind {
        Kind::Text if key.name == "notify_webhook" => format!("$HOOK_{n}"),
        Kind::Text => format!("name-{n}"),
        Kind::Path => format!("/tmp/place-{n}"),
        Kind::Count | Kind::CountLimit => (n + 11).to_string(),
        Kind::Dollars => format!("{}.5", n + 11),
        Kind::Duration => format!("{}m", n + 11),
        Kind::Size => format!("{}MiB", n + 11),
        Kind::Boolean => (n % 2 == 0).to_string(),
        Kind::List if key.name.starts_with("sandbox_") => format!("/place_{n}"),
        Kind::List => format!("pattern_{n}"),
        Kind::Table => format!("{n}.lock = make lock"),
        Kind::Choice(words) => words()[n % words().len()].to_owned(),
    })
}

fn toml_line(key: &Key, value: &str) -> String {
    match key.kind {
        Kind::Count | Kind::CountLimit | Kind::Dollars | Kind::Boolean => format!("{} = {value}", key.name),
        Kind::List => format!("{} = [{value:?}]", key.name),
        Kind::Table => {
            let (name, value) = value.split_once(" = ").unwrap();
            format!("{} = {{ {name:?} = {value:?} }}", key.name)
        }
        _ => format!("{} = {value:?}", key.name),
    }
}

fn row(settings: &Settings, key: &str) -> (String, Origin) {
    let row = settings.rows().into_iter().find(|row| row.key == key).unwrap();
    let value = match &row.value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(texts) => texts.iter().filter_map(|text| text.as_str()).collect::<Vec<_>>().join("\n"),
        serde_json::Value::Object(texts) => texts
            .iter()
            .map(|(name, text)| format!("{name} = {}", text.as_str().unwrap()))
            .collect::<Vec<_>>()
            .join("\n"),
        other => other.to_string(),
    };
    (value, row.origin)
}

fn goes_into_files(key: &Key) -> bool {
    !["log_path", "allow_unknown", "session_id"].contains(&key.name)
}

/// Which of flag, variable, repository file, user file says something.
fn every_combination() -> impl Iterator<Item = [bool; 4]> {
    (0..16u8).map(|bits| [0, 1, 2, 3].map(|bit| bits & (1 << bit) != 0))
}

#[test]
fn strongest_layer_wins_for_every_setting() {
    for key in KEYS {
        for [flag, variable, repository, user] in every_combination() {
            let in_files = goes_into_files(key);
            let values = samples(key);
            let mut flags = Layer::default();
            if flag {
                flags.set(key.name, &values[0], Origin::Flag("--flag")).unwrap();
            }
            let variables =
                if variable { environment_of(&[(&key.variables()[0], &values[1])]) } else { Environment::new() };
            let line = |said: bool, value: &str| if said && in_files { toml_line(key, value) } else { String::new() };
            let files = [
                ConfigFile { path: "/repository.toml".into(), text: line(repository, &values[2]) },
                ConfigFile { path: "/user.toml".into(), text: line(user, &values[3]) },
            ];
            let layers = Layers::read(flags, &variables, &files, &invocation()).unwrap();
            assert_eq!(layers.warnings, [], "{}", key.name);

            let place =
                |path: &str| Origin::File(FilePosition { path: path.into(), line: 1, column: key.name.len() + 4 });
            let expected = match [flag, variable, repository && in_files, user && in_files] {
                [true, ..] => Some((&values[0], Origin::Flag("--flag"))),
                [_, true, ..] => Some((&values[1], Origin::Environment(key.variables()[0].clone()))),
                [_, _, true, _] => Some((&values[2], place("/repository.toml"))),
                [.., true] => Some((&values[3], place("/user.toml"))),
                _ => None,
            };
            let found = row(&layers.resolve(None), key.name);
            match expected {
                Some((value, origin)) => assert_eq!(found, (value.clone(), origin), "{}", key.name),
                None => assert_eq!(found.1, Origin::Default, "{}", key.name),
            }
        }
    }
}

fn plan() -> Plan {
    let timeouts = Timeouts { kill_after: std::time::Duration::from_secs(3), ..Timeouts::default() };
    Plan::new(PlanParts {
        phase: PhaseId::new("P1").unwrap(),
        title: None,
        base_branch: Some("plans-base".into()),
        max_parallel: Some(5),
        merge: Some(MergeChoice::None),
        timeouts,
        pools: BTreeMap::new(),
        gates: Gates::default(),
        require_gates: None,
        lanes: Vec::new(),
        exclusions: Vec::new(),
        sequences: Vec::new(),
        added_edges: Vec::new(),
        interfaces: Vec::new(),
        skipped: Vec::new(),
        lists: Vec::new(),
        companions: Vec::new(),
        runners: std::collections::BTreeMap::new(),
        executors: Default::default(),
        commit_message: None,
        replaced: Vec::new(),
        prompts: std::collections::BTreeMap::new(),
    })
    .unwrap()
}

#[test]
fn plan_layer_is_between_files_and_variables() {
    let text = "base = 'file'\nmax_parallel = 9\nmerge = 'local'\nkill_after = '1m'\nbackoff = '7s'";
    let said = [("base", "plans-base"), ("max_parallel", "5"), ("merge", "none"), ("kill_after", "3s")];
    let resolved = read_file(text).unwrap().resolve(Some(&plan()));
    for (key, value) in said {
        assert_eq!(row(&resolved, key), (value.to_owned(), Origin::Plan));
    }
    assert_eq!(row(&resolved, "backoff").0, "7s");

    let variables = environment_of(&[
        ("LANEWRIGHT_BASE", "variable"),
        ("LANEWRIGHT_MAX_PARALLEL", "6"),
        ("LANEWRIGHT_MERGE", "local"),
        ("LANEWRIGHT_KILL_AFTER", "4s"),
    ]);
    let layers = Layers::read(Layer::default(), &variables, &[file(text)], &invocation()).unwrap();
    let resolved = layers.resolve(Some(&plan()));
    for (key, _) in said {
        assert_eq!(row(&resolved, key).1.layer(), "environment", "{key}");
    }
}

#[test]
fn documented_defaults_match() {
    let defaults = Settings::defaults(&invocation());
    let worked_out = ["max_parallel", "worktree_root", "prompts", "checkpoint_path"];
    for (key, row) in KEYS.iter().zip(defaults.rows()).filter(|(key, _)| !worked_out.contains(&key.name)) {
        match row.value {
            serde_json::Value::Null => assert_eq!(row.default, key.default),
            serde_json::Value::String(text) => assert_eq!(text, key.default, "{}", key.name),
            other => assert_eq!(other.to_string(), key.default, "{}", key.name),
        }
    }
    assert_eq!(defaults.worktree_root.value, Path::new("/home/u/repo.lanes"));
    assert_eq!(defaults.checkpoint_path.value, Path::new("/home/u/repo/.claude/ai-dev-kit/run-logs/checkpoints.json"));
}

#[test]
fn default_parallelism_is_twice_cores_at_least_four() {
    for (cores, expected) in [(0, 4), (1, 4), (2, 4), (3, 6), (16, 32), (u32::MAX, u32::MAX)] {
        let defaults = Settings::defaults(&Invocation { cores, ..invocation() });
        assert_eq!(defaults.max_parallel.value.get(), expected);
    }
}

#[test]
fn all_setting_faults_are_reported_with_position() {
    let text = "max_paralel = 3\nmerge = \"locl\"\n\nretries = \"two\"\nprogress = 7\ntimeout = \"0s\"\n\
                session_id = \"x\"\nmax_parallel = -1\nworktree_root = \"\"\nkeep-pool = true\n";
    assert_eq!(
        faults(text),
        [
            "1:1: unknown key `max_paralel` (did you mean `max_parallel`?)",
            "2:9: `merge` is one of none, local, pr, merge, squash, rebase, ff: `locl` is none of them, did you mean `local`?",
            "4:11: `retries` is a number, not of type string",
            "5:12: `progress` is one of auto, live, plain, json, none, not of type integer",
            "6:11: `timeout` is a duration: `0s` is no time at all",
            "7:1: `session_id` cannot be set in a file",
            "8:16: `max_parallel` is a number: `-1` is not a whole number from 1",
            "9:17: `worktree_root` is a path: a path cannot be empty",
            "10:1: unknown key `keep-pool` (did you mean `keep_pool`?)",
        ]
    );
}

#[test]
fn faults_of_runners_are_reported_at_their_key() {
    let runner = |key: &str| format!("[runners.x]\ncommand = 'true'\n{key}\n");
    for (key, expected) in [
        ("fallback = 'codx'", "3:12: `fallback` names `codx`, and there is no such runner (did you mean `codex`?)"),
        (
            "fallback = ['claude', 'codx']",
            "3:23: `fallback` names `codx`, and there is no such runner (did you mean `codex`?)",
        ),
        ("max_cost = 0", "3:12: the runner `x`: a budget is more than 0; without the key there is no limit"),
        ("max_tokens = 0", "3:14: the runner `x`: a budget is more than 0; without the key there is no limit"),
        (
            "outages.ends = ['in (?<wat>x)']",
            "3:1: the runner `x`: `in (?<wat>x)` in `ends` has neither a group `(?<wait>…)` nor `(?<until>…)`",
        ),
    ] {
        assert_eq!(faults(&runner(key)), [expected], "{key}");
    }
    let layers = read_file(&runner("fallback = 'claude'")).unwrap();
    assert_eq!(layers.resolve(None).runners["x"].value.fallback.as_deref(), Some(&["claude".to_owned()][..]));
    let other = file("[runners.y]\ncommand = 'true'");
    let files = [file(&runner("fallback = 'y'")), other];
    assert!(Layers::read(Layer::default(), &Environment::new(), &files, &invocation()).is_ok(), "of another file");
}

#[test]
fn budget_of_nothing_is_an_error() {
    let message = "a budget is more than 0; `none` sets no limit";
    assert_eq!(value::dollars_limit("0"), Err(message.to_owned()));
    assert_eq!(value::dollars_limit("0.00"), Err(message.to_owned()));
    assert_eq!(value::count_limit("0"), Err(message.to_owned()));
    assert_eq!((value::dollars_limit("none"), value::count_limit("none")), (Ok(None), Ok(None)));
    assert_eq!(value::count_limit("1_000"), Ok(Some(1000)));
}

#[test]
fn syntax_error_does_not_hide_later_faults() {
    let faults = faults("base = \nmerge = 3\n");
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].starts_with("1:"), "{faults:?}");
    assert!(faults[1].starts_with("2:9: `merge` is one of"), "{faults:?}");
}

#[test]
fn duplicate_setting_is_an_error() {
    assert!(faults("retries = 1\nretries = 2\n").iter().any(|fault| fault.starts_with("2:1: duplicate")));
}

#[test]
fn setting_columns_count_characters() {
    let comment = "# ä";
    let with_mark = format!("\u{feff}nonsense = 1 {comment}\r\n\"äöü\" = 1\n");
    let newer = "(--allow-unknown ignores keys of newer versions)";
    let expected = [format!("1:1: unknown key `nonsense` {newer}"), format!("2:1: unknown key `äöü` {newer}")];
    assert_eq!(faults(&with_mark), expected);
    let inline = "runners = { \"ää\" = { command = 1 }, b = { command = 2 } }";
    assert_eq!(faults(inline).len(), 2);
    assert!(faults(inline)[1].starts_with("1:53: the `command` of `b`"), "{:?}", faults(inline));
}

#[test]
fn allow_unknown_ignores_unknown_settings() {
    let text = "max_paralel = 3\nx-team = \"core\"\n[runners.mine]\ncommand = \"a\"\nx-note = 1\ncolour = 2\n";
    assert_eq!(faults(text).len(), 2, "{:?}", faults(text));
    let flag = Layer { allow_unknown: Some(Setting::new(true, Origin::Flag("--allow-unknown"))), ..Layer::default() };
    let variable = environment_of(&[("LANEWRIGHT_ALLOW_UNKNOWN", "1")]);
    for (flags, variables) in [(flag, Environment::new()), (Layer::default(), variable)] {
        let layers = Layers::read(flags, &variables, &[file(text)], &invocation()).unwrap();
        let warned: Vec<String> = layers.warnings.iter().map(|fault| fault.message.clone()).collect();
        assert_eq!(warned, ["unknown key `max_paralel`", "unknown key `colour`"]);
    }
}

#[test]
fn relative_paths_resolve_from_their_source() {
    for key in KEYS.iter().filter(|key| matches!(key.kind, Kind::Path)) {
        let variables = environment_of(&[(&key.variables()[0], "../x/../y")]);
        let layers = Layers::read(Layer::default(), &variables, &[], &invocation()).unwrap();
        assert_eq!(row(&layers.resolve(None), key.name).0, "/home/u/repo/x/../y", "{}", key.name);
    }
    for (text, expected) in [
        ("../lanes", "/home/u/lanes"),
        ("./.worktrees", "/home/u/repo/.worktrees"),
        ("~/lanes", "/home/u/lanes"),
        ("/lanes", "/lanes"),
        ("~lanes", "/home/u/repo/~lanes"),
    ] {
        let layers = read_file(&format!("worktree_root = {text:?}")).unwrap();
        assert_eq!(layers.resolve(None).worktree_root.value, Path::new(expected));
    }
}

#[test]
fn empty_variable_counts_as_absent() {
    let cases = [
        ([("LANEWRIGHT_SESSION_ID", ""), ("CLAUDE_SESSION_ID", "c")], "c", "CLAUDE_SESSION_ID"),
        ([("LANEWRIGHT_SESSION_ID", "l"), ("CLAUDE_SESSION_ID", "c")], "l", "LANEWRIGHT_SESSION_ID"),
    ];
    for (pairs, value, name) in cases {
        let layers = Layers::read(Layer::default(), &environment_of(&pairs), &[], &invocation()).unwrap();
        let expected = (value.to_owned(), Origin::Environment(name.to_owned()));
        assert_eq!(row(&layers.resolve(None), "session_id"), expected);
    }
}

#[test]
fn specialist_timeout_variable_is_in_seconds() {
    let variables = environment_of(&[("SPECIALIST_TIMEOUT", "10")]);
    let layers = Layers::read(Layer::default(), &variables, &[], &invocation()).unwrap();
    let setting = layers.resolve(None).specialist_timeout;
    assert_eq!(setting.value.as_secs(), 10);
    assert_eq!(setting.origin.to_string(), "SPECIALIST_TIMEOUT");
}

#[test]
fn invalid_variable_is_named() {
    let variables = environment_of(&[("LANEWRIGHT_MERGE", "octopus"), ("LANEWRIGHT_KEEP_POOL", "maybe")]);
    let Faults(faults) = Layers::read(Layer::default(), &variables, &[], &invocation()).unwrap_err();
    let shown: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "`LANEWRIGHT_MERGE` is one of none, local, pr, merge, squash, rebase, ff: `octopus` is none of them",
            "`LANEWRIGHT_KEEP_POOL` is true or false: `maybe` is neither",
        ]
    );
}

#[test]
fn non_utf8_variable_is_an_error() {
    use std::os::unix::ffi::OsStringExt;
    let variables = Environment::from([("LANEWRIGHT_BASE".to_owned(), OsString::from_vec(vec![0xff]))]);
    assert!(Layers::read(Layer::default(), &variables, &[], &invocation()).is_err());
}

#[test]
fn misspelt_variable_is_a_warning() {
    let misspelt = environment_of(&[("LANEWRIGHT_MAX_PARALELL", "3")]);
    let layers = Layers::read(Layer::default(), &misspelt, &[], &invocation()).unwrap();
    assert_eq!(layers.warnings[0].help.as_deref(), Some("did you mean `LANEWRIGHT_MAX_PARALLEL`?"));

    // SPEC §6: a Lanewright that an agent starts finds these in its environment.
    let told = "RUN_ID PHASE LANE AGENT TASK ATTEMPT MAX_RETRIES WORKTREE BASE_COMMIT PROMPT_FILE TASK_FILE \
                STATUS_FILE RESULT_FILE FAILURE_CONTEXT_FILE EDIT_GATE EDITED_FILE PORT";
    let told = told.split_whitespace().map(|name| (format!("LANEWRIGHT_{name}"), "x".into())).collect();
    assert_eq!(Layers::read(Layer::default(), &told, &[], &invocation()).unwrap().warnings, []);
}

#[test]
fn only_flags_and_variables_outrank_plan() {
    let layers = read_file("retries = 1").unwrap();
    assert!(!layers.resolve(None).retries.origin.outranks_plan());
    let variables = environment_of(&[("LANEWRIGHT_RETRIES", "1")]);
    let layers = Layers::read(Layer::default(), &variables, &[], &invocation()).unwrap();
    assert!(layers.resolve(None).retries.origin.outranks_plan());
}

#[test]
fn none_removes_a_limit() {
    let variables = environment_of(&[("LANEWRIGHT_TIMEOUT", "none")]);
    let layers = Layers::read(Layer::default(), &variables, &[file("timeout = 60")], &invocation()).unwrap();
    assert_eq!(layers.resolve(None).timeout.value, None);
}

#[test]
fn settings_table_shows_values_and_origins() {
    let settings = read_file("retries = 3\nmax_file_size = \"none\"\n[runners.x]\ncommand = [\"a\", \"b c\"]")
        .unwrap()
        .resolve(None);
    let table = table(&settings);
    let line = |key: &str| {
        let line = table.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("retries"), "retries 3 /home/u/repo/lanewright.toml:1:11");
    assert_eq!(line("base"), "base (the current branch) default");
    assert_eq!(line("runners.x"), "runners.x a 'b c' /home/u/repo/lanewright.toml:4:11");
    assert_eq!(line("max_file_size"), "max_file_size none /home/u/repo/lanewright.toml:2:17");

    let json = json(&settings);
    let object = json.as_array().unwrap().iter().find(|object| object["key"] == "retries").unwrap();
    assert_eq!(
        object,
        &serde_json::json!({
            "key": "retries", "value": 3, "layer": "file", "origin": "/home/u/repo/lanewright.toml:1:11",
        })
    );
}

#[test]
fn patterns_must_be_regular_expressions() {
    let rules = |text: &str| read_file(text).unwrap().resolve(None).checkpoint_before.value.unwrap();
    assert_eq!(rules("checkpoint_before = []"), [""; 0]);
    assert_eq!(rules("checkpoint_before = ['a+', 'b c']"), ["a+", "b c"]);
    assert_eq!(
        faults("redact = ['sk-[a-z]+', '(']"),
        ["1:10: `redact` is a list of strings: `(` is no regular expression: error: unclosed group"]
    );
    assert_eq!(faults("redact = 'x'"), ["1:10: `redact` is a list of strings, not of type string"]);
    assert_eq!(faults("redact = [1]"), ["1:10: `redact` is a list of strings, not of type array"]);
}

#[test]
fn take_and_the_largest_file_are_checked() {
    assert_eq!(faults("take = ['vendor/**', 'data/*.bin']\nmax_file_size = '1KiB'"), [""; 0]);
    assert_eq!(faults("max_file_size = 'none'"), [""; 0]);
    let bad = faults("take = ['a[']");
    assert!(bad[0].starts_with("1:8: `take` is a list of strings: `a[` is not a valid glob: "), "{bad:?}");
    for outside in ["/abs", "../x", "a/../b"] {
        let expected = format!("`{outside}` matches nothing: paths are relative to the repository's root");
        let bad = faults(&format!("take = ['{outside}']"));
        assert!(bad.len() == 1 && bad[0].ends_with(&expected), "{bad:?}");
    }
    assert_eq!(faults("max_file_size = 'x'").len(), 1);
}

#[test]
fn every_setting_and_variable_is_documented() {
    let page = include_str!("../../../../docs/settings.md");
    for key in KEYS {
        let named = |line: &&str| line.starts_with(&format!("| `{}` |", key.name));
        let line = page.lines().find(named).unwrap_or_else(|| panic!("{} is not in the table", key.name));
        let variables = key.variables();
        let named = key.flags.iter().copied().chain(variables.iter().map(String::as_str));
        for part in named.chain([key.default]) {
            assert!(line.contains(part), "{}: the table does not say {part}", key.name);
        }
        for word in if let Kind::Choice(words) = key.kind { words() } else { Vec::new() } {
            assert!(line.contains(word), "{}: the table does not say {word}", key.name);
        }
    }
    for name in environment::known() {
        assert!(page.contains(&format!("`{name}`")), "{name} is not documented");
    }
}

proptest! {
    #[test]
    fn settings_reader_never_panics(text in "(?s)([a-z_]{0,9}[ =\\[\\]{}\"'.,\n#ä\u{feff}-]{0,4}[0-9]{0,3}){0,12}") {
        let _ = read_file(&text);
    }

    #[test]
    fn durations_read_back_as_they_are_shown(millis in 1u64..100_000_000_000) {
        let duration = std::time::Duration::from_millis(millis);
        let shown = value::SettingValue::to_json(&duration);
        prop_assert_eq!(value::duration(shown.as_str().unwrap()), Ok(duration));
    }
}

#[test]
fn sizes_are_read_with_their_units() {
    let read = |text| super::value::size_limit(text).map(|size| size.map(|size| size.to_string()));
    let reads = |text, shown: &str| assert_eq!(read(text), Ok(Some(shown.to_owned())));
    reads("1GiB", "1GiB");
    reads("2048 MiB", "2GiB");
    reads("1536KiB", "1536KiB");
    reads("1048577", "1048577");
    assert_eq!(read("none"), Ok(None));
    assert_eq!(read("1023KiB"), Err("`1023KiB` is less than 1MiB".to_owned()));
    for text in ["1GB", "-1", "1.5GiB", "", "99999999TiB"] {
        assert_eq!(read(text), Err(format!("`{text}` is not a size; write for example `512MiB` or `1GiB`")));
    }
}

#[test]
fn commands_that_make_files_again_are_a_table() {
    let text = "[regenerate]\n\"Cargo.lock\" = \"cargo update -w\"\n\"web/*.lock\" = \"make lock A=b\"\n";
    let value = read_file(text).unwrap().resolve(None).regenerate.value.unwrap();
    let entries: Vec<(&str, &str)> = value.iter().map(|(glob, line)| (glob.as_str(), line.as_str())).collect();
    assert_eq!(entries, [("Cargo.lock", "cargo update -w"), ("web/*.lock", "make lock A=b")]);
    for (text, wrong) in [
        ("regenerate = \"x\"", "`regenerate` is a table of strings, not of type string"),
        ("[regenerate]\n\"../x.lock\" = \"make\"", "paths are relative to the repository's root"),
        ("[regenerate]\n\"x.lock\" = \" \"", "the command of `x.lock`: it is empty"),
        ("[regenerate]\n\"x.lock\" = 3", "a table of strings"),
    ] {
        assert!(faults(text).iter().any(|fault| fault.contains(wrong)), "{text}: {:?}", faults(text));
    }
}
