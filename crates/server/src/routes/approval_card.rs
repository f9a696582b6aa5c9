//! A question as it is shown: what is asked, why, by whom, and what was answered.

use haft_platform::{alike_of, digest_of};
use haft_runtime::{
    About, Answer, Answered, AwaitedResult, CallId, CallerRef, ChangeList, Described, Effect, Evidence, Form,
    Isolation, QuestionAndAnswer, Redactor, Source, Structured, ToolOutput, Turn, WorkspaceId,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::route::JsonOf;

/// About how many bytes of an input a card shows; `inputCut` says what is missing then.
const LONG_INPUT: usize = 64 << 10;

/// A question as it is shown.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApprovalCard<'a> {
    /// What it is answered by.
    id: &'a CallId,
    call_id: &'a CallId,
    /// `approval`, `form` or `result`.
    kind: &'static str,
    /// Which of the call's questions.
    number: u32,
    tool: &'a str,
    /// A long one is shown in brief.
    #[schemars(with = "Value")]
    input: Structured,
    /// What was left out of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_cut: Option<Value>,
    effect: Effect,
    /// Why it is asked.
    reason: &'a str,
    asked_by: &'a CallerRef,
    workspace: Option<&'a WorkspaceId>,
    asked_at: Timestamp,
    expires_at: Timestamp,
    /// When it was passed on to others, because nobody had answered in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    escalated_at: Option<Timestamp>,
    /// Which bound of which grant nearly matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    nearly: Option<&'a str>,
    #[serde(flatten)]
    about: CardAbout<'a>,
    #[serde(flatten)]
    decided: Option<Decided>,
    /// What a yes is bound to.
    digest: String,
    /// What questions that are alike have in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    alike: Option<String>,
}

/// The same without its secrets.
pub(super) type ShownCard = JsonOf<ApprovalCard<'static>>;

/// What is known of what is asked.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum CardAbout<'a> {
    /// It is done but for the commit.
    Staged {
        changes: &'a ChangeList,
        output: &'a ToolOutput,
        /// What a yes does with the changes.
        #[schemars(with = "Value")]
        turn: &'a Turn,
        isolation: Option<Isolation>,
    },
    /// It can only be described.
    Described { description: &'a Described },
    /// A form to fill in.
    Form { message: &'a str, form: &'a Form },
    /// A result from outside.
    Result {
        message: &'a str,
        schema: &'a Value,
        /// All that is known of what is waited for.
        #[schemars(with = "Value")]
        awaited: &'a AwaitedResult,
    },
}

/// What was answered, by whom and when.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Decided {
    answer: String,
    by: CallerRef,
    at: Timestamp,
    /// Through which door.
    source: Source,
    /// The answer with all that belongs to it.
    #[schemars(with = "Value")]
    given: Answer,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The card of a question.
pub(super) fn card(redactor: &Redactor, (question, answered): &QuestionAndAnswer) -> ShownCard {
    let about = match &question.about {
        About::Approval(Evidence::Staged { output, changes, turn, isolation }) => {
            CardAbout::Staged { changes, output, turn, isolation: *isolation }
        }
        About::Approval(Evidence::Plain(description)) => CardAbout::Described { description },
        About::Form(form) => CardAbout::Form { message: &form.message, form },
        About::Result(awaited) => CardAbout::Result { message: &awaited.message, schema: &awaited.schema, awaited },
    };
    let input = Structured::from(question.input.clone());
    let brief = input.brief(LONG_INPUT);
    let (input, input_cut) = brief.map_or((input, None), |(brief, cuts)| (brief, Some(cuts)));
    let card = ApprovalCard {
        id: &question.call,
        call_id: &question.call,
        kind: question.kind(),
        number: question.number,
        tool: &question.tool,
        input,
        input_cut,
        effect: question.effect,
        reason: &question.reason,
        asked_by: &question.asked_by,
        workspace: question.workspace.as_ref(),
        asked_at: question.asked_at,
        expires_at: question.expires_at,
        escalated_at: question.escalated_at,
        nearly: question.nearly.as_deref(),
        about,
        decided: answered.as_ref().map(decided),
        digest: digest_of(question),
        alike: alike_of(question),
    };
    let mut shown = redactor.value(&json!(card));
    // No secret is in them, and a yes is bound to them.
    for (name, bound) in [("digest", Some(card.digest)), ("alike", card.alike)] {
        if let Some(bound) = bound {
            shown[name] = json!(bound);
        }
    }
    JsonOf::new(shown)
}

/// What others are told of an answer.
pub(super) fn decided(answered: &Answered) -> Decided {
    let word = json!(answered.answer)["kind"].as_str().unwrap_or_default().to_owned();
    let message = if let Answer::Reject { message } = &answered.answer { message.clone() } else { None };
    let (by, source, given) = (answered.by.clone(), answered.source, answered.answer.clone());
    Decided { answer: word, by, at: answered.at, source, given, message }
}
