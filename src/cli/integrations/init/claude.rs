//! Lanewright's hooks in `.claude/settings.json` of Claude Code. Pure.
//!
//! Everything else in this file stays as it is, byte for byte.

use serde_json::{Value, json};

use super::json_text::{get, push, set, within};
use super::server::is_ours;

/// The events that we have hooks for, with the words that call them. Those with tools are called for every tool.
const HOOKS: &[(&str, &str, bool)] = &[
    ("SessionStart", "session-start", false),
    ("UserPromptSubmit", "user-prompt-submit", false),
    ("PostToolUse", "post-tool-use", true),
    ("Stop", "stop", false),
];

/// How long a hook may take, in seconds; ours take milliseconds.
const TIMEOUT: u32 = 10;

/// The same for those with tools, which may run the gate `edit`.
const TIMEOUT_WITH_GATE: u32 = 60;

/// `text`, a `settings.json`, with our hooks in it, each once. Text that has them stays as it is.
pub(super) fn with_hooks(text: &str) -> Result<String, String> {
    let mut text = text.to_owned();
    for &(event, word, has_tools) in HOOKS {
        let path = ["hooks", event];
        let known = get(&text, &path)?;
        let old: Value = serde_json::from_str(known.unwrap_or("[]")).map_err(|error| error.to_string())?;
        let new = with_hook(&old, word, has_tools).ok_or_else(|| within(&path, "it is no list of hooks"))?;
        text = match added(&old, &new) {
            Some(group) if known.is_some() => push(&text, &path, group)?,
            _ if new == old => text,
            _ => set(&text, &path, &new)?,
        };
    }
    Ok(text)
}

/// The last of `new`, if that is all in which it differs from `old`.
fn added<'a>(old: &Value, new: &'a Value) -> Option<&'a Value> {
    let (last, others) = new.as_array()?.split_last()?;
    (old.as_array()? == others).then_some(last)
}

/// An event's groups with our hook in them once; `None`: they are no groups of hooks.
fn with_hook(groups: &Value, word: &str, has_tools: bool) -> Option<Value> {
    let mut groups = groups.as_array()?.clone();
    let timeout = if has_tools { TIMEOUT_WITH_GATE } else { TIMEOUT };
    // A line of the user that calls it among other things is kept, and does what ours would.
    let commands = groups.iter().flat_map(|group| group["hooks"].as_array().into_iter().flatten());
    let mut found = commands
        .filter_map(|hook| hook["command"].as_str())
        .any(|command| !is_our_line(command, word) && command.contains(&format!("lanewright hook {word}")));
    let mut emptied = Vec::new();
    for (at, group) in groups.iter_mut().enumerate() {
        let hooks = group.as_object_mut()?.get_mut("hooks")?.as_array_mut()?;
        let before = hooks.len();
        // A line that calls it is kept, because its path may be outside of PATH; a second one would repeat the first.
        hooks.retain_mut(|hook| {
            let ours = hook["command"].as_str().is_some_and(|command| is_our_line(command, word));
            let kept = !ours || !std::mem::replace(&mut found, true);
            if let Some(fields) = hook.as_object_mut().filter(|_| ours && kept) {
                let limit = fields.entry("timeout").or_insert(timeout.into());
                // What an earlier version wrote ends the gate too early.
                if *limit == TIMEOUT {
                    *limit = timeout.into();
                }
            }
            kept
        });
        emptied.extend((hooks.is_empty() && before > 0).then_some(at));
    }
    emptied.iter().rev().for_each(|&at| drop(groups.remove(at)));
    if !found {
        let hook = json!({"type": "command", "command": format!("lanewright hook {word}"), "timeout": timeout});
        groups.push(if has_tools { json!({"matcher": "*", "hooks": [hook]}) } else { json!({"hooks": [hook]}) });
    }
    Some(Value::Array(groups))
}

/// Whether `command` calls our hook `word`, from wherever the program is, and does nothing else.
fn is_our_line(command: &str, word: &str) -> bool {
    shlex::split(command).is_some_and(|words| match words.as_slice() {
        [program, hook, name] => is_ours(program) && hook == "hook" && name == word,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn commands(text: &str, event: &str) -> Vec<String> {
        let groups = parsed(text)["hooks"][event].as_array().unwrap().clone();
        let hooks = groups.iter().flat_map(|group| group["hooks"].as_array().unwrap());
        hooks.map(|hook| hook["command"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn hooks_are_added_once_to_empty_file() {
        let once = with_hooks("").unwrap();
        for (event, word, _) in HOOKS {
            assert_eq!(commands(&once, event), [format!("lanewright hook {word}")]);
        }
        assert_eq!(parsed(&once)["hooks"]["PostToolUse"][0]["matcher"], "*");
        assert_eq!(with_hooks(&once).unwrap(), once);
    }

    #[test]
    fn unrelated_entries_are_unchanged() {
        let theirs = "{\n    \"permissions\": {\"allow\": [\"Read\", \"Bash(ls:*)\"]},\n    \"hooks\": {\n        \"Stop\": \
                      [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}],\n        \"PreToolUse\": \
                      [{\"matcher\": \"Bash\",  \"hooks\": []}]\n    },\n    \"model\": \"x\"\n}\n";
        let merged = with_hooks(theirs).unwrap();
        for line in [
            "    \"permissions\": {\"allow\": [\"Read\", \"Bash(ls:*)\"]},\n",
            "[{\"matcher\": \"Bash\",  \"hooks\": []}]",
        ] {
            assert!(merged.contains(line), "{merged}");
        }
        assert_eq!(commands(&merged, "Stop"), ["say done", "lanewright hook stop"]);
        let keys: Vec<String> = parsed(&merged).as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["permissions", "hooks", "model"]);
        assert_eq!(with_hooks(&merged).unwrap(), merged);
    }

    #[test]
    fn own_hooks_with_any_path_are_not_duplicated() {
        let old = r#"{"hooks": {"Stop": [
            {"hooks": [{"type": "command", "command": "/opt/bin/lanewright hook stop"}, {"type": "command", "command": "x"}]},
            {"hooks": [{"type": "command", "command": "lanewright hook stop"}]}]}}"#;
        let merged = with_hooks(old).unwrap();
        assert_eq!(commands(&merged, "Stop"), ["/opt/bin/lanewright hook stop", "x"]);
        assert_eq!(parsed(&merged)["hooks"]["Stop"][0]["hooks"][0]["timeout"], TIMEOUT);
        assert!(!is_our_line("echo lanewright-hook stop", "stop") && !is_our_line("my-lanewright hook stop", "stop"));
    }

    #[test]
    fn user_line_that_calls_the_hook_is_kept() {
        let theirs = r#"{"hooks": {"Stop": [{"matcher": "", "hooks": []},
            {"hooks": [{"type": "command", "command": "lanewright hook stop && play", "timeout": 600, "async": true}]}]}}"#;
        let merged = with_hooks(theirs).unwrap();
        assert_eq!(parsed(&merged)["hooks"]["Stop"], parsed(theirs)["hooks"]["Stop"]);
        let own = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "lanewright hook stop", "timeout": 600}]}]}}"#;
        assert_eq!(parsed(&with_hooks(own).unwrap())["hooks"]["Stop"][0]["hooks"][0]["timeout"], 600);
    }

    #[test]
    fn invalid_settings_are_refused_with_their_path() {
        for (text, fault) in [
            ("{\n  \"hooks\": {,\n}", "line 2 column"),
            ("{\"hooks\": []}", "`hooks`: "),
            ("{\"hooks\": {\"Stop\": \"x\"}}", "`hooks.Stop`: "),
            ("{\"hooks\": {\"Stop\": [{\"hooks\": 7}]}}", "`hooks.Stop`: "),
            ("// no comments\n{}", "line 1 column 1"),
        ] {
            let refused = with_hooks(text).unwrap_err();
            assert!(refused.contains(fault), "{text}: {refused}");
        }
    }
}
