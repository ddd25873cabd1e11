use super::*;

fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command
}

#[test]
fn stdout_and_stderr_are_separate() {
    let output = output_within(shell("echo out; echo err >&2; exit 3"), Duration::from_secs(60)).unwrap().unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (b"out\n".as_slice(), b"err\n".as_slice()));
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn timeout_kills_program_and_children() {
    let place = tempfile::tempdir().unwrap();
    let pid = place.path().join("pid");
    // The limit may pass before the shell has begun; then there is no child to look for.
    let line = format!("sleep 600 & echo $! >'{}'; wait", pid.display());
    assert!(output_within(shell(&line), Duration::from_millis(500)).unwrap().is_none());
    let Ok(child) = std::fs::read_to_string(&pid) else { return };
    wait_for_end(&child);
}

#[test]
fn children_end_with_a_program_whose_end_is_asked_for() {
    let output =
        output_of_group_within(shell("sleep 600 & echo $!; exit 3"), Duration::from_secs(60)).unwrap().unwrap();
    assert_eq!(output.status.code(), Some(3));
    wait_for_end(&String::from_utf8(output.stdout).unwrap());
}

#[test]
fn more_output_than_allowed_is_an_error() {
    for line in ["head -c 20000000 /dev/zero; exit 3", "cat /dev/zero >&2"] {
        let error = end_of_output_within(shell(line), Duration::from_secs(600)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{line}");
    }
}

fn wait_for_end(child: &str) {
    let Some(child) = child.trim().parse().ok().and_then(Pid::from_raw) else { return };
    while rustix::process::test_kill_process(child).is_ok() && !is_zombie(child) {
        std::thread::yield_now();
    }
}

fn is_zombie(process: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    status.is_ok_and(|line| line.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}
