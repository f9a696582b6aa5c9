//! Programs on devices without a browser (RFC 8628): the program shows a short code, a person types it on a page and says yes,
//! and the program, which has asked again and again, gets its tokens.

use std::{net::IpAddr, time::Duration};

use haft_runtime::{ErrorCode, ToolError};
use haft_store::{DeviceRecord, DeviceState, NewOAuthToken, OAuthTokenKind};
use jiff::Timestamp;

use super::{GivenTokens, OAuthClient, OAuthError, invalid_grant, new_consent};
use crate::{KeyScope, Platform, SignInRecord, attempts::Tried, platform::not_found, random, sign_in::after};

/// How programs say that they come with the code of a device.
pub const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// How long somebody may take to say yes.
const LASTS: Duration = Duration::from_secs(600);
/// How many seconds a program waits between two requests, and how soon is too soon.
const INTERVAL: u64 = 5;
const TOO_SOON: Duration = Duration::from_secs(4);
/// The letters of a code that people type: none is taken for another, and they make no words.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
const CODE_LENGTH: usize = 8;

/// What a program on a device wants.
#[derive(Clone, Copy, Debug)]
pub struct DeviceWish<'a> {
    /// Which program.
    pub client_id: &'a str,
    /// What it wants to do.
    pub scopes: &'a [KeyScope],
    /// The address that its tokens are for.
    pub resource: &'a str,
    /// Where the request comes from, where that says anything.
    pub from: Option<IpAddr>,
}

/// What such a program gets first.
#[derive(Clone, Debug)]
pub struct GivenDeviceCode {
    /// What it asks with.
    pub device_code: String,
    /// What it shows.
    pub user_code: String,
    /// For how many seconds.
    pub expires_in: u64,
    /// After how many seconds it may ask again.
    pub interval: u64,
}

/// A program that waits for somebody, as that person sees it.
#[derive(Clone, Debug)]
pub struct DeviceView {
    /// The code as it is shown there.
    pub user_code: String,
    /// The program.
    pub client: String,
    /// What it wants to do.
    pub scopes: Vec<KeyScope>,
    /// The address that it asked from, where that says anything.
    pub asked_from: Option<String>,
    /// Since when.
    pub since: Timestamp,
}

impl Platform {
    /// The codes for a program on a device. A program that is known by its own document is looked up when somebody looks.
    pub async fn begin_device(&self, wish: &DeviceWish<'_>) -> Result<GivenDeviceCode, OAuthError> {
        let is_known = wish.client_id.starts_with("https://")
            || self.store.oauth_client(&self.house, wish.client_id).await?.is_some();
        if !is_known || wish.client_id.len() > 2000 {
            return Err(OAuthError::new("invalid_client", "no program is known by this `client_id`"));
        }
        let words: Vec<&str> = wish.scopes.iter().map(|scope| scope.word()).collect();
        loop {
            let (device_code, user_code) = (random::text(random::SECRET)?, random_user_code()?);
            let device = DeviceRecord {
                id: random::hash(&device_code),
                user_code: self.user_code_hash(&user_code),
                client: wish.client_id.to_owned(),
                scopes: words.join(","),
                resource: wish.resource.to_owned(),
                asked_from: wish.from.map(|from| from.to_string()),
                state: DeviceState::Asked,
                created_at: Timestamp::now(),
                expires_at: after(LASTS),
                polled_at: None,
            };
            // Of so many codes one is hardly ever taken.
            if self.store.add_device(&self.house, &device).await? {
                let (expires_in, interval) = (LASTS.as_secs(), INTERVAL);
                return Ok(GivenDeviceCode { device_code, user_code: shown(&user_code), expires_in, interval });
            }
        }
    }

    /// The program that shows this code. Whoever types codes that nobody shows is soon told to wait.
    pub async fn device_asking(
        &self,
        sign_in: &SignInRecord,
        typed: &str,
        from: Option<IpAddr>,
    ) -> Result<DeviceView, ToolError> {
        let device = self.typed_device(sign_in, typed, from).await?;
        Ok(DeviceView {
            user_code: shown(&plain(typed)),
            client: device.client,
            scopes: device.scopes.split(',').filter_map(KeyScope::parse).collect(),
            asked_from: device.asked_from,
            since: device.created_at,
        })
    }

    async fn typed_device(
        &self,
        sign_in: &SignInRecord,
        typed: &str,
        from: Option<IpAddr>,
    ) -> Result<DeviceRecord, ToolError> {
        let mut tried = vec![Tried::DeviceCode(sign_in.person.clone())];
        tried.extend(from.map(Tried::from));
        self.attempts.take(&tried)?;
        let found = self.store.device_asking(&self.house, &self.user_code_hash(&plain(typed))).await?;
        let found = found.ok_or_else(|| not_found("device with this code; check it, or begin again on the device"))?;
        self.attempts.give_back(&tried);
        Ok(found)
    }

    /// Somebody lets the program in that shows this code, in one of their tenants and there in a workspace.
    pub async fn allow_device(
        &self,
        sign_in: &SignInRecord,
        (typed, from): (&str, Option<IpAddr>),
        place: (&str, Option<&str>),
        (client, scopes): (&OAuthClient, &[KeyScope]),
    ) -> Result<(), ToolError> {
        let device = self.typed_device(sign_in, typed, from).await?;
        let scope = self.consent_scope(sign_in, place).await?;
        let consent = new_consent(sign_in, client, scopes, &device.resource)?;
        let code = NewOAuthToken {
            id: device.id.clone(),
            kind: OAuthTokenKind::Device,
            redirect_uri: None,
            challenge: None,
            expires_at: device.expires_at,
        };
        answered(self.store.allow_device(&scope, &device.id, &consent, &code).await?)
    }

    /// Somebody refuses the program that shows this code.
    pub async fn deny_device(
        &self,
        sign_in: &SignInRecord,
        (typed, from): (&str, Option<IpAddr>),
    ) -> Result<(), ToolError> {
        let device = self.typed_device(sign_in, typed, from).await?;
        answered(self.store.deny_device(&self.house, &device.id).await?)
    }

    /// Tokens for the code of a device, once somebody has said yes.
    pub async fn exchange_device_code(&self, code: &str, client_id: &str) -> Result<GivenTokens, OAuthError> {
        let device = self.store.device(&self.house, &random::hash(code)).await?;
        let device = device.filter(|device| device.client == client_id).ok_or_else(invalid_grant)?;
        if device.state == DeviceState::Denied {
            return Err(OAuthError::new("access_denied", "the person said no"));
        }
        if device.expires_at <= Timestamp::now() {
            return Err(OAuthError::new("expired_token", "nobody said yes within ten minutes; begin again"));
        }
        if device.state == DeviceState::Allowed {
            let token = self.token(code, OAuthTokenKind::Device).await?;
            return self.renew(code, &token).await;
        }
        self.store.note_device_poll(&self.house, &device.id).await?;
        let soonest = device.polled_at.and_then(|last| last.checked_add(TOO_SOON).ok());
        Err(match soonest.is_some_and(|soonest| Timestamp::now() < soonest) {
            true => OAuthError::new("slow_down", format!("ask every {INTERVAL} seconds, and from now on less often")),
            false => OAuthError::new("authorization_pending", "nobody has said yes yet"),
        })
    }

    /// What a code is kept as that people type. It is short enough to be guessed, so that a hash alone would not hide it.
    fn user_code_hash(&self, code: &str) -> String {
        random::hex(&self.key.derived("device code", code.as_bytes()))
    }
}

fn answered(is_answered: bool) -> Result<(), ToolError> {
    match is_answered {
        true => Ok(()),
        false => Err(ToolError::new(ErrorCode::Conflict, "somebody has just answered this")),
    }
}

/// Each letter is as likely as the others.
fn random_user_code() -> Result<String, ToolError> {
    let mut code = String::new();
    while code.len() < CODE_LENGTH {
        let bytes: [u8; 32] = random::bytes()?;
        let fair = bytes.iter().filter(|byte| **byte < 240).map(|byte| char::from(LETTERS[usize::from(*byte) % 20]));
        code.extend(fair.take(CODE_LENGTH - code.len()));
    }
    Ok(code)
}

/// A code as people type it, without what does not matter.
fn plain(typed: &str) -> String {
    let letters = typed.bytes().map(|byte| byte.to_ascii_uppercase()).filter(|byte| LETTERS.contains(byte));
    letters.take(CODE_LENGTH + 1).map(char::from).collect()
}

/// A code as people read it.
fn shown(code: &str) -> String {
    match code.split_at_checked(CODE_LENGTH / 2) {
        Some((first, second)) => format!("{first}-{second}"),
        None => code.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn a_code_is_read_as_people_write_it() {
        let code = random_user_code().unwrap();
        let read = shown(&code);
        assert_eq!((code.len(), read.len(), &read[4..5]), (8, 9, "-"));
        for typed in [read.to_lowercase(), code.clone(), format!(" {} {} ", &code[..4], &code[4..])] {
            assert_eq!(plain(&typed), code, "{typed}");
        }
        assert_eq!((plain("ÄBC1O"), plain(&"B".repeat(100)).len()), ("BC".to_owned(), 9));
    }
}
