//! What the real programs printed (`fixtures/streams`), read by the rules of their runners.

use std::fs;
use std::path::Path;

use lanewright_agents::diagnose;
use lanewright_agents::runner::{Catalogue, Stream, StreamItem};
use lanewright_model::job::TAIL_LINES;
use lanewright_model::{ExitCause, JobExit, OutageKind, Timestamp};

/// One line a scenario: calls and tokens, the message, what is wrong, and what was out if the program failed. Below it
/// the calls that were refused or failed, as they are shown, and a star at each refusal that concerns the next attempt.
fn told(name: &str, exits: &[(&str, i32)]) -> String {
    let runner = Catalogue::default().get(name).expect("a runner");
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/streams").join(name);
    let recorded = fs::read_dir(&directory).expect("recordings").count();
    assert_eq!(recorded, exits.len(), "every recording of {name} is read");
    let mut lines = Vec::new();
    for (scenario, exit) in exits {
        let text = fs::read_to_string(directory.join(format!("{scenario}.log"))).expect(scenario);
        let mut stream = Stream::new(&runner);
        stream.set_worktree(Some(Path::new("/repo")));
        let said: Vec<StreamItem> = text.lines().flat_map(|line| stream.read(line)).collect();
        let transcript = stream.finish(*exit == 0, None);
        let own = said.iter().filter(|said| said.is_from_program());
        let shown: Vec<String> = own.flat_map(StreamItem::lines).collect();
        let cause = if *exit == 124 { ExitCause::TimedOut } else { ExitCause::Exited };
        let exit = ended(cause, *exit, shown[shown.len().saturating_sub(TAIL_LINES)..].to_vec());
        let outage = diagnose::outage(&exit, &exit.tail, Some(&transcript), Some(&runner), &chrono::Utc);
        let outage = outage.map(|outage| outage.kind.to_string());
        let error = transcript.error.replace('\n', " / ");
        let usage = transcript.usage;
        lines.push(format!(
            "{scenario}: session {}, {} calls{}, {}+{} in, {} out, {} | {} | {} | {}",
            transcript.session.is_some(),
            usage.tool_calls,
            match (usage.refused_calls, usage.failed_calls) {
                (0, 0) => String::new(),
                (refused, failed) => format!(" ({refused} refused, {failed} failed)"),
            },
            usage.input_tokens,
            usage.cache_read_tokens,
            usage.output_tokens,
            usage.cost.map_or("-".to_owned(), |cost| cost.to_string()),
            or_none(&transcript.message),
            or_none(&error),
            outage.as_deref().unwrap_or("-"),
        ));
        lines.extend(transcript.limited_until.map(|until| format!("    limited until {until}")));
        for said in &said {
            match said {
                StreamItem::Refused(refusal) if transcript.refusals.contains(refusal) => {
                    lines.push(format!("    * {}", said.lines().concat()));
                }
                StreamItem::Refused(_) | StreamItem::Failed { .. } => {
                    lines.push(format!("    {}", said.lines().concat()))
                }
                _ => {}
            }
        }
    }
    lines.join("\n")
}

fn ended(cause: ExitCause, exit_code: i32, tail: Vec<String>) -> JobExit {
    let at = Timestamp::from_unix_millis(0);
    JobExit { cause, exit_code, command: String::new(), started_at: at, finished_at: at, tail, notes: String::new() }
}

/// The line of the outage, with what the user can do, of a program that failed with these last lines.
fn refusal(name: &str, output: &str) -> Option<String> {
    let runner = Catalogue::default().get(name).expect("a runner");
    let mut stream = Stream::new(&runner);
    let own: Vec<StreamItem> =
        output.lines().flat_map(|line| stream.read(line)).filter(StreamItem::is_from_program).collect();
    let transcript = stream.finish(false, None);
    let exit = ended(ExitCause::Exited, 1, own.iter().flat_map(StreamItem::lines).collect());
    let outage = diagnose::outage(&exit, &exit.tail, Some(&transcript), Some(&runner), &chrono::Utc)?;
    (outage.kind == OutageKind::Refused).then_some(outage.line)
}

#[test]
fn program_of_another_version_is_refused_with_the_way_to_install_it() {
    for (name, output, words) in [
        ("claude", "error: unknown option '--permission-mode'", "error: unknown option '--permission-mode'"),
        (
            "codex",
            "error: unexpected argument '--json' found\n\n  tip: a similar argument exists\n\nUsage: codex exec [OPTIONS]",
            "error: unexpected argument '--json' found",
        ),
        ("gemini", "Unknown argument: skip-trust\nUsage: gemini [options] [command]", "Unknown argument: skip-trust"),
        ("opencode", "opencode run [message..]\n\nrun opencode with a message", "opencode run [message..]"),
        (
            "aider",
            "usage: aider [-h]\naider: error: unrecognized arguments: --no-detect-urls",
            "aider: error: unrecognized arguments: --no-detect-urls",
        ),
    ] {
        let install = Catalogue::default().get(name).and_then(|runner| runner.install).expect("a way to install it");
        let expected =
            format!("{words}; correct the arguments of `command`, or install a version that takes them: {install}");
        assert_eq!(refusal(name, output).as_deref(), Some(expected.as_str()), "{name}");
    }
    let began = r#"{"type":"system","subtype":"init","session_id":"s1"}"#;
    assert_eq!(refusal("claude", &format!("{began}\nerror: unknown option '--x'")), None, "of a program that it ran");
    let answered = "Tokens: 2.3k sent, 12 received.\npytest: error: unrecognized arguments: --x";
    assert_eq!(refusal("aider", answered), None, "of the tests that it ran");
}

#[test]
fn refusals_name_what_the_user_can_do() {
    let codex = |message: &str| {
        refusal("codex", &format!(r#"{{"type":"turn.failed","error":{{"message":"{message}"}}}}"#)).unwrap_or_default()
    };
    for credit in [
        "Quota exceeded. Check your plan and billing details.",
        "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.",
        "usage_not_included",
    ] {
        assert_eq!(codex(credit), credit);
    }
    assert_eq!(
        codex("unexpected status 401 Unauthorized"),
        "unexpected status 401 Unauthorized; to get a key: codex login"
    );
    let claude = |result: &str| {
        refusal("claude", &format!(r#"{{"type":"result","is_error":true,"result":"{result}"}}"#)).unwrap_or_default()
    };
    assert_eq!(claude("Invalid API key"), "Invalid API key; to get a key: claude setup-token");
    let model = "There's an issue with the selected model (opuss). It may not exist or you may not have access to it.";
    assert_eq!(
        claude(&format!("{model} Run --model to pick a different model.")),
        format!("{}; set `model` to one that it offers", model.trim_end_matches('.')),
    );
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

#[test]
fn claude() {
    let exits = [
        ("write", 0),
        ("continue", 0),
        ("quota", 0),
        ("fail", 1),
        ("refuse", 1),
        ("quota-stays", 1),
        ("network", 1),
        ("no-session", 1),
        ("no-key", 1),
        ("denied", 0),
        ("hook", 0),
        ("hook-json", 0),
        ("failing", 0),
        ("denied-path", 0),
        ("hidden", 0),
        ("limit", 0),
        ("compacted", 0),
    ];
    insta::assert_snapshot!(told("claude", &exits), @r#"
    write: session true, 1 calls, 300+120 in, 60 out, $0.0032 | The file is written. | - | -
    continue: session true, 1 calls, 200+80 in, 40 out, $0.0022 | The file is written. | - | -
    quota: session true, 1 calls, 200+80 in, 40 out, $0.0022 | The file is written. | - | -
    fail: session true, 0 calls, 0+0 in, 0 out, - | Invalid API key · Fix external API key | Invalid API key · Fix external API key | refused
    refuse: session true, 0 calls, 0+0 in, 0 out, - | API Error: 400 The scripted model refuses this request. | API Error: 400 The scripted model refuses this request. | -
    quota-stays: session true, 0 calls, 0+0 in, 0 out, - | API Error: Request rejected (429) · This request would exceed your rate limit. | API Error: Request rejected (429) · This request would exceed your rate limit. | quota
    network: session true, 0 calls, 0+0 in, 0 out, - | API Error: Unable to connect to API (ConnectionRefused) | API Error: Unable to connect to API (ConnectionRefused) | network
    no-session: session false, 0 calls, 0+0 in, 0 out, - | - | No conversation found with session ID: 00000000-0000-4000-8000-000000000000 | -
    no-key: session true, 0 calls, 0+0 in, 0 out, - | Not logged in · Please run /login | Not logged in · Please run /login | refused
    denied: session true, 2 calls (2 refused, 0 failed), 400+160 in, 80 out, $0.0043 | The file is written. | - | -
        * refused: [Write] src/one.txt: Permission to use Write has been denied because Claude Code is running in don't ask mode
        * refused: [Write] src/one.txt: Permission to use Write has been denied because Claude Code is running in don't ask mode
    hook: session true, 2 calls (2 refused, 0 failed), 400+160 in, 80 out, $0.0043 | The file is written. | - | -
        * refused: [Write] src/one.txt: Policy: writing files is not allowed on this machine
        * refused: [Write] src/one.txt: Policy: writing files is not allowed on this machine
    hook-json: session true, 2 calls (2 refused, 0 failed), 400+160 in, 80 out, $0.0043 | The file is written. | - | -
        failed: [Write] src/one.txt: Policy: no writing here
        failed: [Write] src/one.txt: Policy: no writing here
        * refused: [Write] src/one.txt: Policy: no writing here
        * refused: [Write] src/one.txt: Policy: no writing here
    failing: session true, 2 calls (0 refused, 1 failed), 400+160 in, 80 out, $0.0043 | The file is written. | - | -
        failed: [Bash] echo no tests found && exit 3: Exit code 3 no tests found
    denied-path: session true, 2 calls (2 refused, 0 failed), 400+160 in, 80 out, $0.0043 | The file is written. | - | -
        * refused: [Write] src/one.txt: File is in a directory that is denied by your permission settings
        * refused: [Write] src/one.txt: File is in a directory that is denied by your permission settings
    hidden: session true, 2 calls (2 refused, 0 failed), 400+160 in, 80 out, $0.0043 | The file is written. | - | -
        * refused: [Write] src/one.txt: No such tool available: Write. Write exists but is not enabled in this context. Use one of the available tools instead.
        * refused: [Write] src/one.txt: No such tool available: Write. Write exists but is not enabled in this context. Use one of the available tools instead.
    limit: session true, 0 calls, 10+0 in, 5 out, $0.0001 | hello | - | -
        limited until 2026-09-21T14:13:20.000Z
    compacted: session true, 0 calls, 100+40 in, 20 out, $0.0011 | - | - | -
    "#);
}

#[test]
fn codex() {
    let exits = [
        ("write", 0),
        ("continue", 0),
        ("quota", 0),
        ("fail", 1),
        ("refuse", 1),
        ("quota-stays", 1),
        ("network", 124),
        ("no-session", 1),
        ("hook", 0),
        ("failing", 0),
        ("sandbox", 0),
    ];
    insta::assert_snapshot!(told("codex", &exits), @r#"
    write: session true, 1 calls, 220+80 in, 40 out, - | The file is written. | - | -
    continue: session true, 1 calls, 660+240 in, 120 out, - | The file is written. | - | -
    quota: session true, 1 calls, 220+80 in, 40 out, - | The file is written. | - | -
    fail: session true, 0 calls, 0+0 in, 0 out, - | - | unexpected status 401 Unauthorized: invalid x-api-key, url: http://127.0.0.1:4000/fail/v1/responses | refused
    refuse: session true, 0 calls, 0+0 in, 0 out, - | - | {"error": {"type": "invalid_request_error", "code": "invalid_request_error", "message": "The scripted model refuses this request.", "param": null}} | -
    quota-stays: session true, 0 calls, 0+0 in, 0 out, - | - | exceeded retry limit, last status: 429 Too Many Requests | quota
    network: session true, 0 calls, 0+0 in, 0 out, - | - | - | network
    no-session: session false, 0 calls, 0+0 in, 0 out, - | - | - | -
    hook: session true, 2 calls (2 refused, 0 failed), 330+120 in, 60 out, - | The file is written. | - | -
        * refused: Policy: writing files is not allowed on this machine
        * refused: Policy: writing files is not allowed on this machine
    failing: session true, 2 calls (0 refused, 1 failed), 330+120 in, 60 out, - | The file is written. | - | -
        failed: [command_execution] /bin/bash -lc 'echo no tests found && exit 3': exit code 3: no tests found
    sandbox: session true, 1 calls (1 refused, 0 failed), 220+80 in, 40 out, - | The file is written. | - | -
        * refused: [command_execution] /bin/bash -lc "mkdir -p \"src\" && printf \"%s\\n\" \"src/one.txt is written\" > \"src/one.txt\"": mkdir: cannot create directory ‘src’: Read-only file system
    "#);
}

#[test]
fn gemini() {
    let exits = [
        ("write", 0),
        ("continue", 0),
        ("quota", 0),
        ("fail", 145),
        ("refuse", 144),
        ("quota-stays", 173),
        ("network", 1),
        ("no-session", 42),
        ("no-key", 41),
        ("hook", 0),
        ("denied", 0),
        ("failing", 0),
    ];
    insta::assert_snapshot!(told("gemini", &exits), @r#"
    write: session true, 1 calls, 330+120 in, 60 out, - | The file is written. | - | -
    continue: session true, 1 calls, 330+120 in, 60 out, - | The file is written. | - | -
    quota: session true, 1 calls, 330+120 in, 60 out, - | The file is written. | - | -
    fail: session true, 0 calls, 0+0 in, 0 out, - | - | [API Error: {"error":{"code":401,"message":"invalid x-api-key","status":"UNAUTHENTICATED"}}] | refused
    refuse: session true, 0 calls, 0+0 in, 0 out, - | - | [API Error: {"error":{"code":400,"message":"The scripted model refuses this request.","status":"INVALID_ARGUMENT"}}] | -
    quota-stays: session true, 0 calls, 0+0 in, 0 out, - | - | [API Error: This request would exceed your rate limit.] / Please wait and try again later. To increase your limits, request a quota increase through AI Studio, or switch to another /auth method | quota
    network: session true, 0 calls, 0+0 in, 0 out, - | - | [API Error: exception TypeError: fetch failed sending request] | network
    no-session: session false, 0 calls, 0+0 in, 0 out, - | - | - | -
    no-key: session false, 0 calls, 0+0 in, 0 out, - | - | - | refused
    hook: session true, 2 calls (2 refused, 0 failed), 440+160 in, 80 out, - | The file is written. | - | -
        * refused: [write_file] src/one.txt: Policy: writing files is not allowed on this machine
        * refused: [write_file] src/one.txt: Policy: writing files is not allowed on this machine
    denied: session true, 2 calls (2 refused, 0 failed), 440+160 in, 80 out, - | The file is written. | - | -
        * refused: [write_file] src/one.txt: Tool "write_file" not found
        * refused: [write_file] src/one.txt: Tool "write_file" not found
    failing: session true, 2 calls, 440+160 in, 80 out, - | The file is written. | - | -
    "#);
}

#[test]
fn opencode() {
    let exits = [
        ("write", 0),
        ("continue", 0),
        ("quota", 0),
        ("fail", 1),
        ("refuse", 1),
        ("quota-stays", 1),
        ("network", 1),
        ("no-session", 1),
        ("denied", 0),
        ("hidden", 0),
        ("asks", 0),
        ("failing", 0),
    ];
    insta::assert_snapshot!(told("opencode", &exits), @r#"
    write: session true, 1 calls, 220+80 in, 40 out, $0.0003 | The file is written. | - | -
    continue: session true, 1 calls, 220+80 in, 40 out, $0.0003 | The file is written. | - | -
    quota: session true, 1 calls, 220+80 in, 40 out, $0.0003 | The file is written. | - | -
    fail: session true, 0 calls, 0+0 in, 0 out, - | - | invalid x-api-key | refused
    refuse: session true, 0 calls, 0+0 in, 0 out, - | - | The scripted model refuses this request. | -
    quota-stays: session true, 0 calls, 0+0 in, 0 out, - | - | This request would exceed your rate limit. | quota
    network: session true, 0 calls, 0+0 in, 0 out, - | - | Cannot connect to API: Unable to connect. Is the computer able to access the url? | network
    no-session: session false, 0 calls, 0+0 in, 0 out, - | - | - | -
    denied: session true, 2 calls (2 refused, 0 failed), 330+120 in, 60 out, $0.0004 | The file is written. | - | -
        * refused: [write] src/one.txt: The user has specified a rule which prevents you from using this specific tool call
        * refused: [write] src/one.txt: The user has specified a rule which prevents you from using this specific tool call
    hidden: session true, 2 calls (2 refused, 0 failed), 330+120 in, 60 out, $0.0004 | The file is written. | - | -
        * refused: [invalid] {"tool":"write","error":"Model tried to call unavailable tool 'write'. Available tools: bash, glob, grep, invalid, read…: Model tried to call unavailable tool 'write'
        * refused: [invalid] {"tool":"write","error":"Model tried to call unavailable tool 'write'. Available tools: bash, glob, grep, invalid, read…: Model tried to call unavailable tool 'write'
    asks: session true, 1 calls (1 refused, 0 failed), 110+40 in, 20 out, $0.0001 | - | its output broke off before the end | -
        * refused: [write] src/one.txt: The user rejected permission to use this specific tool call.
    failing: session true, 2 calls (0 refused, 1 failed), 330+120 in, 60 out, $0.0004 | The file is written. | - | -
        failed: [bash] echo no tests found && exit 3: exit code 3: no tests found
    "#);
}

#[test]
fn aider() {
    let exits =
        [("write", 0), ("quota", 0), ("fail", 0), ("refuse", 0), ("quota-stays", 0), ("network", 0), ("ignored", 0)];
    insta::assert_snapshot!(told("aider", &exits), @r#"
    write: session false, 0 calls, 150+0 in, 20 out, $0.0005 | - | - | -
    quota: session false, 0 calls, 150+0 in, 20 out, $0.0005 | - | - | -
    fail: session false, 0 calls, 0+0 in, 0 out, - | - | litellm.AuthenticationError: AuthenticationError: OpenAIException - invalid | refused
    refuse: session false, 0 calls, 0+0 in, 0 out, - | - | litellm.BadRequestError: OpenAIException - The scripted model refuses this | -
    quota-stays: session false, 0 calls, 0+0 in, 0 out, - | - | litellm.RateLimitError: RateLimitError: OpenAIException - This request would | quota
    network: session false, 0 calls, 0+0 in, 0 out, - | - | litellm.InternalServerError: InternalServerError: OpenAIException - Connection | network
    ignored: session false, 1 calls (1 refused, 0 failed), 150+0 in, 20 out, $0.0005 | - | - | -
        * refused: Skipping edits to src/one.txt that matches gitignore spec.
    "#);
}
