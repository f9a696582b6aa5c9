//! The clients that haft can be written into: which file each reads, and what the file must say.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::{
    edits::{json, toml},
    settings::Settings,
};

/// What haft is called in every client.
const NAME: &str = "haft";
/// A new file of opencode's says what it is.
const OPENCODE_FILE: &str = "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n";

/// A client that speaks MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum McpClient {
    Claude,
    Codex,
    Opencode,
    Vscode,
    Zed,
}

/// Where the lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SettingsLocation {
    /// A file of the workspace, by its path there.
    Workspace(&'static str),
    /// A file of the user's.
    User(PathBuf),
}

/// Where a user's settings lie.
pub(super) struct UserFolders {
    home: PathBuf,
    codex: PathBuf,
    config: PathBuf,
}

impl UserFolders {
    pub(super) fn of(settings: &Settings) -> Result<Self> {
        let variable = |name: &str| settings.variables.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = variable("HOME").context("HOME is not set, so there is no place for your settings; set it")?;
        let or_beneath_home = |name: &str, folder: &str| variable(name).unwrap_or_else(|| home.join(folder));
        let (codex, config) = (or_beneath_home("CODEX_HOME", ".codex"), or_beneath_home("XDG_CONFIG_HOME", ".config"));
        Ok(Self { home, codex, config })
    }

    /// The user's settings of haft itself.
    pub(super) fn haft(&self) -> PathBuf {
        self.config.join("haft/haft.toml")
    }
}

/// For whom it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// Everybody who works in this workspace.
    Workspace,
    /// This user, in every workspace.
    User,
}

impl McpClient {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Opencode => "opencode",
            Self::Vscode => "VS Code",
            Self::Zed => "Zed",
        }
    }

    /// The file that it reads.
    pub(super) fn place(self, whom: For, folder: &Path, user: &UserFolders) -> SettingsLocation {
        match (self, whom) {
            (Self::Claude, For::Workspace) => SettingsLocation::Workspace(".mcp.json"),
            (Self::Claude, For::User) => SettingsLocation::User(user.home.join(".claude.json")),
            (Self::Codex, For::Workspace | For::User) => SettingsLocation::User(user.codex.join("config.toml")),
            (Self::Opencode, For::Workspace) => {
                let commented = folder.join("opencode.jsonc").exists();
                SettingsLocation::Workspace(if commented { "opencode.jsonc" } else { "opencode.json" })
            }
            (Self::Opencode, For::User) => SettingsLocation::User(user.config.join("opencode/opencode.json")),
            (Self::Vscode, For::Workspace) => SettingsLocation::Workspace(".vscode/mcp.json"),
            (Self::Vscode, For::User) => SettingsLocation::User(user.config.join("Code/User/mcp.json")),
            (Self::Zed, For::Workspace) => SettingsLocation::Workspace(".zed/settings.json"),
            (Self::Zed, For::User) => SettingsLocation::User(user.config.join("zed/settings.json")),
        }
    }

    /// The workspace that it must name, because it may start servers elsewhere.
    pub(super) fn names(self, place: &SettingsLocation, folder: &Path) -> Result<Option<String>> {
        match (self, place) {
            (Self::Vscode, SettingsLocation::Workspace(_) | SettingsLocation::User(_)) => {
                Ok(Some("${workspaceFolder}".to_owned()))
            }
            (Self::Zed, SettingsLocation::Workspace(_)) => written(folder).map(Some),
            (Self::Zed, SettingsLocation::User(_)) | (Self::Claude | Self::Codex | Self::Opencode, _) => Ok(None),
        }
    }

    /// The file with haft in it. What its entry says besides stays, so one that is reached elsewhere is left alone.
    pub(super) fn put(self, text: &str, command: &LaunchCommand) -> Result<String> {
        if self.has(text, &[NAME, "url"]) {
            bail!("its entry `{NAME}` has a `url`; take that entry out, or give it another name");
        }
        match self {
            Self::Codex => toml::put_table(text, ["mcp_servers", NAME], &command.in_codex()),
            Self::Opencode if text.trim().is_empty() => self.put(OPENCODE_FILE, command),
            Self::Claude | Self::Opencode | Self::Vscode | Self::Zed => {
                json::merge(text, &[self.section(), NAME], &command.in_json(self))
            }
        }
    }

    /// Whether the file has an entry of haft's.
    pub(super) fn is_in(self, text: &str) -> bool {
        self.has(text, &[NAME])
    }

    /// Whether something stands at a path among the servers.
    fn has(self, text: &str, path: &[&str]) -> bool {
        let path: Vec<&str> = [self.section()].into_iter().chain(path.iter().copied()).collect();
        match self {
            Self::Codex => toml::has(text, &path),
            Self::Claude | Self::Opencode | Self::Vscode | Self::Zed => {
                json::parse(text).is_ok_and(|value| json::at(&value, &path).is_some())
            }
        }
    }

    fn section(self) -> &'static str {
        match self {
            Self::Claude => "mcpServers",
            Self::Codex => "mcp_servers",
            Self::Opencode => "mcp",
            Self::Vscode => "servers",
            Self::Zed => "context_servers",
        }
    }
}

/// What a client starts.
pub(super) struct LaunchCommand {
    program: String,
    arguments: Vec<String>,
}

impl LaunchCommand {
    pub(super) fn new(program: &Path, workspace: Option<String>) -> Result<Self> {
        let mut arguments = vec!["mcp".to_owned()];
        arguments.extend(workspace.into_iter().flat_map(|folder| ["--workspace".to_owned(), folder]));
        Ok(Self { program: written(program)?, arguments })
    }

    fn in_json(&self, client: McpClient) -> Value {
        let Self { program, arguments } = self;
        match client {
            McpClient::Claude | McpClient::Vscode => json!({"type": "stdio", "command": program, "args": arguments}),
            McpClient::Opencode => {
                let command: Vec<&String> = [program].into_iter().chain(arguments).collect();
                json!({"type": "local", "command": command, "enabled": true})
            }
            McpClient::Zed | McpClient::Codex => json!({"command": program, "args": arguments, "env": {}}),
        }
    }

    /// Without `required`, Codex asks its model before haft has said which tools there are.
    fn in_codex(&self) -> [(&'static str, ::toml::Value); 3] {
        [
            ("command", ::toml::Value::from(self.program.clone())),
            ("args", ::toml::Value::from(self.arguments.clone())),
            ("required", ::toml::Value::from(true)),
        ]
    }
}

/// A path as a file of settings can say it.
pub(super) fn written(path: &Path) -> Result<String> {
    let text = path.to_str().with_context(|| format!("{} cannot be written: it is not UTF-8", path.display()))?;
    if text.contains("${") {
        bail!("`{text}` cannot be written: clients would read `${{` as a variable; move it to another path");
    }
    Ok(text.to_owned())
}
