//! The file tools.

mod amount;
mod copy_file;
mod create_directory;
mod delete_file;
mod edit_file;
mod encoding;
mod folder;
mod hash;
mod list_directory;
mod media;
mod mismatch;
mod moment;
mod move_file;
mod numbered;
mod read_file;
mod replace;
mod window;
mod write_file;

pub(crate) use copy_file::CopyFile;
pub(crate) use create_directory::CreateDirectory;
pub(crate) use delete_file::DeleteFile;
pub(crate) use edit_file::EditFile;
pub(crate) use list_directory::ListDirectory;
pub(crate) use move_file::MoveFile;
pub(crate) use read_file::ReadFile;
pub(crate) use write_file::WriteFile;
