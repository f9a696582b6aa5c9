//! Receipts: what a yes was about, signed so that others can check it without haft.

use base64::{Engine, engine::general_purpose::STANDARD};
use haft_runtime::{
    About, Answer, Answered, ApprovedBy, CallEvent, CallId, CallRecord, CallerRef, Effect, ErrorCode, Journal,
    Question, Questions, Source, ToolError,
};
use jiff::Timestamp;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    MasterKey, Platform, digest_of,
    platform::{mistake, not_found},
    random,
};

/// What kind of document it is, and which version of it.
const FORMAT: &str = "haft-receipt-1";
const PURPOSE: &str = "receipts";

/// What a yes was about. Digests are SHA-256 of canonical JSON: keys in order, no spaces.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Always `haft-receipt-1`.
    pub format: String,
    /// The tenant.
    pub tenant: String,
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Who asked for the call.
    pub caller: CallerRef,
    /// Who said yes; empty where a rule, a grant or the mode did.
    pub answered_by: Vec<ReceiptAnswer>,
    /// What said yes: `user`, `auto` or `config`.
    pub how: ApprovedBy,
    /// The rule or the grant, where one said yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The digest of the exact input.
    pub input_digest: String,
    /// How far the call reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// The digest of what the call would do, or did where nobody was asked.
    pub effect_digest: String,
    /// The digest of all that the question showed, where somebody was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question_digest: Option<String>,
    /// The version of the tenant's policy that held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<i64>,
    /// The version of the tenant's approval rules that held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules_version: Option<i64>,
    /// When the yes counted.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// The id of the key that signed this.
    pub key_id: String,
    /// The Ed25519 signature of the canonical JSON of all the rest, in base64.
    pub signature: String,
}

/// The yes of one person.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptAnswer {
    /// Who.
    #[serde(flatten)]
    pub by: CallerRef,
    /// Through which door.
    pub source: Source,
    /// When.
    #[schemars(with = "String")]
    pub at: Timestamp,
}

/// What others check receipts by.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptKey {
    /// Always `Ed25519`.
    pub algorithm: String,
    /// What receipts name it by.
    pub key_id: String,
    /// The public key, in base64.
    pub public_key: String,
}

impl ReceiptKey {
    /// The one that belongs to a master key.
    pub fn of(key: &MasterKey) -> Result<Self, ToolError> {
        Ok(Self::from_bytes(pair(key)?.public_key().as_ref()))
    }

    /// From base64, as it is published.
    pub fn read(text: &str) -> Result<Self, ToolError> {
        let bytes = STANDARD.decode(text.trim()).ok().filter(|bytes| bytes.len() == 32);
        bytes.map(|bytes| Self::from_bytes(&bytes)).ok_or_else(|| mistake("the key is no Ed25519 public key in base64"))
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let mut key_id = random::hash(&STANDARD.encode(bytes));
        key_id.truncate(16);
        Self { algorithm: "Ed25519".to_owned(), key_id, public_key: STANDARD.encode(bytes) }
    }

    /// Checks a receipt as it was written down, and gives it back. Any other byte fails.
    pub fn check(&self, text: &str) -> Result<Value, ToolError> {
        let wrong = |why: &str| ToolError::new(ErrorCode::Conflict, format!("the receipt does not hold: {why}"));
        let whole: Value = serde_json::from_str(text).map_err(|err| wrong(&format!("it is no JSON ({err})")))?;
        // A second field of the same name, or anything else that a reader could take for more than was signed.
        let is_plain = [serde_json::to_string(&whole), serde_json::to_string_pretty(&whole)];
        if !is_plain.iter().flatten().any(|plain| plain == text.trim_end_matches('\n')) {
            return Err(wrong("it is not written as haft writes it"));
        }
        let Value::Object(mut fields) = whole.clone() else { return Err(wrong("it is no object")) };
        let signature = fields.shift_remove("signature");
        let signature = signature.as_ref().and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
        let signature = signature.ok_or_else(|| wrong("it has no signature"))?;
        if fields.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err(wrong("it is no receipt of haft"));
        }
        if fields.get("keyId").and_then(Value::as_str) != Some(&self.key_id) {
            return Err(wrong("another key signed it"));
        }
        let key = STANDARD.decode(&self.public_key).map_err(|_| wrong("the key is none"))?;
        let signed = canonical(&Value::Object(fields));
        let holds = UnparsedPublicKey::new(&ED25519, key).verify(signed.as_bytes(), &signature);
        holds.map(|()| whole).map_err(|_| wrong("it was changed after it was signed"))
    }
}

fn pair(key: &MasterKey) -> Result<Ed25519KeyPair, ToolError> {
    let seed = key.derived(PURPOSE, b"");
    let broken = |_| ToolError::new(ErrorCode::Internal, "no key for receipts can be made");
    Ed25519KeyPair::from_seed_unchecked(&seed).map_err(broken)
}

/// JSON as everybody writes it alike: keys in order, no spaces.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let field = |(name, value): (&String, &Value)| format!("{}:{}", json!(name), canonical(value));
            format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn digest(value: &Value) -> String {
    random::hash(&canonical(value))
}

impl Platform {
    /// The key that receipts of this installation are checked by.
    pub fn receipt_key(&self) -> Result<ReceiptKey, ToolError> {
        ReceiptKey::of(&self.key)
    }

    /// The receipt of a call that was allowed. It is made from the journal each time, and kept nowhere else.
    pub async fn receipt(&self, record: &CallRecord) -> Result<Receipt, ToolError> {
        let (scope, call) = (&record.scope, &record.call);
        let events = self.store.events(scope, call).await?;
        let yes = events.into_iter().find_map(|(_, at, event)| match event {
            CallEvent::Approved { approved_by, by, under, .. } => Some((at, approved_by, by, under)),
            _ => None,
        });
        let (at, how, by, under) = yes.ok_or_else(|| not_found(&format!("yes to {call}: it was not allowed")))?;
        let found = Questions::find(&self.store, scope, call).await?;
        let asked = found.filter(|(question, _)| matches!(question.about, About::Approval(_)));
        let (question, answered) = asked.map_or((None, None), |(question, answered)| (Some(question), answered));
        let agreements = match &question {
            Some(question) => self.store.agreements(scope, &question.id()).await?,
            None => Vec::new(),
        };
        let mut answered_by: Vec<ReceiptAnswer> = agreements
            .iter()
            .map(|agreed| ReceiptAnswer { by: agreed.given_by.clone(), source: agreed.source, at: agreed.at })
            .collect();
        if answered_by.is_empty()
            && let Some(Answered { answer, by, source, at }) = answered
            && is_yes(&answer)
        {
            answered_by.push(ReceiptAnswer { by, source, at });
        }
        if answered_by.is_empty() && how == ApprovedBy::User {
            answered_by.push(self.unasked_yes(record).await?);
        }
        let rules_version = agreements.iter().map(|agreed| agreed.rules_version).max();
        let mut receipt = Receipt {
            format: FORMAT.to_owned(),
            tenant: scope.tenant().to_string(),
            call_id: call.to_string(),
            tool: record.opening.tool.clone(),
            caller: record.opening.caller.who.clone(),
            answered_by,
            how,
            rule: by.filter(|_| how != ApprovedBy::User),
            input_digest: digest(question.as_ref().map_or(&record.opening.input, |question| &question.input)),
            effect: question.as_ref().map(|question| question.effect),
            effect_digest: digest(&effect_of(record, question.as_ref())),
            question_digest: question.as_ref().map(digest_of),
            policy_version: under.map(|under| under.policy),
            rules_version: rules_version.or(under.map(|under| under.approval_rules)),
            at,
            key_id: self.receipt_key()?.key_id,
            signature: String::new(),
        };
        receipt.signature = self.sign(&receipt)?;
        Ok(receipt)
    }

    /// The yes of somebody who was not asked: whoever edited the input of the call before this one, or filled in their own form.
    async fn unasked_yes(&self, record: &CallRecord) -> Result<ReceiptAnswer, ToolError> {
        let opening = &record.opening;
        if let (Some(parent), Source::Edit) = (&opening.parent, opening.caller.source)
            && let Some((_, Some(Answered { by, source, at, .. }))) =
                Questions::find(&self.store, &record.scope, parent).await?
        {
            return Ok(ReceiptAnswer { by, source, at });
        }
        Ok(ReceiptAnswer { by: opening.caller.who.clone(), source: opening.caller.source, at: opening.at })
    }

    fn sign(&self, receipt: &Receipt) -> Result<String, ToolError> {
        let mut fields: Map<String, Value> = json!(receipt).as_object().cloned().unwrap_or_default();
        fields.shift_remove("signature");
        let signed = canonical(&Value::Object(fields));
        Ok(STANDARD.encode(pair(&self.key)?.sign(signed.as_bytes())))
    }

    /// The record of a call of any tenant, for whoever works for all of them.
    pub async fn record_of(&self, call: &CallId) -> Result<Option<CallRecord>, ToolError> {
        match self.store.scope_of_call(&self.house, call).await? {
            Some(scope) => Journal::find(&self.store, &scope, call).await,
            None => Ok(None),
        }
    }
}

fn is_yes(answer: &Answer) -> bool {
    matches!(answer, Answer::Approve { .. } | Answer::Edit { .. } | Answer::Always { .. })
}

/// What the call would do, as it was shown; or what it did, where nobody was asked.
fn effect_of(record: &CallRecord, question: Option<&Question>) -> Value {
    match question {
        Some(question) => json!({"effect": question.effect, "evidence": question.about}),
        None => json!({"changes": record.outcome.as_ref().and_then(|outcome| outcome.changes.as_ref())}),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    fn signed(fields: Value) -> (ReceiptKey, String) {
        let key = MasterKey::new(&[7; 32]);
        let public = ReceiptKey::of(&key).unwrap();
        let mut fields = fields;
        fields["keyId"] = json!(public.key_id);
        let signature = pair(&key).unwrap().sign(canonical(&fields).as_bytes());
        fields["signature"] = json!(STANDARD.encode(signature));
        (public, fields.to_string())
    }

    #[test]
    fn any_other_byte_fails() {
        let (key, text) =
            signed(json!({"format": FORMAT, "tool": "deploy", "count": 12, "ünï": [1, {"b": 2, "a": null}]}));
        assert_eq!(key.check(&text).unwrap()["tool"], "deploy");
        key.check(&format!("{text}\n")).unwrap();
        let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(&text).unwrap()).unwrap();
        key.check(&pretty).unwrap();
        for place in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[place] ^= 1;
            if let Ok(other) = String::from_utf8(bytes) {
                key.check(&other).map(|_| ()).expect_err(&other);
            }
        }
    }

    #[test]
    fn nothing_is_taken_for_signed_that_is_not() {
        let (key, text) = signed(json!({"format": FORMAT, "tool": "deploy"}));
        let twice = text.replacen('{', "{\"tool\":\"read\",", 1);
        let more = text.replacen('{', "{\"more\":1,", 1);
        let other = ReceiptKey::of(&MasterKey::new(&[8; 32])).unwrap();
        for wrong in [twice.as_str(), &more, "{}", "[]", "", &text.replace("\"signature\":\"", "\"signature\":\"A")] {
            key.check(wrong).map(|_| ()).expect_err(wrong);
        }
        other.check(&text).unwrap_err();
        assert_eq!(ReceiptKey::read(&key.public_key).unwrap().key_id, key.key_id);
        ReceiptKey::read("AAAA").unwrap_err();
    }

    #[test]
    fn json_is_written_alike_whatever_the_order() {
        assert_eq!(
            canonical(&json!({"b": [1, "x"], "a": {"d": null, "c": true}})),
            r#"{"a":{"c":true,"d":null},"b":[1,"x"]}"#
        );
    }
}
