//! The entry of the MCP server in the files of the programs. Pure.
//!
//! Everything else in them stays as it is, byte for byte.

use serde_json::{Value, json};

use super::json_text::{get, set, with_line_ends_of};

/// `text`, a `.mcp.json` of Claude Code, with our server in it.
pub(crate) fn claude(text: &str) -> Result<String, String> {
    with_entry(text, "mcpServers", &json!({"type": "stdio", "command": "lanewright", "args": ["mcp"]}))
}

/// `text`, a `settings.json` of Gemini CLI, with our server in it, whose tools it does not ask for.
pub(crate) fn gemini(text: &str) -> Result<String, String> {
    with_entry(text, "mcpServers", &json!({"command": "lanewright", "args": ["mcp"], "trust": true}))
}

/// `text`, an `opencode.json`, with our server in it.
pub(crate) fn opencode(text: &str) -> Result<String, String> {
    with_entry(text, "mcp", &json!({"type": "local", "command": ["lanewright", "mcp"], "enabled": true}))
}

/// Text that has our server, wherever the program is, stays as it is.
fn with_entry(text: &str, key: &str, entry: &Value) -> Result<String, String> {
    let path = [key, "lanewright"];
    let known = get(text, &path)?.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    if serves(&known) { Ok(text.to_owned()) } else { set(text, &path, entry) }
}

/// Whether an entry starts our server: with the program's name and arguments apart, or in one list.
fn serves(entry: &Value) -> bool {
    let listed = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let words = [listed(&entry["command"]), listed(&entry["args"])].concat();
    words.first().and_then(Value::as_str).is_some_and(is_ours) && words.iter().any(|word| word == "mcp")
}

pub(crate) fn is_ours(program: &str) -> bool {
    program.rsplit('/').next() == Some("lanewright")
}

const CODEX_ENTRY: &str =
    "[mcp_servers.lanewright]\ncommand = \"lanewright\"\nargs = [\"mcp\"]\ndefault_tools_approval_mode = \"approve\"\n";

/// `text`, a `config.toml` of Codex, with our server as its last table. Existing text is not touched, so an entry of
/// this name that starts something else is refused.
pub(crate) fn codex(text: &str) -> Result<String, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let known = table.get("mcp_servers").and_then(|servers| servers.get("lanewright"));
    match known.map(|entry| serde_json::to_value(entry).unwrap_or_default()) {
        Some(entry) if serves(&entry) => return Ok(text.to_owned()),
        Some(_) => return Err("`mcp_servers.lanewright` starts another program; remove it".to_owned()),
        None => {}
    }
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let new = format!("{text}{}", with_line_ends_of(text, &format!("{gap}{CODEX_ENTRY}")));
    let fault = "it takes no further table; write it as tables of their own, [mcp_servers.NAME]";
    toml::from_str::<toml::Table>(&new).map(|_| new).map_err(|_| format!("`mcp_servers`: {fault}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn server_entry_is_added_once_beside_others() {
        let once = claude("{\"mcpServers\": {\"other\": {\"command\":   \"o\"}}}").unwrap();
        assert!(once.contains("{\"command\":   \"o\"}"), "{once}");
        assert_eq!(parsed(&once)["mcpServers"]["lanewright"]["args"], json!(["mcp"]));
        assert_eq!(claude(&once).unwrap(), once);
        let elsewhere = r#"{"mcpServers": {"lanewright": {"command": "/opt/lanewright", "args": ["-v", "mcp"]}}}"#;
        assert_eq!(claude(elsewhere).unwrap(), elsewhere);
        let stranger = claude(r#"{"mcpServers": {"lanewright": {"command": "x"}}}"#).unwrap();
        assert_eq!(parsed(&stranger)["mcpServers"]["lanewright"]["command"], "lanewright");
    }

    #[test]
    fn opencode_command_is_one_list() {
        let once = opencode("{\"theme\": \"x\"}").unwrap();
        assert_eq!(parsed(&once)["mcp"]["lanewright"]["command"], json!(["lanewright", "mcp"]));
        assert_eq!(opencode(&once).unwrap(), once);
        let elsewhere = r#"{"mcp": {"lanewright": {"type": "local", "command": ["/opt/lanewright", "mcp"]}}}"#;
        assert_eq!(opencode(elsewhere).unwrap(), elsewhere);
        assert!(opencode("{\n  // mine\n}").unwrap_err().contains("line 2 column 3"));
        assert!(gemini("{\"mcpServers\": []}").unwrap_err().starts_with("`mcpServers`: "));
    }

    #[test]
    fn codex_table_is_appended_once() {
        let theirs = "model = \"x\" # mine\n\n[mcp_servers.other]\ncommand = \"o\"";
        let once = codex(theirs).unwrap();
        assert_eq!(once, format!("{theirs}\n\n{CODEX_ENTRY}"));
        assert_eq!(codex(&once).unwrap(), once);
        assert_eq!(codex("").unwrap(), CODEX_ENTRY);
        let elsewhere = "mcp_servers.lanewright = { command = \"/opt/lanewright\", args = [\"mcp\"] }\n";
        assert_eq!(codex(elsewhere).unwrap(), elsewhere);
    }

    #[test]
    fn conflicting_codex_entries_are_refused() {
        for (text, fault) in [
            ("a = 1\nb = = 2\n", "line 2, column 5"),
            ("mcp_servers = { other = { command = \"o\" } }\n", "`mcp_servers`: "),
            ("mcp_servers = 7\n", "`mcp_servers`: "),
            ("[mcp_servers.lanewright]\ncommand = \"x\"\n", "`mcp_servers.lanewright` starts another"),
        ] {
            let refused = codex(text).unwrap_err();
            assert!(refused.contains(fault), "{text}: {refused}");
        }
    }
}
