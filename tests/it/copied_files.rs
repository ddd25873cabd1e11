//! Ignored files and dependencies in the worktrees of lanes: `copy`, `setup` and `.worktreeinclude`.

use crate::support::TestEnv;

const IGNORED: &str = ".env\n*.log\nnode_modules\n.claude/ai-dev-kit/run-logs\n";

/// A repository that ignores `.env`, with settings.
fn environment(settings: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/.gitignore", IGNORED);
    env.write("repo/lanewright.toml", settings);
    env.commit("settings");
    env.write("repo/.env", "KEY=1\n");
    env
}

#[test]
fn settings_and_include_file_fill_worktrees() {
    let env = environment("copy = [\"cache.log\"]\nsetup = [\"test -e .env && echo ready > ready.log\"]\n");
    env.write("repo/.worktreeinclude", "# for worktrees\n.env\n*.txt\n");
    env.write("repo/cache.log", "cached\n");
    env.write("repo/untracked.txt", "not ignored\n");
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'cat .env cache.log ready.log > a; ! test -e untracked.txt'\n\
         [[lane]]\nid = \"B\"\nretries = 0\ncopy = []\nsetup = []\n\
         command = '! test -e cache.log && ! test -e ready.log && cat .env > b'\n\
         [gates]\nfinal = 'test -e .env'\n",
    );
    env.execute(&[]).exits(0);
    assert_eq!(env.file_at("main", "a"), "KEY=1\ncached\nready");
    assert_eq!(env.file_at("main", "b"), "KEY=1");
}

#[test]
fn a_build_that_was_copied_is_not_newer_than_the_agents_source() {
    let env = environment("copy = [\"built.log\"]\n");
    env.write("repo/source", "echo good\n");
    env.commit("source");
    env.write("repo/built.log", "good\n");
    // As make and cargo do.
    let build = "test built.log -nt source || sh source > built.log; grep good built.log";
    env.plan(&format!(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'echo echo bad > source'\ntests = [\"{build}\"]\n"
    ));
    env.execute(&[]).exits(1);
    assert_eq!(env.file_at("main", "source"), "echo good");
}

#[test]
fn include_file_that_leads_out_names_its_line() {
    for (line, reason) in [("../secrets", "leads out"), ("/etc/passwd", "absolute path"), ("~/.ssh", "absolute path")] {
        let env = environment("");
        env.write("repo/.worktreeinclude", format!("/.env\n{line}\n"));
        env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a'\n");
        env.execute(&[]).exits(2).says(&[".worktreeinclude:2: ", line, reason]);
    }
    let env = environment("copy = [\"../x\"]\n");
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a'\n");
    env.execute(&[]).exits(2).says(&["lanewright.toml:1:", "../x"]);
}

#[test]
fn copied_secrets_get_into_no_commit() {
    let env = environment("copy = [\".env\", \"secret.txt\"]\n");
    // Ignored in the checkout only.
    env.write("repo/.gitignore", format!("{IGNORED}secret.txt\n"));
    env.write("repo/secret.txt", "secret\n");
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'test -e .env && ! test -e secret.txt && echo a > a && \
         echo ready.log > .gitignore'\n",
    );
    env.git(&["stash", "list"]);
    let ended = env.execute(&["--merge", "none"]).exits(0);
    ended.says(&["not copied", "secret.txt"]);
    assert!(env.holds("lane/P1/A", "a"));
    assert!(!env.holds("lane/P1/A", ".env") && !env.holds("lane/P1/A", "secret.txt"));
}

/// The user changes it while the run stands, and the agent then changes what git ignores.
#[test]
fn copied_file_stays_one_when_the_user_changes_the_original() {
    let env = environment("copy = [\".env\"]\n");
    env.git(&["switch", "--quiet", "--create", "desk"]);
    env.plan("[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'echo a > a; echo > .gitignore; test -e \"$SCRATCH/go\"'\n");
    env.execute(&["--base", "main"]).exits(1);
    env.write("repo/.env", "KEY=rotated\n");
    env.write("scratch/go", "");
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "a") && !env.holds("main", ".env"));
}

#[test]
fn copied_file_of_a_slot_with_caches_is_not_the_next_lanes() {
    let env = environment("keep_caches = true\nmax_parallel = 1\n");
    env.git(&["switch", "--quiet", "--create", "desk"]);
    env.plan(
        "[[lane]]\nid = \"A\"\ncopy = [\".env\"]\ncommand = 'echo a > a'\n\
         [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncopy = []\nretries = 0\n\
         command = 'echo b > b; cat .env; git add -f .env b; git commit -qm x'\n",
    );
    env.execute(&["--base", "main"]).exits(1).says(&[".env (copied from the checkout)"]);
    assert!(env.holds("main", "a") && !env.holds("main", ".env"));
}

#[test]
fn copied_file_that_an_agent_commits_is_not_merged() {
    let commit = "git commit --quiet -m mine";
    for way in [
        format!("git add -f .env; {commit}"),
        "git add -f .env".to_owned(),
        format!("echo KEY=2 >> .env; git add -f .env; {commit}"),
        format!("echo > .gitignore; git add .; {commit}"),
        format!("git add -f .env; {commit}; git rm --quiet --cached .env; {commit}"),
        format!(
            "git switch -qc x; git commit -qm x --allow-empty; git switch -q -; git add a; {commit}; \
             git merge -q --no-commit x; git add -f .env; {commit}"
        ),
    ] {
        let env = environment("copy = [\".env\"]\n");
        env.git(&["switch", "--quiet", "--create", "desk"]);
        env.plan(&format!(
            "[[lane]]\nid = \"A\"\nretries = 1\ncommand = '''echo a > a; [ $LANEWRIGHT_ATTEMPT = 2 ] || {{ {way}; }}'''\n"
        ));
        env.execute(&["--base", "main"]).exits(0);
        let failures = env.events("failure_noted");
        assert_eq!(failures.len(), 1, "{way}: {failures:?}");
        let failure = failures[0]["failure"].to_string();
        assert!(failure.contains(".env (copied from the checkout)") && failure.contains("`take = "), "{failure}");
        let context = env.attempt_file("A", "agent", 2, "prompt.md");
        assert!(context.contains(".env (copied from the checkout)"), "{context}");
        assert!(env.holds("main", "a"), "{way}");
        assert_eq!(env.git(&["log", "--format=%h", "main", "--", ".env"]), "", "{way}");
    }
    // What git does not ignore any more, and holds something else, is the agent's; and what a setting takes.
    for (settings, way) in [("", "echo > .gitignore; echo KEY= > .env"), ("take = [\".env\"]\n", "git add -f .env")] {
        let env = environment(&format!("copy = [\".env\"]\n{settings}"));
        env.git(&["switch", "--quiet", "--create", "desk"]);
        env.plan(&format!("[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'echo a > a; {way}; git add .; {commit}'\n"));
        env.execute(&["--base", "main"]).exits(0);
        assert!(env.holds("main", ".env"), "{way}");
    }
}

/// The same content under another name: left out, or a failure where the agent commits it.
#[test]
fn copied_content_is_not_merged_under_another_name() {
    let commit = "git add x; git commit --quiet -m mine";
    for (way, failures) in [
        ("true".to_owned(), 0),
        ("git add x".to_owned(), 0),
        (commit.to_owned(), 1),
        // It would stay in the history.
        (format!("{commit}; git rm --quiet --cached x; git commit --quiet -m gone"), 1),
        ("cp x sample.txt".to_owned(), 0),
        (format!("cp x sample.txt; {commit} sample.txt"), 1),
    ] {
        let env = environment("copy = [\".env\", \"sample.log\"]\n");
        env.write("repo/.env", "KEY=0123456789012345678901234567\n");
        env.write("repo/sample.txt", "of no value, and in a tracked file\n");
        // Which git can take for the name of a file.
        env.write("repo/HEAD", "a file\n");
        env.commit("sample");
        env.write("repo/sample.log", "of no value, and in a tracked file\n");
        env.plan(&format!(
            "[[lane]]\nid = \"A\"\nretries = 1\ncommand = '''\
             cp sample.log a; [ $LANEWRIGHT_ATTEMPT = 2 ] || {{ cp .env x; {way}; }}'''\n"
        ));
        env.execute(&[]).exits(0).says(&["x (copied from the checkout)"]);
        assert_eq!(env.events("failure_noted").len(), failures, "{way}");
        assert!(env.holds("main", "a"), "{way}");
        assert_eq!(env.git(&["log", "--format=%h", "main", "--", "x"]), "", "{way}");
        assert_eq!(env.git(&["show", "main:sample.txt"]), "of no value, and in a tracked file", "{way}");
        // Neither a commit nor a snapshot of what is not committed.
        let secret = env.git(&["hash-object", ".env"]);
        let held = env.git(&["rev-list", "--all", "--objects"]).contains(&secret);
        assert!(!held, "{way}");
    }
}

/// A user may publish what was copied while a lane is at work.
#[test]
fn what_main_has_got_is_no_copy() {
    for (way, name, mode) in [
        ("git mv shown.txt other.txt", "other.txt", "100644"),
        ("git mv shown.txt other.txt; git commit --quiet -m moved", "other.txt", "100644"),
        ("chmod +x shown.txt", "shown.txt", "100755"),
    ] {
        let env = environment("copy = [\".env\"]\ntake = [\"shown.txt\"]\n");
        env.write("repo/.env", "KEY=0123456789012345678901234567\n");
        let shown = "git -C $SCRATCH/../repo cat-file -e main:shown.txt 2>/dev/null";
        env.plan(&format!(
            "[[lane]]\nid = \"A\"\ncommand = 'wait-for b && cp .env shown.txt && echo a > f'\n\
             [[lane]]\nid = \"B\"\nretries = 1\ncommand = '''\
             if [ $LANEWRIGHT_ATTEMPT = 2 ]; then echo b > b; {way}; exit; fi; \
             echo b > f; touch $SCRATCH/b; until {shown}; do sleep 0.02; done'''\n"
        ));
        env.execute(&[]).exits(0);
        let held = env.git(&["ls-tree", "main", name]);
        assert!(held.starts_with(mode), "{way}: {held}");
        assert!(env.holds("main", "b"), "{way}");
    }
}

#[test]
fn what_a_copy_replaced_stays() {
    for (files, way) in [
        (["x/a", "x/b"].as_slice(), "rm -r x; cp .env x"),
        (&["x"], "rm x; mkdir x; cp .env x/a"),
        (&["x"], "rm x; mkdir x; cp .env x/a; git add ."),
    ] {
        let env = environment("copy = [\".env\"]\n");
        env.write("repo/.env", "KEY=0123456789012345678901234567\n");
        files.iter().for_each(|file| env.write(&format!("repo/{file}"), "of the user\n"));
        env.commit("files");
        env.plan(&format!("[[lane]]\nid = \"A\"\ncommand = 'echo a > a; {way}'\n"));
        env.execute(&[]).exits(0).says(&["(copied from the checkout)"]);
        assert_eq!(env.git(&["diff", "--name-only", "main^", "main"]), "a", "{way}");
    }
}

/// Programs make it again, so that it is no secret.
#[test]
fn copied_packages_may_be_copied_into_tracked_files() {
    let env = environment("copy = [\"node_modules\"]\n");
    env.write("repo/node_modules/x/dist/x.js", "version 2, which is longer than 32 bytes\n");
    env.write("repo/static/x.js", "version 1\n");
    env.commit("version 1");
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'cp node_modules/x/dist/x.js static/x.js'\n");
    env.execute(&[]).exits(0);
    assert!(env.file_at("main", "static/x.js").starts_with("version 2"));
}

#[test]
fn agents_learn_what_was_left_out() {
    let env = environment("copy = [\".env\"]\n");
    env.write("repo/.env", "KEY=0123456789012345678901234567\n");
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 1\ncommand = '''cp .env x; if [ $LANEWRIGHT_ATTEMPT = 2 ]; then \
         cp $LANEWRIGHT_PROMPT_FILE $SCRATCH/prompt; echo a > a; fi'''\n",
    );
    env.execute(&[]).exits(0).says(&["changed no file but what commits leave out: x (copied from the checkout)"]);
    let prompt = env.scratch("prompt");
    assert!(prompt.contains("Files that were left out of the commits of this work\n\n- x (copied"), "{prompt}");
}

#[test]
fn too_large_copy_blocks_and_names_its_limit() {
    let env = environment("copy = [\"big.log\"]\ncopy_limit = \"1KiB\"\n");
    env.write("repo/big.log", "x".repeat(2048));
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'touch \"$SCRATCH/ran\"; echo a > a'\n");
    env.execute(&[]).exits(3).says(&["1 file (2.0 KiB)", "big.log", "`copy_limit`"]);
    assert!(!env.path("scratch/ran").exists());
    env.write("repo/lanewright.toml", "copy = [\"big.log\"]\n");
    env.commit("raise the limit");
    env.resume(&[]).exits(0);
}

#[test]
fn setup_that_comes_later_runs_at_a_resume() {
    let env = environment("");
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 2\nagent_worktrees = \"on\"\ncommand = 'echo s >> \"$SCRATCH/starts\"; echo a > a'\n\
         [[lane.task]]\nverify = 'node_modules/.bin/check'\n",
    );
    env.execute(&[]).exits(3).says(&["`setup`"]);
    let install = "mkdir -p node_modules/.bin; echo exit 0 > node_modules/.bin/check; chmod +x node_modules/.bin/check";
    env.write("repo/lanewright.toml", format!("setup = [\"{install}\"]\n"));
    env.commit("install");
    env.resume(&[]).exits(0);
    assert_eq!(env.scratch("starts"), "s\n", "the agent was paid once");
    assert!(env.holds("main", "a"));
}

#[test]
fn start_names_what_worktrees_lack() {
    let env = environment("");
    env.write("repo/package-lock.json", "{}");
    env.write("repo/web/pnpm-lock.yaml", "");
    env.write("repo/Cargo.lock", "");
    env.commit("dependencies");
    env.write("repo/node_modules/x", "");
    env.write("repo/web/node_modules/x", "");
    env.write("repo/.envrc", "");
    let plan = |keys: &str| env.plan(&format!("[[lane]]\nid = \"A\"\n{keys}command = 'echo $LANEWRIGHT_RUN_ID > a'\n"));
    plan("");
    let said = env.execute(&[]).exits(0).stderr;
    for words in [
        "have no node_modules, where the packages of package-lock.json are installed: `setup = [\"npm ci\"]`",
        "have no web/node_modules",
        "`setup = [\"cd 'web' && pnpm install",
        ".env is not in git, so the worktrees of A lack it: `copy = [\".env\"]`",
        ".envrc is not in git, so the worktrees of A lack it: commit it, or have git ignore it",
    ] {
        assert!(said.contains(words), "{words}\n{said}");
    }
    assert!(!said.contains("Cargo.lock"), "{said}");
    plan("setup = [\"true\"]\ncopy = [\".env\"]\n");
    let said = env.execute(&["--run-id=r2", "--redo"]).exits(0).stderr;
    assert!(!said.contains("node_modules") && !said.contains(".env is"), "{said}");
}

#[test]
fn init_writes_what_worktrees_lack() {
    let env = environment("retries = 1\n");
    env.write("repo/package-lock.json", "{}");
    env.commit("dependencies");
    env.write("repo/node_modules/x", "");
    let expected = "setup = [\"npm ci\"]\ncopy = [\".env\"]\n\
                    regenerate = { \"package-lock.json\" = \"npm install --package-lock-only --ignore-scripts\" }\n\
                    retries = 1\n";
    env.lanewright(&["init", "--worktrees", "--yes"]).exits(0);
    assert_eq!(env.read("repo/lanewright.toml"), expected);
    env.lanewright(&["init", "--worktrees", "--yes"]).exits(0);
    assert_eq!(env.read("repo/lanewright.toml"), expected);
}

#[test]
fn copied_virtual_environment_is_refused() {
    let env = environment("copy = [\".venv/**\"]\n");
    env.write("repo/.gitignore", ".venv\n");
    env.commit("ignore");
    env.write("repo/.venv/pyvenv.cfg", "home = /usr/bin\n");
    env.write("repo/.venv/bin/pytest", "#!/bin/sh\n");
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'touch \"$SCRATCH/ran\"; echo a > a'\n");
    env.execute(&[]).exits(3).says(&["virtual environment .venv", "uv sync"]);
    assert!(!env.path("scratch/ran").exists());
}

#[test]
fn editable_package_of_the_checkout_blocks() {
    let env = environment("");
    env.write("repo/.gitignore", ".venv\n");
    env.commit("ignore");
    let site = ".venv/lib/python3/site-packages";
    let checkout = env.path("repo").canonicalize().unwrap();
    env.plan(&format!(
        "[[lane]]\nid = \"A\"\nsetup = ['mkdir -p {site} && echo home > .venv/pyvenv.cfg && echo {}/src > {site}/x.pth']\n\
         command = 'touch \"$SCRATCH/ran\"; echo a > a'\n",
        checkout.display()
    ));
    env.execute(&[]).exits(3).says(&["x.pth", "another checkout", "uv sync"]);
    assert!(!env.path("scratch/ran").exists());
    std::fs::remove_file(env.path("repo.lanes/slots/01").join(site).join("x.pth")).unwrap();
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "a"));
}

#[test]
fn set_up_that_was_corrected_runs_again() {
    for worktrees in ["on", "off"] {
        let env = environment("");
        env.write("repo/packages/core/index.js", "");
        env.commit("packages");
        let set_up = |line: &str| {
            env.plan(&format!(
                "[[lane]]\nid = \"A\"\nretries = 0\nagent_worktrees = \"{worktrees}\"\nsetup = ['{line}']\n\
                 command = 'cat node_modules/core/name > a'\ntests = ['test -e node_modules/core/name']\n"
            ));
        };
        let core = env.path("repo/packages/core").canonicalize().unwrap();
        set_up(&format!("mkdir -p node_modules && ln -sfn {} node_modules/core", core.display()));
        env.execute(&[]).exits(3).says(&["node_modules/core leads to", "`setup`"]);
        set_up("rm -rf node_modules && mkdir -p node_modules/core && echo own > node_modules/core/name");
        env.resume(&["--accept-plan-change"]).exits(0);
        assert_eq!(env.file_at("main", "a"), "own");
    }
}

#[test]
fn links_of_workspaces_block_and_others_do_not() {
    for (inner, code) in [("../../packages/core", 3), ("../plain", 0)] {
        let env = environment("");
        env.write("repo/.gitignore", "node_modules/\n");
        env.write("repo/packages/core/index.js", "");
        env.commit("packages");
        env.write("repo/node_modules/plain/index.js", "");
        std::fs::create_dir_all(env.path("repo/node_modules/@x")).unwrap();
        std::os::unix::fs::symlink(inner, env.path("repo/node_modules/@x/core")).unwrap();
        env.plan(&format!(
            "[[lane]]\nid = \"A\"\nsetup = ['ln -s {}/node_modules node_modules']\ncommand = 'echo a > a'\n",
            env.path("repo").display()
        ));
        let ended = env.execute(&[]).exits(code);
        if code == 3 {
            ended.says(&["node_modules/@x/core", "packages/core", "npm ci"]);
        }
        assert!(!env.holds("main", "node_modules"));
        assert_eq!(env.holds("main", "a"), code == 0);
    }
}

#[test]
fn packages_of_a_workspace_need_more_than_the_root() {
    let env = environment("copy = [\"node_modules\"]\n");
    env.write("repo/.gitignore", "node_modules\n.env\n");
    env.write("repo/package-lock.json", "{}");
    env.write("repo/packages/a/package.json", "{}");
    env.write("repo/packages/b/package.json", "{}");
    env.commit("a workspace");
    for place in ["node_modules/x", "packages/a/node_modules/x", "packages/b/node_modules/x"] {
        env.write(&format!("repo/{place}"), "");
    }
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'date +%N > a'\n");
    let said = env.execute(&[]).exits(0).stderr;
    assert!(
        said.contains("have no packages/a/node_modules") && said.contains("`copy = [\"packages/*/node_modules/**\"]`"),
        "{said}"
    );
    assert_eq!(said.matches("have no").count(), 1, "{said}");
    env.write("repo/lanewright.toml", "copy = [\"node_modules\", \"packages/*/node_modules/**\"]\n");
    let said = env.execute(&["--run-id=r2", "--redo"]).exits(0).stderr;
    assert!(!said.contains("have no"), "{said}");
}

#[test]
fn files_that_name_the_checkout_are_named() {
    let env = environment("");
    let checkout = env.path("repo").canonicalize().expect("a path");
    let place = checkout.display();
    env.write("repo/.env", format!("# {place}\nDATA={place}/data\n"));
    env.write("repo/go.mod", format!("module x\n\nreplace y => {place}/gone\n"));
    env.write("repo/web/package.json", format!("{{\"x\": \"{place}.lanes\"}}\n"));
    env.commit("places");
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a'\n");
    let said = env.execute(&[]).exits(0).stderr;
    assert!(said.contains(&format!(".env:2 names {place}")) && said.contains("go.mod:3 names"), "{said}");
    assert!(!said.contains("package.json"), "{said}");
}
