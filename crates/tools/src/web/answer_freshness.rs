//! How long an answer holds, by what its host says.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use haft_runtime::Stamp;
use haft_sandbox::web::{HeaderMap, header};
use jiff::{Timestamp, fmt::rfc2822};

/// How many answers are known to hold; the runtime keeps no more either.
const MOST: usize = 1000;

/// Which answers still hold. A question has a number, which stays the same as long as its answer does.
#[derive(Debug, Default)]
pub(super) struct AnswerFreshness(Mutex<QuestionNumbers>);

#[derive(Debug, Default)]
struct QuestionNumbers {
    last: u64,
    questions: HashMap<String, (u64, Option<Instant>)>,
}

impl AnswerFreshness {
    /// What tells whether an earlier answer to this question still holds.
    pub(super) fn stamp(&self, question: &str) -> Stamp {
        let mut known = self.lock();
        let now = Instant::now();
        let holds = |until: &Option<Instant>| until.is_none_or(|until| now < until);
        if let Some((number, _)) = known.questions.get(question).filter(|(_, until)| holds(until)) {
            return Stamp(number.to_string());
        }
        if known.questions.len() >= MOST {
            known.questions.retain(|_, (_, until)| until.is_some_and(|until| now < until));
        }
        if known.questions.len() >= MOST {
            known.questions.clear();
        }
        known.last += 1;
        let number = known.last;
        known.questions.insert(question.to_owned(), (number, None));
        Stamp(number.to_string())
    }

    /// The answer to this question is here and holds that long; not at all where that is nothing.
    pub(super) fn answered(&self, question: &str, lasting: Duration) {
        let mut known = self.lock();
        if lasting.is_zero() {
            known.questions.remove(question);
        } else if let Some((_, until)) = known.questions.get_mut(question) {
            *until = Some(Instant::now() + lasting);
        }
    }

    fn lock(&self) -> MutexGuard<'_, QuestionNumbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an answer with these headers may be kept at all, for whoever asks the same again.
pub(super) fn may_be_kept(headers: &HeaderMap) -> bool {
    let varies = headers.get(header::VARY).is_some_and(|vary| vary == "*");
    !varies && !headers.contains_key(header::SET_COOKIE) && !directives(headers).iter().any(|one| one == "no-store")
}

/// How long an answer with these headers holds; nothing when they do not say.
pub(super) fn lasting(headers: &HeaderMap) -> Duration {
    let control = directives(headers);
    if !may_be_kept(headers) || control.iter().any(|directive| directive == "no-cache") {
        return Duration::ZERO;
    }
    let seconds = |text: &str| text.trim_matches('"').parse::<u64>().ok().map(Duration::from_secs);
    let said = control.iter().find_map(|directive| directive.strip_prefix("max-age=")).and_then(seconds);
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let age = text(header::AGE).and_then(seconds).unwrap_or_default();
    let date = |name| text(name).and_then(|date| rfc2822::parse(date).ok()).map(|date| date.timestamp());
    let expires = || {
        let sent = date(header::DATE).unwrap_or_else(Timestamp::now);
        Duration::try_from(date(header::EXPIRES)?.duration_since(sent)).ok()
    };
    said.or_else(expires).unwrap_or_default().saturating_sub(age)
}

/// What a host says of keeping its answer.
fn directives(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(header::CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|directive| directive.trim().to_ascii_lowercase())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haft_sandbox::web::HeaderMap;

    use super::{AnswerFreshness, lasting};

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_host_says_how_long_its_answer_holds() {
        let expires = [("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("expires", "Sun, 06 Nov 1994 08:50:07 GMT")];
        for (lines, seconds) in [
            (&[][..], 0),
            (&[("cache-control", "public, Max-Age=60")], 60),
            (&[("cache-control", "max-age=60"), ("age", "45")], 15),
            (&[("cache-control", "max-age=60"), ("age", "99")], 0),
            (&[("cache-control", "max-age=60, no-store")], 0),
            (&[("cache-control", "no-cache"), ("cache-control", "max-age=5")], 0),
            (&[("cache-control", "max-age=60"), ("vary", "*")], 0),
            (&[("cache-control", "max-age=60"), ("set-cookie", "a=b")], 0),
            (&expires, 30),
            (&[("expires", "0")], 0),
            (&[("cache-control", "max-age=x")], 0),
        ] {
            assert_eq!(lasting(&headers(lines)), Duration::from_secs(seconds), "{lines:?}");
        }
    }

    #[test]
    fn a_stamp_stays_as_long_as_the_answer_holds() {
        let fresh = AnswerFreshness::default();
        let first = fresh.stamp("a");
        fresh.answered("a", Duration::from_secs(60));
        assert_eq!(fresh.stamp("a"), first);
        assert_ne!(fresh.stamp("b"), first);
        fresh.answered("a", Duration::ZERO);
        assert_ne!(fresh.stamp("a"), first);
        fresh.answered("b", Duration::from_nanos(1));
        assert_ne!(fresh.stamp("b"), fresh.stamp("a"));
    }
}
