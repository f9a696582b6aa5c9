//! ID tokens: who somebody is, signed by a provider. Only signatures by a public key count.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;
use subtle::ConstantTimeEq;

/// The longest token.
const LONGEST: usize = 32 << 10;
/// How many keys of a provider are looked at.
const MOST_KEYS: usize = 50;
/// How far two clocks may differ, in seconds.
const LEEWAY: i64 = 60;

/// What a token says of somebody.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct IdClaims {
    /// What the account is called, for ever.
    pub(super) sub: String,
    #[serde(default)]
    pub(super) email: Option<String>,
    #[serde(default, deserialize_with = "truth")]
    pub(super) email_verified: bool,
    #[serde(default)]
    pub(super) name: Option<String>,
}

/// What a token says of itself.
#[derive(Deserialize)]
struct TokenClaims {
    iss: String,
    aud: Value,
    azp: Option<String>,
    exp: f64,
    iat: f64,
    nbf: Option<f64>,
    nonce: Option<String>,
}

/// The first part of a token.
#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

/// Whom a token must be from and for.
pub(super) struct ExpectedToken<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
}

/// Why a token does not count.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TokenFault {
    /// It is signed by a key that is not known, or not yet.
    UnknownKey,
    /// Something is wrong with it.
    Wrong(&'static str),
}

/// A key by which a provider signs, with the one algorithm that it is used for.
pub(super) struct SigningKey {
    kid: Option<String>,
    bytes: KeyBytes,
}

enum KeyBytes {
    /// For RS256: modulus and exponent.
    Rsa(Vec<u8>, Vec<u8>),
    /// For ES256: a point of P-256.
    P256(Vec<u8>),
}

/// A key as providers publish it.
#[derive(Deserialize)]
struct PublishedKey {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    used_for: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl SigningKey {
    /// The keys of a provider that can be used; of others nothing is said. `None` where it is no list of keys.
    pub(super) fn read_all(text: &[u8]) -> Option<Vec<Self>> {
        let list: Value = serde_json::from_slice(text).ok()?;
        Some(list.get("keys")?.as_array()?.iter().take(MOST_KEYS).filter_map(Self::read).collect())
    }

    fn read(value: &Value) -> Option<Self> {
        let key = PublishedKey::deserialize(value).ok()?;
        if key.used_for.as_deref().is_some_and(|used_for| used_for != "sig") {
            return None;
        }
        let part = |part: &Option<String>| URL_SAFE_NO_PAD.decode(part.as_deref()?).ok();
        let bytes = match (key.kty.as_str(), key.crv.as_deref()) {
            ("RSA", _) => KeyBytes::Rsa(part(&key.n)?, part(&key.e)?),
            ("EC", Some("P-256")) => KeyBytes::P256([vec![4], part(&key.x)?, part(&key.y)?].concat()),
            _ => return None,
        };
        let key_of = Self { kid: key.kid, bytes };
        key.alg.is_none_or(|alg| alg == key_of.algorithm()).then_some(key_of)
    }

    fn algorithm(&self) -> &'static str {
        match self.bytes {
            KeyBytes::Rsa(..) => "RS256",
            KeyBytes::P256(_) => "ES256",
        }
    }

    fn has_signed(&self, message: &[u8], given: &[u8]) -> bool {
        match &self.bytes {
            KeyBytes::Rsa(n, e) => {
                RsaPublicKeyComponents { n, e }.verify(&signature::RSA_PKCS1_2048_8192_SHA256, message, given)
            }
            KeyBytes::P256(point) => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point).verify(message, given)
            }
        }
        .is_ok()
    }
}

/// Who a token says that somebody is, if it is signed by one of these keys and meant for this sign-in.
pub(super) fn verified(token: &str, keys: &[SigningKey], expected: &ExpectedToken<'_>) -> Result<IdClaims, TokenFault> {
    let wrong = TokenFault::Wrong;
    if token.len() > LONGEST {
        return Err(wrong("it is too long"));
    }
    let mut parts = token.split('.');
    let (Some(head), Some(body), Some(signed), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err(wrong("it has not three parts"));
    };
    let header: TokenHeader = part(head)?;
    if header.crit.is_some() {
        return Err(wrong("it asks for more than is understood here"));
    }
    if !matches!(header.alg.as_str(), "RS256" | "ES256") {
        return Err(wrong("it is signed neither by RS256 nor by ES256"));
    }
    let given = URL_SAFE_NO_PAD.decode(signed).map_err(|_| wrong("its signature cannot be read"))?;
    // The key says by which algorithm it is used, the token only which key: so a public key is never taken for a secret.
    let is_meant = |key: &&SigningKey| {
        key.algorithm() == header.alg && (header.kid.is_none() || key.kid.is_none() || key.kid == header.kid)
    };
    let meant: Vec<&SigningKey> = keys.iter().filter(is_meant).collect();
    if meant.is_empty() {
        return Err(TokenFault::UnknownKey);
    }
    let message = format!("{head}.{body}");
    if !meant.iter().any(|key| key.has_signed(message.as_bytes(), &given)) {
        // Where keys have no names, another one may be meant.
        let is_named = meant.iter().any(|key| key.kid.is_some() && key.kid == header.kid);
        return Err(if is_named { wrong("its signature is wrong") } else { TokenFault::UnknownKey });
    }
    check(&part(body)?, expected)?;
    let claims: IdClaims = part(body)?;
    match claims.sub.len() {
        1..=255 => Ok(claims),
        _ => Err(wrong("its subject is empty or too long")),
    }
}

fn check(claims: &TokenClaims, expected: &ExpectedToken<'_>) -> Result<(), TokenFault> {
    let now = Timestamp::now().as_second();
    let (later, earlier) = ((now + LEEWAY) as f64, (now - LEEWAY) as f64);
    let names_us = |audience: &Value| audience.as_str() == Some(expected.client_id);
    let others = claims.aud.as_array().map_or(0, |all| all.iter().filter(|audience| !names_us(audience)).count());
    let is_for_us = names_us(&claims.aud) || claims.aud.as_array().is_some_and(|all| all.iter().any(names_us));
    let party = claims.azp.as_deref();
    let is_nonce = |nonce: &str| bool::from(nonce.as_bytes().ct_eq(expected.nonce.as_bytes()));
    let faults = [
        (claims.iss != expected.issuer, "it is from another issuer"),
        (!is_for_us, "it is meant for somebody else"),
        (party.map_or(others > 0, |party| party != expected.client_id), "it was given to somebody else"),
        (claims.exp <= earlier, "its time is over"),
        (claims.iat > later, "it is from the future"),
        (claims.nbf.is_some_and(|begins| begins > later), "it does not count yet"),
        (!claims.nonce.as_deref().is_some_and(is_nonce), "it belongs to another sign-in"),
    ];
    match faults.into_iter().find(|(is_wrong, _)| *is_wrong) {
        Some((_, what)) => Err(TokenFault::Wrong(what)),
        None => Ok(()),
    }
}

fn part<T: DeserializeOwned>(part: &str) -> Result<T, TokenFault> {
    let unreadable = TokenFault::Wrong("it cannot be read");
    let Ok(bytes) = URL_SAFE_NO_PAD.decode(part) else { return Err(unreadable) };
    serde_json::from_slice(&bytes).map_err(|_| unreadable)
}

/// `true`, also as some providers write it: as a text.
fn truth<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    let value = Value::deserialize(from)?;
    Ok(value == Value::Bool(true) || value.as_str() == Some("true"))
}
