//! A token that ends exactly one waiting call. It is computed when it is told, and stored nowhere.

use haft_runtime::{CallId, Caller, CallerId, CallerKind, Permissions, Scope, Source, ToolError, Via};

use crate::{CallerIdentity, Platform, random};

const PREFIX: &str = "hafts_";
const PURPOSE: &str = "submit";

/// Tokens that end one call.
pub struct SubmitToken;

impl SubmitToken {
    /// The token of a call.
    pub fn of(platform: &Platform, scope: &Scope, call: &CallId) -> String {
        let mac = random::hex(&platform.key.derived(PURPOSE, &signed(scope, call)));
        let tenant = random::hex(scope.tenant().as_str().as_bytes());
        format!("{PREFIX}{tenant}_{}_{mac}", call.as_str().trim_start_matches("tc_"))
    }

    /// Who holds such a token, where a text is one. They may do nothing but end its call.
    pub(crate) async fn read(platform: &Platform, text: &str) -> Result<Option<CallerIdentity>, ToolError> {
        let Some(parts) = text.strip_prefix(PREFIX) else { return Ok(None) };
        let mut parts = parts.split('_');
        let (Some(tenant), Some(call), Some(mac), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Ok(None);
        };
        let Some(call) = CallId::parse(&format!("tc_{call}")) else { return Ok(None) };
        let Some(tenant) = unhex(tenant) else { return Ok(None) };
        let Some(tenant) = platform.store.tenant_by_id(&platform.house, &tenant).await? else { return Ok(None) };
        if !platform.key.is_derived(PURPOSE, &signed(&tenant.scope, &call), mac) {
            return Ok(None);
        }
        let caller = Caller {
            id: CallerId { kind: CallerKind::Token, id: call.to_string() },
            name: "a submit token".to_owned(),
            scope: tenant.scope,
            permissions: Permissions::none(),
            source: Source::Api,
            via: Via::default(),
        };
        let tenant = tenant.slug;
        Ok(Some(CallerIdentity { caller, tenant, sign_in: None, consent: None, key_secret: None, until: None }))
    }
}

fn signed(scope: &Scope, call: &CallId) -> Vec<u8> {
    format!("{}\0{call}", scope.tenant()).into_bytes()
}

fn unhex(text: &str) -> Option<String> {
    let digits = text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    String::from_utf8(digits.collect::<Option<Vec<u8>>>()?).ok()
}
