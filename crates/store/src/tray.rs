//! The tray: first entries of calls, each durable as one row until it is filed where it is looked for.
//!
//! Filing an entry touches the newest page of each index, and a caller would wait for all of them. Laying it into the tray
//! touches one. Whoever laid it there files it a moment later, many at once; whoever wants to read or change calls
//! before that files what it finds, whichever process has laid it there.
//!
//! The tray has a few places, each a row that is written over again and again. All rows are equally long, so that SQLite
//! writes them where they are; making and removing rows would touch four pages as often as one.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use rusqlite::{Connection, params};
use serde::ser::Error;

use crate::{StoreError, addition::Addition};

/// The places, and how many bytes a row has there: an entry, the names of its call, and blanks. The first ones have one page
/// each, the others four. An entry that has no room there is filed at once: it would be written twice for nothing.
const PLACES: [(Range<u8>, usize); 2] = [(0..48, 4_000), (48..64, 16_300)];
/// How many places are looked at that may be taken by other processes.
const TRIES: usize = 3;

/// A call that is known already is none to begin.
const LAY: &str = "insert into tray (place, tenant, call, refused, entry, lies) select $1, $2, $3, false, $4, true \
                   where not exists (select 1 from calls where tenant = $2 and id = $3) on conflict (place) do update \
                   set tenant = excluded.tenant, call = excluded.call, entry = excluded.entry, refused = false, \
                   lies = true where not lies";
const TAKE: &str = "update tray set lies = false where place = ? and tenant = ? and call = ? and lies";
const LYING: &str = "select place, tenant, call, entry from tray where lies and not refused order by tenant, call";
const REFUSE: &str = "update tray set refused = true where place = ?";
/// Whether anything waits to be filed.
pub(crate) const FILLED: &str = "select exists (select 1 from tray where lies and not refused)";
/// How many entries could not be filed.
pub(crate) const REFUSED: &str = "select count(*) from tray where refused";

/// The calls of this process whose entries lie in the tray, each at its place.
#[derive(Default)]
pub(crate) struct Places(BTreeMap<u8, String>);

impl Places {
    /// Lays the entry of a call into the tray, and says where it lies: a long one does not, nor one of a call that is known.
    pub(crate) fn lay(
        &mut self,
        conn: &Connection,
        (tenant, call): (&str, &str),
        entry: &Addition,
    ) -> Result<Option<u8>, StoreError> {
        let mut text = serde_json::to_vec(entry)?;
        let names = tenant.len() + call.len();
        let roomy = PLACES.into_iter().find(|(_, room)| text.len() + names <= *room);
        let Some((places, room)) = roomy.filter(|_| !self.0.values().any(|lying| lying == call)) else {
            return Ok(None);
        };
        text.resize(room - names, b' ');
        let text = String::from_utf8(text).map_err(serde_json::Error::custom)?;
        let mut lay = conn.prepare_cached(LAY)?;
        let free = places.filter(|place| !self.0.contains_key(place)).take(TRIES);
        for place in free.collect::<Vec<_>>() {
            if lay.execute(params![place, tenant, call, text])? > 0 {
                self.0.insert(place, call.to_owned());
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// The entry that lay here is filed.
    pub(crate) fn leave(&mut self, place: u8) {
        self.0.remove(&place);
    }
}

/// Takes the entry of a call out, and says whether it still lay there.
pub(crate) fn take(conn: &Connection, place: i64, (tenant, call): (&str, &str)) -> Result<bool, StoreError> {
    Ok(conn.prepare_cached(TAKE)?.execute(params![place, tenant, call])? > 0)
}

/// Files everything that lies in the tray, within the transaction of the connection. What the journal does not accept
/// stays behind, and is counted as lost.
pub(crate) fn file_all(conn: &Connection) -> Result<(), StoreError> {
    let mut lying = conn.prepare_cached(LYING)?;
    let rows = lying.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let rows: Vec<(i64, String, String, String)> = rows.collect::<Result<_, _>>()?;
    for (place, tenant, call, text) in &rows {
        conn.execute_batch("savepoint filing")?;
        match file(conn, *place, (tenant, call), text) {
            Err(err) if err.is_of_one_entry() => {
                conn.execute_batch("rollback to filing")?;
                conn.prepare_cached(REFUSE)?.execute([place])?;
            }
            filed => filed?,
        }
        conn.execute_batch("release filing")?;
    }
    Ok(())
}

fn file(conn: &Connection, place: i64, call: (&str, &str), text: &str) -> Result<(), StoreError> {
    let damaged = |err| StoreError::Row { of: call.1.to_owned(), column: "entry", source: Arc::new(err) };
    let entry: Addition = serde_json::from_str(text).map_err(damaged)?;
    take(conn, place, call)?;
    entry.write(conn)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OPENED: &str = "select input, outcome from calls where id = 'tc_1'";

    fn entry(input: &str) -> Addition {
        let opening = json!({
            "workspace": null, "tool": "edit_file", "parent": null, "caller": "us", "source": "agent",
            "auto_approve": "none", "owner": "ow_1", "started_at": 1, "input": { "path": input },
        });
        let standing = json!({
            "state": "executing", "ended": false, "released": false, "asked": false, "code": null, "turn_of": null,
            "turn_direction": null, "finished_at": null, "duration_ms": null, "cached": false, "retried": false,
            "turn": null, "outcome": { "end": 1 },
        });
        let events = json!([{ "at": 1, "kind": "received", "data": { "event": "received" } }]);
        let entry = json!({
            "tenant": "local", "call": "tc_1", "opening": opening, "standing": standing, "events": events,
        });
        serde_json::from_value(entry).unwrap()
    }

    #[test]
    fn what_is_laid_or_taken_is_found_by_its_place() {
        crate::schema::tests::assert_quick(&[LAY, TAKE, REFUSE]);
    }

    fn database() -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("haft.db");
        let mut conn = Connection::open(&path).unwrap();
        crate::schema::bring_up(&mut conn, &path).unwrap();
        (folder, conn)
    }

    #[test]
    fn laying_an_entry_over_another_writes_one_page() {
        let (folder, conn) = database();
        let pages = || std::fs::metadata(folder.path().join("haft.db-wal")).unwrap().len() / 4096;
        let mut places = Places::default();
        let mut lay = |number: usize, length: usize| {
            let call = format!("tc_{number:032x}");
            let before = pages();
            let place = places.lay(&conn, ("local", &call), &entry(&"x".repeat(length))).unwrap().unwrap();
            let written = pages() - before;
            assert!(take(&conn, place.into(), ("local", &call)).unwrap());
            places.leave(place);
            (place, written)
        };
        lay(0, 1000);
        for number in 1..20 {
            assert_eq!(lay(number, 100 * number), (0, 1));
        }
        lay(20, 9000);
        assert_eq!(lay(21, 6000), (48, 3), "what was longer goes, too");
        assert_eq!(lay(22, 5000), (48, 2));
    }

    #[test]
    fn a_place_that_another_process_has_taken_is_passed_over() {
        let (_folder, conn) = database();
        let (mut ours, mut theirs) = (Places::default(), Places::default());
        let lay = |places: &mut Places, call: &str| places.lay(&conn, ("local", call), &entry("a")).unwrap();
        assert_eq!((lay(&mut theirs, "tc_a"), lay(&mut ours, "tc_b")), (Some(0), Some(1)));
        assert_eq!(lay(&mut ours, "tc_b"), None, "it lies there");
        for number in 2..u8::MAX {
            let place = lay(&mut theirs, &format!("tc_{number}"));
            assert_eq!(place, (number < PLACES[0].0.end).then_some(number));
        }
        assert_eq!(lay(&mut ours, "tc_c"), None, "all are taken");
    }

    #[test]
    fn a_place_that_was_left_as_refused_serves_again() {
        let (_folder, conn) = database();
        let mut places = Places::default();
        assert_eq!(places.lay(&conn, ("local", "tc_a"), &entry("a")).unwrap(), Some(0));
        // A haft of the version before knows no rows that are filed already.
        conn.execute_batch("update tray set lies = false, refused = true").unwrap();
        places.leave(0);
        assert_eq!(places.lay(&conn, ("local", "tc_1"), &entry("b")).unwrap(), Some(0));
        file_all(&conn).unwrap();
        let kept: String = conn.query_row(OPENED, [], |row| row.get(0)).unwrap();
        assert_eq!(kept, r#"{"path":"b"}"#);
    }

    #[test]
    fn an_entry_of_the_version_before_is_filed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("haft.db");
        let mut conn = Connection::open(&path).unwrap();
        crate::schema::tests::bring_to(&mut conn, 5);
        let mut text = serde_json::to_value(entry("a")).unwrap();
        for within in ["/opening/input", "/standing/outcome", "/events/0/data"] {
            let json = text.pointer_mut(within).unwrap();
            *json = json.to_string().into();
        }
        let laid = "insert into tray values (1234567890, 'local', 'tc_1', false, ?)";
        conn.execute(laid, [text.to_string()]).unwrap();
        crate::schema::bring_up(&mut conn, &path).unwrap();
        file_all(&conn).unwrap();
        let kept: (String, String) = conn.query_row(OPENED, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(kept, (r#"{"path":"a"}"#.to_owned(), r#"{"end":1}"#.to_owned()));
        let data = "select data from events where call = 'tc_1'";
        assert_eq!(conn.query_row(data, [], |row| row.get::<_, String>(0)).unwrap(), r#"{"event":"received"}"#);
        assert!(!conn.query_row(FILLED, [], |row| row.get::<_, bool>(0)).unwrap());
    }
}
