//! A configuration file to begin with: every setting that a file may hold, as a comment.

use std::fmt::Write;

use super::file::NOT_IN_FILES;
use super::key::{Key, Kind};
use super::{KEYS, Layer, Origin};

/// How wide its comments are, in characters.
const WIDTH: usize = 100;

pub fn template() -> String {
    let mut text = HEAD.to_owned();
    for key in KEYS.iter().filter(|key| !NOT_IN_FILES.contains(&key.name)) {
        let _ = write!(text, "\n{}{}\n", comment(key.doc), example(key));
    }
    text + RUNNERS
}

const HEAD: &str = "# Settings of Lanewright for this repository. Flags, LANEWRIGHT_* variables and the plan go before \
                    them.\n# `lanewright status --settings` shows the effective settings and where each comes from.\n";

const RUNNERS: &str = "
# A runner is the program that does an agent's work; plans call it by its name.
# [runners.mine]
# command = [\"my-agent\", \"--headless\"]

# An executor is an engine of a cluster; `lanewright doctor --executor NAME` checks it.
# [executors.cluster]
# kind = \"slurm\"
# partition = \"main\"
";

/// The key with its default if that can be written, else with a placeholder.
fn example(key: &Key) -> String {
    let mut scratch = Layer::default();
    let is_word = matches!(key.kind, Kind::Count | Kind::Boolean | Kind::Duration | Kind::Size | Kind::Choice(_));
    let is_value = is_word && scratch.set(key.name, key.default, Origin::Default).is_ok();
    let quoted = !matches!(key.kind, Kind::Count | Kind::Boolean);
    match (is_value, quoted) {
        (true, true) => format!("# {} = \"{}\"", key.name, key.default),
        (true, false) => format!("# {} = {}", key.name, key.default),
        (false, _) => format!("# {} =        # default: {}", key.name, key.default),
    }
}

/// `text` as comment lines.
fn comment(text: &str) -> String {
    let mut lines = vec!["#".to_owned()];
    for word in text.split_whitespace() {
        let full = lines.last().is_some_and(|line| line.chars().count() + word.chars().count() >= WIDTH);
        if full {
            lines.push("#".to_owned());
        }
        if let Some(line) = lines.last_mut() {
            *line += &format!(" {word}");
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::settings::{ConfigFile, Environment, Invocation, Layers};

    fn read(text: String) -> Layers {
        let invocation = Invocation { repository: "/r".into(), directory: "/r".into(), home: None, cores: 2 };
        let files = [ConfigFile { path: PathBuf::from("/r/lanewright.toml"), text }];
        Layers::read(Layer::default(), &Environment::new(), &files, &invocation).unwrap()
    }

    #[test]
    fn template_sets_nothing() {
        let layers = read(template());
        assert!(layers.warnings.is_empty());
        assert!(layers.resolve(None).rows().iter().all(|row| row.origin == Origin::Default));
    }

    #[test]
    fn uncommented_template_equals_defaults() {
        let sets = |line: &&str| {
            let name = line.split_once(" = ").map_or("", |(name, _)| name);
            KEYS.iter().any(|key| key.name == name) && !line.contains("default:")
        };
        let text = template();
        let settings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# ")).filter(sets).collect();
        assert!(settings.len() > 15, "{settings:?}");
        let before = read(String::new()).resolve(None);
        let after = read(settings.join("\n")).resolve(None);
        let values = |settings: &crate::settings::Settings| {
            settings
                .rows()
                .into_iter()
                .filter(|row| !row.key.starts_with("runners"))
                .map(|row| (row.key, row.value))
                .collect::<Vec<_>>()
        };
        assert_eq!(values(&after), values(&before));
    }

    #[test]
    fn template_lists_every_file_setting() {
        let named = |key: &&Key| template().contains(&format!("\n# {} = ", key.name));
        let missing: Vec<&str> = KEYS.iter().filter(|key| !named(key)).map(|key| key.name).collect();
        assert_eq!(missing, NOT_IN_FILES);
    }
}
