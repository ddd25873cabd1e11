//! The slash commands in the forms of the programs: each is a prompt. Pure.

/// A command of ours: its name, and its text as Claude Code reads it.
const PHASE: (&str, &str) = ("execute-phase", include_str!("../../../../templates/commands/execute-phase.md"));
const LANE: (&str, &str) = ("execute-lane", include_str!("../../../../templates/commands/execute-lane.md"));

pub(crate) type Files = [(&'static str, String); 2];

pub(crate) fn claude() -> Files {
    [(".claude/commands/execute-phase.md", PHASE.1.to_owned()), (".claude/commands/execute-lane.md", LANE.1.to_owned())]
}

/// Codex has no commands of a repository; its skills are called as `$execute-phase`.
pub(crate) fn codex() -> Files {
    let skill = |(name, text)| {
        let (about, prompt) = parts(text);
        let prompt = prompt.replace("$ARGUMENTS", "what the user wrote after the name of this skill.");
        format!("---\nname: {name}\ndescription: {about}. Only where the user asks for it.\n---\n{prompt}")
    };
    [(".agents/skills/execute-phase/SKILL.md", skill(PHASE)), (".agents/skills/execute-lane/SKILL.md", skill(LANE))]
}

/// The rules with which Codex runs the commands of the texts without asking, and outside of its sandbox.
pub(crate) fn codex_rules() -> String {
    let mut names: Vec<&str> = [PHASE, LANE].iter().flat_map(|(_, text)| allowed(text)).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !IN_SANDBOX.contains(name));
    format!("{CODEX_RULES}prefix_rule(pattern = [\"lanewright\", {names:?}], decision = \"allow\")\n")
}

/// Commands that work in Codex's sandbox, and that would get what is run or written out of it by their arguments.
const IN_SANDBOX: &[&str] = &["diff", "logs", "plan", "report"];

const CODEX_RULES: &str = "\
# Codex runs these commands without asking and outside of its sandbox, in which Lanewright cannot make worktrees. The
# agents and commands of a plan then run outside of it, too, as anybody may write one. Codex asks for each command that you
# remove here.
host_executable(name = \"lanewright\", paths = []) # not a program of that name at another place than in PATH
";

/// The commands of `lanewright` that a text lets Claude Code run.
fn allowed(text: &str) -> impl Iterator<Item = &str> {
    let rules = text.lines().find_map(|line| line.strip_prefix("allowed-tools: ")).unwrap_or_default();
    rules.split(", ").filter_map(|rule| rule.strip_prefix("Bash(lanewright ")?.strip_suffix(":*)"))
}

/// Gemini CLI (0.61.0) takes no policies from a repository, `tools.allowed` refuses every command that it does not name, and
/// its shell hides the user's settings from git; so its text prefers the tools of the server, which is trusted.
const GEMINI_TOOLS: &str = "
Gemini CLI asks the user before each shell command, and not before the MCP tools of `lanewright`. Use those wherever one does
what a command below does: `ExecutePhase` to start (with `lanes` for one lane; it checks the plan itself), `RunStatus` with
`wait: 300`, again until `held` is false, `ReadDiff` and `ReadLogs` to show, `Approve`, `Reject`, `Retry`, `ResumeTask`,
`Rollback` with `dryRun` first, `Gate`, `Doctor`. `next_steps` of a status has what comes next, as commands.
";

pub(crate) fn gemini() -> Files {
    let command = |(_, text)| {
        let (about, prompt) = parts(text);
        let prompt = prompt.replacen("$ARGUMENTS\n", &format!("$ARGUMENTS\n{GEMINI_TOOLS}"), 1);
        // Literal strings: what is between the quotes is taken as it is.
        format!("description = '{about}'\nprompt = '''{}'''\n", prompt.replace("$ARGUMENTS", "{{args}}"))
    };
    [(".gemini/commands/execute-phase.toml", command(PHASE)), (".gemini/commands/execute-lane.toml", command(LANE))]
}

pub(crate) fn opencode() -> Files {
    let command = |(_, text)| {
        let (about, prompt) = parts(text);
        format!("---\ndescription: {about}\n---\n{prompt}")
    };
    [(".opencode/command/execute-phase.md", command(PHASE)), (".opencode/command/execute-lane.md", command(LANE))]
}

/// Whether Lanewright wrote `old`, in any version, as the command that is now `new`: their descriptions are the same.
pub(super) fn is_earlier(old: &str, new: &str) -> bool {
    [PHASE, LANE].iter().map(|(_, text)| parts(text).0).any(|about| old.contains(about) && new.contains(about))
}

/// The description of a command, and its prompt without what only Claude Code fills in.
fn parts(text: &str) -> (&str, String) {
    let (front, prompt) = text.trim_start_matches("---\n").split_once("---\n").unwrap_or_default();
    let about = front.lines().find_map(|line| line.strip_prefix("description: ")).unwrap_or_default();
    (about, prompt.replace(" --session-id ${CLAUDE_SESSION_ID}", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_other_programs_lack_claude_variables() {
        let forms = [codex(), gemini(), opencode()];
        for (name, text) in forms.iter().flatten() {
            assert!(text.contains("lanes in git worktrees") || text.contains("one lane of a phase plan"), "{name}");
            assert!(text.contains("## 5. Never") && text.contains("--progress plain --yes"), "{name}:\n{text}");
            assert!(!text.contains("CLAUDE") && !text.contains("allowed-tools"), "{name}:\n{text}");
        }
    }

    /// Claude Code asks the user for every other command.
    #[test]
    fn commands_that_the_texts_name_are_allowed() {
        for (name, text) in [PHASE, LANE] {
            let rules = text.lines().find_map(|line| line.strip_prefix("allowed-tools: ")).unwrap();
            let commands: Vec<&str> = allowed(text).collect();
            let named =
                text.split("`lanewright ").skip(1).map(|rest| rest.split([' ', '`']).next().unwrap_or_default());
            for named in named.filter(|named| *named != "COMMAND") {
                assert!(commands.contains(&named), "{name}: {named} is not in {rules}");
            }
            let known = crate::cli::args::command();
            for command in commands {
                assert!(known.find_subcommand(command).is_some(), "{name}: there is no command {command}");
            }
            // Either would allow every command.
            assert!(!rules.contains("lanewright:") && !rules.contains("lanewright -"), "{rules}");
            assert!(rules.contains("mcp__lanewright"), "{rules}");
        }
    }

    #[test]
    fn codex_rules_allow_what_the_texts_name() {
        let rules = codex_rules();
        for name in ["execute-phase", "execute-lane", "approve", "resume", "status"] {
            assert!(rules.contains(&format!("\"{name}\"")), "{rules}");
        }
        assert!(rules.ends_with("], decision = \"allow\")\n"), "{rules}");
        assert!(
            !rules.contains("\"diff\"") && rules.contains("host_executable(name = \"lanewright\", paths = [])"),
            "{rules}"
        );
    }

    #[test]
    fn continuing_a_run_is_done_in_the_background() {
        for (_, text) in [PHASE, LANE] {
            assert!(text.contains("run it in the background with `--progress plain` (or with `--detach`)"), "{text}");
            assert!(text.contains("Wait in this same turn") && text.contains("`lanewright plan new "), "{text}");
        }
    }

    #[test]
    fn arguments_use_the_placeholder_of_each_program() {
        assert!(
            gemini().iter().all(|(_, text)| text.contains("Arguments: {{args}}\n") && !text.contains("$ARGUMENTS"))
        );
        assert!(opencode().iter().all(|(_, text)| text.contains("Arguments: $ARGUMENTS\n")));
        assert!(codex().iter().all(|(_, text)| !text.contains("$ARGUMENTS")));
    }

    #[test]
    fn gemini_command_is_valid_toml() {
        for ((_, text), (_, source)) in gemini().iter().zip([PHASE, LANE]) {
            let table: toml::Table = toml::from_str(text).unwrap();
            let prompt = table["prompt"].as_str().unwrap();
            let prompt = prompt.replace("{{args}}", "$ARGUMENTS").replace(GEMINI_TOOLS, "");
            assert_eq!(prompt, parts(source).1.trim_start_matches('\n'));
            assert_eq!(table["description"].as_str(), Some(parts(source).0));
        }
    }
}
