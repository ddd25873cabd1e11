use std::path::Path;

use lanewright_model::runner::RunnerText;

use lanewright_model::Dollars;

use super::*;

fn runner(text: &str) -> Runner {
    toml::from_str::<RunnerText>(&format!("command = ['x']\n{text}")).unwrap().complete().unwrap()
}

const RULES: &str = r#"
[[event]]
when = { "/type" = "begin" }
session = "/id"
[[event]]
when = { "/type" = ["step", "last"] }
each = "/parts"
only = { "/kind" = "tool" }
tool_call = { name = "/name", input = "/input" }
[[event]]
when = { "/type" = "step" }
each = "/parts"
only = { "/kind" = "text" }
message = "/text"
[[event]]
when = { "/type" = "step" }
once_per = "/message"
input_tokens = "/in"
input_includes_cache_read = true
cache_read_tokens = "/cached"
[[event]]
when = { "/type" = "result" }
totals = true
output_tokens = "/out"
cost = "/usd"
ends = true
error = "/why"
error_when = { "/failed" = true }
"#;

const STEPS: &[&str] = &[
    r#"{"type":"begin","id":"s-1"}"#,
    "a warning",
    r#"{"type":"step","message":"m1","in":10,"cached":4,"parts":[{"kind":"text","text":"I write.\nNow."},{"kind":"tool","name":"Write","input":{"path":"a.txt","text":"long"}}]}"#,
    r#"{"type":"step","message":"m1","in":10,"cached":4,"parts":[{"kind":"tool","name":"Bash","input":{"command":"rm -rf x"}}]}"#,
    r#"{"type":"other","parts":[{"kind":"tool","name":"No"}]}"#,
];

fn read(runner: &Runner, lines: &[&str], passed: bool) -> (Vec<String>, Transcript) {
    let mut stream = Stream::new(runner);
    let said = lines.iter().flat_map(|line| stream.read(line)).flat_map(|said| said.lines()).collect();
    (said, stream.finish(passed, None))
}

#[test]
fn partial_events_are_left_out_of_readable_lines() {
    let runner = runner(RULES);
    let lines: Vec<String> = STEPS.iter().map(|line| (*line).to_owned()).collect();
    let part = r#""name":"Write","input":{"path":"cut off"}}]}"#.to_owned();
    let said = readable_lines(&runner, None, &[&[part], &lines[2..], &[r#"{"type":"step","mess"#.to_owned()]].concat());
    assert_eq!(said, ["[Write] a.txt", "I write.", "Now.", "[Bash] rm -rf x"]);
    assert_eq!(readable_lines(&runner, None, &lines[..1]), [""; 0], "nothing that a person would want to know");
}

#[test]
fn stream_rules_extract_messages_and_calls() {
    let runner = runner(RULES);
    let (said, transcript) = read(&runner, STEPS, false);
    assert_eq!(said, ["a warning", "[Write] a.txt", "I write.", "Now.", "[Bash] rm -rf x"]);
    assert_eq!(transcript.session.as_deref(), Some("s-1"));
    assert_eq!((transcript.message.as_str(), transcript.error.as_str()), ("I write.\nNow.", ""));
    let usage = transcript.usage;
    assert_eq!((usage.tool_calls, usage.input_tokens, usage.cache_read_tokens), (2, 6, 4), "one message counts once");
}

const CALLS: &str = r#"
write_tools = ["Write"]
refusals = ['^Denied: (?<reason>.*)']
[[event]]
when = { "/t" = "call" }
tool_call = { name = "/tool", input = "/input", id = "/id" }
[[event]]
when = { "/t" = "result" }
tool_result = { id = "/id", text = "/text", exit_code = "/code", failed_when = { "/failed" = true } }
[[event]]
when = { "/t" = "end" }
each = "/denied"
tool_refused = "/id"
[[text]]
pattern = 'router: (?<failed>.*)'
"#;

fn call(id: u32, tool: &str, input: &str) -> String {
    serde_json::json!({"t": "call", "id": id, "tool": tool, "input": {"path": input}}).to_string()
}

fn result(id: u32, failed: bool, text: &str) -> String {
    serde_json::json!({"t": "result", "id": id, "failed": failed, "text": text}).to_string()
}

fn read_calls(lines: &[String]) -> (Vec<String>, Transcript) {
    let runner = runner(CALLS);
    let mut stream = Stream::new(&runner);
    stream.set_worktree(Some(Path::new("/w/code")));
    let said = lines.iter().flat_map(|line| stream.read(line)).filter(|said| !matches!(said, StreamItem::Call(_)));
    let said = said.inspect(|said| assert!(!said.is_from_program(), "a tool's output: {said:?}"));
    let said = said.flat_map(|said| said.lines()).collect();
    (said, stream.finish(false, None))
}

fn refused(transcript: &Transcript) -> Vec<String> {
    transcript.refusals.iter().map(ToString::to_string).collect()
}

#[test]
fn refused_and_failed_calls_are_counted_and_shown() {
    let exit = serde_json::json!({"t": "result", "id": 2, "code": 101, "text": ["x"]}).to_string();
    let lines = [
        call(1, "Write", "/w/code/a.txt"),
        call(2, "Run", "ls"),
        result(1, true, "Denied: not in\n /w/code/a.txt"),
        exit,
        call(3, "Run", "ls"),
        result(3, true, "the quota is exhausted"),
        "router: Denied: by a hook".to_owned(),
        call(4, "Run", "ls"),
        result(4, false, "Denied: in a file that it read"),
    ];
    let (said, transcript) = read_calls(&lines);
    let usage = transcript.usage;
    assert_eq!((usage.tool_calls, usage.refused_calls, usage.failed_calls), (5, 2, 2));
    assert_eq!(
        said,
        [
            "refused: [Write] a.txt: not in",
            "failed: [Run] ls: exit code 101",
            "failed: [Run] ls: the quota is exhausted",
            "refused: by a hook",
        ]
    );
    assert_eq!(refused(&transcript), ["[Write] a.txt: not in", "by a hook"]);
}

#[test]
fn refusals_before_a_written_file_are_no_concern_of_the_next_attempt() {
    let denied = |id| [call(id, "Write", "a"), result(id, true, "Denied: a")];
    let written = [call(9, "Write", "b"), result(9, false, "ok")];
    let read = [call(8, "Read", "b"), result(8, false, "ok")];
    assert_eq!(refused(&read_calls(&[denied(1), denied(2), written.clone()].concat()).1), [""; 0]);
    assert_eq!(refused(&read_calls(&[written.clone(), denied(1), read, denied(2)].concat()).1), ["[Write] a: a"]);
    let many: Vec<String> =
        (1..6).flat_map(|id| [call(id, "Write", &id.to_string()), result(id, true, "Denied: x")]).collect();
    assert_eq!(refused(&read_calls(&many).1), ["[Write] 3: x", "[Write] 4: x", "[Write] 5: x"]);
    // What the end of the stream names was refused, but before a file was written.
    let end = |id: u32| vec![serde_json::json!({"t": "end", "denied": [{"id": id}]}).to_string()];
    let failed = [call(1, "Write", "a"), result(1, true, "because")];
    let late = read_calls(&[failed.to_vec(), end(1)].concat()).1;
    assert_eq!((late.usage.refused_calls, late.usage.failed_calls, refused(&late).len()), (1, 0, 1));
    let early = read_calls(&[failed.to_vec(), written.to_vec(), end(1)].concat()).1;
    assert_eq!((early.usage.refused_calls, early.usage.failed_calls, refused(&early).len()), (1, 0, 0));
}

#[test]
fn result_of_an_unknown_call_is_shown_without_it() {
    let runner = runner(CALLS);
    let lines = [result(7, true, "Denied: x"), result(8, true, "y")];
    assert_eq!(readable_lines(&runner, None, &lines), ["refused: x", "failed: y"]);
}

#[test]
fn totals_at_the_end_replace_sum_of_parts() {
    let runner = runner(RULES);
    let end = r#"{"type":"result","out":70,"usd":0.25,"failed":false,"why":"none"}"#;
    let (_, transcript) = read(&runner, &[STEPS, &[end]].concat(), true);
    // Of what it does not tell, the parts count.
    let usage = Usage { input_tokens: 6, cache_read_tokens: 4, output_tokens: 70, ..Usage::default() };
    let usage = Usage { tool_calls: 2, cost: Dollars::new(0.25), ..usage };
    assert_eq!((transcript.usage, transcript.error.as_str()), (usage, ""));
}

#[test]
fn truncated_stream_with_exit_zero_is_a_failure() {
    let runner = runner(RULES);
    assert_eq!(read(&runner, STEPS, true).1.error, "its output broke off before the end");
    assert_eq!(read(&runner, &[], true).1.error, "its output broke off before the end");
    let failed = r#"{"type":"result","failed":true,"why":"no credit"}"#;
    let (said, transcript) = read(&runner, &[failed], true);
    assert_eq!((said.as_slice(), transcript.error.as_str()), (["error: no credit".to_owned()].as_slice(), "no credit"));
    let silent = read(&runner, &[r#"{"type":"result","failed":true}"#], true).1.error;
    assert_eq!(silent, "it says that it failed, and not why");
}

#[test]
fn resumed_session_usage_is_not_counted_twice() {
    let runner = runner(
        "[[event]]\nsession = '/id'\ntotals = 'session'\ninput_tokens = '/in'\ncost = '/usd'\n[[event]]\ntotals = true\noutput_tokens = '/out'",
    );
    let before =
        Session { id: "s".into(), usage: Usage { input_tokens: 300, ..Usage::default() }, worktree: "/w".into() };
    let read = |line: &str| {
        let mut stream = Stream::new(&runner);
        stream.read(line);
        stream.finish(true, Some(&before))
    };
    let transcript = read(r#"{"id":"s","in":650}"#);
    assert_eq!((transcript.usage.input_tokens, transcript.session_usage.unwrap().input_tokens), (350, 650));
    assert_eq!(transcript.continuable(None, Path::new("/w")).unwrap().usage.input_tokens, 650);
    assert_eq!(read(r#"{"id":"other","in":650}"#).usage.input_tokens, 650);
    assert_eq!(read(r#"{"id":"s","out":650}"#).usage.output_tokens, 650);
}

#[test]
fn single_numbers_are_of_the_session_from_a_version_on() {
    let runner = runner(
        "[[event]]\nsession = '/id'\nversion = '/version'\n[[event]]\ntotals = true\ninput_tokens = '/in'\ncost = '/usd'\n\
         session_totals = ['cost']\nsession_totals_since = '2.1.277'",
    );
    let cents = |cents: u32| Dollars::new(f64::from(cents) / 100.0);
    let usage = Usage { cost: cents(30), ..Usage::default() };
    let before = Session { id: "s".into(), usage, worktree: "/w".into() };
    for (version, used, of_session) in [
        ("\"2.1.276\"", 50, None),
        ("\"2.1.277\"", 20, Some(50)),
        ("\"2.10.0\"", 20, Some(50)),
        ("null", 20, Some(50)),
        ("\"nightly\"", 20, Some(50)),
    ] {
        let mut stream = Stream::new(&runner);
        stream.read(&format!("{{\"id\":\"s\",\"version\":{version}}}"));
        stream.read(r#"{"in":100,"usd":0.5}"#);
        let transcript = stream.finish(true, Some(&before));
        assert_eq!(
            (transcript.usage.cost, transcript.session_usage.and_then(|it| it.cost)),
            (cents(used), of_session.and_then(cents)),
            "{version}"
        );
        assert_eq!(transcript.usage.input_tokens, 100, "{version}");
    }
}

#[test]
fn numbers_of_all_members_are_added_up() {
    let runner = runner("[[event]]\ntotals = true\ninput_tokens = '/of/*/in'\noutput_tokens = '/of/*/out'");
    let mut stream = Stream::new(&runner);
    stream.read(r#"{"of":{"one":{"in":100,"out":18446744073709551615},"two":{"in":20,"out":1},"three":7}}"#);
    let usage = stream.finish(true, None).usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (120, u64::MAX));
}

/// After 300 tokens, an attempt that was stopped, of which 170 were counted: its program may have kept that, or not.
#[test]
fn attempts_after_a_stopped_one_count_once() {
    let runner = runner(
        "[[event]]\nsession = '/id'\n[[event]]\nonce_per = '/part'\ninput_tokens = '/in'\n\
         [[event]]\ntotals = 'session'\ninput_tokens = '/all'",
    );
    let read = |lines: &[&str], before: Option<&Session>| {
        let mut stream = Stream::new(&runner);
        stream.read(r#"{"id":"s"}"#);
        lines.iter().for_each(|line| drop(stream.read(line)));
        stream.finish(true, before)
    };
    let usage = Usage { input_tokens: 300, ..Usage::default() };
    let before = Session { id: "s".into(), usage, worktree: "/w".into() };
    let stopped = read(&[r#"{"part":"a","in":170}"#], Some(&before));
    assert_eq!(stopped.usage.input_tokens, 170);
    let before = stopped.continuable(Some(&before), Path::new("/w")).unwrap();
    assert_eq!(before.usage.input_tokens, 470);
    for (told, used) in [(650, 180), (480, 120), (300, 120), (0, 120)] {
        let next = read(&[r#"{"part":"b","in":120}"#, &format!("{{\"all\":{told}}}")], Some(&before));
        assert_eq!(next.usage.input_tokens, used, "{told}");
    }
}

#[test]
fn warning_is_cleared_when_work_continues() {
    let runner = runner("[[event]]\nwarning = '/trouble'\nmessage = '/text'");
    let (said, transcript) = read(&runner, &[r#"{"trouble":"429"}"#], false);
    assert_eq!((said, transcript.warning.as_str()), (vec!["warning: 429".to_owned()], "429"));
    assert_eq!(read(&runner, &[r#"{"trouble":"429"}"#, r#"{"text":"on it"}"#], false).1.warning, "");
}

#[test]
fn message_pieces_are_joined() {
    let runner =
        runner("[[event]]\nwhen = { '/t' = 'p' }\nmessage = '/c'\npieces = true\n[[event]]\nwhen = { '/t' = 'x' }");
    let piece = |text: &str| serde_json::json!({"t": "p", "c": text}).to_string();
    let lines = [
        piece("I "),
        piece("write.\nNo"),
        piece("w."),
        r#"{"t":"x"}"#.to_owned(),
        piece("Done."),
        r#"{"t":"x"}"#.to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (said, transcript) = read(&runner, &lines, true);
    assert_eq!(said, ["I write.", "Now.", "Done."]);
    assert_eq!(transcript.message, "Done.");
    assert_eq!(read(&runner, &lines[..3], true).1.message, "I write.\nNow.");
}

#[test]
fn text_rules_match_plain_lines() {
    let rules = r"
[[text]]
pattern = 'Tokens: (?<input_tokens>[\d.,kM]+) sent, (?<output_tokens>[\d.,kM]+) received(?:.* \$(?<cost>[\d.]+) message)?'
";
    let runner = runner(rules);
    let lines =
        ["Tokens: 2.3k sent, 1,034 received.", "Tokens: 700 sent, 66 received. Cost: $0.05 message, $0.09 session."];
    let (said, transcript) = read(&runner, &lines, true);
    assert_eq!(said, lines);
    let usage = transcript.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost), (3000, 1100, Dollars::new(0.05)));
    assert_eq!(transcript.error, "");
}

#[test]
fn session_id_that_looks_like_a_flag_is_ignored() {
    let runner = runner(RULES);
    for id in ["--dangerous", "a b", "", "x;y", "$(id)"] {
        let line = serde_json::json!({"type": "begin", "id": id}).to_string();
        assert_eq!(read(&runner, &[&line], false).1.session, None, "{id}");
    }
}

proptest::proptest! {
    #[test]
    fn stream_reader_never_panics(lines in proptest::collection::vec(".{0,80}", 0..8)) {
        let runner = runner(RULES);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        read(&runner, &lines, true);
    }
}
