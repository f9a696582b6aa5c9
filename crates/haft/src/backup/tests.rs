//! Archives that were made to do harm, that are older, and restores that were killed after they were decided.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use tempfile::TempDir;

use super::{
    RestoreWish,
    archive_writer::{ArchiveWriter, EntryHead, HeadKind},
    manifest::{BackupHead, DATABASE, FORMAT, HEAD},
    restore, switch,
};
use crate::{settings::Settings, show::Out};

/// A folder with an archive in it, and a data folder that is not there yet.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Writes an archive with these entries behind its head.
    fn write(&self, schema: i64, fill: impl FnOnce(&mut ArchiveWriter<Vec<u8>>)) {
        let mut archive = ArchiveWriter::new(Vec::new());
        let (node, workspaces) = ("n".to_owned(), "/nowhere-workspaces".to_owned());
        let (haft, taken_at) = ("9.9.9".to_owned(), Timestamp::UNIX_EPOCH);
        let head = BackupHead { format: FORMAT, haft, schema, taken_at, node, workspaces, key: None };
        archive.add_own(HEAD, &serde_json::to_vec(&head).unwrap()).unwrap();
        fill(&mut archive);
        fs::write(self.folder.path().join("b"), archive.finish().unwrap().0).unwrap();
    }

    async fn restore(&self) -> Result<(), String> {
        let file = self.folder.path().join("b");
        let wish = RestoreWish { file, replace: false, check: false };
        let restored = restore(&Settings::defaults(self.data()), &wish, Out::new(true)).await;
        restored.map(drop).map_err(|err| format!("{err:#}"))
    }

    /// What lies beside the archive.
    fn beside(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).filter(|name| name != "b").collect()
    }
}

fn head(path: &str, kind: HeadKind) -> EntryHead {
    EntryHead { path: path.into(), kind, mode: 0o644, modified: (0, 0), mark: None, size: 0 }
}

#[tokio::test]
async fn no_path_leads_out_of_the_folder_and_no_link_is_followed() {
    let outside = tempfile::tempdir().unwrap();
    let link = || HeadKind::Link(outside.path().into());
    let evil: [(&str, Vec<EntryHead>); 11] = [
        ("path", vec![head("../evil", HeadKind::File)]),
        ("path", vec![head("data/../../evil", HeadKind::File)]),
        ("path", vec![head("/tmp/evil", HeadKind::File)]),
        ("path", vec![head("elsewhere/evil", HeadKind::File)]),
        ("path", vec![head("data/./x", HeadKind::File)]),
        ("path", vec![head("data//x", HeadKind::File)]),
        ("path", vec![head("workspaces", link())]),
        ("path", vec![head("changes/tc_1", link())]),
        ("path", vec![head("data/secrets", link())]),
        ("path", vec![head("", HeadKind::File)]),
        (
            "cannot restore",
            vec![
                head("workspaces/t", HeadKind::Folder),
                head("workspaces/t/w", HeadKind::Folder),
                head("workspaces/t/w/l", link()),
                head("workspaces/t/w/l/evil", HeadKind::File),
            ],
        ),
    ];
    for (said, entries) in evil {
        let place = Place::new();
        place.write(1, |archive| entries.iter().for_each(|entry| archive.add_raw(entry)));
        let refused = place.restore().await.unwrap_err();
        assert!(refused.contains(said), "{refused}");
        assert!(place.beside().is_empty(), "{:?}", place.beside());
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn an_archive_that_lies_or_is_newer_is_refused() {
    let place = Place::new();
    place.write(99, |_| ());
    let refused = place.restore().await.unwrap_err();
    assert!(refused.contains("install haft 9.9.9 or later"), "{refused}");
    place.write(1, |archive| {
        archive.add_raw(&head("data/x", HeadKind::File));
        archive.manifest.bytes -= 1;
    });
    let refused = place.restore().await.unwrap_err();
    assert!(refused.contains("does not hold as much"), "{refused}");
    // A database that is none.
    place.write(1, |archive| archive.add_own(DATABASE, b"no database").unwrap());
    let refused = place.restore().await.unwrap_err();
    assert!(refused.contains("the database in the backup"), "{refused}");
    assert!(place.beside().is_empty(), "{:?}", place.beside());
}

#[tokio::test]
async fn a_backup_of_the_first_version_is_brought_up() {
    let place = Place::new();
    let old = place.folder.path().join("old.db");
    let text = include_str!("../../../store/schema/0001.sql");
    let words = [
        ("{int}", "integer"),
        ("{text}", "text"),
        ("{bytes}", "blob"),
        ("{table}", "strict"),
        ("{small_table}", "strict, without rowid"),
    ];
    let text = words.iter().fold(text.to_owned(), |text, (word, sqlite)| text.replace(word, sqlite));
    let database = rusqlite::Connection::open(&old).unwrap();
    database.execute_batch(&text).unwrap();
    let rows = "insert into meta (name, number) values ('schema', 1), ('oldest_reader', 1); \
                insert into heads (tenant, seq, version, forgotten) values ('local', 7, 3, 0)";
    database.execute_batch(rows).unwrap();
    drop(database);
    place.write(1, |archive| {
        archive.add_file(DATABASE, &old).unwrap();
        archive.manifest.tables.insert("heads".to_owned(), 1);
    });
    fs::remove_file(&old).unwrap();
    place.restore().await.unwrap();
    let restored = rusqlite::Connection::open(place.data().join("haft.db")).unwrap();
    let look = |sql: &str| restored.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(look("select seq from heads where tenant = 'local'"), 7);
    assert_eq!(look("select count(*) from tenants"), 0);
    assert!(look("select number from meta where name = 'schema'") > 1);
}

/// After each step of a switch that was decided, the next one to look finishes it.
#[test]
fn a_restore_that_was_decided_is_finished() {
    let names = [("workspaces", "data-workspaces"), ("servers", "data-servers"), ("data", "data")];
    for done in 0..=6 {
        let place = Place::new();
        let at = |name: &str| place.folder.path().join(name);
        let mark = |folder: &Path, word: &str| {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(word), word).unwrap();
        };
        for (step, (name, target)) in names.iter().enumerate() {
            // First the old one goes, then the new one comes.
            let (gone, come) = (done > 2 * step, done > 2 * step + 1);
            let old = if gone { at("data.replaced").join(name) } else { at(target) };
            let new = if come { at(target) } else { at("data.restored").join(name) };
            mark(&old, "old");
            mark(&new, "new");
        }
        fs::create_dir_all(at("data.restored")).unwrap();
        switch::finish(&at("data")).unwrap();
        for (_, target) in names {
            assert!(at(target).join("new").exists() && !at(target).join("old").exists(), "{target} after {done} steps");
        }
        assert!(!at("data.restored").exists() && !at("data.replaced").exists());
    }
    let nothing = Place::new();
    symlink("nowhere", nothing.folder.path().join("x")).unwrap();
    switch::finish(&nothing.data()).unwrap();
}
