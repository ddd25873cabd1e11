//! Removes secrets from what is pushed (SPEC §10). Outputs and records are clean on disk; what agents write into files of
//! their own is theirs there, and is cleaned on its way out.

use lanewright_model::{JobSpec, Plan, Redactor};
use lanewright_programs::process;
use lanewright_store::run_files::RunFile;

/// The pinned plan: a run is pushed with the plan that it follows, to the letter.
const KEPT: &str = "plan.json";

/// What takes out the secrets of our environment, of the plan's variables, and of what the run's jobs were given.
pub(crate) fn redactor<'a>(plan: &Plan, jobs: impl Iterator<Item = &'a JobSpec>) -> Redactor {
    let jobs: Vec<&JobSpec> = jobs.collect();
    let agents = plan.lanes.iter().flat_map(|lane| &lane.agents).flat_map(|agent| &agent.env);
    let variables = plan.lanes.iter().flat_map(|lane| &lane.env).chain(agents);
    let mut patterns: Vec<String> = jobs.iter().flat_map(|job| &job.redact).cloned().collect();
    patterns.sort();
    patterns.dedup();
    process::redactor(variables.chain(jobs.iter().flat_map(|job| &job.environment)), &patterns)
}

/// Takes the secrets out of every file but the plan, which has none.
pub(crate) fn clean(files: &mut [RunFile], redactor: &Redactor) {
    if redactor.is_idle() {
        return;
    }
    for (path, contents) in files.iter_mut().filter(|(path, _)| path != KEPT) {
        // What holds a NUL is no text, and would not survive being taken for one.
        if !contents.contains(&0)
            && let Some(clean) = process::clean_bytes(path, contents, redactor)
        {
            *contents = clean;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(path: &str, contents: &[u8]) -> Vec<u8> {
        let redactor = Redactor::new([("A_TOKEN", "s3cr3t-t0ken")], &["\"k.*".to_owned()]);
        let mut files = vec![(path.to_owned(), contents.to_vec())];
        clean(&mut files, &redactor);
        files.remove(0).1
    }

    #[test]
    fn secrets_are_removed_from_text_only() {
        assert_eq!(cleaned("report.md", b"with s3cr3t-t0ken\nb"), b"with [redacted:A_TOKEN]\nb");
        assert_eq!(cleaned("plan.json", b"\"s3cr3t-t0ken\""), b"\"s3cr3t-t0ken\"");
        assert_eq!(cleaned("x.bin", b"\0s3cr3t-t0ken"), b"\0s3cr3t-t0ken");
        assert_eq!(cleaned("env.txt", b"\xff\n"), b"\xff\n");
        assert_eq!(cleaned("exit.json", b"{ \"a\":1}"), b"{ \"a\":1}");
    }
}
