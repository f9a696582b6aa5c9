//! Says how the program is linked: with the pointers that are corrected at every start told in few bytes.
#![expect(clippy::disallowed_methods, reason = "a build asks what it builds for, and which C library there is")]

use std::{env, process::Command};

/// The first C library that reads them so.
const SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Whoever builds for another machine knows nothing of its C library.
    let is_for_here = env::var_os("HOST") == env::var_os("TARGET");
    if is_for_here && c_library().is_some_and(|version| version >= SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of the GNU C library, where that is the one.
fn c_library() -> Option<(u32, u32)> {
    let asked = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let (major, minor) = str::from_utf8(&asked.stdout).ok()?.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
