//! `notify`: hands a notification to the targets of the settings. A run starts a process of its own for each, so a slow
//! or unreachable target delays nothing.

use std::collections::VecDeque;
use std::io::{Seek, Write};
use std::process::{Child, Command, Output as Ended};
use std::time::Duration;

use anyhow::Context as _;

use super::{Context, ExitStatus, Hint, RepositoryContext, Result};
use crate::fs::handle;
use crate::fs::regular_file::Links;
use crate::model::NotifyOn;
use crate::process::{self, Output, start_detached};
use crate::progress::FanOut;
use crate::projection::notification::{Notification, Notifications};
use crate::settings::{Layer, Settings};
use crate::store::RunDirectory;
use crate::time_limit::output_within;

/// The variable in which the process gets the notification.
const VARIABLE: &str = "LANEKEEPER_NOTIFICATION";

/// How long a target may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Adds a reporter that notifies people, if the settings have a target.
pub(super) fn reporter<'a>(
    within: &RepositoryContext<'_>,
    directory: &RunDirectory,
    fan_out: FanOut<'a>,
) -> FanOut<'a> {
    if !has_target(&within.settings) {
        return fan_out;
    }
    let notifications = Notifications::new(fan_out.history(), within.state.program());
    let (place, log) = (within.repository.main_worktree().to_owned(), directory.directory().join("notify.log"));
    let mut children: VecDeque<Child> = VecDeque::new();
    let send = move |notification: &Notification| {
        children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let start = || -> Result<Child> {
            let text = serde_json::to_string(notification)?;
            let output = Output::File(handle::append(&log, Links::Refuse)?);
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

fn has_target(settings: &Settings) -> bool {
    settings.notify_command.value.is_some() || settings.notify_webhook.value.is_some() || settings.notify_desktop.value
}

/// Sends the notification of the environment, else one to try the targets with.
pub(super) fn run(context: &Context) -> Result<ExitStatus> {
    let settings = context.layers_anywhere(Layer::default())?.resolve(None);
    if !has_target(&settings) {
        let error = ExitStatus::Usage.error("no target for notifications is set");
        return Err(error.hint("set notify_command, notify_webhook or notify_desktop in lanekeeper.toml"));
    }
    let text = match context.environment.get(VARIABLE) {
        Some(text) => text.to_string_lossy().into_owned(),
        None => serde_json::to_string(&example())?,
    };
    let faults: Vec<String> = send(context, &settings, &text).into_iter().filter_map(|sent| sent.err()).collect();
    if faults.is_empty() { Ok(ExitStatus::Done) } else { Err(ExitStatus::Failed.error(faults.join("; "))) }
}

fn example() -> Notification {
    Notification {
        event: NotifyOn::Done,
        run_id: None,
        phase: None,
        lane: None,
        title: "Lanekeeper".to_owned(),
        message: "Notifications of runs arrive here.".to_owned(),
        commands: Vec::new(),
    }
}

/// What became of the notification at each target.
fn send(context: &Context, settings: &Settings, text: &str) -> Vec<Result<(), String>> {
    let json: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let [title, message] = ["title", "message"].map(|name| json[name].as_str().unwrap_or_default());
    let mut sent = Vec::new();
    if let Some([program, arguments @ ..]) = settings.notify_command.value.as_deref() {
        let mut command = Command::new(program);
        command.args(arguments).env("LANEKEEPER_NOTIFY_EVENT", json["event"].as_str().unwrap_or_default());
        sent.push(said("notify_command", command, text));
    }
    if let Some(webhook) = &settings.notify_webhook.value {
        sent.push(
            address(context, webhook).and_then(|address| said("notify_webhook", curl(), &request(&address, text))),
        );
    }
    if settings.notify_desktop.value {
        sent.push(said("notify_desktop", desktop(title, message), ""));
    }
    sent
}

fn address(context: &Context, webhook: &str) -> Result<String, String> {
    let Some(name) = webhook.strip_prefix('$') else { return Ok(webhook.to_owned()) };
    let value = context.environment.get(name).map(|value| value.to_string_lossy().into_owned());
    value.ok_or_else(|| format!("notify_webhook: the variable {name} is not set"))
}

/// The address and the text come as configuration on standard input: other users can read command lines.
fn curl() -> Command {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--fail", "--output", "/dev/null", "--config", "-"]);
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
    command.args(["--app-name=Lanekeeper", "--", title, message]);
    command
}

/// Runs a target's program with `input`.
fn said(target: &str, mut command: Command, input: &str) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let give = |command: &mut Command| -> Result<()> {
        let mut file = tempfile::tempfile().context("cannot make a file")?;
        file.write_all(input.as_bytes())?;
        file.rewind()?;
        command.stdin(file);
        Ok(())
    };
    give(&mut command).map_err(|error| format!("{target}: {error:#}"))?;
    match output_within(command, PATIENCE) {
        Ok(Some(Ended { status, .. })) if status.success() => Ok(()),
        Ok(Some(Ended { status, stderr, .. })) => {
            Err(format!("{target}: `{program}` ended with {status}: {}", String::from_utf8_lossy(&stderr).trim()))
        }
        Ok(None) => Err(format!("{target}: `{program}` took longer than {} s", PATIENCE.as_secs())),
        Err(error) => Err(format!("{target}: cannot run `{program}`: {error}")),
    }
}
