//! The first words with a server: what we can do, what it can do.

use std::path::Path;

use serde_json::{Value, json};

use super::{address, server_state::cut, servers::LanguageServer, text::Units};

/// What a server can do.
#[derive(Debug)]
pub(super) struct LanguageCapabilities {
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) units: Units,
    /// Whether it is told when a document is saved, and with its text.
    pub(super) save: Option<WithText>,
    /// Whether it can be asked what is wrong, and under which name.
    pub(super) pull: Option<Value>,
    capabilities: Value,
}

/// Whether the text goes with the word that it was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WithText {
    Yes,
    No,
}

impl LanguageCapabilities {
    pub(super) fn read(answer: &Value, command: &str) -> Self {
        let capabilities = &answer["capabilities"];
        let save = &capabilities["textDocumentSync"]["save"];
        let save = match (save["includeText"] == true, is_yes(save)) {
            (true, _) => Some(WithText::Yes),
            (false, true) => Some(WithText::No),
            (false, false) => None,
        };
        let pull = &capabilities["diagnosticProvider"];
        Self {
            name: cut(answer["serverInfo"]["name"].as_str().unwrap_or(command), 100),
            version: answer["serverInfo"]["version"].as_str().map(|version| cut(version, 100)),
            units: Units::named(capabilities["positionEncoding"].as_str()),
            save,
            pull: is_yes(pull).then(|| pull["identifier"].clone()),
            capabilities: capabilities.clone(),
        }
    }

    /// Whether it says that it can do something, such as `hoverProvider`.
    pub(super) fn can(&self, what: &str) -> bool {
        is_yes(&self.capabilities[what])
    }

    /// Whether it says by itself when it has read everything.
    pub(super) fn tells_status(&self) -> bool {
        self.name == "rust-analyzer"
    }
}

/// A capability is a switch, or its options.
fn is_yes(capability: &Value) -> bool {
    match capability {
        Value::Bool(yes) => *yes,
        Value::Object(_) => true,
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

/// What a server is told first.
pub(super) fn greeting(server: &LanguageServer, workspace: &Path) -> Value {
    let address = address::of(workspace);
    json!({
        // It could not see our process, and its life is tied to ours in another way.
        "processId": null,
        "clientInfo": { "name": "haft", "version": env!("CARGO_PKG_VERSION") },
        "rootUri": address,
        "workspaceFolders": folders(workspace),
        "initializationOptions": server.init_options,
        "capabilities": {
            "general": { "positionEncodings": ["utf-8", "utf-32", "utf-16"] },
            "window": { "workDoneProgress": true },
            "workspace": {
                "workspaceFolders": true,
                "configuration": true,
                "didChangeWatchedFiles": { "dynamicRegistration": true },
                "diagnostics": { "refreshSupport": true },
            },
            "textDocument": {
                "synchronization": { "didSave": true },
                "publishDiagnostics": { "versionSupport": true },
                "diagnostic": {},
                "hover": { "contentFormat": ["markdown", "plaintext"] },
                "definition": { "linkSupport": true },
                "references": {},
                "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
            },
            "experimental": { "serverStatusNotification": true },
        },
    })
}

/// The workspace, as servers ask for it.
pub(super) fn folders(workspace: &Path) -> Value {
    let name = workspace.file_name().map(|name| name.to_string_lossy());
    json!([{ "uri": address::of(workspace), "name": name.unwrap_or_default() }])
}
