//! Packs the relocations of the program where the system can read that: 1.7 MB that every start would read.
#![expect(clippy::disallowed_methods, reason = "a build script asks the system which it is built on")]

use std::{env, process::Command};

/// The first glibc that reads packed relocations.
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let here = env::var("HOST") == env::var("TARGET");
    if here && glibc().is_some_and(|version| version >= FIRST) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of the system's C library; `None` where it is another one.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?.stdout;
    let version = String::from_utf8(said).ok()?;
    let (major, minor) = version.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
