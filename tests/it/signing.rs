//! Commits of Lanewright are signed and signed off as the user's, with the settings from before any agent worked.

use crate::support::TestEnv;

/// A stand-in for gpg, which fails where `$SCRATCH/broken` exists.
const GPG: &str = "#!/bin/sh
cat > /dev/null
[ ! -e \"$SCRATCH/broken\" ] || { echo 'gpg: signing failed: No pinentry' >&2; exit 2; }
printf '[GNUPG:] BEGIN_SIGNING H8\\n[GNUPG:] SIG_CREATED D\\n' >&2
printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'
";

/// A repository in which the user's git signs with the stand-in.
fn signing() -> TestEnv {
    let env = TestEnv::new();
    env.program("gpg-stub", GPG);
    let program = env.path("bin/gpg-stub");
    for (name, value) in [("commit.gpgSign", "true"), ("gpg.program", program.to_str().expect("UTF-8"))] {
        env.git(&["config", "--global", name, value]);
    }
    env
}

/// The commits of `range` that have no signature.
fn unsigned(env: &TestEnv, range: &str) -> Vec<String> {
    let listed = env.git(&["rev-list", range]);
    let is_signed =
        |commit: &&str| env.git(&["cat-file", "commit", commit]).lines().any(|it| it.starts_with("gpgsig "));
    listed.lines().filter(|commit| !is_signed(commit)).map(str::to_owned).collect()
}

const LANE: &str = "[[lane]]\nid = \"L\"\nretries = 0\n";

#[test]
fn commits_and_merges_are_signed_where_git_signs() {
    for merge in ["local", "squash", "rebase"] {
        let env = signing();
        env.plan(&format!("{LANE}command = 'echo x > x.txt'\n\n[[lane]]\nid = \"M\"\ncommand = 'echo y > y.txt'\n"));
        let first = env.git(&["rev-parse", "main"]);
        env.execute(&["--merge", merge]).exits(0);
        assert_eq!(unsigned(&env, &format!("{first}..main")), [""; 0], "{merge}");
        assert!(env.holds("main", "x.txt") && env.holds("main", "y.txt"));
        env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
        assert_eq!(unsigned(&env, &format!("{first}..main")), [""; 0], "{merge}, rolled back");
        assert!(!env.holds("main", "x.txt"));
    }
}

#[test]
fn signatures_of_ssh_are_those_of_the_users_key() {
    let env = TestEnv::new();
    let key = env.path("home/key");
    let made =
        std::process::Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let public = env.read("home/key.pub");
    env.write("home/signers", format!("tester@example.invalid {public}"));
    let signers = env.path("home/signers");
    let set = |name: &str, value: &str| env.git(&["config", "--global", name, value]);
    set("commit.gpgSign", "true");
    set("gpg.format", "ssh");
    set("user.signingKey", key.with_extension("pub").to_str().expect("UTF-8"));
    set("gpg.ssh.allowedSignersFile", signers.to_str().expect("UTF-8"));
    env.plan(&format!("{LANE}command = 'echo x > x.txt'\n"));
    env.execute(&[]).exits(0);
    env.git(&["verify-commit", "main", "main^2"]);
}

#[test]
fn signing_that_cannot_work_is_refused_at_the_start() {
    for (script, said) in [
        ("#!/bin/sh\necho nonsense\n", "gpg failed to sign the data"),
        (
            "#!/bin/sh\ncat > /dev/null\nprintf '[GNUPG:] SIG_CREATED D\\n' >&2\necho nonsense\n",
            "`nonsense` and no signature",
        ),
        ("#!/bin/sh\necho 'gpg: cannot open /dev/tty' >&2\nexit 2\n", "cannot open /dev/tty"),
    ] {
        let env = signing();
        env.program("gpg-stub", script);
        env.plan(&format!("{LANE}command = 'echo x > x.txt; echo run >> \"$SCRATCH/paid\"'\n"));
        let ended = env.execute(&[]);
        assert!(ended.code != 0 && !env.path("scratch/paid").exists(), "{ended:?}");
        ended.says(&["cannot sign commits", said, "commit.gpgSign", "sign = \"off\""]);
        env.write("repo/lanewright.toml", "sign = \"off\"\n");
        env.execute(&[]).exits(0);
        assert!(env.holds("main", "x.txt"));
    }
}

#[test]
fn signing_that_fails_later_is_tried_again_at_resume() {
    let env = signing();
    env.plan(&format!("{LANE}command = 'echo x > x.txt; echo run >> \"$SCRATCH/paid\"; touch \"$SCRATCH/broken\"'\n"));
    env.execute(&[]).exits(3).says(&["L blocked", "No pinentry", "sign = \"off\""]);
    env.resume(&[]).says(&["No pinentry"]);
    std::fs::remove_file(env.path("scratch/broken")).expect("a file");
    env.resume(&[]).exits(0);
    assert_eq!(env.scratch("paid"), "run\n", "the agent is not paid again");
    assert_eq!(unsigned(&env, "main^..main"), [""; 0]);
}

#[test]
fn settings_that_an_agent_writes_do_not_count() {
    let env = signing();
    env.write("repo/lanewright.toml", "git_directory = 'shared'\n");
    env.program("evil", "#!/bin/sh\ntouch \"$SCRATCH/evil\"\nexit 1\n");
    let evil = env.path("bin/evil");
    let set = format!(
        "git config user.name Bot; git config commit.gpgSign false; git config gpg.program {0}; git config gpg.format ssh; \
         git config gpg.ssh.program {0}; git config user.signingKey k; echo x > x.txt; [ -e \"$SCRATCH/again\" ]",
        evil.display()
    );
    env.plan(&format!("{LANE}command = '{set}'\n"));
    let first = env.git(&["rev-parse", "main"]);
    env.execute(&[]).exits(1).says(&["user.name", "was not set", "`Bot`", "git config --unset-all gpg.program"]);
    env.write("scratch/again", "");
    env.resume(&[]).exits(0).says(&["user.name"]);
    let range = format!("{first}..main");
    assert_eq!(unsigned(&env, &range), [""; 0]);
    assert!(env.git(&["log", "--format=%an %cn", &range]).lines().all(|who| who == "Tester Tester"));
    assert!(!env.path("scratch/evil").exists(), "a program that an agent named was run");
}

#[test]
fn commits_of_agents_name_the_user_whatever_a_gate_sets() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'echo a > a'\ntests = ['git config user.email fixture@example.invalid']\n\
         [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'echo b > b; git add b; git commit -qm own'\n",
    );
    env.execute(&[]).exits(0);
    assert!(!env.git(&["log", "--format=%ae %ce", "main"]).contains("fixture"));
}

#[test]
fn messages_are_in_the_encoding_that_their_commits_name() {
    let env = TestEnv::new();
    env.git(&["config", "i18n.commitEncoding", "ISO-8859-1"]);
    env.plan("[[lane]]\nid = \"A\"\nname = \"Größe prüfen\"\ncommand = 'echo a > a'\n");
    env.execute(&[]).exits(0);
    let said = env.git(&["log", "--format=%s", "--encoding=UTF-8", "main"]);
    assert!(said.contains("Größe prüfen"), "{said}");
}

#[test]
fn settings_of_a_worktree_and_of_trailers_do_not_count() {
    let env = signing();
    env.git(&["config", "--global", "format.signOff", "true"]);
    env.program("gpg-stub", &GPG.replace("cat >", "echo \"$@\" >> \"$SCRATCH/keys\"; cat >"));
    let set = "git config extensions.worktreeConfig true; git config --worktree user.name Bot; \
               git config --worktree user.signingKey BOTKEY; git config trailer.evil.key \"Evil: \"; \
               git config trailer.evil.command \"touch $SCRATCH/evil; echo x\"; echo x > x.txt";
    env.plan(&format!("{LANE}command = '{set}'\n"));
    env.execute(&[]).exits(0);
    let said = env.git(&["log", "--format=%an %cn %B", "main^..main"]);
    assert!(!said.contains("Bot") && !said.contains("Evil"), "{said}");
    assert!(!env.scratch("keys").contains("BOTKEY") && !env.path("scratch/evil").exists());
}

#[test]
fn signing_that_the_environment_asks_for_is_done() {
    let env = signing();
    env.git(&["config", "--global", "--unset", "commit.gpgSign"]);
    env.plan(&format!("{LANE}command = 'echo x > x.txt'\n"));
    let plan = env.path("plan.toml");
    let variables = [("COUNT", "1"), ("KEY_0", "commit.gpgSign"), ("VALUE_0", "true")];
    let variables = variables.map(|(name, value)| (format!("GIT_CONFIG_{name}"), value));
    let words = ["execute-phase", plan.to_str().expect("UTF-8")];
    env.lanewright_with(&words, |command| command.envs(variables.iter().map(|(name, value)| (name, value)))).exits(0);
    assert_eq!(unsigned(&env, "main^..main"), [""; 0]);
}

#[test]
fn commits_are_signed_off_where_settings_say_so() {
    let signed_off = "Signed-off-by: Tester <tester@example.invalid>";
    for (setting, git, expected) in
        [("", true, true), ("sign_off = \"on\"\n", false, true), ("sign_off = \"off\"\n", true, false)]
    {
        let env = TestEnv::new();
        env.write("repo/lanewright.toml", setting);
        env.commit("settings");
        env.git(&["config", "--global", "format.signOff", if git { "true" } else { "false" }]);
        env.plan(&format!("{LANE}command = 'echo x > x.txt'\n"));
        env.execute(&[]).exits(0);
        for commit in ["main", "main^2"] {
            let trailers = env.git(&["show", "-s", "--format=%(trailers)", commit]);
            assert_eq!(trailers.lines().any(|line| line == signed_off), expected, "{setting}: {trailers}");
            assert!(trailers.contains("Run: r1") && trailers.contains("Lane: L"), "{trailers}");
        }
    }
}
