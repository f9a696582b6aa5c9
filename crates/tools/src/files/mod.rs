//! The file tools.

mod delete_file;
mod edit_file;
mod encoding;
mod hash;
mod list_directory;
mod media;
mod mismatch;
mod moment;
mod numbered;
mod read_file;
mod replace;
mod window;
mod write_file;

pub(crate) use delete_file::DeleteFile;
pub(crate) use edit_file::EditFile;
pub(crate) use list_directory::ListDirectory;
pub(crate) use read_file::ReadFile;
pub(crate) use write_file::WriteFile;
