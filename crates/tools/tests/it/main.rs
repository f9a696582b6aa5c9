//! The tools through the contract of the runtime, on real folders.

#[cfg(test)]
mod beside_rg;
#[cfg(test)]
mod delete_file;
#[cfg(test)]
mod edit_file;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod list_directory;
#[cfg(test)]
mod list_of_tools;
#[cfg(test)]
mod place;
#[cfg(test)]
mod read_file;
#[cfg(test)]
mod search;
#[cfg(test)]
mod two_workspaces;
#[cfg(test)]
mod workbench;
#[cfg(test)]
mod write_file;
