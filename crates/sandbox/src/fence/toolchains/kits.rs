//! The known tools that live in a home folder, and what each of them needs.

/// One known tool with a folder of its own.
pub(super) struct Kit {
    pub(super) name: &'static str,
    /// The variable that names its folder.
    pub(super) variable: Option<&'static str>,
    /// Where it lies in the home folder when no variable says otherwise; the first that is there counts.
    pub(super) usual: &'static [&'static str],
    /// What must lie in a folder that is this one; otherwise a variable could name any folder.
    pub(super) sign: &'static str,
    /// What of it is read; the rest of the folder is not seen.
    pub(super) parts: &'static [&'static str],
    /// Files that are read only if they hold no secret.
    pub(super) settings: &'static [&'static str],
    /// Files that are never read.
    pub(super) secrets: &'static [&'static str],
    /// Folders in it that the tool writes, each with a name of its own.
    pub(super) caches: &'static [(&'static str, &'static str)],
}

/// All of the folder.
const WHOLE: &[&str] = &["."];

const PLAIN: Kit =
    Kit { name: "", variable: None, usual: &[], sign: "bin", parts: WHOLE, settings: &[], secrets: &[], caches: &[] };

/// A tool that is only where its variable says.
const fn named(name: &'static str, variable: &'static str, sign: &'static str) -> Kit {
    Kit { name, variable: Some(variable), sign, ..PLAIN }
}

/// A tool of which everything is read.
const fn whole(
    name: &'static str,
    variable: Option<&'static str>,
    usual: &'static [&'static str],
    sign: &'static str,
) -> Kit {
    Kit { name, variable, usual, sign, ..PLAIN }
}

pub(super) const KITS: &[Kit] = &[
    Kit {
        name: "cargo",
        variable: Some("CARGO_HOME"),
        usual: &[".cargo"],
        parts: &["bin", "env"],
        settings: &["config.toml", "config"],
        secrets: &["credentials.toml", "credentials"],
        caches: &[("cargo-registry", "registry"), ("cargo-git", "git")],
        ..PLAIN
    },
    whole("rustup", Some("RUSTUP_HOME"), &[".rustup"], "toolchains"),
    Kit {
        name: "go",
        variable: Some("GOPATH"),
        usual: &["go"],
        sign: "pkg/mod",
        parts: &["bin"],
        caches: &[("go-mod", "pkg/mod")],
        ..PLAIN
    },
    named("go itself", "GOROOT", "bin/go"),
    Kit {
        name: "nvm",
        variable: Some("NVM_DIR"),
        usual: &[".nvm", ".config/nvm"],
        sign: "versions/node",
        parts: &["versions", "alias", "nvm.sh", "nvm-exec"],
        ..PLAIN
    },
    whole("fnm", Some("FNM_DIR"), &[".local/share/fnm", ".fnm"], "node-versions"),
    Kit { name: "volta", variable: Some("VOLTA_HOME"), usual: &[".volta"], parts: &["bin", "tools"], ..PLAIN },
    Kit {
        name: "bun",
        variable: Some("BUN_INSTALL"),
        usual: &[".bun"],
        parts: &["bin", "install/global"],
        caches: &[("bun", "install/cache")],
        ..PLAIN
    },
    Kit { name: "deno", variable: Some("DENO_INSTALL"), usual: &[".deno"], parts: &["bin"], ..PLAIN },
    whole("pyenv", Some("PYENV_ROOT"), &[".pyenv"], "versions"),
    whole("uv", None, &[".local/share/uv"], "."),
    whole("pipx", Some("PIPX_HOME"), &[".local/share/pipx", ".local/pipx"], "venvs"),
    whole("poetry", None, &[".local/share/pypoetry"], "venv"),
    whole("conda", None, &["miniconda3", "anaconda3", "miniforge3", "mambaforge"], "conda-meta"),
    named("conda environment", "CONDA_PREFIX", "conda-meta"),
    named("virtual environment", "VIRTUAL_ENV", "pyvenv.cfg"),
    whole("rbenv", Some("RBENV_ROOT"), &[".rbenv"], "versions"),
    whole("rvm", None, &[".rvm"], "rubies"),
    whole("asdf", Some("ASDF_DATA_DIR"), &[".asdf"], "shims"),
    whole("mise", Some("MISE_DATA_DIR"), &[".local/share/mise"], "installs"),
    Kit { name: "sdkman", variable: Some("SDKMAN_DIR"), usual: &[".sdkman"], sign: "candidates", ..PLAIN },
    named("java", "JAVA_HOME", "bin/java"),
    named("maven", "MAVEN_HOME", "bin/mvn"),
    named("gradle", "GRADLE_HOME", "bin/gradle"),
    Kit { name: "dotnet", variable: Some("DOTNET_ROOT"), usual: &[".dotnet"], sign: "sdk", ..PLAIN },
    Kit { name: "ghcup", usual: &[".ghcup"], parts: &["bin", "ghc", "env"], ..PLAIN },
    whole("opam", Some("OPAMROOT"), &[".opam"], "opam-init"),
    whole("juliaup", None, &[".juliaup"], "bin"),
    named("homebrew", "HOMEBREW_PREFIX", "Cellar"),
];

/// Folders of the home folder that tools write, where the tool has no folder of its own.
pub(super) const CACHES: &[(&str, &str)] = &[
    ("npm", ".npm/_cacache"),
    ("node-gyp", ".cache/node-gyp"),
    ("yarn", ".cache/yarn"),
    ("yarn-berry", ".yarn/berry/cache"),
    ("pnpm", ".local/share/pnpm/store"),
    ("pnpm-metadata", ".cache/pnpm"),
    ("pip", ".cache/pip"),
    ("uv-cache", ".cache/uv"),
    ("poetry-cache", ".cache/pypoetry"),
    ("pre-commit", ".cache/pre-commit"),
    ("go-build", ".cache/go-build"),
    ("ccache", ".cache/ccache"),
    ("ccache-old", ".ccache"),
    ("sccache", ".cache/sccache"),
    ("deno-cache", ".cache/deno"),
    ("maven", ".m2/repository"),
    ("gradle-caches", ".gradle/caches"),
    ("gradle-wrapper", ".gradle/wrapper"),
    ("ivy", ".ivy2/cache"),
    ("coursier", ".cache/coursier"),
    ("nuget", ".nuget/packages"),
    ("composer", ".cache/composer"),
    ("cabal", ".cabal/packages"),
    ("hex", ".hex/packages"),
    ("bazel", ".cache/bazelisk"),
    ("zig", ".cache/zig"),
    ("playwright", ".cache/ms-playwright"),
];

/// Settings of tools in the home folder that are read if they hold no secret.
pub(super) const SETTINGS: &[&str] = &[
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".config/uv/uv.toml",
    ".config/pypoetry/config.toml",
    ".condarc",
    ".gemrc",
    ".bundle/config",
    ".config/go/env",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
];

/// What of the home folder is never read, should something that is read contain it.
pub(super) const SECRETS: &[&str] = &[
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".netrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".vault-token",
    ".docker/config.json",
    ".config/gh",
    ".config/hub",
    ".config/gcloud",
    ".config/git/credentials",
    ".config/containers/auth.json",
    ".config/rclone",
    ".config/op",
    ".config/sops",
    ".config/pypoetry/auth.toml",
    ".local/share/keyrings",
    ".local/share/gem/credentials",
    ".local/share/uv/credentials",
    ".gem/credentials",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".nuget/NuGet",
    ".m2/settings-security.xml",
    ".terraform.d/credentials.tfrc.json",
    ".bash_history",
    ".zsh_history",
    ".python_history",
];
