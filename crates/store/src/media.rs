//! What was uploaded, kept in pieces.

use std::time::Duration;

use haft_runtime::{HouseWide, Scope};
use jiff::Timestamp;

use crate::{
    Store, StoreError,
    batch::ConditionalWrite,
    columns::{Columns, tenant},
    sql::{Row, Statement},
};

/// How long an upload may be under way. What is older was given up.
const UNFINISHED: Duration = Duration::from_secs(3600);

/// Something that was uploaded, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaRecord {
    /// What it is found by.
    pub id: String,
    /// Whose it is.
    pub scope: Scope,
    /// What it was called where it came from.
    pub name: String,
    /// What it is, by its own first bytes.
    pub mime: String,
    /// How many bytes it has.
    pub size: u64,
    /// The hash of its bytes.
    pub sha256: String,
    /// Who uploaded it.
    pub made_by: String,
    /// When.
    pub created_at: Timestamp,
}

/// What is known of an upload once its last byte is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedUpload {
    /// What it is.
    pub mime: String,
    /// How many bytes it has.
    pub size: u64,
    /// Their hash.
    pub sha256: String,
}

macro_rules! media {
    ($rest:literal) => {
        concat!("select tenant, id, name, mime, size, sha256, made_by, created_at from media where ", $rest)
    };
}
const BEGIN: &str = "insert into media (tenant, id, name, mime, size, sha256, ready, made_by, created_at) \
                     values ($1, $2, $3, '', 0, '', 0, $4, $5) returning 1 as added";
const FORGET_PIECES: &str = "delete from media_pieces where (tenant, media) in (select tenant, id from media \
                             where ready = 0 and created_at < $1)";
const FORGET: &str = "delete from media where ready = 0 and created_at < $1";
/// An upload that was given up takes no more pieces.
const ADD_PIECE: &str = "insert into media_pieces (tenant, media, piece, body) select $1, $2, $3, $4 where exists \
                         (select 1 from media where tenant = $1 and id = $2 and ready = 0) returning 1 as added";
const FINISH: &str = "update media set mime = $3, size = $4, sha256 = $5, ready = 1 where tenant = $1 and id = $2 \
                      and ready = 0 returning 1 as finished";
const REMOVE: &str = "delete from media where tenant = $1 and id = $2 returning 1 as removed";
const REMOVE_PIECES: &str = "delete from media_pieces where tenant = $1 and media = $2";
const FIND: &str = media!("tenant = $1 and id = $2 and ready = 1");
const BY_ID: &str = media!("id = $1 and ready = 1");
const PIECE: &str = "select body from media_pieces where tenant = $1 and media = $2 and piece = $3";
const SIZE: &str = "select cast(coalesce(sum(size), 0) as bigint) as bytes from media where tenant = $1";

impl Store {
    /// Begins an upload, and forgets those that were given up.
    pub async fn begin_media(&self, scope: &Scope, (id, name): (&str, &str), made_by: &str) -> Result<(), StoreError> {
        let now = Timestamp::now();
        let begin = Statement::new(BEGIN).bind(tenant(scope)).bind(id).bind(name).bind(made_by);
        let oldest = now.checked_sub(UNFINISHED).unwrap_or(Timestamp::UNIX_EPOCH).as_microsecond();
        let forget = [FORGET_PIECES, FORGET].map(|sql| Statement::new(sql).bind(oldest));
        let begin = ConditionalWrite::of_database(begin.bind(now.as_microsecond()));
        self.change(forget.into_iter().fold(begin, ConditionalWrite::and_then)).await.map(drop)
    }

    /// Adds the next piece; `false` when nobody uploads that any more.
    pub async fn add_media_piece(
        &self,
        scope: &Scope,
        (id, piece): (&str, u32),
        body: Vec<u8>,
    ) -> Result<bool, StoreError> {
        let add = Statement::new(ADD_PIECE).bind(tenant(scope)).bind(id).bind(piece).bind(body);
        self.change(ConditionalWrite::of_database(add)).await
    }

    /// Ends an upload, which others see from now on; `false` when nobody uploads that any more.
    pub async fn finish_media(&self, scope: &Scope, id: &str, upload: &FinishedUpload) -> Result<bool, StoreError> {
        let size = i64::try_from(upload.size).unwrap_or(i64::MAX);
        let finish = Statement::new(FINISH).bind(tenant(scope)).bind(id).bind(upload.mime.as_str());
        let finish = finish.bind(size).bind(upload.sha256.as_str());
        self.change(ConditionalWrite::of_database(finish)).await
    }

    /// Removes something that was uploaded, or half of it; `false` when there is none.
    pub async fn remove_media(&self, scope: &Scope, id: &str) -> Result<bool, StoreError> {
        let [remove, pieces] = [REMOVE, REMOVE_PIECES].map(|sql| Statement::new(sql).bind(tenant(scope)).bind(id));
        self.change(ConditionalWrite::of_database(remove).and_then(pieces)).await
    }

    /// Something that was uploaded.
    pub async fn media(&self, scope: &Scope, id: &str) -> Result<Option<MediaRecord>, StoreError> {
        self.read_one(Statement::new(FIND).bind(tenant(scope)).bind(id)).await?.as_ref().map(record).transpose()
    }

    /// Something that was uploaded by whatever tenant, for whoever has proof that they may see it.
    pub async fn media_by_id(&self, _house: &HouseWide, id: &str) -> Result<Option<MediaRecord>, StoreError> {
        self.read_one(Statement::new(BY_ID).bind(id)).await?.as_ref().map(record).transpose()
    }

    /// One piece of it.
    pub async fn media_piece(&self, scope: &Scope, id: &str, piece: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.read_one(Statement::new(PIECE).bind(tenant(scope)).bind(id).bind(piece)).await?;
        found.map(|row| Ok(Columns { of: id, row: &row }.bytes("body")?.to_vec())).transpose()
    }

    /// How many bytes a tenant has uploaded.
    pub async fn media_size(&self, scope: &Scope) -> Result<u64, StoreError> {
        let found = self.read_one(Statement::new(SIZE).bind(tenant(scope))).await?;
        let bytes = found.map_or(Ok(0), |row| Columns { of: "media", row: &row }.number("bytes"))?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }
}

fn record(row: &Row) -> Result<MediaRecord, StoreError> {
    let id = Columns { of: "media", row }.text("id")?;
    let columns = Columns { of: &id, row };
    Ok(MediaRecord {
        scope: columns.scope_of_tenant()?,
        name: columns.text("name")?,
        mime: columns.text("mime")?,
        size: u64::try_from(columns.number("size")?).map_err(|err| columns.damaged("size", err))?,
        sha256: columns.text("sha256")?,
        made_by: columns.text("made_by")?,
        created_at: columns.time("created_at")?,
        id: id.clone(),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_upload_is_found_without_reading_the_others() {
        use super::{BY_ID, FIND, FINISH, FORGET, PIECE, REMOVE, REMOVE_PIECES, SIZE};
        crate::schema::tests::assert_quick(&[FIND, BY_ID, FINISH, PIECE, REMOVE, REMOVE_PIECES, SIZE, FORGET]);
    }
}
