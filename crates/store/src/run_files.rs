//! The files of a run that are worth taking elsewhere, and putting them down there.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use lanewright_files::atomic::write_below;
use lanewright_files::directory::{entries, entries_with_kinds};
use lanewright_files::regular_file::{Links, open_with};
use lanewright_files::{FileError, if_there, open_error, regular_file};
use lanewright_model::JobSpec;

use super::layout::RunDirectory;

/// How much of a job's output is taken along from its beginning, in bytes.
const HEAD: u64 = 64 << 10;

const TAIL: u64 = 192 << 10;

/// The largest other file that is taken along, in bytes.
const LARGEST: u64 = 1 << 20;

/// What is left behind: it means something to processes of its machine only, or is made again.
const EXCLUDED: &[&str] = &[
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

/// How old a change must be, in nanoseconds, for another one to have another time. Some file systems count in seconds.
const STABLE_AFTER: i128 = 2_000_000_000;

/// Distinguishes a file from what it was before it was written or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    changed: i128,
    rest: [i64; 4],
    /// Whether every later change gives it another stamp.
    is_stable: bool,
}

impl Stamp {
    /// `now`: nanoseconds since 1970, before the file is read.
    fn of(file: &Metadata, now: i128) -> Self {
        let changed = i128::from(file.ctime()) * 1_000_000_000 + i128::from(file.ctime_nsec());
        let [inode, size] = [file.ino(), file.size()].map(u64::cast_signed);
        Self { changed, rest: [file.mtime(), file.mtime_nsec(), inode, size], is_stable: changed + STABLE_AFTER <= now }
    }

    fn is_unchanged(self, before: Option<&Self>) -> bool {
        before.is_some_and(|before| before.is_stable && (before.changed, before.rest) == (self.changed, self.rest))
    }
}

/// The files of a run as they were read last, so that only those are read again that have changed.
#[derive(Debug, Default)]
pub struct KnownFiles {
    files: BTreeMap<String, Stamp>,
    specifications: BTreeMap<PathBuf, (Stamp, Option<JobSpec>)>,
}

/// What became of a run's files since they were read last.
#[derive(Debug, Default)]
pub struct FileChanges {
    /// New and changed files, and some that may be as before, sorted by path.
    pub written: Vec<RunFile>,
    pub removed: Vec<String>,
}

impl KnownFiles {
    /// What changed since the last call, without what is below one of `except`. The output of a job is cut to its ends
    /// where it is long; other large files, links and names that are not plain are left behind.
    pub fn changes(&mut self, run: &RunDirectory, except: &[PathBuf]) -> Result<FileChanges, FileError> {
        let (mut changes, mut known) = (FileChanges::default(), BTreeMap::new());
        let mut found = Vec::new();
        descend(&run.directory(), "", except, &mut found)?;
        for (relative, stamp) in found {
            if !stamp.is_unchanged(self.files.get(&relative)) {
                let Some(contents) = read(&run.directory().join(&relative))? else { continue };
                changes.written.push((relative.clone(), contents));
            }
            known.insert(relative, stamp);
        }
        let before = std::mem::replace(&mut self.files, known);
        changes.removed = before.into_keys().filter(|path| !self.files.contains_key(path)).collect();
        changes.written.sort();
        Ok(changes)
    }

    /// As if all files had been read long after they were written.
    #[cfg(any(test, feature = "testing"))]
    pub fn assume_stable(&mut self) {
        let specifications = self.specifications.values_mut().map(|(stamp, _)| stamp);
        self.files.values_mut().chain(specifications).for_each(|stamp| stamp.is_stable = true);
    }

    /// The specifications of the run's jobs, which name their secrets. One that cannot be read is skipped.
    pub fn specifications(&mut self, run: &RunDirectory) -> Result<impl Iterator<Item = &JobSpec>, FileError> {
        let mut paths = Vec::new();
        find_specifications(&run.directory(), &mut paths)?;
        let mut known = BTreeMap::new();
        for path in paths {
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            let stamp = Stamp::of(&metadata, now());
            let before = self.specifications.remove(&path).filter(|(before, _)| stamp.is_unchanged(Some(before)));
            let job = match before {
                Some((_, job)) => job,
                None => read_specification(&path)?,
            };
            known.insert(path, (stamp, job));
        }
        self.specifications = known;
        Ok(self.specifications.values().filter_map(|(_, job)| job.as_ref()))
    }
}

/// Puts files of a run down. Whatever path is not plain is refused.
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

fn descend(
    directory: &Path,
    prefix: &str,
    except: &[PathBuf],
    files: &mut Vec<(String, Stamp)>,
) -> Result<(), FileError> {
    for path in entries(directory)? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if !is_plain(name) || is_excluded(name) || except.contains(&path) {
            continue;
        }
        let relative = format!("{prefix}{name}");
        match fs::symlink_metadata(&path) {
            Ok(kind) if kind.is_dir() => descend(&path, &format!("{relative}/"), except, files)?,
            Ok(kind) if kind.is_file() && (name == "output.log" || kind.len() <= LARGEST) => {
                files.push((relative, Stamp::of(&kind, now())));
            }
            // Links, pipes and files that are gone.
            _ => {}
        }
    }
    Ok(())
}

/// Finds specifications without a look at any file: there is one for each job, among many others.
fn find_specifications(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), FileError> {
    for (path, kind) in entries_with_kinds(directory)? {
        if kind.is_dir() {
            find_specifications(&path, found)?;
        } else if kind.is_file() && path.ends_with("spec.json") {
            found.push(path);
        }
    }
    Ok(())
}

/// A job's variables and patterns; the rest of its specification, which may be long, is left out.
fn read_specification(path: &Path) -> Result<Option<JobSpec>, FileError> {
    let read = if_there(regular_file::read_with(path, Links::Refuse, regular_file::LARGE));
    let text = read.map_err(|source| open_error("open", path, source))?;
    let job = text.and_then(|text| serde_json::from_slice(&text).ok());
    Ok(job.map(|job: JobSpec| JobSpec { steps: Vec::new(), ..job }))
}

/// Nanoseconds since 1970.
fn now() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or_default())
}

/// Whether a file or directory of this name is never taken along.
pub fn is_excluded(name: &str) -> bool {
    EXCLUDED.iter().any(|known| name == *known || name.strip_prefix(known).is_some_and(|end| end.starts_with('.')))
}

/// What a file holds, its middle left out where it is long; `None`: it is gone.
fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    let opened = if_there(open_with(path, Links::Refuse)).map_err(|source| open_error("open", path, source))?;
    opened.map(|mut file| ends(&mut file)).transpose().map_err(|source| open_error("read", path, source))
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
    use crate::StateDirectory;
    use crate::samples::run;

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

    fn collect(run: &RunDirectory, except: &[PathBuf]) -> Vec<RunFile> {
        KnownFiles::default().changes(run, except).unwrap().written
    }

    #[test]
    fn machine_specific_run_files_are_excluded() {
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
        let names: Vec<String> = collect(&run, &except).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["errors.jsonl", "lanes/A/tests-1/exit.json", "lanes/A/tests-1/output.log", "plan.json"]);
    }

    #[test]
    fn long_output_is_cut_in_the_middle() {
        let (_root, run) = directory();
        let long = format!("begin{}end", "x".repeat(usize::try_from(HEAD + TAIL).unwrap()));
        write(&run, "output.log", &long);
        let (_, kept) = collect(&run, &[]).remove(0);
        let text = String::from_utf8(kept).unwrap();
        assert!(text.starts_with("begin") && text.ends_with("end") && text.contains("[… 8 bytes were left behind …]"));
    }

    #[test]
    fn unchanged_run_files_are_not_read_again() {
        let (_root, run) = directory();
        let mut known = KnownFiles::default();
        let mut changed = || {
            let changes = known.changes(&run, &[]).unwrap();
            known.assume_stable();
            let names = |files: Vec<RunFile>| files.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
            (names(changes.written), changes.removed)
        };
        ["a", "b/c"].iter().for_each(|name| write(&run, name, "x"));
        assert_eq!(changed(), (vec!["a".to_owned(), "b/c".to_owned()], vec![]));
        assert_eq!(changed(), (vec![], vec![]));
        write(&run, "b/d", "x");
        fs::remove_file(run.directory().join("a")).unwrap();
        assert_eq!(changed(), (vec!["b/d".to_owned()], vec!["a".to_owned()]));
    }

    #[test]
    fn recently_changed_file_is_read_again() {
        let (_root, run) = directory();
        write(&run, "a", "x");
        let file = fs::metadata(run.directory().join("a")).unwrap();
        let written = Stamp::of(&file, 0).changed;
        let fresh = Stamp::of(&file, written + STABLE_AFTER - 1);
        let later = Stamp::of(&file, written + STABLE_AFTER);
        assert!(!later.is_unchanged(Some(&fresh)) && fresh.is_unchanged(Some(&later)));
    }

    #[test]
    fn restored_run_files_are_private_and_below_run() {
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
