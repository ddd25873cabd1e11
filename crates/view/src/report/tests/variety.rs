//! Random runs in every form, and that the sample has everything that a report may hold.

use std::collections::BTreeSet;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value};

use super::*;

/// How many runs the sample has.
const RUNS: usize = 400;

/// What no run has.
const NEVER: &[&str] = &[
    // A command has words, and so has every choice a command.
    "Choice.command: empty",
    "Escalation.options: empty",
    "NextStep.commands[]: empty",
    // It is absent then.
    "AgentReport.own: false",
    "Verdict.missing: false",
    // Otherwise the lane waits for a place, or for no answer.
    "WaitingFor.lanes.lanes: empty",
    "WaitingFor.person.person: empty",
];

#[test]
fn every_form_of_a_varied_sample_is_sound() {
    let text = documents::SCHEMAS.iter().find(|(name, _)| *name == "report").map(|(_, text)| *text).unwrap();
    let schema: Value = serde_json::from_str(text).unwrap();
    let (report_schema, mut variety) = (Schema::named("report"), Variety { schema: &schema, met: BTreeSet::new() });
    let runs = (any_run(), any::<bool>());
    let mut runner = TestRunner::deterministic();
    for _ in 0..RUNS {
        let ((plan, records), held) = runs.new_tree(&mut runner).unwrap().current();
        let report = report_on(plan.as_ref().map(RunHistory::for_plan).unwrap_or_default(), &records, held);
        for format in ReportFormat::ALL {
            let text = report.render(*format, 100, Styles::plain());
            let text = text.unwrap_or_else(|error| panic!("{format}: {error:?}: {records:#?}"));
            match format {
                ReportFormat::Json => {
                    let value = serde_json::from_str(&text).unwrap();
                    report_schema.accepts(&value);
                    variety.walk("report", &schema, &value);
                }
                ReportFormat::Junit => assert_eq!(junit_faults(&text), Vec::<String>::new()),
                _ => {}
            }
        }
    }
    let mut all = Variety { schema: &schema, met: BTreeSet::new() };
    all.all("report", &schema, false);
    let never: BTreeSet<String> = NEVER.iter().map(|name| (*name).to_owned()).collect();
    let missing: Vec<&String> = all.met.difference(&variety.met).filter(|name| !never.contains(*name)).collect();
    assert!(missing.is_empty(), "never met: {missing:#?}");
    let met: Vec<&String> = never.intersection(&variety.met).collect();
    assert!(met.is_empty(), "met, although listed as an exception: {met:#?}");
    let unknown: Vec<&String> = never.difference(&all.met).collect();
    assert!(unknown.is_empty(), "not in the schema: {unknown:#?}");
}

/// What was met of a schema: of each optional value that it was there and that it was not, of each word that it was used,
/// of each list that it was empty and that it was not.
struct Variety<'s> {
    schema: &'s Value,
    met: BTreeSet<String>,
}

/// What a schema allows at one place.
enum Form<'s> {
    Reference(&'s str),
    /// Something, or null.
    Nullable(&'s Value),
    Choice(&'s [Value]),
    Words(&'s [Value]),
    Object(&'s Map<String, Value>, BTreeSet<&'s str>),
    List(&'s Value),
    Truth,
    Plain,
}

fn form(schema: &Value) -> Form<'_> {
    if let Some(name) = schema["$ref"].as_str() {
        return Form::Reference(name.strip_prefix("#/$defs/").unwrap());
    }
    if let Some([something, _]) = schema["anyOf"].as_array().map(Vec::as_slice) {
        return Form::Nullable(something);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        return Form::Choice(choices);
    }
    if let Some(words) = schema["enum"].as_array() {
        return Form::Words(words);
    }
    let required = || schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match (schema["properties"].as_object(), schema.get("items")) {
        (Some(properties), _) => Form::Object(properties, required()),
        (_, Some(items)) => Form::List(items),
        _ if schema["type"] == "boolean" => Form::Truth,
        _ => Form::Plain,
    }
}

/// Whether null is allowed beside something else that the same schema describes.
fn is_nullable(schema: &Value) -> bool {
    schema["type"].as_array().is_some_and(|types| types.contains(&"null".into()))
}

/// The name of one of several forms.
fn name_of(choice: &Value) -> String {
    choice["const"].as_str().map_or_else(|| choice["required"][0].as_str().unwrap().to_owned(), str::to_owned)
}

impl<'s> Variety<'s> {
    fn meet(&mut self, path: &str, what: &str) {
        self.met.insert(format!("{path}: {what}"));
    }

    fn walk(&mut self, path: &str, schema: &'s Value, value: &Value) {
        if is_nullable(schema) {
            self.meet(path, if value.is_null() { "null" } else { "something" });
        }
        match form(schema) {
            Form::Reference(name) => self.walk(name, &self.schema["$defs"][name], value),
            Form::Nullable(_) if value.is_null() => self.meet(path, "null"),
            Form::Nullable(something) => {
                self.meet(path, "something");
                self.walk(path, something, value);
            }
            Form::Choice(choices) => {
                let fits = |choice: &&Value| match choice.get("const") {
                    Some(word) => word == value,
                    None => value.get(name_of(choice)).is_some(),
                };
                let choice = choices.iter().find(fits).unwrap();
                self.meet(path, &name_of(choice));
                self.walk(&format!("{path}.{}", name_of(choice)), choice, value);
            }
            Form::Words(_) => self.meet(path, value.as_str().unwrap()),
            Form::Object(properties, required) => {
                let Some(members) = value.as_object() else { return };
                for (name, schema) in properties {
                    let path = format!("{path}.{name}");
                    if !required.contains(name.as_str()) {
                        self.meet(&path, if members.contains_key(name) { "something" } else { "absent" });
                    }
                    members.get(name).into_iter().for_each(|value| self.walk(&path, schema, value));
                }
            }
            Form::List(items) => {
                let values = value.as_array().unwrap();
                self.meet(path, if values.is_empty() { "empty" } else { "filled" });
                values.iter().for_each(|value| self.walk(&format!("{path}[]"), items, value));
            }
            Form::Truth => self.meet(path, &value.to_string()),
            Form::Plain => {}
        }
    }

    /// Everything that can be met.
    fn all(&mut self, path: &str, schema: &'s Value, is_optional: bool) {
        if is_nullable(schema) {
            self.meet(path, "null");
            self.meet(path, "something");
        }
        match form(schema) {
            Form::Reference(name) => self.all(name, &self.schema["$defs"][name], false),
            Form::Nullable(something) => {
                self.meet(path, "null");
                self.meet(path, "something");
                self.all(path, something, false);
            }
            Form::Choice(choices) => {
                for choice in choices {
                    self.meet(path, &name_of(choice));
                    self.all(&format!("{path}.{}", name_of(choice)), choice, false);
                }
            }
            Form::Words(words) => words.iter().for_each(|word| self.meet(path, word.as_str().unwrap())),
            Form::Object(properties, required) => {
                for (name, schema) in properties {
                    let path = format!("{path}.{name}");
                    let is_optional = !required.contains(name.as_str());
                    if is_optional {
                        self.meet(&path, "something");
                        self.meet(&path, "absent");
                    }
                    self.all(&path, schema, is_optional);
                }
            }
            Form::List(items) => {
                // One that may be absent is never empty.
                self.meet(path, "filled");
                if !is_optional {
                    self.meet(path, "empty");
                }
                self.all(&format!("{path}[]"), items, false);
            }
            Form::Truth => [true, false].iter().for_each(|truth| self.meet(path, &truth.to_string())),
            Form::Plain => {}
        }
    }
}
