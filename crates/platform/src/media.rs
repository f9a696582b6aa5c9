//! Media: what is uploaded in pieces, and the signed addresses by which others see it.

use std::time::Duration;

use haft_runtime::{Caller, ErrorCode, Scope, ToolError};
use haft_store::FinishedUpload;
pub use haft_store::MediaRecord;
use jiff::Timestamp;
use ring::digest;
use serde::Serialize;

use crate::{
    Platform, QuotaKind, file_type,
    platform::{mistake, not_found},
    random,
};

/// How long one piece is.
pub const MEDIA_PIECE: usize = 1 << 20;
/// How long a signed address works by default, and at most.
const USUAL_LINK: Duration = Duration::from_secs(3600);
const LONGEST_LINK: Duration = Duration::from_secs(7 * 24 * 3600);
/// What signatures of addresses are derived for.
const PURPOSE: &str = "media";
/// The longest name that is kept.
const LONGEST_NAME: usize = 200;

/// Something that was uploaded, as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaView {
    /// What it is found by.
    pub id: String,
    /// What it was called where it came from.
    pub name: String,
    /// What it is, by its own first bytes.
    pub mime: String,
    /// How many bytes it has.
    pub size: u64,
    /// The hash of its bytes.
    pub sha256: String,
    /// Who uploaded it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
}

impl From<MediaRecord> for MediaView {
    fn from(MediaRecord { id, scope: _, name, mime, size, sha256, made_by, created_at }: MediaRecord) -> Self {
        Self { id, name, mime, size, sha256, created_by: made_by, created_at }
    }
}

/// The most that may be uploaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaLimits {
    /// Bytes of one thing.
    pub each: u64,
    /// Bytes of everything that a tenant has.
    pub of_tenant: u64,
}

/// An upload that is under way. What is dropped half-way is seen by nobody and goes away by itself.
pub struct MediaUpload<'a> {
    platform: &'a Platform,
    scope: Scope,
    id: String,
    /// How many bytes there may be.
    most: u64,
    size: u64,
    pieces: u32,
    /// What is not a whole piece yet.
    rest: Vec<u8>,
    mime: Option<&'static str>,
    hash: digest::Context,
}

/// A part of a signed address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaSignature {
    /// What proves it.
    pub sig: String,
    /// Until when it works, in seconds since the epoch.
    pub exp: i64,
}

impl Platform {
    /// Begins an upload.
    pub async fn upload(
        &self,
        caller: &Caller,
        name: Option<&str>,
        limits: MediaLimits,
    ) -> Result<MediaUpload<'_>, ToolError> {
        let scope = caller.scope.clone();
        let quota = self.most_media(&scope).await?;
        let most = quota.map_or(limits.of_tenant, |most| most.min(limits.of_tenant));
        let left = most.saturating_sub(self.store.media_size(&scope).await?);
        if left == 0 {
            let reached = if quota == Some(most) { self.reached_quota(&scope, QuotaKind::Media).await? } else { None };
            return Err(reached.unwrap_or_else(|| full(most)));
        }
        let id = format!("me_{}", uuid::Uuid::now_v7().simple());
        self.store.begin_media(&scope, (&id, &kept_name(name)), &caller.id.to_string()).await?;
        let hash = digest::Context::new(&digest::SHA256);
        let most = limits.each.min(left);
        Ok(MediaUpload { platform: self, scope, id, most, size: 0, pieces: 0, rest: Vec::new(), mime: None, hash })
    }

    /// Something that was uploaded in a caller's tenant.
    pub async fn media(&self, caller: &Caller, id: &str) -> Result<MediaRecord, ToolError> {
        self.store.media(&caller.scope, id).await?.ok_or_else(unknown)
    }

    /// The same for whoever has its signed address. Whatever is wrong with it looks like something that never was.
    pub async fn signed_media(&self, id: &str, signature: &MediaSignature) -> Result<MediaRecord, ToolError> {
        let found = self.store.media_by_id(&self.house, id).await?;
        let tenant = found.as_ref().map_or("", |found| found.scope.tenant().as_str());
        let is_ours = self.key.is_derived(PURPOSE, &signed(tenant, id, signature.exp), &signature.sig);
        let is_late = signature.exp <= Timestamp::now().as_second();
        found.filter(|_| is_ours && !is_late).ok_or_else(unknown)
    }

    /// What makes the address of something one that anybody can open for a while.
    pub async fn sign_media(
        &self,
        caller: &Caller,
        id: &str,
        lasts: Option<Duration>,
    ) -> Result<MediaSignature, ToolError> {
        let lasts = lasts.unwrap_or(USUAL_LINK);
        if lasts.is_zero() || lasts > LONGEST_LINK {
            let most = LONGEST_LINK.as_secs();
            return Err(mistake(format!("`expiresIn` is a number of seconds from 1 to {most}")));
        }
        let found = self.media(caller, id).await?;
        let exp = Timestamp::now().checked_add(lasts).unwrap_or(Timestamp::MAX).as_second();
        let sig = random::hex(&self.key.derived(PURPOSE, &signed(found.scope.tenant().as_str(), id, exp)));
        Ok(MediaSignature { sig, exp })
    }

    /// One piece of something.
    pub async fn media_piece(&self, media: &MediaRecord, piece: u32) -> Result<Vec<u8>, ToolError> {
        self.store.media_piece(&media.scope, &media.id, piece).await?.ok_or_else(unknown)
    }

    /// Removes something that was uploaded; its signed addresses stop working.
    pub async fn remove_media(&self, caller: &Caller, id: &str) -> Result<(), ToolError> {
        match self.store.remove_media(&caller.scope, id).await? {
            true => Ok(()),
            false => Err(unknown()),
        }
    }
}

impl MediaUpload<'_> {
    /// Takes the next bytes.
    pub async fn add(&mut self, bytes: &[u8]) -> Result<(), ToolError> {
        self.size += bytes.len() as u64;
        if self.size > self.most {
            return Err(too_large(self.most));
        }
        self.hash.update(bytes);
        self.rest.extend_from_slice(bytes);
        while self.rest.len() >= MEDIA_PIECE {
            let behind = self.rest.split_off(MEDIA_PIECE);
            let piece = std::mem::replace(&mut self.rest, behind);
            self.keep(piece).await?;
        }
        Ok(())
    }

    /// Ends it: from now on it is seen.
    pub async fn finish(mut self) -> Result<MediaView, ToolError> {
        if !self.rest.is_empty() || self.pieces == 0 {
            let last = std::mem::take(&mut self.rest);
            self.keep(last).await?;
        }
        let upload = FinishedUpload {
            mime: self.mime.unwrap_or_default().to_owned(),
            size: self.size,
            sha256: random::hex(self.hash.finish().as_ref()),
        };
        let store = &self.platform.store;
        if !store.finish_media(&self.scope, &self.id, &upload).await? {
            return Err(given_up());
        }
        Ok(store.media(&self.scope, &self.id).await?.ok_or_else(given_up)?.into())
    }

    /// Takes back what came so far.
    pub async fn give_up(self) -> Result<(), ToolError> {
        self.platform.store.remove_media(&self.scope, &self.id).await?;
        Ok(())
    }

    async fn keep(&mut self, piece: Vec<u8>) -> Result<(), ToolError> {
        if self.mime.is_none() {
            self.mime = Some(file_type::of(&piece));
        }
        let (number, store) = (self.pieces, &self.platform.store);
        self.pieces += 1;
        match store.add_media_piece(&self.scope, (&self.id, number), piece).await? {
            true => Ok(()),
            false => Err(given_up()),
        }
    }
}

/// Whether a browser may show something of this type by itself.
pub fn is_safe_to_show(media: &MediaRecord) -> bool {
    file_type::is_safe_to_show(&media.mime)
}

/// A name without a path and without what nobody could type.
fn kept_name(name: Option<&str>) -> String {
    let last = name.unwrap_or_default().rsplit(['/', '\\']).next().unwrap_or_default();
    last.chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME).collect()
}

fn signed(tenant: &str, id: &str, exp: i64) -> Vec<u8> {
    format!("{tenant}\0{id}\0{exp}").into_bytes()
}

fn unknown() -> ToolError {
    not_found("such media")
}

fn given_up() -> ToolError {
    ToolError::new(ErrorCode::Timeout, "the upload took too long and was given up; send it again")
}

fn too_large(most: u64) -> ToolError {
    ToolError::new(ErrorCode::TooLarge, format!("it has more than {most} bytes, which is the most that is taken"))
}

fn full(most: u64) -> ToolError {
    let message = format!("this tenant has uploaded the {most} bytes that it may; delete something first");
    ToolError { recoverable: false, ..ToolError::new(ErrorCode::ResourceLimit, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere() {
        assert_eq!(kept_name(Some("../../etc/passwd")), "passwd");
        assert_eq!(kept_name(Some("C:\\a\\b.png")), "b.png");
        assert_eq!(kept_name(Some("a\r\nSet-Cookie: x")), "aSet-Cookie: x");
        assert_eq!(kept_name(None), "");
        assert_eq!(kept_name(Some(&"x".repeat(1000))).len(), LONGEST_NAME);
    }
}
