//! Text for the log of a CI service, which looks for commands in it and can fold lines.

use lanewright_model::event::{Event, Record};
use lanewright_model::safe_text::for_terminal;
use lanewright_model::{Ci, ExitCause};

/// External text for a log in which GitHub looks for commands: no line of it is one.
pub fn without_commands(text: &str) -> String {
    let harmless = |line: &str| {
        let command = line.trim_start().starts_with("::");
        format!("{}{}\n", if command { "| " } else { "" }, line.replace("##[", "## ["))
    };
    text.lines().map(harmless).collect()
}

/// The line about a job that failed, with the end of its output folded below it; `None`: the service folds nothing, or the
/// record is about something else.
///
/// Groups can neither be nested nor interleaved, and lanes work side by side. So a group is never left open while lanes
/// work: it is written as a whole when its content is known.
pub fn folded(service: Ci, record: &Record, line: &str) -> Option<String> {
    let Event::JobExited { exit, .. } = &record.event else { return None };
    if exit.passed() || exit.cause == ExitCause::Stopped || exit.tail.is_empty() {
        return None;
    }
    let (line, tail) = (for_terminal(line), exit.tail.join("\n"));
    let tail = for_terminal(&tail);
    match service {
        Ci::Github => {
            let title = line.replace('%', "%25");
            Some(format!("::group::{title}\n{}::endgroup::\n", without_commands(&tail)))
        }
        Ci::Gitlab => {
            let (at, name) = (record.at.0.timestamp(), format!("lanewright_{}", record.seq));
            Some(format!(
                "\x1b[0Ksection_start:{at}:{name}[collapsed=true]\r\x1b[0K{line}\n{tail}\n\
                 \x1b[0Ksection_end:{at}:{name}\r\x1b[0K\n"
            ))
        }
        Ci::Auto | Ci::None => None,
    }
}

#[cfg(test)]
mod tests {
    use lanewright_model::testing::{Story, attempt};

    use super::*;

    #[test]
    fn agent_text_is_not_a_workflow_command() {
        let text = "one\n  ::error::two\n##[add-mask]three\n";
        assert_eq!(without_commands(text), "one\n|   ::error::two\n## [add-mask]three\n");
    }

    #[test]
    fn output_of_a_failed_job_is_folded_whole() {
        let job = attempt("SL-1", "engineer", 1);
        let mut record = Story::begun().job(&job).exited(&job, 1).records.pop().unwrap();
        let Event::JobExited { exit, .. } = &mut record.event else { panic!("{record:?}") };
        exit.tail = vec!["::endgroup::".into(), "section_end:1:lanewright_1\r\x1b[0K".into()];
        let github = folded(Ci::Github, &record, "failed at 50%").unwrap();
        assert!(github.starts_with("::group::failed at 50%25\n| ::endgroup::\n"), "{github}");
        assert_eq!(github.matches("\n::endgroup::\n").count(), 1);
        let gitlab = folded(Ci::Gitlab, &record, "failed").unwrap();
        assert!(
            gitlab.contains("[collapsed=true]\r\x1b[0Kfailed\n::endgroup::\nsection_end:1:lanewright_1"),
            "{gitlab:?}"
        );
        assert_eq!(gitlab.matches("\r\x1b[0K").count(), 2, "the agent's text ends no section: {gitlab:?}");
        assert_eq!(folded(Ci::None, &record, "failed"), None);
    }
}
