//! `notify`: hands a notification to the targets of the settings. A run starts a process of its own for each, so a slow
//! or unreachable target delays nothing.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output as Ended};
use std::time::Duration;

use anyhow::Context as _;
use lanewright_files::regular_file::Links;
use lanewright_files::time_limit::end_of_output_within;
use lanewright_files::{atomic, handle, regular_file};
use lanewright_model::NotifyOn;
use lanewright_plan::settings::{Layer, Settings, Webhook};
use lanewright_programs::process::{self, Output, start_detached};
use lanewright_store::RunDirectory;
use lanewright_view::messages::notification::{Notification, Notifications};

use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result, now, offset};
use crate::progress::FanOut;

/// The variable with the notification to send, as JSON.
const VARIABLE: &str = "LANEWRIGHT_NOTIFICATION";

/// How much of what a target's program prints is shown: the end.
const PRINTED_LIMIT: usize = 4 << 10;

/// `notify.log` loses its older half once it is larger.
const LOG_LIMIT: usize = 64 << 10;

const TARGET_TIMEOUT: Duration = Duration::from_secs(30);

/// Adds a reporter that notifies people, if the settings have a target.
pub(crate) fn reporter<'a>(within: &RepositoryContext, directory: &RunDirectory, fan_out: FanOut<'a>) -> FanOut<'a> {
    if !has_target(&within.settings) {
        return fan_out;
    }
    let notifications = Notifications::new(fan_out.history(), within.state.program(), offset());
    let (place, log) = (within.repository.main_worktree().to_owned(), directory.directory().join("notify.log"));
    let mut children: VecDeque<Child> = VecDeque::new();
    let send = move |notification: &Notification| {
        children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let start = || -> Result<Child> {
            let text = serde_json::to_string(notification)?;
            let output = Output::File(open_log(&log)?);
            let program = process::current_program()?;
            Ok(start_detached(&program, &["notify".to_owned()], &place, output, &[(VARIABLE, &text)])?)
        };
        match start() {
            Ok(child) => children.push_back(child),
            Err(error) => tracing::warn!("a notification cannot be sent: {error:#}"),
        }
    };
    fan_out.with("notifications", crate::progress::Notifier::new(notifications, send))
}

fn open_log(path: &Path) -> Result<File> {
    let text = regular_file::read_if_there(path)?.unwrap_or_default();
    if text.len() > LOG_LIMIT {
        let (_, newer) = text.split_at(text.len() - LOG_LIMIT / 2);
        let line = newer.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        atomic::write(path, &newer[line..])?;
    }
    Ok(handle::append(path, Links::Refuse)?)
}

fn has_target(settings: &Settings) -> bool {
    settings.notify_command.value.is_some() || settings.notify_webhook.value.is_some() || settings.notify_desktop.value
}

/// Sends the notification of the environment, else one to try the targets with.
pub(crate) fn run(context: &Context) -> Result<ExitStatus> {
    let settings = context.layers_anywhere(Layer::default())?.resolve(None);
    if !has_target(&settings) {
        let error = ExitStatus::Usage.error("no target for notifications is set");
        return Err(error.hint("set notify_command, notify_webhook or notify_desktop in lanewright.toml"));
    }
    let given = context.environment.get(VARIABLE).map(|text| text.to_string_lossy().into_owned());
    let text = given.clone().map_or_else(|| serde_json::to_string(&example()), Ok)?;
    let faults: Vec<String> = send(context, &settings, &text).into_iter().filter_map(|sent| sent.err()).collect();
    if faults.is_empty() {
        return Ok(ExitStatus::Done);
    }
    if given.is_none() {
        return Err(ExitStatus::Failed.error(faults.join("\n")));
    }
    // Several processes write to the log of a run: each says in one piece what it is about.
    let entry = format!("{} {}: {}", now(), parts(&text)[1], faults.join("\n"));
    context.printer.note(entry.replace('\n', "\n  "));
    Ok(ExitStatus::Failed)
}

fn example() -> Notification {
    Notification {
        event: NotifyOn::Done,
        run_id: None,
        phase: None,
        lane: None,
        title: "Lanewright".to_owned(),
        message: "Notifications of runs arrive here.".to_owned(),
        commands: Vec::new(),
    }
}

/// What became of the notification at each target.
fn send(context: &Context, settings: &Settings, text: &str) -> Vec<Result<(), String>> {
    let [event, title, message] = parts(text);
    let mut sent = Vec::new();
    if let Some([program, arguments @ ..]) = settings.notify_command.value.as_deref() {
        let mut command = from_root(context, program);
        command.args(arguments).env("LANEWRIGHT_NOTIFY_EVENT", event);
        sent.push(output_of("notify_command", command, text).map(drop));
    }
    if let Some(webhook) = &settings.notify_webhook.value {
        sent.push(address(context, webhook).and_then(|address| post(&address, text)));
    }
    if settings.notify_desktop.value {
        sent.push(output_of("notify_desktop", desktop(&title, &message), "").map(drop));
    }
    sent
}

/// The event, the title and the message of a notification.
fn parts(text: &str) -> [String; 3] {
    let json: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    ["event", "title", "message"].map(|name| json[name].as_str().unwrap_or_default().to_owned())
}

/// A command that runs in the repository's root, which also a relative path of the program begins at.
fn from_root(context: &Context, program: &str) -> Command {
    let Ok(root) = context.main_worktree() else { return Command::new(program) };
    let mut command = if program.contains('/') { Command::new(root.join(program)) } else { Command::new(program) };
    command.current_dir(root);
    command
}

fn post(address: &str, text: &str) -> Result<(), String> {
    let answer = output_of("notify_webhook", curl(), &request(address, text))?;
    // `--fail` takes a redirection for a success.
    match answer.trim() {
        status if status.len() == 3 && status.starts_with('2') => Ok(()),
        status => Err(format!("notify_webhook: the server answered with status {status}, not 2xx")),
    }
}

fn address(context: &Context, webhook: &Webhook) -> Result<String, String> {
    let webhook = webhook.address();
    let Some(name) = webhook.strip_prefix('$') else { return Ok(webhook.to_owned()) };
    let value = context.environment.get(name).map(|value| value.to_string_lossy().into_owned());
    value.ok_or_else(|| format!("notify_webhook: the variable {name} is not set"))
}

/// The address and the text come as configuration on standard input: other users can read command lines.
fn curl() -> Command {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--fail", "--output", "/dev/null"]);
    command.args(["--write-out", "%{http_code}", "--config", "-"]);
    command
}

fn request(address: &str, text: &str) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let header = "Content-Type: application/json";
    format!("url = \"{}\"\nheader = \"{header}\"\ndata-raw = \"{}\"\n", quoted(address), quoted(text))
}

fn desktop(title: &str, message: &str) -> Command {
    if cfg!(target_os = "macos") {
        let mut command = Command::new("osascript");
        let script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";
        command.args(["-e", script, title, message]);
        return command;
    }
    let mut command = Command::new("notify-send");
    command.args(["--app-name=Lanewright", "--", title, message]);
    command
}

/// Runs a target's program with `input`, and returns what it printed.
fn output_of(target: &str, mut command: Command, input: &str) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let give = |command: &mut Command| -> Result<()> {
        let mut file = tempfile::tempfile().context("cannot make a file")?;
        file.write_all(input.as_bytes())?;
        file.rewind()?;
        command.stdin(file);
        Ok(())
    };
    give(&mut command).map_err(|error| format!("{target}: {error:#}"))?;
    match end_of_output_within(command, TARGET_TIMEOUT) {
        Ok(Some(Ended { status, stdout, .. })) if status.success() => Ok(end_of(&stdout)),
        Ok(Some(Ended { status, stderr, .. })) => {
            Err(format!("{target}: {}", failed(&program, status, &end_of(&stderr))))
        }
        Ok(None) => Err(format!("{target}: `{program}` took longer than {} s", TARGET_TIMEOUT.as_secs())),
        Err(error) => Err(format!("{target}: cannot run `{program}`: {error}")),
    }
}

fn failed(program: &str, status: std::process::ExitStatus, printed: &str) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "did not end".to_owned(),
    };
    format!("`{program}` {how}{}{printed}", if printed.is_empty() { "" } else { ": " })
}

fn end_of(bytes: &[u8]) -> String {
    let cut = bytes.len().saturating_sub(PRINTED_LIMIT);
    let end = String::from_utf8_lossy(&bytes[cut..]);
    format!("{}{}", if cut > 0 { "…" } else { "" }, end.trim())
}
