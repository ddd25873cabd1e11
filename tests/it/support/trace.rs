//! The system calls of a program and of all that it starts, as strace records them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One call that has returned.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) pid: u32,
    pub(crate) name: String,
    pub(crate) arguments: Vec<Argument>,
    /// -1: it failed.
    pub(crate) result: i64,
    /// The line of the trace at which it began; what other processes did between that and its end stands between.
    pub(crate) began: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument {
    Text(Vec<u8>),
    /// A descriptor, or `AT_FDCWD` (-100), and where it leads.
    File(i32, PathBuf),
    /// Numbers, flags, structures; texts in structures are in `texts_of`.
    Word(String),
}

impl Call {
    pub(crate) fn text(&self, at: usize) -> &[u8] {
        match &self.arguments[at] {
            Argument::Text(text) => text,
            other => panic!("{other:?} in {self:?}"),
        }
    }

    pub(crate) fn word(&self, at: usize) -> &str {
        match self.arguments.get(at) {
            Some(Argument::Word(word)) => word,
            Some(other) => panic!("{other:?} in {self:?}"),
            None => "",
        }
    }

    pub(crate) fn number(&self, at: usize) -> i64 {
        self.word(at).parse().unwrap_or_else(|_| panic!("argument {at} of {self:?}"))
    }

    pub(crate) fn descriptor(&self, at: usize) -> i32 {
        match &self.arguments[at] {
            Argument::File(descriptor, _) => *descriptor,
            other => panic!("{other:?} in {self:?}"),
        }
    }
}

/// Whether this machine can trace programs.
pub(crate) fn can_trace() -> bool {
    Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output().is_ok_and(|output| output.status.success())
}

/// The words before a command whose `calls` (strace's names) are to be written to `output`.
pub(crate) fn prefix(output: &Path, calls: &str) -> Vec<OsString> {
    let words = ["strace", "-f", "-y", "-xx", "-s", "100000000", "--seccomp-bpf", "-e", "signal=none", "-e"];
    let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    words.extend([format!("trace={calls}").into(), "-o".into(), output.into()]);
    words
}

/// The calls of a trace, in the order in which they returned.
pub(crate) fn read(trace: &Path) -> Vec<Call> {
    let text = fs::read_to_string(trace).expect("a trace");
    let mut begun: HashMap<u32, (usize, String)> = HashMap::new();
    let mut calls = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let (pid, rest) = line.split_once(' ').expect("a pid");
        let (pid, rest) = (pid.parse().expect("a pid"), rest.trim_start());
        if let Some(start) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(pid, (at, start.to_owned()));
        } else if let Some(end) = rest.strip_prefix("<... ") {
            let (began, start) = begun.remove(&pid).expect("a call that began");
            let end = end.split_once(" resumed>").expect("a call that goes on").1;
            calls.extend(call(pid, began, &(start + end)));
        } else {
            calls.extend(call(pid, at, rest));
        }
    }
    calls
}

/// `name(arguments) = result`; `None` for what is no call, and for calls that never return.
fn call(pid: u32, began: usize, text: &str) -> Option<Call> {
    let (start, end) = text.rsplit_once(" = ")?;
    let (name, arguments) = start.trim_end().strip_suffix(')')?.split_once('(')?;
    let result: String = end.chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect();
    Some(Call {
        pid,
        name: name.to_owned(),
        arguments: split(arguments).into_iter().map(argument).collect(),
        result: result.parse().ok()?,
        began,
    })
}

/// At commas outside of brackets; texts and paths are hexadecimal, so they have neither.
fn split(arguments: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in arguments.char_indices() {
        match c {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(arguments[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(arguments[start..].trim());
    parts
}

fn argument(text: &str) -> Argument {
    if text.starts_with('"') {
        return Argument::Text(texts_of(text).concat());
    }
    let file = text.split_once('<').and_then(|(number, path)| {
        let number = if number == "AT_FDCWD" { -100 } else { number.parse().ok()? };
        let path = unescaped(path.split_once('>')?.0);
        Some(Argument::File(number, PathBuf::from(OsString::from_vec(path))))
    });
    file.unwrap_or_else(|| Argument::Word(text.to_owned()))
}

/// All texts in an argument.
pub(crate) fn texts_of(argument: &str) -> Vec<Vec<u8>> {
    argument.split('"').skip(1).step_by(2).map(unescaped).collect()
}

/// `\x68\x69` is `hi`.
fn unescaped(text: &str) -> Vec<u8> {
    let digits = text.split("\\x").filter(|digits| !digits.is_empty());
    digits.map(|digits| u8::from_str_radix(&digits[..2], 16).expect("two digits")).collect()
}
