//! The gate `edit`: runs after a tool that edits files, in the agent's worktree; what fails goes back to the agent at once.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lanewright_agents::shell::gate_arguments;
use lanewright_files::time_limit::output_of_group_within;
use lanewright_git::EnclosingWorktree;
use lanewright_model::CommandLine;
use lanewright_model::text::{headline, last_lines};
use lanewright_store::StateDirectory;
use serde_json::{Value, json};

use super::input::Input;
use crate::cli::runs::pinned_plan;
use crate::cli::{Context, Result};

/// The variable of an agent that holds the gate, a JSON list of commands.
const VARIABLE: &str = "LANEWRIGHT_EDIT_GATE";

/// The tools of Claude Code that edit files.
const EDITORS: [&str; 4] = ["Edit", "MultiEdit", "Write", "NotebookEdit"];

/// How long all commands of the gate may take. Claude Code waits for a hook as long as its settings say, which
/// `init --hooks` sets to a little more.
const LIMIT: Duration = Duration::from_secs(50);

/// How many lines of the output the agent gets, and how many characters of each.
const LINES: usize = 30;
const LINE: usize = 400;

/// Where the gate runs, and its commands.
struct EditGate {
    worktree: PathBuf,
    commands: Vec<CommandLine>,
}

/// What the agent is answered after a tool call: nothing, or why its edit does not pass.
pub(super) fn judge(context: &Context, input: &Input) -> Result<Option<Value>> {
    if !EDITORS.contains(&input.tool_name.as_str()) {
        return Ok(None);
    }
    let Some(gate) = of_agent(context)?.or_else(|| of_lane(input)) else { return Ok(None) };
    let file = ["file_path", "notebook_path"].iter().find_map(|key| input.tool_input[*key].as_str()).unwrap_or("");
    // Notes elsewhere, in a temporary directory perhaps, are no work of the lane.
    if Path::new(file).is_absolute() && !is_below(Path::new(file), &gate.worktree) {
        return Ok(None);
    }
    let failure = gate.run(file);
    Ok(failure.map(|reason| json!({"decision": "block", "reason": reason})))
}

fn is_below(file: &Path, worktree: &Path) -> bool {
    let place = file.parent().and_then(|parent| parent.canonicalize().ok());
    place.is_none_or(|place| worktree.canonicalize().is_ok_and(|worktree| place.starts_with(worktree)))
}

/// That of the agent which Lanewright runs and which called the hook.
fn of_agent(context: &Context) -> Result<Option<EditGate>> {
    let text = |name: &str| context.environment.get(name).and_then(|value| value.to_str());
    let (Some(commands), Some(worktree)) = (text(VARIABLE), text("LANEWRIGHT_WORKTREE")) else { return Ok(None) };
    Ok(Some(EditGate { worktree: worktree.into(), commands: serde_json::from_str(commands)? }))
}

/// That of the run whose lane's worktree somebody works in by hand.
fn of_lane(input: &Input) -> Option<EditGate> {
    let around = EnclosingWorktree::of(&input.cwd)?;
    let holder = around.holder()?;
    holder.lane.as_ref()?;
    let commands = pinned_plan(&StateDirectory::new(&around.main).run(&holder.run))?.gates.edit.clone();
    (!commands.is_empty()).then_some(EditGate { worktree: around.worktree, commands })
}

impl EditGate {
    /// Runs the commands up to the first that fails; returns how it failed.
    fn run(&self, file: &str) -> Option<String> {
        let mut left = LIMIT;
        for line in &self.commands {
            let began = std::time::Instant::now();
            let run = |arguments: Vec<String>| {
                let (program, rest) = arguments.split_first().ok_or(ErrorKind::InvalidInput)?;
                let mut command = Command::new(program);
                command.args(rest).current_dir(&self.worktree).stdin(Stdio::null());
                command.env("LANEWRIGHT_EDITED_FILE", file);
                output_of_group_within(command, left)
            };
            let ended = match run(gate_arguments(line)) {
                // Without bash only the last program of a pipeline is judged.
                Err(error) if error.kind() == ErrorKind::NotFound => run(line.to_arguments()),
                ended => ended,
            };
            let name = headline(&line.to_string(), 200);
            let output = match ended {
                Ok(Some(output)) => output,
                Ok(None) => return Some(format!("the gate `{name}` did not end within {} s", LIMIT.as_secs())),
                Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                    return Some(format!("the gate `{name}` printed more than 16 MiB and was ended"));
                }
                Err(error) => return Some(format!("the gate `{name}` cannot be run: {error}")),
            };
            if !output.status.success() {
                let ended =
                    output.status.code().map_or("by a signal".to_owned(), |code| format!("with exit code {code}"));
                let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
                let said: Vec<String> =
                    last_lines(&text.join("\n"), LINES).iter().map(|line| headline(line, LINE)).collect();
                let after = if file.is_empty() { String::new() } else { format!(" after the edit of {file}") };
                let reason = format!("the gate `{name}` ended {ended}{after}; fix that before you continue:");
                return Some([vec![reason], said].concat().join("\n"));
            }
            left = left.saturating_sub(began.elapsed());
        }
        None
    }
}
