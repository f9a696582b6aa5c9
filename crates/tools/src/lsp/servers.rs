//! Which language servers there are, and which files are theirs.

use std::{collections::BTreeSet, fmt::Write, path::Path, time::Duration};

use haft_runtime::{Category, ErrorCode, ToolError};
use haft_sandbox::fence::Toolchains;
use serde_json::{Value, json};

/// What the house knows of language servers.
#[derive(Clone, Debug, PartialEq)]
pub struct LanguageServers {
    /// The user's own, each in the place of the shipped one of its language.
    pub servers: Vec<LanguageServer>,
    /// The most bytes of memory that one of them and all it starts may use.
    pub memory: u64,
    /// How long a call waits for a server that is still loading, where the server outlives the call.
    pub ready: Duration,
    /// How long a server that is ready may take to answer one question.
    pub timeout: Duration,
    /// After how long without a question a server is ended.
    pub idle: Duration,
    /// The file in which the user names servers, as people are told.
    pub settings_file: String,
}

impl Default for LanguageServers {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            memory: 4_000_000_000,
            ready: Duration::from_secs(45),
            timeout: Duration::from_secs(30),
            idle: Duration::from_secs(600),
            settings_file: "haft.toml".to_owned(),
        }
    }
}

/// One language server of the user's.
#[derive(Clone, Debug, PartialEq)]
pub struct LanguageServer {
    /// The language, which is also what the server is told that its files are.
    pub language: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What the names of its files end with, without the dot.
    pub extensions: Vec<String>,
    /// What it is told when it starts.
    pub init_options: Value,
    /// What it is told when it asks for its settings.
    pub settings: Value,
}

/// A language that is known without being set.
struct KnownLanguage {
    language: &'static str,
    /// The first that is on the user's `PATH` is used.
    commands: &'static [&'static [&'static str]],
    extensions: &'static [&'static str],
    install: &'static str,
}

const SHIPPED: &[KnownLanguage] = &[
    KnownLanguage {
        language: "rust",
        commands: &[&["rust-analyzer"]],
        extensions: &["rs"],
        install: "rustup component add rust-analyzer",
    },
    KnownLanguage {
        language: "python",
        commands: &[&["pyright-langserver", "--stdio"], &["basedpyright-langserver", "--stdio"], &["pylsp"]],
        extensions: &["py", "pyi"],
        install: "npm install --global pyright",
    },
    KnownLanguage {
        language: "typescript",
        commands: &[
            &["typescript-language-server", "--stdio"],
            &["tsgo", "--lsp", "--stdio"],
            &["tsc", "--lsp", "--stdio"],
        ],
        extensions: &["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs"],
        install: "npm install --global typescript@7",
    },
    KnownLanguage {
        language: "cpp",
        commands: &[&["clangd"]],
        extensions: &["c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx"],
        install: "apt install clangd",
    },
    KnownLanguage {
        language: "go",
        commands: &[&["gopls"]],
        extensions: &["go"],
        install: "go install golang.org/x/tools/gopls@latest",
    },
];

/// What says how a project is built, whatever its language: a server may have to read everything anew.
const PROJECT: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "rust-project.json",
    "pyproject.toml",
    "pyrightconfig.json",
    "setup.cfg",
    "setup.py",
    "requirements.txt",
    "tsconfig.json",
    "jsconfig.json",
    "package.json",
    "compile_commands.json",
    "compile_flags.txt",
    "go.mod",
    "go.work",
];

/// Whether a file says how a project is built.
pub(super) fn is_of_project(path: &Path) -> bool {
    path.file_name().is_some_and(|name| PROJECT.iter().any(|known| name == *known))
}

impl LanguageServers {
    /// The servers for a file that can be run with these tools, the preferred one first; at least one.
    pub(super) fn for_file(&self, path: &Path, tools: &Toolchains) -> Result<Vec<LanguageServer>, ToolError> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if let Some(own) = self.servers.iter().find(|server| server.has(extension)) {
            return match own.command.first().is_some_and(|program| tools.program(program).is_some()) {
                true => Ok(vec![own.clone()]),
                false => Err(own.is_missing(&self.settings_file)),
            };
        }
        let known = SHIPPED.iter().filter(|shipped| !self.servers.iter().any(|own| own.language == shipped.language));
        let Some(shipped) = known.into_iter().find(|shipped| shipped.extensions.contains(&extension)) else {
            return Err(none_for(extension, &self.settings_file));
        };
        let found = shipped.commands.iter().filter(|command| tools.program(command[0]).is_some());
        let found: Vec<LanguageServer> = found.map(|command| shipped.server(command)).collect();
        match found.is_empty() {
            true => Err(shipped.is_missing(&self.settings_file)),
            false => Ok(found),
        }
    }

    /// The endings of the files whose server is on this `PATH`, told without looking for the user's toolchains: that takes
    /// longer.
    pub(crate) fn endings_on(&self, path: &str) -> BTreeSet<String> {
        let folders: Vec<_> = std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
        let is_there = |program: &str| match program.contains('/') {
            true => Path::new(program).is_file(),
            false => folders.iter().any(|folder| folder.join(program).is_file()),
        };
        let own = self.servers.iter().filter(|server| server.command.first().is_some_and(|program| is_there(program)));
        let known = SHIPPED.iter().filter(|shipped| shipped.commands.iter().any(|command| is_there(command[0])));
        let known = known.flat_map(|shipped| shipped.extensions.iter().map(|ending| (*ending).to_owned()));
        own.flat_map(|server| server.extensions.clone()).chain(known).collect()
    }

    /// The languages that have a server, with the program that it is; `None` where none was found.
    pub fn found(&self, tools: &Toolchains) -> Vec<(String, Option<String>)> {
        let own = self.servers.iter().map(|server| {
            let program = server.command.first().filter(|program| tools.program(program).is_some());
            (server.language.clone(), program.cloned())
        });
        let known = SHIPPED.iter().filter(|shipped| !self.servers.iter().any(|own| own.language == shipped.language));
        let known = known.map(|shipped| {
            let found = shipped.commands.iter().find(|command| tools.program(command[0]).is_some());
            (shipped.language.to_owned(), found.map(|command| command[0].to_owned()))
        });
        own.chain(known).collect()
    }
}

impl LanguageServer {
    fn has(&self, extension: &str) -> bool {
        self.extensions.iter().any(|own| own == extension)
    }

    /// Whether a file of the workspace may matter to it.
    pub(super) fn looks_at(&self, path: &Path) -> bool {
        is_of_project(path) || path.extension().and_then(|own| own.to_str()).is_some_and(|own| self.has(own))
    }

    /// What the protocol calls the language of a file.
    pub(super) fn language_of<'a>(&'a self, path: &'a Path) -> &'a str {
        match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
            "js" | "mjs" | "cjs" => "javascript",
            "jsx" => "javascriptreact",
            "ts" | "mts" | "cts" => "typescript",
            "tsx" => "typescriptreact",
            "c" => "c",
            _ => &self.language,
        }
    }

    /// How to get it, or another.
    pub(super) fn hint(&self, settings_file: &str) -> String {
        match SHIPPED.iter().find(|shipped| shipped.language == self.language) {
            Some(shipped) => shipped.hint(settings_file),
            None => format!("correct `lsp.servers.{}` in {settings_file}", self.language),
        }
    }

    fn is_missing(&self, settings_file: &str) -> ToolError {
        let program = self.command.first().map_or("", String::as_str);
        let message = format!(
            "cannot ask about this file: `{program}`, the language server that your settings name for {}, is not on your \
             PATH; install it, or {}",
            self.language,
            self.hint(settings_file)
        );
        unavailable(message).with("language", self.language.as_str())
    }
}

impl KnownLanguage {
    fn server(&self, command: &[&str]) -> LanguageServer {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        LanguageServer {
            language: self.language.to_owned(),
            command: owned(command),
            extensions: owned(self.extensions),
            init_options: Value::Null,
            settings: Value::Null,
        }
    }

    fn hint(&self, settings_file: &str) -> String {
        let lines = lines(self.language, self.commands[0], self.extensions);
        format!("install it with `{}`, or name another in {settings_file}:\n{lines}", self.install)
    }

    fn is_missing(&self, settings_file: &str) -> ToolError {
        let program = self.commands[0][0];
        let message = format!(
            "cannot ask about this file: the language server for {}, `{program}`, is not on your PATH; {}",
            self.language,
            self.hint(settings_file)
        );
        unavailable(message).with("language", self.language).with("install", self.install)
    }
}

fn none_for(extension: &str, settings_file: &str) -> ToolError {
    let kind =
        if extension.is_empty() { "files without an extension".to_owned() } else { format!("`.{extension}` files") };
    let lines = lines("NAME", &["PROGRAM", "ARGUMENT"], &[if extension.is_empty() { "EXTENSION" } else { extension }]);
    let message = format!(
        "cannot ask about this file: no language server is known for {kind}; if you have one, name it in \
         {settings_file}:\n{lines}"
    );
    unavailable(message)
}

/// That there is no server to ask. It does not pass by itself.
pub(super) fn unavailable(message: String) -> ToolError {
    ToolError { recoverable: false, ..ToolError::new(ErrorCode::Unavailable, message).in_category(Category::Execution) }
}

/// The lines of a settings file that name a server.
fn lines(language: &str, command: &[&str], extensions: &[&str]) -> String {
    let mut lines = format!("[lsp.servers.{language}]\n");
    // Writing into text cannot fail.
    let _ = writeln!(lines, "command = {}", json!(command));
    let _ = write!(lines, "extensions = {}", json!(extensions));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_server_that_is_not_installed_is_told_with_the_lines_to_write() {
        let tools = Toolchains {
            home: "/nowhere".into(),
            readable: Vec::new(),
            hidden: Vec::new(),
            environment: vec![("PATH".to_owned(), "/nowhere".to_owned())],
            caches: Vec::new(),
            gitconfig: None,
            found: Vec::new(),
            left_out: Vec::new(),
        };
        let refused = LanguageServers::default().for_file(Path::new("a.go"), &tools).unwrap_err();
        assert!(refused.message.contains("go install") && refused.message.contains("[lsp.servers.go]"), "{refused}");
    }
}
