//! JSON as the value of a flag, which becomes part of the run log.

use std::io::{self, Read};

use lanewright_model::Redactor;
use serde_json::Value;

use super::{ExitStatus, Hint, Result};

/// The longest JSON, in bytes: a request to the process of a run, which holds it, is read up to 1 MiB.
const LONGEST: usize = 1_000_000;

/// How many lists and objects may be within each other. A reader of the log stops at 128, and the log adds some.
const DEEPEST: usize = 100;

/// The value of `flag` without secrets: `text`, or standard input where that is `-`.
pub(super) fn read(flag: &str, text: &str, redactor: &Redactor) -> Result<Value> {
    let mut input = String::new();
    let text = if text == "-" {
        let most = u64::try_from(LONGEST).unwrap_or(u64::MAX).saturating_add(1);
        let read = io::stdin().lock().take(most).read_to_string(&mut input);
        read.map_err(|error| ExitStatus::Usage.error(format!("{flag}: standard input cannot be read: {error}")))?;
        &input
    } else {
        text
    };
    let mut value = parse(text).map_err(|fault| {
        let error = ExitStatus::Usage.error(format!("{flag} {fault}; nothing was written"));
        error.hint(format!("for example: {flag} '{{\"key\": \"value\"}}', or {flag} - < FILE"))
    })?;
    redactor.clean_json(&mut value);
    Ok(value)
}

fn parse(text: &str) -> Result<Value, String> {
    let too_long = |length: usize| (length > LONGEST).then(|| "is longer than 1 MB".to_owned());
    if let Some(fault) = too_long(text.len()) {
        return Err(fault);
    }
    let value: Value = serde_json::from_str(text).map_err(|error| format!("is not valid JSON: {error}"))?;
    // Numbers may be longer as they are written.
    match too_long(value.to_string().len()) {
        Some(fault) => Err(fault),
        None if depth(&value) > DEEPEST => Err(format!("has more than {DEEPEST} levels")),
        None => Ok(value),
    }
}

fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(values) => values.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
    };
    deepest.unwrap_or_default() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_limited_in_length_and_depth() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(&nested(DEEPEST)).is_ok() && parse("{\"a\": 1}").is_ok());
        let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
        assert!(parse(&text(LONGEST)).is_ok());
        for (text, fault) in [
            (nested(DEEPEST + 1), "has more than 100 levels"),
            (text(LONGEST + 1), "is longer than 1 MB"),
            ("{\"a\": }".to_owned(), "is not valid JSON: expected value at line 1 column 7"),
            (String::new(), "is not valid JSON: EOF while parsing a value at line 1 column 0"),
        ] {
            assert_eq!(parse(&text).unwrap_err(), fault);
        }
    }
}
