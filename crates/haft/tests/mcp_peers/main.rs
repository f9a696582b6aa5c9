//! Clients of MCP that `make test` does not install: the TypeScript SDK in both eras, and the Inspector.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

mod inspector;
mod listening;
mod typescript;

use std::path::PathBuf;

/// Where `scripts/setup peers` has put them.
#[expect(clippy::disallowed_methods, reason = "the programs are found as the set-up puts them")]
fn peers() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").unwrap_or_else(|| variable("HOME").unwrap().join(".cache"));
    let peers = cache.join("haft/tools/npm");
    assert!(peers.exists(), "{} is missing; `scripts/setup peers` installs it", peers.display());
    peers
}

/// The Node that came with them.
fn node() -> String {
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    peers().join(format!("node_modules/node-linux-{machine}/bin/node")).display().to_string()
}
