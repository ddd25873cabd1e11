use super::*;

/// Whether `command` counts as one that changed something, where it is an alias of `name` or `name` is a word of it.
fn writes(name: &str, command: &str) -> bool {
    let argv = command.split(' ').map(str::to_owned).collect();
    Call { argv, name: name.to_owned(), code: Some(0), ..Call::default() }.has_written()
}

#[test]
fn commands_that_change_a_checkout_are_told_from_those_that_read() {
    for command in [
        "git commit -qm x",
        "git -C /r -c a=b commit -n",
        "git branch new",
        "git branch -D old",
        "git tag v1",
        "git tag -d v1",
        "git stash",
        "git stash pop",
        "git symbolic-ref HEAD refs/heads/x",
        "git worktree add ../x",
        "git clean -fd",
        "git update-index --add x",
    ] {
        let name = command.split(' ').find(|word| KNOWN.contains(word)).unwrap();
        assert!(writes(name, command), "{command}");
        let failed = Call { code: Some(1), ..call(name, command) };
        assert!(!failed.has_written(), "{command}");
    }
    for command in [
        "git branch",
        "git branch -a",
        "git branch --contains HEAD",
        "git branch --list x",
        "git branch --format %(refname)",
        "git tag --sort creatordate",
        "git tag -v v1",
        "git tag -l v*",
        "git stash list",
        "git symbolic-ref HEAD",
        "git worktree list",
        "git clean -nd",
        "git commit --dry-run",
        "git update-index -q --refresh",
        "git status",
        "git log --grep commit",
        "git fetch",
    ] {
        let name = command.split(' ').nth(1).unwrap();
        assert!(!writes(name, command), "{command}");
    }
    assert!(writes("commit", "git ci"), "an alias");
}

const KNOWN: [&str; 8] = ["commit", "branch", "tag", "stash", "symbolic-ref", "worktree", "clean", "update-index"];

fn call(name: &str, command: &str) -> Call {
    Call { argv: command.split(' ').map(str::to_owned).collect(), name: name.to_owned(), ..Call::default() }
}

#[test]
fn trace_names_the_place_of_each_command() {
    let mut trace = Trace::default();
    for line in [
        r#"{"event":"start","sid":"1","time":"2026-01-01T00:00:00.000001Z","argv":["git","commit"]}"#,
        r#"{"event":"def_repo","sid":"1","repo":1,"worktree":"/a"}"#,
        r#"{"event":"start","sid":"1/2","time":"2026-01-01T00:00:01.000001Z","argv":["git","maintenance"]}"#,
        r#"{"event":"cmd_name","sid":"1","name":"commit","hierarchy":"commit"}"#,
        r#"{"event":"def_repo","sid":"1","repo":2,"worktree":"/b"}"#,
        r#"{"event":"def_param","sid":"1/2","param":"GIT_DIR","value":"/c/.git"}"#,
        r#"{"event":"data","sid":"1","key":"x","value":7}"#,
        "no line of git's",
        r#"{"event":"exit","sid":"1","code":0}"#,
    ] {
        trace.read(line.as_bytes());
    }
    let calls: Vec<&Call> = trace.calls.values().collect();
    assert_eq!((calls[0].worktree.as_deref(), calls[0].code), (Some(Path::new("/a")), Some(0)));
    assert_eq!(calls[0].started.map(|at| at.unix_millis()), Some(1_767_225_600_000));
    assert_eq!((calls[1].git_dir.as_deref(), calls[1].has_written()), (Some(Path::new("/c/.git")), false));
}
