//! `lanewright-plan(5)`: the keys of native plans, from their JSON Schema.

use clap_mangen::roff::{Roff, bold, roman};
use lanewright_plan::schema::json_schema;
use serde_json::Value;

use super::{NO_DATE, SOURCE, verbatim};

const EXAMPLE: &str = include_str!("../../../templates/demo/plan.toml");

pub(crate) fn page() -> String {
    let mut page = Roff::new();
    page.control("TH", ["lanewright-plan", "5", NO_DATE, SOURCE]);
    page.control("SH", ["NAME"]).text([roman("lanewright-plan - plans in the native format")]);
    page.control("SH", ["DESCRIPTION"]).text([roman(DESCRIPTION)]);
    table(&mut page, "", &json_schema());
    page.control("SH", ["EXAMPLES"]).text([roman("The plan that `lanewright demo` runs:")]);
    verbatim(&mut page, EXAMPLE.trim());
    page.control("SH", ["SEE ALSO"]).text([bold("lanewright-plan-check"), roman("(1), ")]);
    page.text([bold("lanewright-plan-schema"), roman("(1), "), bold("lanewright-execute-phase"), roman("(1)")]);
    page.render()
}

const DESCRIPTION: &str = "A plan is a file in TOML, YAML or JSON, recognised by its content. These are its keys; \
others are errors, except those that begin with `x-`. `lanewright plan check` reports every problem of a plan.";

/// A section for the table at `path`, and for those within it.
fn table(page: &mut Roff, path: &str, schema: &Value) {
    let heading = if path.is_empty() { "TOP LEVEL".to_owned() } else { format!("THE TABLE {path}") };
    page.control("SH", [heading.as_str()]);
    let properties = || schema["properties"].as_object().into_iter().flatten();
    let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name));
    for (name, property) in properties().filter(|(_, property)| property["description"].is_string()) {
        let need = if required(name) { ", required" } else { "" };
        page.control("TP", []).text([bold(name), roman(format!(" ({}{need})", kind(property)))]);
        page.text([roman(property["description"].as_str().unwrap_or_default())]);
    }
    // Its keys are those of a lane.
    for (name, property) in properties().filter(|(name, _)| *name != "defaults") {
        let inner = if property["items"]["properties"].is_object() { &property["items"] } else { property };
        if inner["properties"].is_object() {
            table(page, format!("{path}.{name}").trim_start_matches('.'), inner);
        }
    }
}

/// What a value is, in words.
fn kind(schema: &Value) -> String {
    let listed = |values: &Value| values.as_array().map(Vec::as_slice).unwrap_or_default().to_vec();
    if schema["enum"].is_array() {
        return listed(&schema["enum"]).iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|");
    }
    if schema["anyOf"].is_array() {
        return listed(&schema["anyOf"]).iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of: {}", kind(&schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("table of: {}", kind(&schema["additionalProperties"]))
        }
        Some("object") => "table".to_owned(),
        Some(name) => format!("{name}{}", range(schema)),
        None => listed(&schema["type"]).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
    }
}

fn range(schema: &Value) -> String {
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Null, _) => String::new(),
        (least, Value::Null) => format!(", at least {least}"),
        (least, most) => format!(", {least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_schema_is_described() {
        fn check(page: &str, schema: &Value) {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(about) = property["description"].as_str() {
                    assert!(page.contains(&format!("\\fB{name}\\fR (")), "{name}");
                    assert!(page.contains(about), "{name}: {about}");
                }
                check(page, property);
                check(page, &property["items"]);
            }
        }
        check(&page().replace("\\*(Aq", "'").replace("\\-", "-"), &json_schema());
    }

    #[test]
    fn kinds_of_schema_are_described_in_words() {
        let lane = &json_schema()["properties"]["lane"]["items"]["properties"];
        assert_eq!(kind(&lane["owns"]), "string or list of: string");
        assert_eq!(kind(&lane["retries"]), "integer, 0 to 100");
        assert_eq!(kind(&lane["task"]), "list of: table");
        assert_eq!(kind(&lane["merge"]), "none|local|pr|merge|squash|rebase|ff");
    }
}
