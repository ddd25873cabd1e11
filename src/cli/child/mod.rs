//! This same program as a child: what it printed, or its error.

pub(super) mod background;
pub(super) mod detached;

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus as Exit, Output, Stdio};

use lanewright_programs::process;
use lanewright_store::StateDirectory;
use serde_json::Value;

use super::runs::state;
use super::{CliError, Context, ExitStatus, Result};

pub(super) type Outcome = Result<Value>;

/// How the program is called from here.
pub(super) struct Caller {
    program: PathBuf,
    /// Where it was started.
    pub(crate) directory: PathBuf,
    context: Context,
}

impl Caller {
    pub(crate) fn new(context: &Context) -> io::Result<Self> {
        let program = process::current_program()?;
        Ok(Self { program, directory: context.directory.clone(), context: context.clone() })
    }

    /// The state of the repository's runs, as it is now.
    pub(crate) fn state(&self) -> Result<StateDirectory> {
        state(&self.context).map(|(state, _)| state)
    }

    /// The program, and the words after its name for a program that reads the answer.
    pub(crate) fn call(&self, words: &[String]) -> Result<(PathBuf, Vec<String>)> {
        Ok((self.program.clone(), self.words("json", words)?))
    }

    /// Where the state is, how the answer is written, and what to do.
    fn words(&self, format: &str, words: &[String]) -> Result<Vec<String>> {
        let places = self.state()?.program().into_iter().skip(1);
        // In front, because a command may pass on what comes last.
        let format = ["--format", format, "--color", "never"].map(str::to_owned);
        Ok(places.chain(format).chain(words.iter().cloned()).collect())
    }

    fn command(&self, format: &str, words: &[String]) -> Result<Command> {
        let mut command = Command::new(&self.program);
        command.arg0("lanewright").args(self.words(format, words)?).current_dir(&self.directory).stdin(Stdio::null());
        Ok(command)
    }

    /// The program as it writes for people, not started yet.
    pub(crate) fn for_people(&self, words: &[String]) -> Result<Command> {
        self.command("text", words)
    }

    /// Runs it to its end, and reads its answer.
    pub(crate) fn run(&self, words: &[String]) -> Outcome {
        let text = printed_by(self.command("json", words)?)?;
        serde_json::from_str(&text).map_err(|error| failed(format!("its answer makes no sense: {error}")))
    }

    /// The same of a command that also answers where it ends with one of these exit codes.
    pub(crate) fn report(&self, words: &[String], also: &[ExitStatus]) -> Outcome {
        let Output { status, stdout, stderr } =
            self.command("json", words)?.output().map_err(|error| failed(error.to_string()))?;
        let code = status.code().and_then(|code| ExitStatus::of_code(code.try_into().ok()?));
        // A refusal has no answer.
        match serde_json::from_slice(&stdout) {
            Ok(answer) if status.success() || code.is_some_and(|code| also.contains(&code)) => Ok(answer),
            answer => {
                judge(status, &stderr)?;
                answer.map_err(|error| failed(format!("its answer makes no sense: {error}")))
            }
        }
    }

    /// The same as text for people.
    pub(crate) fn text(&self, words: &[String]) -> Result<String> {
        printed_by(self.for_people(words)?)
    }

    /// Runs it to its end; returns at most `most` lines, the last ones, and how many came before them.
    pub(crate) fn last_lines(&self, words: &[String], most: usize) -> Result<(VecDeque<String>, usize)> {
        let spawned = self.command("json", words)?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| failed(error.to_string()))?;
        let printed = child.stdout.take();
        // Both pipes are read at once, because either may be full first.
        let reader = std::thread::spawn(move || printed.map(|printed| last_of(printed, most)));
        let Output { status, stderr, .. } = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
        judge(status, &stderr)?;
        let read = reader.join().ok().flatten().unwrap_or_else(|| Ok((VecDeque::new(), 0)));
        read.map_err(|error| failed(error.to_string()))
    }
}

fn printed_by(mut command: Command) -> Result<String> {
    let Output { status, stdout, stderr } = command.output().map_err(|error| failed(error.to_string()))?;
    judge(status, &stderr)?;
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

fn last_of(printed: impl Read, most: usize) -> io::Result<(VecDeque<String>, usize)> {
    let mut last = VecDeque::new();
    let mut omitted = 0;
    for line in BufReader::new(printed).lines() {
        last.push_back(line?);
        if last.len() > most {
            last.pop_front();
            omitted += 1;
        }
    }
    Ok((last, omitted))
}

/// The error of a child that failed.
fn judge(status: Exit, stderr: &[u8]) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(stderr);
    Err(refusal(&said).unwrap_or_else(|| failed(format!("it ended with {status}: {}", said.trim()))))
}

/// The last error in its machine form among the lines of `said`.
pub(super) fn refusal(said: &str) -> Option<anyhow::Error> {
    said.lines().rev().find_map(|line| {
        let error: Value = serde_json::from_str(line).ok()?;
        let status = ExitStatus::of_code(error["code"].as_u64()?)?;
        let hints = error["hints"].as_array().into_iter().flatten().filter_map(|hint| Some(hint.as_str()?.to_owned()));
        Some(CliError { status, message: error["message"].as_str()?.to_owned(), hints: hints.collect() }.into())
    })
}

pub(crate) fn failed(message: String) -> anyhow::Error {
    ExitStatus::Failed.error(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_json_error_is_the_refusal() {
        let said = "Resuming\n{\"kind\":\"warning\",\"message\":\"w\",\"hints\":[]}\n{\"code\":8,\"kind\":\"INVALID_STATE\",\
                    \"message\":\"no\",\"hints\":[\"do this\"]}\nnot JSON\n";
        let error = CliError::from(refusal(said).unwrap());
        assert_eq!((error.status, error.message.as_str(), error.hints.len()), (ExitStatus::InvalidState, "no", 1));
        assert!(refusal("{\"kind\":\"warning\"}\n").is_none());
    }

    #[test]
    fn last_lines_are_kept_and_others_counted() {
        let (last, omitted) = last_of("a\nb\nc".as_bytes(), 2).unwrap();
        assert_eq!((last, omitted), (["b".to_owned(), "c".to_owned()].into(), 1));
        assert_eq!(last_of("".as_bytes(), 2).unwrap(), (VecDeque::new(), 0));
    }
}
