//! Documents that others read, held against what is promised of them: our JSON Schemas, and what the two common schemas of
//! JUnit XML demand.

#![allow(dead_code, reason = "each test binary holds some of the documents")]

use std::collections::BTreeMap;

use roxmltree::{Document, Node};
use serde_json::Value;

/// Our schemas, by name.
pub(crate) const SCHEMAS: [(&str, &str); 9] = [
    ("report", include_str!("../../docs/schemas/report.schema.json")),
    ("status", include_str!("../../docs/schemas/status.schema.json")),
    ("lane-status", include_str!("../../docs/schemas/lane-status.schema.json")),
    ("list", include_str!("../../docs/schemas/list.schema.json")),
    ("graph", include_str!("../../docs/schemas/graph.schema.json")),
    ("progress", include_str!("../../docs/schemas/progress.schema.json")),
    ("run-log", include_str!("../../docs/schemas/run-log.schema.json")),
    ("checkpoint", include_str!("../../docs/schemas/checkpoint.schema.json")),
    ("error", include_str!("../../docs/schemas/error.schema.json")),
];

/// One of our schemas.
pub(crate) struct Schema {
    schemas: boon::Schemas,
    index: boon::SchemaIndex,
}

impl Schema {
    /// The schema of that name.
    pub(crate) fn named(name: &str) -> Self {
        let (_, text) = SCHEMAS.iter().find(|(known, _)| *known == name).expect("a schema of that name");
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.add_resource(name, serde_json::from_str(text).expect("JSON")).expect("a resource");
        let index = compiler.compile(name, &mut schemas).expect("a JSON Schema");
        Self { schemas, index }
    }

    /// Asserts that it takes `value`.
    #[track_caller]
    pub(crate) fn accepts(&self, value: &Value) {
        if let Err(error) = self.schemas.validate(value, self.index) {
            panic!("{error:#}\n{value:#}");
        }
    }

    /// Whether it takes `value`.
    pub(crate) fn takes(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.index).is_ok()
    }
}

/// What is wrong with `text` by `junit-10.xsd` of Jenkins' xUnit plugin or `JUnit.xsd` of Windy Road; nothing, if nothing is.
pub(crate) fn junit_faults(text: &str) -> Vec<String> {
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => return vec![error.to_string()],
    };
    let root = document.root_element();
    let mut faults = Faults::default();
    faults.expect(root.has_tag_name("testsuites"), "the root is no `testsuites`");
    faults.attributes(root, &[], &[]);
    for suite in elements(root) {
        faults.suite(suite);
    }
    faults.0
}

fn elements<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn expect(&mut self, holds: bool, fault: impl Into<String>) {
        self.0.extend((!holds).then(|| fault.into()));
    }

    /// Exactly these attributes; those of `whole` are whole numbers.
    fn attributes(&mut self, node: Node<'_, '_>, names: &[&str], whole: &[&str]) {
        let found: BTreeMap<&str, &str> = node.attributes().map(|it| (it.name(), it.value())).collect();
        let known: BTreeMap<&str, ()> = names.iter().chain(whole).map(|name| (*name, ())).collect();
        let tag = node.tag_name().name();
        self.expect(found.keys().eq(known.keys()), format!("{tag} has {:?}, not {:?}", found.keys(), known.keys()));
        for name in whole {
            let number = found.get(name).is_some_and(|value| value.parse::<i32>().is_ok());
            self.expect(number, format!("{tag}: `{name}` is no number"));
        }
    }

    fn suite(&mut self, suite: Node<'_, '_>) {
        self.expect(suite.has_tag_name("testsuite"), "not a `testsuite`");
        let texts = ["name", "package", "hostname", "timestamp", "time"];
        self.attributes(suite, &texts, &["id", "tests", "failures", "errors", "skipped"]);
        for name in ["name", "hostname"] {
            let filled = suite.attribute(name).is_some_and(|value| !value.trim().is_empty());
            self.expect(filled, format!("`{name}` of a suite is empty"));
        }
        let timestamp = suite.attribute("timestamp").unwrap_or_default();
        let is_time =
            chrono::NaiveDateTime::parse_from_str(timestamp, "%Y-%m-%dT%H:%M:%S").is_ok() && timestamp.len() == 19;
        self.expect(is_time, format!("`{timestamp}` is no time without an offset"));
        self.seconds(suite);
        let order: Vec<&str> = elements(suite).map(|it| it.tag_name().name()).collect();
        let cases = order.iter().filter(|name| **name == "testcase").count();
        let expected = [&["properties"][..], &vec!["testcase"; cases], &["system-out", "system-err"]].concat();
        self.expect(order == expected, format!("a suite holds {order:?}"));
        for child in elements(suite) {
            match child.tag_name().name() {
                "properties" => elements(child).for_each(|it| self.property(it)),
                "testcase" => self.case(child),
                _ => self.leaf(child, &[]),
            }
        }
        self.counts(suite, cases);
    }

    fn counts(&mut self, suite: Node<'_, '_>, cases: usize) {
        let ended = |name: &str| suite.descendants().filter(|it| it.has_tag_name(name)).count().to_string();
        for (name, count) in [
            ("tests", cases.to_string()),
            ("failures", ended("failure")),
            ("errors", ended("error")),
            ("skipped", ended("skipped")),
        ] {
            self.expect(suite.attribute(name) == Some(&count), format!("`{name}` is not {count}"));
        }
    }

    fn property(&mut self, property: Node<'_, '_>) {
        self.leaf(property, &["name", "value"]);
        self.expect(property.attribute("name").is_some_and(|name| !name.is_empty()), "a property without a name");
    }

    fn case(&mut self, case: Node<'_, '_>) {
        self.attributes(case, &["name", "classname", "time"], &[]);
        self.seconds(case);
        self.expect(elements(case).count() <= 1, "a case ends in two ways");
        for ending in elements(case) {
            match ending.tag_name().name() {
                "failure" | "error" => self.leaf(ending, &["message", "type"]),
                "skipped" => self.leaf(ending, &["message"]),
                other => self.expect(false, format!("a case holds `{other}`")),
            }
        }
    }

    fn leaf(&mut self, node: Node<'_, '_>, attributes: &[&str]) {
        self.attributes(node, attributes, &[]);
        self.expect(elements(node).next().is_none(), format!("`{}` holds elements", node.tag_name().name()));
    }

    /// Digits, a full stop, three digits.
    fn seconds(&mut self, node: Node<'_, '_>) {
        let time = node.attribute("time").unwrap_or_default();
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_decimal =
            time.split_once('.').is_some_and(|(whole, part)| digits(whole) && digits(part) && part.len() == 3);
        self.expect(is_decimal, format!("`{time}` are no seconds"));
    }
}
