//! Keeping secrets out of what is stored (SPEC §10): what a secret is, and what replaces it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use regex::{NoExpand, Regex};
use serde_json::Value;

use super::text::change_texts;

/// Parts of the names of environment variables that hold secrets.
const SECRET_NAME_PARTS: &[&str] = &["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];

/// Values that hide nothing, whatever the variable is called.
const HARMLESS_VALUES: &str = "default disabled enabled example keychain keyring localhost optional password prompt \
                               required secret system unknown";

/// The shortest value that is taken for a secret; shorter ones occur in ordinary text.
const SHORTEST: usize = 6;

/// The shortest value made of digits alone; shorter ones are numbers such as a limit of tokens.
const SHORTEST_NUMBER: usize = 10;

/// The shortest user of a URL without a password that is taken for a token.
const SHORTEST_TOKEN: usize = 20;

/// The longest name of a file or directory; longer ones after a slash are taken for a secret.
const LONGEST_NAME: usize = 32;

/// Replaces secrets by `[redacted:NAME]`.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Each value that is secret, with the variable that holds it.
    names: BTreeMap<String, String>,
    /// All of them at once, longer ones first.
    values: Option<Regex>,
    patterns: Vec<Regex>,
}

impl PartialEq for Redactor {
    fn eq(&self, other: &Self) -> bool {
        let patterns = |of: &Self| of.patterns.iter().map(|it| it.as_str().to_owned()).collect::<Vec<_>>();
        self.names == other.names && patterns(self) == patterns(other)
    }
}

impl Redactor {
    /// Replaces the values of those of `variables` that look secret, and what `patterns` match; a pattern that
    /// is not valid is ignored, because the settings refuse it.
    pub fn new<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>, patterns: &[String]) -> Self {
        let variables: Vec<(&str, &str)> = variables.into_iter().collect();
        let mut names = BTreeMap::new();
        for (name, value) in &variables {
            let secrets: Vec<&str> = match name.strip_prefix("GIT_CONFIG_") {
                Some(setting) => header_in(setting, value, &variables).into_iter().collect(),
                None if looks_secret(name) => secrets_in(value).collect(),
                None => Vec::new(),
            };
            for secret in secrets.into_iter().chain(passwords_in(value)) {
                names.entry(secret.to_owned()).or_insert_with(|| (*name).to_owned());
            }
        }
        let mut longest_first: Vec<String> = names.keys().map(|value| regex::escape(value)).collect();
        longest_first.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let values = (!longest_first.is_empty()).then(|| Regex::new(&longest_first.join("|")).ok()).flatten();
        Self { names, values, patterns: patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect() }
    }

    /// Whether it replaces nothing.
    pub fn is_idle(&self) -> bool {
        self.values.is_none() && self.patterns.is_empty()
    }

    /// `text` without secrets.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut clean = Cow::Borrowed(text);
        if let Some(values) = &self.values {
            let named = |found: &regex::Captures<'_>| redacted(&self.names[&found[0]]);
            if let Cow::Owned(replaced) = values.replace_all(&clean, named) {
                clean = Cow::Owned(replaced);
            }
        }
        for (number, pattern) in (1..).zip(&self.patterns) {
            let name = format!("[redacted:pattern-{number}]");
            if let Cow::Owned(replaced) = pattern.replace_all(&clean, NoExpand(&name)) {
                clean = Cow::Owned(replaced);
            }
        }
        clean
    }

    /// Replaces the secrets in `text`.
    pub fn clean(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.redact(text) {
            *text = clean;
        }
    }

    /// Takes the secrets out of every text in `value`; names of fields stay.
    pub fn clean_json(&self, value: &mut Value) {
        change_texts(value, &mut |text| self.clean(text));
    }
}

/// Whether a variable's value is a secret (decision 0022): what a [`Redactor`] would take out of it anywhere.
pub fn is_secret(name: &str, value: &str, patterns: &[String]) -> bool {
    matches!(Redactor::new([(name, value)], patterns).redact(value), Cow::Owned(_))
}

/// What replaces the value of a variable.
pub fn redacted(name: &str) -> String {
    format!("[redacted:{name}]")
}

/// Whether a variable of this name holds a secret.
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_NAME_PARTS.iter().any(|part| name.contains(part))
}

/// What of a variable's value must not be seen: all of it, or, of several lines, each.
fn secrets_in(value: &str) -> impl Iterator<Item = &str> {
    value.lines().map(str::trim).filter(|line| hides_something(line) && !line.starts_with("[redacted:"))
}

/// What `GIT_CONFIG_VALUE_1` hides if `GIT_CONFIG_KEY_1` is a header of HTTP: its last word, as in `Authorization: basic X`.
fn header_in<'v>(setting: &str, value: &'v str, variables: &[(&str, &str)]) -> Option<&'v str> {
    let key = format!("GIT_CONFIG_KEY_{}", setting.strip_prefix("VALUE_")?);
    let is_header = |key: &str| key.to_ascii_lowercase().ends_with(".extraheader");
    variables.iter().find(|(name, value)| *name == key && is_header(value))?;
    value.split_whitespace().next_back().filter(|word| hides_something(word))
}

/// The passwords in URLs, and tokens in the place of a user. What is the user's name or the kind of server too hides nothing, as
/// in `postgres://postgres:postgres@localhost`.
fn passwords_in(value: &str) -> impl Iterator<Item = &str> {
    let mut parts = value.split("://");
    let mut scheme = parts.next().unwrap_or_default();
    parts.filter_map(move |part| {
        let kind = scheme.rsplit(|character: char| !character.is_ascii_alphanumeric()).next().unwrap_or_default();
        scheme = part;
        let (user, _) = part.split(['/', '?', '#', ' ']).next()?.rsplit_once('@')?;
        match user.split_once(':') {
            Some((name, password)) => (password != name && password != kind).then_some(password),
            None => (user.len() >= SHORTEST_TOKEN).then_some(user),
        }
        .filter(|secret| hides_something(secret))
    })
}

/// Whether a repository's address has a password in it, or a token in the place of the user.
pub fn has_password(address: &str) -> bool {
    let authority = address.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':') || user.len() >= SHORTEST_TOKEN)
}

fn hides_something(value: &str) -> bool {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let shortest = if digits { SHORTEST_NUMBER } else { SHORTEST };
    value.chars().count() >= shortest
        && !HARMLESS_VALUES.split(' ').any(|word| value.eq_ignore_ascii_case(word))
        && !is_path(value)
}

/// Whether `value` is a path, such as that of a key file. A key may begin with a slash too, but has no short names.
fn is_path(value: &str) -> bool {
    let rooted = ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start));
    rooted && value.split('/').all(|name| name.len() <= LONGEST_NAME && !name.contains(['+', '=']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(variables: &[(&str, &str)], patterns: &[&str], text: &str) -> String {
        let patterns: Vec<String> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        Redactor::new(variables.iter().copied(), &patterns).redact(text).into_owned()
    }

    #[test]
    fn secret_value_is_replaced_by_variable_name() {
        let variables = [("GITHUB_TOKEN", "ghp_abc.def"), ("PGPASSWORD", "s3cr3t"), ("EDITOR", "emacs-client")];
        assert_eq!(
            cleaned(&variables, &[], "ghp_abc.def s3cr3t ghp_abcXdef emacs-client"),
            "[redacted:GITHUB_TOKEN] [redacted:PGPASSWORD] ghp_abcXdef emacs-client"
        );
    }

    #[test]
    fn passwords_in_urls_and_headers_of_git_are_secrets() {
        let variables = [
            ("HTTPS_PROXY", "http://me:hunter2hunter2@proxy:3128"),
            ("CI_REPOSITORY_URL", "https://gitlab-ci-token:urlsecret6@host/a.git"),
            ("GIT_CONFIG_KEY_0", "http.https://host/.extraHeader"),
            ("GIT_CONFIG_VALUE_0", "AUTHORIZATION: basic c2VjcmV0"),
            ("GIT_CONFIG_KEY_1", "user.name"),
            ("GIT_CONFIG_VALUE_1", "somebody"),
            ("HOMEPAGE", "https://host/@me:private"),
            ("DATABASE_URL", "postgres://postgres:postgres@localhost/db"),
            ("INDEXES", "https://index/simple https://ghp_0123456789abcdef@index/simple https://a:secondsecret@b"),
        ];
        let text =
            "hunter2hunter2 urlsecret6 c2VjcmV0 somebody user.name http.https://host/.extraHeader private postgres";
        assert_eq!(
            cleaned(&variables, &[], text),
            "[redacted:HTTPS_PROXY] [redacted:CI_REPOSITORY_URL] [redacted:GIT_CONFIG_VALUE_0] somebody user.name \
             http.https://host/.extraHeader private postgres"
        );
        let text = "ghp_0123456789abcdef secondsecret";
        assert_eq!(cleaned(&variables, &[], text), "[redacted:INDEXES] [redacted:INDEXES]");
    }

    #[test]
    fn longer_secret_is_replaced_first() {
        let variables = [("A_KEY", "abcdef"), ("B_KEY", "abcdefghi")];
        assert_eq!(cleaned(&variables, &[], "abcdefghi abcdef"), "[redacted:B_KEY] [redacted:A_KEY]");
    }

    #[test]
    fn ordinary_words_numbers_and_paths_stay() {
        for value in ["abc", "Default", "128000", "/home/u/.ssh/id_rsa", "~/keys/a.pem", "true", "", "      "] {
            assert_eq!(cleaned(&[("MY_KEY", value)], &[], &format!("x {value} y")), format!("x {value} y"));
        }
        for value in ["/wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY", "/a/b+c=", "1234567890"] {
            assert_eq!(cleaned(&[("MY_KEY", value)], &[], value), "[redacted:MY_KEY]");
        }
    }

    #[test]
    fn every_line_of_a_key_of_many_lines_is_one() {
        let key = "-----BEGIN-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ==\n";
        assert_eq!(cleaned(&[("KEY", key)], &[], "got kqhkiG9w0BAQ=="), "got [redacted:KEY]");
    }

    #[test]
    fn pattern_matches_are_redacted_without_expansion() {
        assert_eq!(
            cleaned(&[], &["sk-[a-z]+", r"\b\d{4}-\d{4}\b"], "sk-abc and 1234-5678 $0"),
            "[redacted:pattern-1] and [redacted:pattern-2] $0"
        );
    }

    #[test]
    fn texts_in_json_are_cleaned_and_names_stay() {
        let redactor = Redactor::new([("A_TOKEN", "abcdef")], &[]);
        let mut value = serde_json::json!({"abcdef": ["x abcdef", 1, {"y": "abcdef"}]});
        redactor.clean_json(&mut value);
        assert_eq!(value, serde_json::json!({"abcdef": ["x [redacted:A_TOKEN]", 1, {"y": "[redacted:A_TOKEN]"}]}));
        assert!(Redactor::default().is_idle() && !redactor.is_idle());
    }

    #[test]
    fn variable_with_redacted_value_is_secret() {
        let patterns = ["sk-[a-z]+".to_owned()];
        for (name, value) in [("MY_TOKEN", "abcdef"), ("URL", "https://sk-abc@host"), ("MY_KEY", "a\nabcdef")] {
            assert!(is_secret(name, value, &patterns), "{name}");
        }
        for (name, value) in [("MAX_TOKENS", "128000"), ("KEY_FILE", "/home/u/.key"), ("URL", "https://host")] {
            assert!(!is_secret(name, value, &patterns), "{name}");
        }
        assert!(!is_secret("MY_TOKEN", &redacted("MY_TOKEN"), &[]), "the mark is none");
    }
}
