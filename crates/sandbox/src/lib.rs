//! The only code that opens a path, starts a process, dials an address or changes a file on a tool's behalf.

mod beneath;
pub mod changes;
mod charset;
mod cleared;
mod copy;
mod error;
pub mod fence;
mod folder;
mod git_folder;
mod git_head;
mod git_index;
mod git_repository;
pub mod limits;
mod look;
mod masks;
mod medium;
mod root;
mod sealed_file;
mod sensitive;
mod settled;
mod stamp;
mod target;
mod transfer;
mod walk;
pub mod web;
mod workspace_path;

pub use charset::{Charset, is_text};
pub use error::PathError;
pub use folder::{Folder, FolderEntry};
pub use git_index::{submodules, tracked};
pub use git_repository::{GitRepository, NoRepository, RepositoryKind};
pub use look::OpenFile;
pub use root::Root;
pub use sensitive::{SensitiveNames, is_sensitive, is_sensitive_name};
pub use stamp::{EntryKind, FileStamp, Meta};
pub use workspace_path::{WorkspacePath, show_name};
