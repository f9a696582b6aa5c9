//! How far a call reaches, and how well what it started was fenced.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far a call reaches. Ordered: a later one includes the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Effect {
    /// Only looks.
    #[serde(rename = "read")]
    Read,
    /// Makes or changes something.
    #[serde(rename = "write")]
    Write,
    /// Runs somebody else's code.
    #[serde(rename = "execute")]
    Execute,
    /// Takes something away.
    #[serde(rename = "destructive")]
    Destroy,
}

impl Effect {
    /// What a caller needs for a tool of a workspace that reaches so far. Taking something away is writing.
    pub const fn workspace_permission(self) -> &'static str {
        match self {
            Self::Read => "workspace.read",
            Self::Write | Self::Destroy => "workspace.write",
            Self::Execute => "workspace.execute",
        }
    }
}

/// The rung of the fence around the processes that a call started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// No fence, or no process was started.
    None,
    /// Limits on time, memory and output only.
    Limits,
    /// Landlock and seccomp.
    Landlock,
    /// Namespaces, a built root, Landlock and seccomp.
    Namespaces,
}

impl Isolation {
    /// Every rung, lowest first.
    pub const ALL: &[Isolation] = &[Self::None, Self::Limits, Self::Landlock, Self::Namespaces];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Limits => "limits",
            Self::Landlock => "landlock",
            Self::Namespaces => "namespaces",
        }
    }
}
