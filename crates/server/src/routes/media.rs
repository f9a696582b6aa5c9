//! Media: uploads, and showing them to members and to whoever has a signed address.

use std::{ops::Range, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use haft_platform::{MEDIA_PIECE, MediaRecord, MediaSignature, MediaUpload, Permission, is_safe_to_show};
use haft_runtime::{ErrorCode, ToolError};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{DONE, Done};
use crate::{
    app::App,
    problem::Problem,
    route::{Asked, JsonReply, NoFields, Route, RouteAccess, raw_route, route},
};

/// How long the next bytes of an upload may take, and all of it.
const SILENCE: Duration = Duration::from_secs(30);
const UPLOADED_WITHIN: Duration = Duration::from_secs(15 * 60);
/// What a browser may do with media: show them, and nothing that is in them.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'";

/// Its routes.
pub(super) fn routes() -> Vec<Route> {
    use RouteAccess::{Needs, Open};
    let write = Needs(Permission::MediaWrite);
    vec![
        raw_route(Method::POST, "/api/media", write, "Uploads the body.", add),
        raw_route(Method::GET, "/api/media/{id}", Open, "Gives what was uploaded, also by a signed address.", show),
        route(Method::POST, "/api/media/{id}/sign", write, "Makes an address that anybody can open.", sign),
        route(Method::DELETE, "/api/media/{id}", write, "Deletes what was uploaded.", remove),
    ]
}

/// What an upload is called.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct UploadQuery {
    /// The name of the file.
    name: Option<String>,
}

/// Takes the body as it comes. What it is, its own first bytes tell.
pub(super) async fn add(asked: Asked<UploadQuery, Body>) -> Result<Response, Problem> {
    let Asked { app, identity, query, body, headers, .. } = asked;
    let caller = identity.map(|identity| identity.caller).ok_or_else(crate::route::nobody)?;
    let told = headers.get(header::CONTENT_LENGTH).and_then(|told| told.to_str().ok()?.parse::<u64>().ok());
    let most = app.media_limits.each;
    if told.is_some_and(|told| told > most) {
        return Err(Problem::new(ErrorCode::TooLarge, format!("the body has more than {most} bytes")));
    }
    let mut upload = app.platform.upload(&caller, query.name.as_deref(), app.media_limits).await?;
    if let Err(problem) = receive(&mut upload, body).await {
        upload.give_up().await?;
        return Err(problem);
    }
    let media = upload.finish().await?;
    let mut view = json!(media);
    view["url"] = json!(address(&media.id));
    let headers = [(header::CACHE_CONTROL, "no-store"), (header::CONTENT_TYPE, crate::JSON)];
    Ok((StatusCode::CREATED, headers, view.to_string()).into_response())
}

async fn receive(upload: &mut MediaUpload<'_>, body: Body) -> Result<(), Problem> {
    let late = || Problem::new(ErrorCode::Timeout, "the body did not come in time").status(StatusCode::REQUEST_TIMEOUT);
    let (mut pieces, ends) = (body.into_data_stream(), Instant::now() + UPLOADED_WITHIN);
    loop {
        let next = timeout(SILENCE, pieces.next()).await.map_err(|_| late())?;
        let Some(bytes) = next else { return Ok(()) };
        upload.add(&bytes.map_err(|_| Problem::mistake("the body broke off"))?).await?;
        if Instant::now() > ends {
            return Err(late());
        }
    }
}

/// What proves that somebody may see it without being known.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct SignedQuery {
    sig: Option<String>,
    exp: Option<String>,
}

/// Gives the bytes, or a range of them.
pub(super) async fn show(asked: Asked<SignedQuery, Body>) -> Result<Response, Problem> {
    let Asked { app, identity, path, query, headers, .. } = asked;
    let id = path.get("id").map(String::as_str).unwrap_or_default();
    let media = match (query.sig, query.exp) {
        (None, None) => {
            let caller = identity.map(|identity| identity.caller).ok_or_else(crate::route::nobody)?;
            let needs = Permission::MediaRead.word();
            if !caller.permissions.allow(needs) {
                let message = format!("{} may not do this: it needs `{needs}`", caller.name);
                return Err(Problem::new(ErrorCode::Forbidden, message));
            }
            app.platform.media(&caller, id).await?
        }
        (sig, exp) => {
            // What cannot be read is as wrong as what is forged.
            let exp = exp.and_then(|exp| exp.parse().ok()).unwrap_or(0);
            app.platform.signed_media(id, &MediaSignature { sig: sig.unwrap_or_default(), exp }).await?
        }
    };
    Ok(given(&app, media, &headers))
}

fn given(app: &Arc<App>, media: MediaRecord, wanted: &HeaderMap) -> Response {
    let asks = |name| wanted.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let tag = format!("\"{}\"", media.sha256);
    // A range of something else than what is here is of no use to anybody.
    let is_same = asks(header::IF_RANGE).is_none_or(|known| known == tag);
    let range = asks(header::RANGE).filter(|_| is_same).and_then(|text| range_of(text, media.size));
    let mut head = head(&media, &tag);
    if asks(header::IF_NONE_MATCH) == Some(tag.as_str()) {
        return (StatusCode::NOT_MODIFIED, head).into_response();
    }
    let (status, range) = match range {
        None => (StatusCode::OK, 0..media.size),
        Some(Ok(range)) => {
            let said = format!("bytes {}-{}/{}", range.start, range.end - 1, media.size);
            head.extend(HeaderValue::from_str(&said).map(|said| (header::CONTENT_RANGE, said)));
            (StatusCode::PARTIAL_CONTENT, range)
        }
        Some(Err(OutOfRange)) => {
            let problem = Problem::mistake("there is nothing in this range").status(StatusCode::RANGE_NOT_SATISFIABLE);
            let said = HeaderValue::from_str(&format!("bytes */{}", media.size));
            let mut response = problem.into_response();
            response.headers_mut().extend(said.map(|said| (header::CONTENT_RANGE, said)));
            return response;
        }
    };
    head.insert(header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    (status, head, Body::from_stream(pieces(Arc::clone(app), media, range))).into_response()
}

fn head(media: &MediaRecord, tag: &str) -> HeaderMap {
    let mime = if media.mime == "text/plain" { "text/plain; charset=utf-8" } else { media.mime.as_str() };
    let shown = if is_safe_to_show(media) { "inline" } else { "attachment" };
    let named = match media.name.as_str() {
        "" => shown.to_owned(),
        name => format!("{shown}; filename*=UTF-8''{}", encoded(name)),
    };
    let said = [
        (header::CONTENT_TYPE, mime),
        (header::CONTENT_DISPOSITION, named.as_str()),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::ETAG, tag),
        (header::ACCEPT_RANGES, "bytes"),
        (header::CACHE_CONTROL, "private, no-cache"),
    ];
    said.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::from_str(value).ok()?))).collect()
}

/// A name as a header has it.
fn encoded(name: &str) -> String {
    const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
    utf8_percent_encode(name, NAME).to_string()
}

/// Nothing lies in the range that is asked for.
#[derive(Debug, PartialEq, Eq)]
struct OutOfRange;

/// The one range that a header asks for; `None` where it is not one that is understood, so that all is given.
fn range_of(text: &str, size: u64) -> Option<Result<Range<u64>, OutOfRange>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first.trim(), last.trim()) {
        ("", last) => size.saturating_sub(last.parse().ok()?)..size,
        (first, "") => first.parse().ok()?..size,
        (first, last) => {
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            if last < first {
                return None;
            }
            first..size.min(last.saturating_add(1))
        }
    };
    Some(if range.start < range.end { Ok(range) } else { Err(OutOfRange) })
}

/// The bytes of a range, piece by piece.
fn pieces(
    app: Arc<App>,
    media: MediaRecord,
    range: Range<u64>,
) -> impl stream::Stream<Item = Result<Bytes, ToolError>> + Send {
    stream::unfold((app, media, range), |(app, media, range)| async move {
        if range.is_empty() {
            return None;
        }
        let length = MEDIA_PIECE as u64;
        let (number, skipped) = (range.start / length, range.start % length);
        let last = length.min(skipped + (range.end - range.start));
        let piece = async {
            let number = u32::try_from(number).map_err(|_| gone())?;
            let piece = Bytes::from(app.platform.media_piece(&media, number).await?);
            let within = skipped as usize..last as usize;
            if within.end <= piece.len() { Ok(piece.slice(within)) } else { Err(gone()) }
        };
        let next = match piece.await {
            Ok(bytes) => (Ok(bytes), range.start + last - skipped..range.end),
            Err(error) => (Err(error), range.end..range.end),
        };
        Some((next.0, (app, media, next.1)))
    })
}

fn gone() -> ToolError {
    ToolError::new(ErrorCode::NotFound, "the rest of it is gone")
}

/// How long an address shall work.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SignBody {
    /// In seconds; an hour by default, seven days at most.
    expires_in: Option<u64>,
}

/// An address that anybody can open.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SignedAddress {
    url: String,
    /// Until when, in seconds since the epoch.
    exp: i64,
}

/// Makes an address that shows it to anybody for a while.
pub(super) async fn sign(asked: Asked<NoFields, SignBody>) -> Result<JsonReply<SignedAddress>, Problem> {
    let (app, id) = (&asked.app, asked.part("id")?);
    let lasts = asked.body.expires_in.map(Duration::from_secs);
    let MediaSignature { sig, exp } = app.platform.sign_media(asked.caller()?, id, lasts).await?;
    let url = format!("{}{}?exp={exp}&sig={sig}", app.place.url(), address(id));
    Ok(JsonReply::ok(SignedAddress { url, exp }))
}

/// Deletes it; its signed addresses lead nowhere then.
pub(super) async fn remove(asked: Asked) -> Result<JsonReply<Done>, Problem> {
    asked.app.platform.remove_media(asked.caller()?, asked.part("id")?).await?;
    Ok(JsonReply::ok(DONE))
}

fn address(id: &str) -> String {
    format!("/api/media/{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_are_meant() {
        let cases = [
            ("bytes=0-", Some(Ok(0..10))),
            ("bytes=2-4", Some(Ok(2..5))),
            ("bytes=2-400", Some(Ok(2..10))),
            ("bytes=-3", Some(Ok(7..10))),
            ("bytes=-300", Some(Ok(0..10))),
            ("bytes=-0", Some(Err(OutOfRange))),
            ("bytes=10-", Some(Err(OutOfRange))),
            ("bytes=10-12", Some(Err(OutOfRange))),
            ("bytes=4-2", None),
            ("bytes=0-1,3-4", None),
            ("bytes=18446744073709551615-", Some(Err(OutOfRange))),
            ("bytes=18446744073709551616-", None),
            ("lines=1-2", None),
            ("bytes=", None),
        ];
        for (text, range) in cases {
            assert_eq!(range_of(text, 10), range, "{text}");
        }
        assert_eq!(range_of("bytes=0-", 0), Some(Err(OutOfRange)));
        assert_eq!(encoded("a b\"\r\n.png"), "a%20b%22%0D%0A.png");
    }
}
