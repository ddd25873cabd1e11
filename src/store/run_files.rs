//! The files of a run that are worth taking elsewhere, and putting them down there.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::layout::RunDirectory;
use crate::fs::atomic::write_below;
use crate::fs::directory::entries;
use crate::fs::regular_file::{Links, open_with};
use crate::fs::{FileError, open_error};
use crate::model::JobSpec;

/// How much of a job's output is taken along from its beginning, in bytes.
const HEAD: u64 = 64 << 10;

const TAIL: u64 = 192 << 10;

/// The largest other file that is taken along, in bytes.
const LARGEST: u64 = 1 << 20;

/// What is left behind: it means something to processes of its machine only, or is made again.
const LEFT_BEHIND: &[&str] = &[
    "requests",
    "run.lock",
    "lock",
    "spec.json",
    "supervisor.json",
    "supervisor.log",
    "heartbeat",
    "stop",
    "snapshot.index",
];

/// A file of a run: its path below the run's directory, parts separated by `/`, and what it holds.
pub type RunFile = (String, Vec<u8>);

/// The files of a run, sorted by path, without those below one of `except`. The output of a job is cut to its ends where
/// it is long; other large files, links and names that are not plain are left behind.
pub fn collect(run: &RunDirectory, except: &[PathBuf]) -> Result<Vec<RunFile>, FileError> {
    let mut files = Vec::new();
    descend(&run.directory(), "", except, &mut files)?;
    files.sort();
    Ok(files)
}

/// The specifications of the run's jobs, which name their secrets. One that cannot be read is skipped.
pub fn specifications(run: &RunDirectory) -> Result<Vec<JobSpec>, FileError> {
    let mut found = Vec::new();
    gather_specifications(&run.directory(), &mut found)?;
    Ok(found)
}

/// Puts files of a run down. Whatever path is not plain is refused.
///
/// # Errors
/// [`FileError`], also when a symbolic link is on the way.
pub fn restore(run: &RunDirectory, files: &[RunFile]) -> Result<(), FileError> {
    let root = run.directory();
    files.iter().try_for_each(|(path, contents)| match is_plain(path) {
        true => write_below(&root, Path::new(path), contents),
        false => Err(FileError::Outside { path: root.join(path) }),
    })
}

/// Whether every part of a path is made of letters, digits, `.`, `_` and `-`, and none begins with a dot or a dash.
pub fn is_plain(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    path.split('/').all(|part| !part.is_empty() && !part.starts_with(['.', '-']) && part.bytes().all(plain))
}

fn descend(directory: &Path, prefix: &str, except: &[PathBuf], files: &mut Vec<RunFile>) -> Result<(), FileError> {
    for path in entries(directory)? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if !is_plain(name) || is_left_behind(name) || except.contains(&path) {
            continue;
        }
        let relative = format!("{prefix}{name}");
        match fs::symlink_metadata(&path) {
            Ok(kind) if kind.is_dir() => descend(&path, &format!("{relative}/"), except, files)?,
            Ok(kind) if kind.is_file() && (name == "output.log" || kind.len() <= LARGEST) => {
                files.extend(read(&path)?.map(|contents| (relative, contents)));
            }
            // Links, pipes and files that are gone.
            _ => {}
        }
    }
    Ok(())
}

fn gather_specifications(directory: &Path, found: &mut Vec<JobSpec>) -> Result<(), FileError> {
    for path in entries(directory)? {
        match fs::symlink_metadata(&path) {
            Ok(kind) if kind.is_dir() => gather_specifications(&path, found)?,
            Ok(kind) if kind.is_file() && path.ends_with("spec.json") => {
                found.extend(read(&path)?.and_then(|text| serde_json::from_slice::<JobSpec>(&text).ok()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_left_behind(name: &str) -> bool {
    LEFT_BEHIND.iter().any(|known| name == *known || name.strip_prefix(known).is_some_and(|end| end.starts_with('.')))
}

/// What a file holds, its middle left out where it is long; `None`: it is gone.
fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    let mut file = match open_with(path, Links::Refuse) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|source| open_error("open", path, source))?,
    };
    ends(&mut file).map(Some).map_err(|source| open_error("read", path, source))
}

fn ends(file: &mut File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= HEAD + TAIL {
        file.take(HEAD + TAIL).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    file.by_ref().take(HEAD).read_to_end(&mut bytes)?;
    bytes.extend_from_slice(format!("\n[… {} bytes were left behind …]\n", length - HEAD - TAIL).as_bytes());
    file.seek(SeekFrom::Start(length - TAIL))?;
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::store::StateDirectory;
    use crate::store::samples::run;

    fn directory() -> (tempfile::TempDir, RunDirectory) {
        let root = tempfile::tempdir().unwrap();
        let state = StateDirectory::new(root.path());
        state.create().unwrap();
        let directory = state.run(&run());
        directory.create().unwrap();
        (root, directory)
    }

    fn write(run: &RunDirectory, relative: &str, contents: impl AsRef<[u8]>) {
        let path = run.directory().join(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    #[test]
    fn what_only_this_machine_knows_is_left_behind() {
        let (_root, run) = directory();
        for name in ["plan.json", "errors.jsonl", "lanes/A/tests-1/exit.json", "lanes/A/tests-1/output.log"] {
            write(&run, name, name);
        }
        let ignored = ["run.lock", "requests/1.json", "lanes/A/tests-1/spec.json", "lanes/A/tests-1/supervisor.json"];
        let unfinished =
            ["lanes/A/tests-1/.tmpX", "lanes/A/snapshot.index.guard", "lanes/A/a b", "lanes/B/tests-1/exit.json"];
        ignored.iter().chain(&unfinished).for_each(|name| write(&run, name, "x"));
        symlink("/etc/passwd", run.directory().join("lanes/link")).unwrap();
        File::create(run.directory().join("huge.json")).unwrap().set_len(LARGEST + 1).unwrap();
        let except = [run.directory().join("lanes/B/tests-1")];
        let names: Vec<String> = collect(&run, &except).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["errors.jsonl", "lanes/A/tests-1/exit.json", "lanes/A/tests-1/output.log", "plan.json"]);
    }

    #[test]
    fn a_long_output_keeps_its_ends() {
        let (_root, run) = directory();
        let long = format!("begin{}end", "x".repeat(usize::try_from(HEAD + TAIL).unwrap()));
        write(&run, "output.log", &long);
        let (_, kept) = collect(&run, &[]).unwrap().remove(0);
        let text = String::from_utf8(kept).unwrap();
        assert!(text.starts_with("begin") && text.ends_with("end") && text.contains("[… 8 bytes were left behind …]"));
    }

    #[test]
    fn restored_files_stay_below_the_run_and_are_its_owners() {
        let (_root, run) = directory();
        restore(&run, &[("lanes/A/tests-1/exit.json".to_owned(), b"{}".to_vec())]).unwrap();
        let made = run.directory().join("lanes/A/tests-1/exit.json");
        assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o600);
        for bad in ["../x", "/etc/x", "a/../x", "", "a//b", ".x", "a/.git/config", "-x", "a b"] {
            let error = restore(&run, &[(bad.to_owned(), Vec::new())]).unwrap_err();
            assert!(matches!(error, FileError::Outside { .. }), "{bad}: {error}");
        }
        symlink("/tmp", run.directory().join("lanes/B")).unwrap();
        restore(&run, &[("lanes/B/x".to_owned(), Vec::new())]).unwrap_err();
    }
}
