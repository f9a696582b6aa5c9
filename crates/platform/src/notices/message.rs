//! What a notice says, by mail and by webhook: who asks, with which tool, why, and where to answer. Never what a file holds,
//! what a command is, or a secret.

use haft_runtime::{About, CallerKind, Change, Evidence, Question, Redactor};
use jiff::Timestamp;
use lettre::{
    Message,
    message::{
        Mailbox, MultiPart,
        header::{HeaderName, HeaderValue},
    },
};

use crate::plain_text::plain_line;

/// How many questions one notice lists; of more it says how many.
pub(super) const LISTED: usize = 20;
/// The most that is told of a reason.
const LONGEST_REASON: usize = 300;
/// How many paths are named.
const PATHS: usize = 3;
const STYLE: &str = include_str!("mail.css");

/// What is told of one question.
pub(super) struct Notice {
    pub(super) tool: String,
    pub(super) asked_by: String,
    pub(super) reason: String,
    /// Which files it is about.
    pub(super) files: Option<String>,
    pub(super) until: Timestamp,
    pub(super) escalated: bool,
    pub(super) link: String,
}

impl Notice {
    pub(super) fn of(question: &Question, escalated: bool, link: String) -> Self {
        let redactor = Redactor::default();
        let shown = |text: &str, most| plain_line(&redactor.text(text), most);
        let by = &question.asked_by;
        let asked_by = match by.id.kind {
            CallerKind::Key => format!("The key {}", shown(&by.name, 80)),
            CallerKind::Agent => format!("The agent {}", shown(&by.name, 80)),
            CallerKind::Person | CallerKind::Owner | CallerKind::Token | CallerKind::House => shown(&by.name, 80),
        };
        let reason = match &question.about {
            About::Approval(_) => &question.reason,
            About::Form(form) => &form.message,
            About::Result(awaited) => &awaited.message,
        };
        Self {
            tool: shown(&question.tool, 80),
            asked_by,
            reason: shown(reason, LONGEST_REASON),
            files: files(question).map(|files| shown(&files, LONGEST_REASON)),
            until: question.expires_at,
            escalated,
            link,
        }
    }

    /// Until when it can be answered.
    pub(super) fn until(&self) -> String {
        self.until.strftime("%Y-%m-%d %H:%M UTC").to_string()
    }
}

/// The first paths that a call would change, and how many more there are.
fn files(question: &Question) -> Option<String> {
    let Some(Evidence::Staged { changes, .. }) = question.evidence() else { return None };
    // A new folder is seen from what lies in it.
    let told: Vec<&Change> = changes.told().into_iter().filter(|change| !change.directory).collect();
    let first: Vec<&str> = told.iter().take(PATHS).map(|change| change.path.as_str()).collect();
    match told.len().saturating_sub(PATHS) {
        _ if first.is_empty() => None,
        0 => Some(first.join(", ")),
        more => Some(format!("{} and {more} more", first.join(", "))),
    }
}

/// What goes to one person at once.
pub(super) struct NoticeMail<'a> {
    /// Their name and address.
    pub(super) to: Mailbox,
    /// The name that they are greeted by.
    pub(super) name: &'a str,
    /// What their tenant is called.
    pub(super) tenant: &'a str,
    pub(super) notices: &'a [Notice],
    /// How many more questions there are than notices.
    pub(super) more: usize,
    /// What tells this mail from every other one, also when it is sent twice.
    pub(super) id: String,
    /// Where all questions are answered.
    pub(super) url: &'a str,
}

impl NoticeMail<'_> {
    /// The mail itself.
    pub(super) fn message(&self, from: &Mailbox) -> Result<Message, lettre::error::Error> {
        let header = |name, value: &str| HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned());
        Message::builder()
            .from(from.clone())
            .to(self.to.clone())
            .subject(self.subject())
            .message_id(Some(self.id.clone()))
            // Nobody's absence note comes back, and nothing goes round in circles.
            .raw_header(header("Auto-Submitted", "auto-generated"))
            .raw_header(header("X-Auto-Response-Suppress", "All"))
            .multipart(MultiPart::alternative_plain_html(self.text(), self.html()))
    }

    fn count(&self) -> usize {
        self.notices.len() + self.more
    }

    fn subject(&self) -> String {
        let tenant = plain_line(self.tenant, 60);
        match self.notices {
            [only] if self.more == 0 && only.escalated => format!("{tenant}: {} is passed on to you", only.tool),
            [only] if self.more == 0 => format!("{tenant}: {} needs your answer", only.tool),
            _ => format!("{tenant}: {} questions need your answer", self.count()),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("Hello {},\n\n", plain_line(self.name, 80));
        for notice in self.notices {
            let passed_on = if notice.escalated { " Nobody has answered in time, so you are asked." } else { "" };
            text += &format!(
                "{} asks to use {} in {}.{passed_on}\n\n  why:    {}\n",
                notice.asked_by,
                notice.tool,
                plain_line(self.tenant, 60),
                notice.reason
            );
            if let Some(files) = &notice.files {
                text += &format!("  files:  {files}\n");
            }
            text += &format!("  until:  {}\n\nLook and answer:\n{}\n\n", notice.until(), notice.link);
        }
        if self.more > 0 {
            text += &format!("{} more questions wait at {}\n\n", self.more, self.url);
        }
        text + "--\nOpening a link decides nothing: you choose on the page, and confirm it there.\nThe links are yours alone; \
                do not pass this mail on.\n"
    }

    fn html(&self) -> String {
        let cards: String = self.notices.iter().map(|notice| self.card(notice)).collect();
        let more = match self.more {
            0 => String::new(),
            more => format!("<p>{more} more questions wait <a href=\"{}\">in haft</a>.</p>", escaped(self.url)),
        };
        format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"supported-color-schemes\" content=\"light dark\">\
             <title>{}</title><style>{STYLE}</style></head><body><div class=\"mail\"><p>Hello {},</p>{cards}{more}\
             <p class=\"small\">Opening a link decides nothing: you choose on the page, and confirm it there. The links are \
             yours alone; do not pass this mail on.</p></div></body></html>",
            escaped(&self.subject()),
            escaped(&plain_line(self.name, 80)),
        )
    }

    fn card(&self, notice: &Notice) -> String {
        let passed_on = match notice.escalated {
            true => "<p>Nobody has answered in time, so you are asked.</p>",
            false => "",
        };
        let row = |name: &str, value: &str| format!("<tr><th>{name}</th><td>{}</td></tr>", escaped(value));
        let files = notice.files.as_ref().map(|files| row("files", files)).unwrap_or_default();
        format!(
            "<div class=\"card\"><p class=\"title\">{by} asks to use <b>{tool}</b> in {tenant}</p>{passed_on}\
             <table>{why}{files}{until}</table><p><a class=\"button\" href=\"{link}\">Look and answer</a></p></div>",
            by = escaped(&notice.asked_by),
            tool = escaped(&notice.tool),
            tenant = escaped(&plain_line(self.tenant, 60)),
            why = row("why", &notice.reason),
            until = row("until", &notice.until()),
            link = escaped(&notice.link),
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
