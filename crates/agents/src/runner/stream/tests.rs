use std::path::Path;

use lanewright_model::runner::RunnerText;

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
    let said = readable_lines(&runner, &[&[part], &lines[2..], &[r#"{"type":"step","mess"#.to_owned()]].concat());
    assert_eq!(said, ["[Write] a.txt", "I write.", "Now.", "[Bash] rm -rf x"]);
    assert_eq!(readable_lines(&runner, &lines[..1]), [""; 0], "nothing that a person would want to know");
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

#[test]
fn totals_at_the_end_replace_sum_of_parts() {
    let runner = runner(RULES);
    let end = r#"{"type":"result","out":70,"usd":0.25,"failed":false,"why":"none"}"#;
    let (_, transcript) = read(&runner, &[STEPS, &[end]].concat(), true);
    let usage = Usage { tool_calls: 2, output_tokens: 70, cost: Dollars::new(0.25), ..Usage::default() };
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
