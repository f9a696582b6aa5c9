//! What somebody sees who was sent a link to a question: the card, the page that confirms, and what became of it.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use haft_platform::{LinkHolder, plain_line, plain_lines};
use haft_runtime::{
    About, Answer, Answered, CallerKind, Change, ChangeKind, Effect, End, Evidence, Question, Redactor, Source,
};
use jiff::Timestamp;

use super::{
    approvals::AnswerReply,
    page::{escaped, page},
};

/// The most that one page shows of what a call would do. A yes to more is given where all of it can be seen.
const MOST_SHOWN: usize = 300_000;
/// The longest name or reason.
const LONGEST_LINE: usize = 500;

/// A question as somebody sees it by a link.
pub(super) struct LinkCard<'a> {
    pub(super) token: &'a str,
    pub(super) holder: &'a LinkHolder,
    /// Whether they are signed in, too.
    pub(super) signed_in: bool,
    /// Whether they have to before a yes of theirs counts.
    pub(super) needs_sign_in: bool,
    pub(super) question: &'a Question,
    /// What the workspace is called that it is about.
    pub(super) workspace: Option<String>,
    pub(super) redactor: &'a Redactor,
}

impl LinkCard<'_> {
    /// Whether a yes can be said here: to an approval that is shown whole, by somebody who is known well enough.
    pub(super) fn may_say_yes(&self) -> bool {
        self.question.evidence().is_some() && !self.needs_sign_in && self.work().1
    }

    /// The first page: what is asked, and two buttons.
    pub(super) fn card(&self) -> Response {
        let (work, is_whole) = self.work();
        answer_page(
            StatusCode::OK,
            &format!(
                "{}{}<section>{work}{}</section>{}",
                self.heading(),
                self.facts(),
                self.input(),
                self.buttons(is_whole)
            ),
        )
    }

    fn heading(&self) -> String {
        let wants = match &self.question.about {
            About::Approval(_) => "needs a yes or a no",
            About::Form(_) => "needs to know something",
            About::Result(_) => "waits for a result",
        };
        format!(
            "<header><h1>{} {wants}</h1><p class=\"who\">haft · {}</p></header>",
            self.line(&self.question.tool),
            self.line(&self.holder.tenant.name)
        )
    }

    fn facts(&self) -> String {
        let question = self.question;
        let by = match question.asked_by.id.kind {
            CallerKind::Key => format!("the key {}", self.line(&question.asked_by.name)),
            CallerKind::Agent => format!("the agent {}", self.line(&question.asked_by.name)),
            CallerKind::Person | CallerKind::Owner | CallerKind::Token | CallerKind::House => {
                self.line(&question.asked_by.name)
            }
        };
        let fact = |name: &str, value: &str| format!("<dt>{name}</dt><dd>{value}</dd>");
        let mut facts = fact("asked by", &by) + &fact("why", &self.line(&question.reason));
        if let Some(nearly) = &question.nearly {
            facts += &fact("nearly allowed", &self.line(nearly));
        }
        facts += &fact("effect", effect(question.effect));
        if let Some(place) = &self.workspace {
            facts += &fact("workspace", &self.line(place));
        }
        facts += &fact("asked", &moment(question.asked_at));
        if let Some(at) = question.escalated_at {
            facts += &fact("passed on", &format!("{}: nobody had answered in time", moment(at)));
        }
        facts += &fact("open until", &moment(question.expires_at));
        format!("<dl class=\"facts\">{facts}</dl>")
    }

    /// What the call would do, and whether that is all of it.
    fn work(&self) -> (String, bool) {
        match &self.question.about {
            About::Form(form) => (format!("<h2>It asks</h2><p>{}</p>", self.line(&form.message)), true),
            About::Result(awaited) => (format!("<h2>It waits for</h2><p>{}</p>", self.line(&awaited.message)), true),
            About::Approval(Evidence::Plain(described)) => {
                let preview = described.preview.as_deref().unwrap_or("It cannot be shown before it runs.");
                let is_whole = preview.len() <= MOST_SHOWN;
                (format!("<h2>What it would do</h2><pre>{}</pre>", self.lines(preview)), is_whole)
            }
            About::Approval(Evidence::Staged { changes, .. }) => {
                let told = changes.told();
                if told.is_empty() {
                    let words = "It changed no files. A yes gives its output to the caller.";
                    return (format!("<h2>What it did</h2><p>{words}</p>"), true);
                }
                let size: usize = told.iter().map(|change| text_of(change).len() + change.path.len()).sum();
                if size > MOST_SHOWN {
                    return (format!("<h2>What it would change</h2><p>{} paths</p>", told.len()), false);
                }
                let items: String = told.iter().map(|change| self.change(change)).collect();
                (format!("<h2>What it would change</h2><ol class=\"changes\">{items}</ol>"), true)
            }
        }
    }

    fn change(&self, change: &Change) -> String {
        let kind = match change.kind {
            ChangeKind::Created if change.directory => "new folder",
            ChangeKind::Created => "new",
            ChangeKind::Changed => "changed",
            ChangeKind::Deleted => "deleted",
            ChangeKind::Mode => "permissions",
            ChangeKind::Link => "link",
            ChangeKind::Renamed => "moved",
        };
        let name = match (&change.summary, &change.from) {
            (Some(summary), _) => self.line(summary),
            (None, Some(from)) => format!("{} → {}", self.line(from), self.line(&change.path)),
            (None, None) => self.line(&change.path),
        };
        let flags: String =
            change.flags.iter().map(|flag| format!("<p class=\"flag\">It {}.</p>", flag.words())).collect();
        let size = match (change.binary, change.added + change.removed) {
            (true, _) => format!("{} bytes, no text", change.size),
            (false, 0) => String::new(),
            (false, _) => format!("+{} −{}", change.added, change.removed),
        };
        let diff = match text_of(change) {
            "" => String::new(),
            diff => format!("<pre class=\"diff\">{}</pre>", self.diff(diff)),
        };
        format!(
            "<li><p><span class=\"kind\">{kind}</span> <code>{name}</code> <span class=\"size\">{size}</span></p>{flags}{diff}</li>"
        )
    }

    /// A diff line by line. Before its first place it only names the file, which stands above it.
    fn diff(&self, diff: &str) -> String {
        let line = |line: &str| {
            let kind = match line.as_bytes().first() {
                Some(b'+') => "added",
                Some(b'-') => "removed",
                Some(b'@') => "place",
                Some(_) | None => "same",
            };
            format!("<span class=\"{kind}\">{}</span>", escaped(&plain_lines(line, MOST_SHOWN)))
        };
        let names_file = |line: &&str| line.starts_with("--- ") || line.starts_with("+++ ");
        self.redactor.text(diff).lines().skip_while(names_file).map(line).collect()
    }

    /// The exact input; closed where the changes say it all.
    fn input(&self) -> String {
        let shown = self.redactor.value(&self.question.input);
        let text = serde_json::to_string_pretty(&shown).unwrap_or_default();
        if text.len() > MOST_SHOWN {
            return String::new();
        }
        let open = if matches!(self.question.evidence(), Some(Evidence::Plain(_))) { " open" } else { "" };
        format!("<details{open}><summary>Input</summary><pre>{}</pre></details>", self.lines(&text))
    }

    fn buttons(&self, is_whole: bool) -> String {
        let (token, call, slug) = (escaped(self.token), &self.question.call, escaped(&self.holder.tenant.slug));
        let haft = format!("<a href=\"/?tenant={slug}#{call}\">Open in haft</a>");
        let danger = if self.question.effect == Effect::Destroy { " class=\"danger\"" } else { "" };
        let yes = match (self.may_say_yes(), is_whole, self.question.evidence().is_some()) {
            (true, _, _) => format!("<button name=\"answer\" value=\"yes\"{danger}>Yes…</button>"),
            (false, true, true) => format!(
                "<p class=\"note\">A yes to this counts only from somebody who is signed in. \
                 <a href=\"/sign-in?to=%2Fa%2F{token}\">Sign in to say yes</a></p>"
            ),
            (false, false, true) => {
                "<p class=\"note\">It is too long to be shown here. Say yes in haft.</p>".to_owned()
            }
            (false, _, false) => "<p class=\"note\">It is filled in in haft.</p>".to_owned(),
        };
        format!(
            "<form method=\"post\" action=\"/a/{token}\" class=\"choice\">{yes}\
             <button name=\"answer\" value=\"no\" class=\"quiet\">No…</button></form>\
             <p class=\"facts\">Nothing is decided before you confirm it on the next page. You answer as {}. {haft}</p>",
            self.who(),
        )
    }

    /// The second page: what is about to be said, and one button.
    pub(super) fn confirmation(&self, yes: bool, nonce: &str) -> Response {
        let token = escaped(self.token);
        let tool = self.line(&self.question.tool);
        let danger = if yes && self.question.effect == Effect::Destroy { " class=\"danger\"" } else { "" };
        let (title, words, button) = match yes {
            true => (
                format!("Say yes to {tool}?"),
                format!("<p>{} A yes does exactly what you were shown.</p>", self.line(&self.question.reason)),
                "Confirm yes",
            ),
            false => (
                format!("Say no to {tool}?"),
                "<label>Why not? Whoever asked reads it.<textarea name=\"message\" rows=\"3\" maxlength=\"2000\"></textarea>\
                 </label>"
                    .to_owned(),
                "Confirm no",
            ),
        };
        answer_page(
            StatusCode::OK,
            &format!(
                "<header><h1>{title}</h1><p class=\"who\">haft · {}</p></header>\
                 <form method=\"post\" action=\"/a/{token}/confirm\">\
                 <input type=\"hidden\" name=\"nonce\" value=\"{}\">{words}\
                 <p class=\"choice\"><button{danger}>{button}</button> <a href=\"/a/{token}\">Back</a></p></form>\
                 <p class=\"facts\">You answer as {}.</p>",
                self.line(&self.holder.tenant.name),
                escaped(nonce),
                self.who(),
            ),
        )
    }

    /// Who answers, and how well they are known.
    fn who(&self) -> String {
        let how = if self.signed_in { "signed in" } else { "known by this link" };
        format!("<b>{}</b>, {how}", self.line(&self.holder.caller.name))
    }

    fn line(&self, text: &str) -> String {
        escaped(&plain_line(&self.redactor.text(text), LONGEST_LINE))
    }

    fn lines(&self, text: &str) -> String {
        escaped(&plain_lines(&self.redactor.text(text), MOST_SHOWN))
    }
}

/// The difference that a change shows.
fn text_of(change: &Change) -> &str {
    change.patch.as_deref().or(change.diff.as_deref()).unwrap_or_default()
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "reads",
        Effect::Write => "changes something",
        Effect::Execute => "runs something",
        Effect::Destroy => "may destroy something",
    }
}

fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// A link that is none of ours, or whose person is gone: both look alike.
pub(super) fn nowhere() -> Response {
    let body = "<h1>This link leads nowhere</h1><p>It may have been cut off. Open it from the mail once more, or sign in to \
                see what waits for you.</p><p><a href=\"/sign-in\">Sign in</a></p>";
    answer_page(StatusCode::NOT_FOUND, body)
}

/// Who decided, how and when.
pub(super) fn decided(status: StatusCode, holder: &LinkHolder, answered: Option<&Answered>) -> Response {
    let line = |text: &str| escaped(&plain_line(text, LONGEST_LINE));
    let (title, words) = match answered {
        None => ("This question is over", "<p>The call went on without it.</p>".to_owned()),
        Some(Answered { answer: Answer::Expire, at, .. }) => {
            ("Nobody answered in time", format!("<p>The question expired on {}. The answer was a no.</p>", moment(*at)))
        }
        Some(Answered { answer, by, source, at }) => {
            let title = match answer {
                Answer::Approve { .. } | Answer::Always { .. } => "It was approved",
                Answer::Edit { .. } => "It was approved with another input",
                Answer::Fill { .. } | Answer::Result { .. } => "It was answered",
                Answer::Reject { .. } | Answer::Failed { .. } => "It was rejected",
                Answer::Cancel | Answer::Expire | Answer::TimedOut { .. } => "It was cancelled",
            };
            let message = match answer {
                Answer::Reject { message } => message.as_deref(),
                Answer::Approve { .. }
                | Answer::Always { .. }
                | Answer::Edit { .. }
                | Answer::Fill { .. }
                | Answer::Result { .. }
                | Answer::Failed { .. }
                | Answer::Cancel
                | Answer::Expire
                | Answer::TimedOut { .. } => None,
            };
            let message =
                message.map(|message| format!("<blockquote>{}</blockquote>", line(message))).unwrap_or_default();
            (title, format!("<p>By {} {}, on {}.</p>{message}", line(&by.name), door(*source), moment(*at)))
        }
    };
    let body =
        format!("<header><h1>{title}</h1><p class=\"who\">haft · {}</p></header>{words}", line(&holder.tenant.name));
    answer_page(status, &body)
}

/// By what somebody answered.
fn door(source: Source) -> &'static str {
    match source {
        Source::Cli => "on the command line",
        Source::Mcp => "in an MCP client",
        Source::Web => "(signed in)",
        Source::Api => "by a program",
        Source::Link => "by a link",
        Source::Edit | Source::House => "by haft",
    }
}

/// What became of an answer that counts.
pub(super) fn done(holder: &LinkHolder, yes: bool, reply: &AnswerReply) -> Response {
    let line = |text: &str| escaped(&plain_line(text, LONGEST_LINE));
    let said = if yes { "You said yes" } else { "You said no" };
    let words = match (reply.needed, reply.outcome.as_ref().map(|outcome| &outcome.end)) {
        (Some(1), _) => "One more person has to say the same before it runs.".to_owned(),
        (Some(others), _) => format!("{others} more people have to say the same before it runs."),
        (None, _) if !yes => "The call does not run.".to_owned(),
        (None, Some(End::Success { .. })) => "The call ran and ended well.".to_owned(),
        (None, Some(End::Error { error } | End::Cancelled { error })) => {
            format!("The call ran and failed: {}", line(&error.message))
        }
        (None, Some(End::Pending { .. } | End::Rejected { .. }) | None) => "The call goes on.".to_owned(),
    };
    let tenant = line(&holder.tenant.name);
    answer_page(
        StatusCode::OK,
        &format!("<header><h1>{said}</h1><p class=\"who\">haft · {tenant}</p></header><p>{words}</p>"),
    )
}

/// Something went wrong, and the card is one press away.
pub(super) fn again(status: StatusCode, token: &str, why: &str) -> Response {
    let (why, token) = (escaped(&plain_line(why, LONGEST_LINE)), escaped(token));
    answer_page(status, &format!("<h1>Not decided</h1><p>{why}</p><p><a href=\"/a/{token}\">Look at it again</a></p>"))
}

/// An error as people read it: a whole sentence.
pub(super) fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first: String = letters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

/// A page that answers something: in no frame, in no search, kept by nobody.
fn answer_page(status: StatusCode, body: &str) -> Response {
    let mut response = (status, page(&format!("<main class=\"answer\">{body}</main>"))).into_response();
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        ),
    );
    headers.insert(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex, nofollow"));
    response
}
