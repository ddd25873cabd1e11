//! The tables of `docs/run-log.md`, made of the schema of a line.
//!
//! `<!-- events: WORD -->` begins a table of the events from that one to the one that begins the next table, in the order
//! of the type. `<!-- end -->` ends each table.

use serde_json::{Map, Value};

const END: &str = "<!-- end -->";

/// The columns of a line, which the events' own fields do not repeat.
const COLUMNS: [&str; 5] = ["event", "run_id", "phase", "lane", "task"];

/// `document`, with its tables written again.
pub(super) fn filled(document: &str, schema: &Value) -> String {
    let events: Vec<&Value> = schema["oneOf"].as_array().unwrap().iter().collect();
    let place = |word: &str| events.iter().position(|event| word_of(event) == word);
    let firsts: Vec<usize> = document
        .lines()
        .filter_map(|line| line.strip_prefix("<!-- events: ")?.strip_suffix(" -->"))
        .map(|word| place(word).unwrap_or_else(|| panic!("no event `{word}`")))
        .collect();
    assert!(firsts.first() == Some(&0) && firsts.is_sorted(), "the tables are in another order than the events");
    let mut ends = firsts.iter().copied().skip(1).chain([events.len()]);
    let (mut text, mut lines) = (String::new(), document.lines());
    while let Some(line) = lines.next() {
        text += &format!("{line}\n");
        let table = match line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) {
            Some("columns: always") => columns(schema, true),
            Some("columns: with a value") => columns(schema, false),
            Some("types") => types(&schema["$defs"]),
            Some(marker) if let Some(word) = marker.strip_prefix("events: ") => {
                events_table(&events[place(word).unwrap()..ends.next().unwrap()], &schema["$defs"])
            }
            _ => continue,
        };
        lines.find(|line| *line == END).expect("the end of a table");
        text += &format!("\n{table}\n{END}\n");
    }
    text
}

fn columns(schema: &Value, are_required: bool) -> String {
    let (properties, required) = (properties(schema), names(&schema["required"]));
    let is_shown = |name: &&String| required.contains(&name.as_str()) == are_required && *name != "crc";
    let rows = properties.keys().filter(is_shown).map(|name| {
        let column = &properties[name];
        let text = about(column).or_else(|| about(&schema["$defs"][type_of(column)?]));
        let of = type_in_words(column, &schema["$defs"]);
        format!("| `{name}`{of} | {} |\n", text.unwrap_or_default())
    });
    format!("| column | what |\n|---|---|\n{}", rows.collect::<String>())
}

fn events_table(events: &[&Value], types: &Value) -> String {
    let row = |event: &&Value| {
        let text = about(event).unwrap_or_else(|| panic!("`{}` has no comment", word_of(event)));
        format!("| `{}` | {text} | {} |\n", word_of(event), fields(event, types, &COLUMNS))
    };
    format!("| event | when | fields |\n|---|---|---|\n{}", events.iter().map(row).collect::<String>())
}

/// Of each type its fields, or its words.
fn types(types: &Value) -> String {
    let listed = types.as_object().unwrap().iter().filter(|(_, schema)| is_listed(schema));
    let row = |(name, schema): (&String, &Value)| {
        let content = match schema["oneOf"].as_array() {
            Some(choices) => choices.iter().map(|it| choice(it, types)).collect::<Vec<_>>().join("; "),
            None => fields(schema, types, &[]),
        };
        format!("| `{name}` | {} | {content} |\n", about(schema).unwrap_or_else(|| panic!("`{name}` has no comment")))
    };
    format!("| type | what | fields or words |\n|---|---|---|\n{}", listed.map(row).collect::<String>())
}

/// Whether a type has fields or words.
fn is_listed(schema: &Value) -> bool {
    schema["oneOf"].is_array() || schema["properties"].is_object()
}

/// Those that are not among the `columns`.
fn fields(schema: &Value, types: &Value, columns: &[&str]) -> String {
    let required = names(&schema["required"]);
    let field = |(name, schema): (&String, &Value)| {
        let text = titled(&format!("`{name}`{}", type_in_words(schema, types)), schema);
        if required.contains(&name.as_str()) { text } else { format!("[{text}]") }
    };
    let own = properties(schema).iter().filter(|(name, _)| !columns.contains(&name.as_str()));
    own.map(field).collect::<Vec<_>>().join("; ")
}

/// One of the forms of a type: a word, or an object with that word as its one member.
fn choice(schema: &Value, types: &Value) -> String {
    let Some((word, content)) = schema["properties"].as_object().and_then(|members| members.iter().next()) else {
        return titled(&format!("`{}`", schema["const"].as_str().unwrap()), schema);
    };
    let members: Vec<String> =
        content["properties"].as_object().into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
    let members = if members.is_empty() { type_in_words(content, types) } else { format!(" ({})", members.join(", ")) };
    titled(&format!("`{word}`{members}"), schema)
}

fn titled(title: &str, schema: &Value) -> String {
    about(schema).map_or_else(|| title.to_owned(), |text| format!("{title}: {}", uncapitalized(&text)))
}

/// The type, if the table of types has it.
fn type_in_words(schema: &Value, types: &Value) -> String {
    let is_listed = |name: &&str| is_listed(&types[name]);
    match (type_of(schema).filter(is_listed), type_of(&schema["items"]).filter(is_listed)) {
        (Some(name), _) => format!(" (`{name}`)"),
        (_, Some(name)) => format!(" (list of `{name}`)"),
        _ => String::new(),
    }
}

/// The name of the type that `schema` refers to, perhaps beside null.
fn type_of(schema: &Value) -> Option<&str> {
    let reference = schema["$ref"].as_str().or_else(|| schema["anyOf"][0]["$ref"].as_str());
    reference.and_then(|reference| reference.strip_prefix("#/$defs/"))
}

fn word_of(event: &Value) -> &str {
    event["properties"]["event"]["const"].as_str().unwrap()
}

fn properties(schema: &Value) -> &Map<String, Value> {
    schema["properties"].as_object().unwrap()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The comment, on one line and without its full stop.
fn about(schema: &Value) -> Option<String> {
    let text = schema["description"].as_str()?.replace('\n', " ");
    Some(text.strip_suffix('.').unwrap_or(&text).to_owned())
}

/// For the middle of a sentence; an abbreviation stays as it is.
fn uncapitalized(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().unwrap_or_default();
    let is_abbreviation = rest.clone().next().is_some_and(char::is_uppercase);
    if is_abbreviation { text.to_owned() } else { format!("{}{}", first.to_lowercase(), rest.as_str()) }
}
