//! Checksums of files.

use sha2::{Digest, Sha256};

/// The SHA-256 of `bytes`, as 64 hexadecimal digits.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
