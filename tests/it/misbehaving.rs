//! Agents that misbehave: the run ends, no loss is a success, nothing is written where it does not belong, and the message
//! names what happened.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::{Ended, STATE, TestEnv};

/// A lane whose agent runs `script`, and a lane of an agent that does nothing wrong.
fn plan(script: &str) -> TestEnv {
    let env = TestEnv::with_user_elsewhere();
    env.program("misbehave", &format!("#!/bin/sh\n{script}\n"));
    env.plan(
        "base_branch = \"main\"\nmax_parallel = 2\n[timeouts]\nkill_after = '1s'\n\
         [[lane]]\nid = \"E\"\nretries = 0\nmax_time = '60s'\ncommand = ['misbehave']\n\
         [[lane]]\nid = \"N\"\nretries = 0\ncommand = 'echo n > n'\n",
    );
    env
}

/// What every run must keep to, whatever its agents do: the other lane is merged, the user's checkout is as it was, and
/// git's store is whole.
struct Watched {
    env: TestEnv,
    ended: Ended,
}

#[track_caller]
fn run(env: TestEnv) -> Watched {
    let before = env.users_checkout().without_refs();
    let ended = env.execute(&[]);
    assert_eq!(env.users_checkout().without_refs(), before, "the user's checkout; stderr:\n{}", ended.stderr);
    assert!(env.holds("main", "n"), "the other lane is merged; stderr:\n{}", ended.stderr);
    env.git(&["fsck", "--no-dangling", "--no-progress"]);
    Watched { env, ended }
}

impl Watched {
    /// The agent's work is on `main`.
    #[track_caller]
    fn merged(self) -> Self {
        let ended = self.ended.exits(0);
        assert_eq!(self.env.file_at("main", "e"), "e", "its work is merged");
        Self { ended, ..self }
    }

    /// The lane did not pass, and the message says why.
    #[track_caller]
    fn refused(self, code: i32, texts: &[&str]) -> Self {
        assert!(!self.env.holds("main", "e"), "nothing of it is merged");
        let ended = self.ended.exits(code).says(texts);
        Self { ended, ..self }
    }

    /// Why the agent's last attempt failed.
    fn failure(&self) -> String {
        let failures: Vec<Value> = self.env.events("failure_noted");
        failures.iter().map(|failure| failure["failure"]["message"].as_str().unwrap_or_default()).collect()
    }
}

/// Replaces a file of the attempt by what `make` makes at `$1`.
fn replaced(variable: &str, make: &str) -> TestEnv {
    plan(&format!("echo e > e\nset -- \"${variable}\"\nrm -rf \"$1\"\n{make}"))
}

#[test]
fn invalid_status_file_is_refused_with_reason() {
    for (make, reason) in [
        ("mkfifo \"$1\"", "named pipe"),
        ("mkdir \"$1\"", "a directory"),
        ("ln -s /dev/zero \"$1\"", "symbolic link"),
        ("ln -s \"$SCRATCH/target\" \"$1\"", "symbolic link"),
        (
            "python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' status.sock; mv status.sock \"$1\"",
            "socket",
        ),
        ("truncate -s 3G \"$1\"", "larger than"),
        ("printf '\\377\\376' > \"$1\"", "UTF-8"),
        ("{ printf '{\"status\":'; yes '[' | head -n 300000 | tr -d '\\n'; } > \"$1\"", "recursion limit"),
    ] {
        let run = run(replaced("LANEWRIGHT_STATUS_FILE", make)).refused(1, &["E", "status.json", reason]);
        assert!(run.failure().contains(reason), "{make}: {}", run.failure());
        assert!(!run.env.path("scratch/target").exists(), "nothing was written through the link");
    }
}

#[test]
fn a_result_that_is_a_pipe_is_refused_by_name() {
    run(replaced("LANEWRIGHT_RESULT_FILE", "mkfifo \"$1\"")).refused(1, &["E", "result.json", "named pipe"]);
}

#[test]
fn pipe_or_device_as_output_file_does_not_block() {
    let env = replaced("LANEWRIGHT_TOOL_CALLS_FILE", "mkfifo \"$1\"");
    env.write("repo/lanewright.toml", "checkpoint_every = '1s'\n");
    run(env).merged();
    let output = "$(dirname \"$1\")/output.log";
    run(replaced(
        "LANEWRIGHT_TOOL_CALLS_FILE",
        &format!("ln -s /dev/zero \"$1\"; rm \"{output}\"; mkfifo \"{output}\""),
    ))
    .merged();
}

#[test]
fn named_pipes_among_attempt_files_do_not_block() {
    let every =
        "for file in heartbeat prompt.md task.json exit.json lock; do rm -f \"$1/$file\"; mkfifo \"$1/$file\"; done";
    run(plan(&format!("echo e > e\nset -- \"$(dirname \"$LANEWRIGHT_RESULT_FILE\")\"\n{every}"))).merged();
}

#[test]
fn special_files_in_the_worktree_are_left_alone() {
    run(plan("echo e > e; mkfifo pipe; mkdir -p deep/er; mkfifo deep/er/pipe; ln -s /dev/zero zero")).merged();
    let run = run(plan("echo e > e; mkdir ro; echo x > ro/f; chmod 300 ro"));
    fs::write(run.env.path("scratch/unreadable"), "").expect("a file");
    fs::set_permissions(run.env.path("scratch/unreadable"), fs::Permissions::from_mode(0o000)).expect("permissions");
    match fs::read(run.env.path("scratch/unreadable")) {
        Ok(_) => assert!(run.merged().env.holds("main", "ro/f"), "the superuser reads it all the same"),
        Err(_) => drop(run.refused(1, &["E", "cannot read the directory 'ro/'", "Permission denied"])),
    }
}

#[test]
fn too_deep_directories_fail_lane_with_message() {
    let deep =
        "python3 -c \"import os\nfor _ in range(60): os.mkdir('d' * 100); os.chdir('d' * 100)\nopen('deep', 'w')\"";
    run(plan(&format!("echo e > e\n{deep}"))).refused(1, &["E", "cannot read the directory 'dddd", "too long"]);
}

#[test]
fn incomplete_snapshot_warns_with_the_missing_files() {
    let deep =
        "python3 -c \"import os\nfor _ in range(60): os.mkdir('d' * 100); os.chdir('d' * 100)\nopen('deep', 'w')\"";
    let run = run(plan(&format!("echo e > e\n{deep}; exit 1")));
    let failed = run.env.events("snapshot_failed");
    assert!(failed.iter().any(|event| event.to_string().contains("cannot read the directory 'dddd")), "{failed:?}");
}

#[test]
fn endless_line_and_closed_streams_are_accepted() {
    let run = run(plan("echo e > e; head -c 30000000 /dev/zero | tr '\\0' y; exec 0<&- 1>&- 2>&-; sleep 0.1")).merged();
    assert!(run.env.events("job_exited").iter().all(|event| event.to_string().len() < 200_000), "the log stays small");
}

#[test]
fn agent_that_edits_its_prompt_harms_only_itself() {
    run(plan("echo e > e; cat > /dev/null; : > /dev/stdin")).merged();
}

#[test]
fn daemon_in_new_session_ends_with_its_attempt() {
    let daemon = "setsid sh -c 'trap \"\" TERM HUP; exec > /dev/null 2>&1 < /dev/null; echo $$ > \"$SCRATCH/daemon\"; \
                  while [ -d \"$SCRATCH\" ]; do sleep 0.05; done' &\nwait-for daemon";
    let run = run(plan(&format!("echo e > e\n{daemon}"))).merged();
    let pid = run.env.scratch("daemon");
    assert!(!fs::exists(format!("/proc/{}", pid.trim())).expect("/proc"), "the daemon outlived its attempt");
}

#[test]
fn attempt_fails_if_agent_kills_its_supervisor() {
    run(plan("echo e > e; kill -9 $PPID; wait-for never"))
        .refused(1, &["E", "the supervisor died without recording an exit"]);
}

#[test]
fn removed_or_replaced_worktree_fails_lane() {
    let own = "git init -q .; git add -A; git -c user.name=a -c user.email=b commit -qm mine";
    for script in
        ["cd /; rm -rf \"$LANEWRIGHT_WORKTREE\"", "rm -f .git; echo e > e", &format!("rm -f .git; echo e > e; {own}")]
    {
        run(plan(script)).refused(1, &["E", "was removed, or replaced by something else"]);
    }
}

#[test]
fn agent_git_config_neither_runs_hooks_nor_loses_work() {
    let hook = "#!/bin/sh\\ntouch \\\"$SCRATCH/ran\\\"\\nexit 1\\n";
    let hooks = format!(
        "mkdir \"$SCRATCH/hooks\"; for hook in post-checkout reference-transaction pre-commit; do \
         printf \"{hook}\" > \"$SCRATCH/hooks/$hook\"; chmod +x \"$SCRATCH/hooks/$hook\"; done; \
         git config core.hooksPath \"$SCRATCH/hooks\""
    );
    for script in ["git config core.bare true; git config core.worktree /nonexistent", &hooks] {
        // The worktree of the other lane is checked out with the hooks that are configured then.
        let merged = "until git -C \"$SCRATCH/../repo\" cat-file -e main:n 2> /dev/null; do sleep 0.02; done";
        let env = plan(&format!("{merged}; {script}; echo e > e"));
        let config = env.read("repo/.git/config");
        env.write("repo/lanewright.toml", "git_directory = 'shared'\n");
        let ended = env.execute(&[]).exits(0);
        assert_ne!(env.read("repo/.git/config"), config, "the agent changed it");
        assert!(!env.path("scratch/ran").exists(), "a hook of the agent's ran");
        env.write("repo/.git/config", config);
        assert_eq!(env.file_at("main", "e"), "e", "{}", ended.stderr);
        assert!(env.holds("main", "n"));
    }
}

#[test]
fn a_lock_that_an_agent_left_on_its_index_is_cleared() {
    run(plan("touch \"$(git rev-parse --git-dir)/index.lock\"; echo e > e")).merged();
}

#[test]
fn work_on_other_branch_is_merged_or_refused() {
    let commit = "echo e > e; git add -A; git commit -qm mine";
    for checkout in ["-b mine", "--detach", "--ignore-other-worktrees main"] {
        // Else the other lane would find its branch checked out, and wait for the user.
        let merged = "until git -C \"$SCRATCH/../repo\" cat-file -e main:n 2> /dev/null; do sleep 0.02; done";
        run(plan(&format!("{merged}; git checkout -q {checkout}; {commit}"))).merged();
    }
    run(plan(&format!("git checkout -q --orphan new; {commit}"))).refused(1, &["E", "does not continue its branch"]);
}

#[test]
fn files_written_outside_the_worktree_are_not_merged() {
    let env = plan("echo e > e; echo intruder > \"$SCRATCH/../repo/intruder\"");
    let ended = env.execute(&[]).exits(0);
    assert_eq!(env.file_at("main", "e"), "e", "{}", ended.stderr);
    assert!(
        !env.holds("main", "intruder") && env.path("repo/intruder").exists(),
        "the file stays where it was written"
    );
    let env = plan(
        "echo e > e; for slot in \"$SCRATCH\"/../repo.lanes/slots/*/; do [ \"$slot\" -ef . ] || echo i > \"$slot/intruder\"; done",
    );
    env.execute(&[]).exits(0);
    assert_eq!(env.file_at("main", "e"), "e");
}

#[test]
fn pipe_or_device_as_prompt_file_is_refused() {
    for (file, reason) in [("/dev/zero", "a device"), ("scratch/pipe", "named pipe"), ("scratch", "a directory")] {
        let env = TestEnv::new();
        let pipe = std::process::Command::new("mkfifo").arg(env.path("scratch/pipe")).status().expect("mkfifo");
        assert!(pipe.success());
        env.plan(&format!("[[lane]]\nid = \"A\"\nprompt_file = \"{file}\"\ncommand = 'true'\n"));
        env.execute(&[]).exits(2).says(&["plan.toml:", file, reason]);
        assert!(!env.path(&format!("repo/{STATE}")).exists());
    }
}

#[test]
fn a_configuration_or_a_plan_without_end_is_refused() {
    let env = plan("echo e > e");
    let config = env.path("repo/lanewright.toml");
    assert!(std::process::Command::new("mkfifo").arg(&config).status().expect("mkfifo").success());
    env.execute(&[]).exits(2).says(&["lanewright.toml", "named pipe"]);
    fs::remove_file(&config).expect("removed");
    env.lanewright(&["plan", "check", "/dev/zero"]).exits(2).says(&["/dev/zero", "larger than"]);
}
