//! Says how the program is linked: with the pointers that are corrected at every start told in few bytes, and what is
//! used together side by side.
#![expect(clippy::disallowed_methods, reason = "a build asks what it builds for, and what it builds with")]

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// The first C library that reads them so.
const SINCE: (u32, u32) = (2, 36);

/// The functions that every call uses, in the order of their first use; `cargo xtask order` writes it. A name that does
/// not exist any more is passed over.
const ORDER: &str = "order.txt";

/// What Rust links with a linker of its own, and what the functions are named for.
const LINKED_BY_RUST: &str = "x86_64-unknown-linux-gnu";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ORDER}");
    // Whoever builds for another machine knows nothing of its C library.
    let is_for_here = env::var_os("HOST") == env::var_os("TARGET");
    if is_for_here && c_library().is_some_and(|version| version >= SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    let is_released = env::var_os("PROFILE").is_some_and(|profile| profile == "release");
    if is_for_here && is_released && links_with_lld() {
        let order = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join(ORDER);
        println!("cargo::rustc-link-arg-bins=-Wl,--no-warn-symbol-ordering");
        // Not behind a comma, which a path may hold.
        println!("cargo::rustc-link-arg-bins=-Xlinker");
        println!("cargo::rustc-link-arg-bins=--symbol-ordering-file={}", order.display());
    }
}

/// The version of the GNU C library, where that is the one.
fn c_library() -> Option<(u32, u32)> {
    let asked = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let (major, minor) = str::from_utf8(&asked.stdout).ok()?.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Whether the linker is the one that comes with Rust: no other is sure to know what it is told here.
fn links_with_lld() -> bool {
    let is_usual = env::var_os("TARGET").is_some_and(|target| target == LINKED_BY_RUST);
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let has_its_own = env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    let brought = rust_library().is_some_and(|library| library.join("bin/gcc-ld/ld.lld").exists());
    is_usual && !has_its_own && brought
}

/// Where the compiler keeps what belongs to the machine that is built for.
fn rust_library() -> Option<PathBuf> {
    let asked = Command::new(env::var_os("RUSTC")?).args(["--print", "target-libdir"]).output().ok()?;
    Path::new(str::from_utf8(&asked.stdout).ok()?.trim()).parent().map(Path::to_owned)
}
