//! `init`: what it writes, what it leaves alone, and what it refuses.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::Value;

use crate::support::{TestEnv, all_files};

const FILES: [&str; 5] = [
    ".claude/commands/execute-lane.md",
    ".claude/commands/execute-phase.md",
    ".claude/settings.json",
    ".mcp.json",
    "lanewright.toml",
];

/// The files that `init` may write, as they lie in the repository.
fn there(env: &TestEnv) -> Vec<String> {
    let root = env.path("repo");
    let names = all_files(&root).into_iter().filter(|path| !path.starts_with(root.join(".git")));
    let names = names.map(|path| path.strip_prefix(&root).expect("below").to_str().expect("UTF-8").to_owned());
    names.filter(|name| !["README.md", ".gitignore"].contains(&name.as_str())).collect()
}

#[test]
fn init_writes_files_once_and_repeat_changes_nothing() {
    let env = TestEnv::new();
    let first = env.lanewright(&["init", "--yes"]).exits(0);
    assert_eq!(there(&env), FILES);
    assert!(first.stdout.contains("+++ b/.claude/settings.json") && first.stdout.contains("--- /dev/null"));
    let before: Vec<String> = FILES.iter().map(|name| env.read(&format!("repo/{name}"))).collect();
    let second = env.lanewright(&["init"]).exits(0);
    assert!(second.stdout.contains("Everything is in place"), "{}", second.stdout);
    assert_eq!(FILES.map(|name| env.read(&format!("repo/{name}"))).to_vec(), before);
    let mode = |name: &str| fs::metadata(env.path(&format!("repo/{name}"))).expect("a file").permissions().mode();
    assert_eq!(mode("lanewright.toml") & 0o444, mode("README.md") & 0o444, "others may read what is to be committed");
    env.lanewright(&["status", "--settings"]).exits(0);
}

#[test]
fn the_diff_is_one_that_git_takes() {
    let env = TestEnv::new();
    env.write("repo/.claude/settings.json", "{\n  \"model\": \"x\"\n}\n");
    let shown = env.lanewright(&["init", "--dry-run"]).exits(0);
    assert_eq!(there(&env), [".claude/settings.json"]);
    env.write("patch", &shown.stdout);
    env.git(&["apply", "../patch"]);
    env.lanewright(&["init"]).exits(0);
}

#[test]
fn init_without_terminal_writes_nothing_and_hints() {
    let env = TestEnv::new();
    let shown = env.lanewright(&["init"]).says(&["nothing written"]).hints("lanewright init --yes").exits(2);
    assert!(shown.stdout.contains("+++ b/lanewright.toml"), "{}", shown.stdout);
    assert_eq!(there(&env), [] as [&str; 0]);
}

#[test]
fn only_what_is_asked_for_is_written() {
    for (flag, files) in
        [("--config", &FILES[4..]), ("--commands", &FILES[..2]), ("--hooks", &FILES[2..3]), ("--mcp", &FILES[3..4])]
    {
        let env = TestEnv::new();
        let answer = env.lanewright(&["init", flag, "--yes", "--format", "json"]).exits(0);
        let answer: Value = serde_json::from_str(&answer.stdout).expect("JSON");
        assert_eq!(
            (&answer["written"], answer["files"].as_array().map(Vec::len)),
            (&Value::Bool(true), Some(files.len()))
        );
        assert_eq!(there(&env), files, "{flag}");
    }
}

#[test]
fn init_keeps_the_users_own_entries() {
    let env = TestEnv::new();
    let settings = "{\n    \"permissions\": {\"allow\": [\"Bash(ls:*)\"]},\n    \"hooks\": {\n        \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]\n    }\n}\n";
    env.write("repo/.claude/settings.json", settings);
    fs::set_permissions(env.path("repo/.claude/settings.json"), fs::Permissions::from_mode(0o600)).expect("a mode");
    env.write("repo/lanewright.toml", "max_parallel = 7\n");
    env.write("repo/.mcp.json", "{\"mcpServers\": {\"other\": {\"command\": \"o\"}}}\n");
    env.lanewright(&["init", "--yes"]).exits(0);
    assert_eq!(env.read("repo/lanewright.toml"), "max_parallel = 7\n");
    let merged = env.read("repo/.claude/settings.json");
    assert!(
        merged.contains("    \"permissions\": {\"allow\": [\"Bash(ls:*)\"]},\n") && merged.contains("say done"),
        "{merged}"
    );
    assert_eq!(
        fs::metadata(env.path("repo/.claude/settings.json")).expect("a file").permissions().mode() & 0o777,
        0o600
    );
    assert!(env.read("repo/.mcp.json").contains("{\"command\": \"o\"}"));
}

#[test]
fn init_replaces_user_commands_only_by_force() {
    let env = TestEnv::new();
    let (own, earlier) = ("repo/.claude/commands/execute-phase.md", "repo/.claude/commands/execute-lane.md");
    env.write(own, "My own command.\n");
    let ours =
        "---\ndescription: Run one lane of a phase plan in a git worktree with Lanewright, or resume or roll it back\n";
    env.write(earlier, ours);
    env.lanewright(&["init", "--yes"]).says(&[".claude/commands/execute-phase.md", "--force"]).exits(2);
    assert_eq!((there(&env), env.read(own).as_str()), (FILES.map(str::to_owned).to_vec(), "My own command.\n"));
    assert_ne!(env.read(earlier), ours, "what an earlier version wrote is updated");
    let shown = env.lanewright(&["init", "--yes", "--force"]).exits(0);
    assert!(shown.stdout.contains("-My own command."), "what is lost is shown:\n{}", shown.stdout);
    assert_ne!(env.read(own), "My own command.\n");
}

#[test]
fn settings_of_the_user_get_lines_and_lose_none() {
    let env = TestEnv::new();
    let settings = "{\r\n\t\"model\": \"x\", \"n\": 1.0,\r\n\t\"hooks\": { \"Stop\": [ {\"hooks\":  []} ] }\r\n}";
    env.write("repo/.claude/settings.json", settings);
    env.lanewright(&["init", "--yes", "--hooks"]).exits(0);
    let merged = env.read("repo/.claude/settings.json");
    assert!(merged.starts_with(settings.strip_suffix(" ] }\r\n}").unwrap()), "{merged}");
    assert!(merged.ends_with(" }\r\n}") && !merged.replace("\r\n", "").contains('\n'), "{merged}");
}

#[test]
fn a_list_of_programs_may_have_blanks() {
    let env = TestEnv::new();
    env.lanewright(&["init", "--mcp", "--for", "claude, codex", "--yes"]).exits(0);
    assert_eq!(there(&env), [".codex/config.toml", ".mcp.json"]);
    env.lanewright(&["init", "--for", "claude, codx"]).says(&["invalid value 'codx'", "codex"]).exits(2);
}

#[test]
fn init_leaves_unreadable_file_and_writes_the_others() {
    let env = TestEnv::new();
    let own = "{\n  // mine\n  \"model\": \"x\"\n}\n";
    env.write("repo/.claude/settings.json", own);
    let fault = [".claude/settings.json", "line 2 column 3", "by hand", "lanewright hook stop"];
    env.lanewright(&["init", "--yes"]).says(&fault).exits(2);
    assert_eq!(
        (there(&env), env.read("repo/.claude/settings.json").as_str()),
        (FILES.map(str::to_owned).to_vec(), own)
    );
    let again = env.lanewright(&["init", "--yes"]).says(&fault).exits(2);
    assert_eq!(again.stdout, "");
}

#[test]
fn init_refuses_non_utf8_settings_and_writes_nothing() {
    let env = TestEnv::new();
    env.write("repo/.claude/settings.json", [0xff, 0xfe]);
    env.lanewright(&["init", "--yes"]).says(&[".claude/settings.json"]).exits(2);
    assert_eq!(there(&env), [".claude/settings.json"]);
}

#[test]
fn links_out_of_the_repository_are_not_followed() {
    let env = TestEnv::new();
    symlink(env.path("scratch"), env.path("repo/.claude")).expect("a link");
    env.lanewright(&["init", "--yes"]).says(&["out of the repository"]).exits(2);
    assert_eq!(all_files(&env.path("scratch")), [] as [std::path::PathBuf; 0]);
    assert!(!env.path("repo/lanewright.toml").exists());
}

#[test]
fn init_with_unwritable_path_changes_nothing() {
    let env = TestEnv::new();
    env.write("repo/.claude/commands", "a file where a directory belongs\n");
    env.lanewright(&["init", "--yes"]).exits(2);
    assert_eq!(there(&env), [".claude/commands"]);
}

#[test]
fn from_a_subdirectory_and_outside_of_a_repository() {
    let env = TestEnv::new();
    env.write("repo/deep/er/x", "");
    env.lanewright(&["-C", "deep/er", "init", "--config", "--yes"]).exits(0);
    assert!(env.path("repo/lanewright.toml").exists());
    TestEnv::without_repository().lanewright(&["init", "--yes"]).exits(2);
}

#[test]
fn init_writes_a_workflow_once_on_request() {
    let env = TestEnv::new();
    let told = env.lanewright(&["init", "--ci", "github", "--ci", "gitlab", "--yes"]).exits(0);
    assert!(told.stdout.contains("- local: .gitlab/lanewright.yml"), "{}", told.stdout);
    assert_eq!(there(&env), [".github/workflows/lanewright.yml", ".gitlab/lanewright.yml"]);
    for file in [".github/workflows/lanewright.yml", ".gitlab/lanewright.yml"] {
        let text = env.read(&format!("repo/{file}"));
        let version = format!("LANEWRIGHT_VERSION: \"{}\"", env!("CARGO_PKG_VERSION"));
        assert!(text.contains("lanewright ci ") && text.contains(&version), "{text}");
        assert!(!text.replace("${{", "").contains("{{"), "{text}");
    }
    assert!(!told.stdout.contains("Claude Code"), "a workflow is for a CI service:\n{}", told.stdout);
    assert!(told.stdout.contains("gh workflow run lanewright.yml -f plan=plan.toml"), "{}", told.stdout);
    env.write("repo/.github/workflows/lanewright.yml", "name: Ours by now\n");
    env.lanewright(&["init", "--ci", "github"]).exits(0);
    assert_eq!(env.read("repo/.github/workflows/lanewright.yml"), "name: Ours by now\n");
}

#[test]
fn other_programs_have_their_own_places() {
    for (program, files) in [
        (
            "codex",
            &[
                ".agents/skills/execute-lane/SKILL.md",
                ".agents/skills/execute-phase/SKILL.md",
                ".codex/config.toml",
                ".codex/rules/lanewright.rules",
            ][..],
        ),
        (
            "gemini",
            &[".gemini/commands/execute-lane.toml", ".gemini/commands/execute-phase.toml", ".gemini/settings.json"][..],
        ),
        ("opencode", &[".opencode/command/execute-lane.md", ".opencode/command/execute-phase.md", "opencode.json"][..]),
    ] {
        let env = TestEnv::new();
        let told = env.lanewright(&["init", "--commands", "--mcp", "--for", program, "--yes"]).exits(0);
        assert_eq!(there(&env), files);
        assert!(told.stdout.contains("No hooks."), "what it cannot do is said:\n{}", told.stdout);
        let again = env.lanewright(&["init", "--commands", "--mcp", "--for", program]).exits(0);
        assert!(again.stdout.contains("Everything is in place"), "{}", again.stdout);
        env.lanewright(&["init", "--hooks", "--for", program]).says(&["no hooks for"]).hints("--for claude").exits(2);
    }
}

#[test]
fn programs_that_the_repository_uses_are_found() {
    let env = TestEnv::new();
    env.write("repo/GEMINI.md", "Mine.\n");
    env.write("repo/.codex/config.toml", "model = \"x\" # mine");
    let told = env.lanewright(&["init", "--mcp", "--yes"]).exits(0);
    assert!(told.stdout.contains("Also for Codex, Gemini CLI"), "{}", told.stdout);
    assert_eq!(there(&env), [".codex/config.toml", ".gemini/settings.json", ".mcp.json", "GEMINI.md"]);
    assert!(env.read("repo/.codex/config.toml").starts_with("model = \"x\" # mine\n"));
    let chosen = env.lanewright(&["init", "--mcp", "--for", "claude"]).exits(0);
    assert!(!chosen.stdout.contains("Also for"), "{}", chosen.stdout);
}

#[test]
fn unreadable_foreign_config_is_refused_with_location() {
    let env = TestEnv::new();
    env.write("repo/.codex/config.toml", "a = 1\nb = = 2\n");
    env.lanewright(&["init", "--yes"]).says(&[".codex/config.toml", "line 2, column 5"]).exits(2);
    assert_eq!(env.read("repo/.codex/config.toml"), "a = 1\nb = = 2\n");
    env.write("repo/opencode.json", "{\n  // mine\n}\n");
    env.lanewright(&["init", "--for", "opencode", "--yes"]).says(&["opencode.json", "line 2 column 3"]).exits(2);
}
