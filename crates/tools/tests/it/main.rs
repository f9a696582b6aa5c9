//! The tools through the contract of the runtime, on real folders.

mod delete_file;
mod edit_file;
mod hostile;
mod list_directory;
mod list_of_tools;
mod place;
mod read_file;
mod workbench;
mod write_file;
