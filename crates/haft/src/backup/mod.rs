//! Backups: one file with everything that haft keeps, taken while it runs, and put back whole or not at all.

mod archive_reader;
mod archive_writer;
mod folders;
mod manifest;
mod restore;
pub(crate) mod switch;
mod take;
#[cfg(test)]
mod tests;
mod unpack;

pub(crate) use manifest::BackupManifest;
pub(crate) use restore::{RestoreWish, RestoredBackup, restore};
pub(crate) use take::{BackupTarget, BackupWish, take};
