//! The redirects of a request: each checked like a new URL, and followed only where somebody says that it may.

use hyper::{Method, StatusCode, header};
use url::Url;

use super::{
    client::{Response, WebClient},
    error::{Refusal, WebError},
    request::Request,
    rules::WebTarget,
};

/// How many redirects are followed.
const MOST: usize = 5;
/// How much is said of a redirect that is no URL.
const LONGEST_SHOWN: usize = 200;

/// The last answer, and how it was come to.
pub struct FetchOutcome {
    /// The answer.
    pub response: Response,
    /// Who gave it.
    pub url: Url,
    /// Where redirects led, one after the other; the last is `url`.
    pub redirects: Vec<Url>,
    /// Where the answer points to, when it is a redirect that was not followed.
    pub not_followed: Option<UnfollowedRedirect>,
}

/// A redirect that was not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfollowedRedirect {
    /// Where it points to.
    pub to: Url,
    /// Why it was not followed.
    pub why: &'static str,
}

/// Why there is no answer, and how far it got.
#[derive(Debug)]
pub struct FetchFailure {
    /// Why.
    pub error: WebError,
    /// The redirects that were followed before.
    pub redirects: Vec<Url>,
}

impl WebClient {
    /// Sends a request, and after it what redirects ask for, as long as `may_go` says so of the next URL.
    pub async fn fetch(
        &self,
        mut request: Request,
        may_go: impl Fn(&WebTarget) -> bool,
    ) -> Result<FetchOutcome, FetchFailure> {
        let mut redirects = Vec::new();
        loop {
            let sent = self.send(&request).await;
            let response = match sent {
                Ok(response) => response,
                Err(error) => return Err(FetchFailure { error, redirects }),
            };
            let url = request.target.url().clone();
            let Some(next) = location(&response, &url) else {
                return Ok(FetchOutcome { response, url, redirects, not_followed: None });
            };
            let target = match next.and_then(|next| self.rules.check(next)) {
                Ok(target) => target,
                Err(refusal) => return Err(FetchFailure { error: refusal.into(), redirects }),
            };
            if let Some(why) = why_not(&request, &target, response.status, &may_go) {
                let not_followed = Some(UnfollowedRedirect { to: target.url().clone(), why });
                return Ok(FetchOutcome { response, url, redirects, not_followed });
            }
            if redirects.len() == MOST {
                return Err(FetchFailure { error: WebError::TooManyRedirects { most: MOST }, redirects });
            }
            redirects.push(target.url().clone());
            request = request.redirected(target, response.status);
        }
    }
}

/// Where an answer sends its reader, if it does. What is no URL is refused like one that leads where nobody may go.
fn location(response: &Response, from: &Url) -> Option<Result<Url, Refusal>> {
    let redirects = matches!(
        response.status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let location = response.headers.get(header::LOCATION).filter(|_| redirects)?;
    let words = String::from_utf8_lossy(location.as_bytes());
    let refused = |why: url::ParseError| Refusal {
        url: words.chars().take(LONGEST_SHOWN).collect(),
        rule: format!("the redirect cannot be read: {why}"),
    };
    Some(from.join(&words).map_err(refused))
}

fn why_not(
    request: &Request,
    target: &WebTarget,
    status: StatusCode,
    may_go: impl Fn(&WebTarget) -> bool,
) -> Option<&'static str> {
    let sends_again = request.method != Method::GET
        && matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    if request.target.is_secure() && !target.is_secure() {
        Some("it leads from a secure connection to an open one")
    } else if sends_again && request.target.host() != target.host() {
        Some("what was sent would be sent to another host")
    } else if !may_go(target) {
        Some("it leads to another host, which nobody has said yes to")
    } else {
        None
    }
}
