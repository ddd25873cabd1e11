//! The one way to open a file that another program, an agent or a plan names or can replace.
//!
//! Opening a named pipe blocks until another process opens its other end, and a device may never end: no time limit and
//! no signal handler of ours would get a turn. So nothing here waits: files are opened with `O_NONBLOCK`, must be regular,
//! and are read up to a limit. `tests/layering.rs` forbids every other way.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::error::{FileError, if_there};
use super::fault::change;
use super::handle::overwrite;

/// The limit of [`read`] and [`read_text`], in bytes: a run log or an index of git may be large, and a sparse file in its
/// place would fill the memory.
pub const LARGE: u64 = 4 << 30;

/// Whether a symbolic link in the last place is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Followed: a file of the user's may be one.
    Follow,
    /// Refused: one that an agent put there may lead anywhere.
    Refuse,
}

/// Options that wait for nothing; for files that are written, which are made readable by their owner only.
pub(super) fn options(links: Links) -> OpenOptions {
    let flags = match links {
        Links::Follow => OFlags::NONBLOCK,
        Links::Refuse => OFlags::NONBLOCK | OFlags::NOFOLLOW,
    };
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(flags.bits().cast_signed());
    options
}

pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    open_with(path.as_ref(), Links::Follow)
}

/// The same, which refuses a link where `links` demands that.
pub fn open_with(path: &Path, links: Links) -> io::Result<File> {
    match options(links).read(true).open(path) {
        Ok(file) => require_regular(file),
        Err(error) if links == Links::Refuse && path.is_symlink() => {
            Err(io::Error::new(error.kind(), "it is a symbolic link"))
        }
        // The answer for a socket.
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file but a socket"))
        }
        Err(error) => Err(error),
    }
}

pub fn require_regular(file: File) -> io::Result<File> {
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(ErrorKind::InvalidInput, format!("it is not a regular file but {}", name_of(kind))))
}

pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    read_with(path.as_ref(), Links::Follow, LARGE)
}

/// What a regular file holds; `None` where there is none.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    if_there(read(path)).map_err(FileError::io("read", path))
}

/// The bytes of a regular file of at most `limit` bytes.
pub fn read_with(path: &Path, links: Links, limit: u64) -> io::Result<Vec<u8>> {
    read_all(open_with(path, links)?, limit)
}

pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    read_text_with(path.as_ref(), Links::Follow, LARGE)
}

/// The text of a regular file of at most `limit` bytes.
///
/// # Errors
/// Those of [`read_with`], or that it is not UTF-8.
pub fn read_text_with(path: &Path, links: Links, limit: u64) -> io::Result<String> {
    let bytes = read_with(path, links, limit)?;
    String::from_utf8(bytes)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, format!("it is not UTF-8: {}", error.utf8_error())))
}

/// The bytes of a file that the user named on the command line, which may be the pipe of `<(command)`: that is waited for,
/// as any program does.
///
/// # Errors
/// What the system reports, or that it holds more than `limit` bytes.
pub fn read_argument(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_all(OpenOptions::new().read(true).open(path)?, limit)
}

/// Writes to a file of the user's as any program does: it may be a pipe or a device.
pub fn write_argument(path: &Path, bytes: &[u8]) -> io::Result<()> {
    change(path, || std::fs::write(path, bytes))
}

fn read_all(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Not what the metadata say: a file may grow while it is read.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}

/// The largest file that [`read_foreign`] reads, in bytes.
const FOREIGN_LIMIT: u64 = 1 << 20;

/// Reads a small text file that another program writes; `None` where there is none. A link is refused.
pub fn read_foreign(path: &Path) -> Result<Option<String>, String> {
    let read = if_there(read_text_with(path, Links::Refuse, FOREIGN_LIMIT)).map_err(|error| error.to_string())?;
    Ok(read.map(|text| text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
}

/// The text of a small file that an agent may have left; `None` where there is none or it is no text.
pub fn read_left(path: &Path) -> Option<String> {
    read_foreign(path).ok().flatten()
}

/// Copies a regular file, which is not a link, to another place, with its permissions and the time of its last change; as a
/// clone where the file system can.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = open_with(from, Links::Refuse)?;
    let mut target = overwrite(to, Links::Refuse)?;
    change(to, || io::copy(&mut source, &mut target))?;
    let facts = source.metadata()?;
    target.set_modified(facts.modified()?)?;
    target.set_permissions(facts.permissions())
}

/// Opens a directory, to sync it or to open what is in it.
pub(crate) fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

fn name_of(kind: FileType) -> &'static str {
    match () {
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_dir() => "a directory",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () => "something else",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    fn refusal(path: &Path, links: Links) -> String {
        read_with(path, links, 9).unwrap_err().to_string()
    }

    #[test]
    fn open_refuses_special_files_without_waiting() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        // First: a program that another test starts may hold what was opened a moment longer.
        assert!(options(Links::Refuse).append(true).open(at("pipe")).is_err(), "no reader is waited for");
        let _socket = UnixListener::bind(at("socket")).unwrap();
        fs::create_dir(at("directory")).unwrap();
        symlink("pipe", at("link")).unwrap();
        for (name, message) in [
            ("pipe", "it is not a regular file but a named pipe"),
            ("socket", "it is not a regular file but a socket"),
            ("directory", "it is not a regular file but a directory"),
            ("/dev/zero", "it is not a regular file but a device"),
        ] {
            for links in [Links::Follow, Links::Refuse] {
                assert_eq!(refusal(&at(name), links), message);
            }
        }
        assert_eq!(refusal(&at("link"), Links::Refuse), "it is a symbolic link");
        assert_eq!(refusal(&at("link"), Links::Follow), "it is not a regular file but a named pipe");
        assert!(copy(&at("pipe"), &at("copy")).is_err() && !at("copy").exists());
    }

    #[test]
    fn read_refuses_files_over_limit() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_with(&path, Links::Refuse, 5).unwrap(), b"12345");
        assert_eq!(read_with(&path, Links::Refuse, 4).unwrap_err().to_string(), "it is larger than 4 bytes");
        assert_eq!(read_argument(&path, 4).unwrap_err().to_string(), "it is larger than 4 bytes");
        assert_eq!(read_argument(Path::new("/dev/zero"), 9).unwrap_err().to_string(), "it is larger than 9 bytes");
        fs::write(&path, b"\xff").unwrap();
        assert!(read_text(&path).unwrap_err().to_string().starts_with("it is not UTF-8"));
    }

    #[test]
    fn copy_keeps_bytes_and_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        fs::write(&from, "text").unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o755)).unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "text");
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn read_foreign_refuses_pipe_link_and_giant() {
        let root = tempfile::tempdir().unwrap();
        let place = |name: &str| root.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(place("pipe")).status().unwrap().success());
        symlink("pipe", place("link")).unwrap();
        File::create(place("giant")).unwrap().set_len(FOREIGN_LIMIT + 1).unwrap();
        for name in ["pipe", "link", "giant"] {
            read_foreign(&place(name)).unwrap_err();
        }
        assert_eq!(read_foreign(&place("missing")), Ok(None));
        fs::write(place("bom"), "\u{feff}{}").unwrap();
        assert_eq!(read_foreign(&place("bom")), Ok(Some("{}".to_owned())));
    }
}
