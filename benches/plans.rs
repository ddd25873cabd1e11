//! How long plans take to read: `cargo bench --bench plans -- DIRECTORY`, without a directory those of `fixtures/plans`.
//!
//! Every Markdown or native plan below the directory is read five times by itself; the quickest counts.

#![allow(clippy::print_stdout, reason = "that is what it is for")]
#![allow(missing_docs, reason = "a program")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lanewright_model::CommandLine;
use lanewright_plan::{Fallbacks, Source, SourceFile, decode, read};

/// What a plan may take to read.
const LIMIT: Duration = Duration::from_millis(50);

fn main() {
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).map(PathBuf::from);
    let root = given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/plans"));
    let mut files = Vec::new();
    collect(&root, &mut files);
    let mut times: Vec<(Duration, PathBuf)> = files.into_iter().filter_map(|path| Some((time(&path)?, path))).collect();
    times.sort();
    let Some((slowest, path)) = times.last() else {
        println!("no plan below {}", root.display());
        return;
    };
    let total: Duration = times.iter().map(|(time, _)| *time).sum();
    let (median, _) = &times[times.len() / 2];
    let over = times.iter().filter(|(time, _)| *time > LIMIT).count();
    println!("plans read        {}", times.len());
    println!("all of them       {total:.2?}");
    println!("median            {median:.2?}");
    println!("slowest           {slowest:.2?}  {}", path.display());
    println!("over {LIMIT:.0?}        {over}");
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_plan = |extension: &str| ["md", "toml", "yaml", "yml", "json"].contains(&extension);
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().and_then(|extension| extension.to_str()).is_some_and(is_plan) {
            files.push(path);
        }
    }
}

/// The quickest of five readings; `None` for what is no text.
fn time(path: &Path) -> Option<Duration> {
    let name = path.to_string_lossy();
    let bytes = fs::read(path).ok()?;
    let text = decode(&name, &bytes).ok()?;
    let files = [SourceFile { path: &name, text }];
    let fallbacks = Fallbacks { runner: Some("agent"), ..Fallbacks::default() };
    let source = Source { files: &files, fallbacks, ..Source::default() };
    let runners = |_: &str| Some(CommandLine::Shell("agent".to_owned()));
    let once = || {
        let start = Instant::now();
        std::hint::black_box(read(&source, &|_| Err("not read here".to_owned()), &runners));
        start.elapsed()
    };
    (0..5).map(|_| once()).min()
}
