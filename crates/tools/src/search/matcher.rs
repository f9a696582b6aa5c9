//! The pattern of `grep`, compiled. The engine takes linear time whatever the pattern.

use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use haft_runtime::{ErrorCode, ToolError};
use regex_syntax::ParserBuilder;

/// The longest pattern that is taken, in bytes.
const LONGEST: usize = 64 << 10;
/// How large a compiled pattern may be, in bytes.
const LARGEST: usize = 16 << 20;
/// How much each thread remembers while it searches, in bytes.
const REMEMBERED: usize = 4 << 20;

/// What the pattern is taken for.
#[derive(Clone, Copy, Debug)]
pub(super) struct MatchOptions<'a> {
    pub(super) pattern: &'a str,
    pub(super) case_insensitive: bool,
    pub(super) literal: bool,
    pub(super) multiline: bool,
}

impl MatchOptions<'_> {
    pub(super) fn compile(self) -> Result<RegexMatcher, ToolError> {
        if self.pattern.len() > LONGEST {
            return Err(wrong(&format!("`pattern` is longer than {LONGEST} bytes; search for a part of it")));
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(self.case_insensitive)
            .fixed_strings(self.literal)
            .multi_line(true)
            .size_limit(LARGEST)
            .dfa_size_limit(REMEMBERED)
            .ban_byte(Some(0));
        if !self.multiline {
            builder.line_terminator(Some(b'\n'));
        }
        builder.build(self.pattern).map_err(|err| self.refusal(&err))
    }

    fn refusal(self, err: &grep_regex::Error) -> ToolError {
        if matches!(err.kind(), ErrorKind::NotAllowed(_)) {
            return wrong("`pattern` has a line break in it, but lines are searched one by one; set `multiline`");
        }
        if matches!(err.kind(), ErrorKind::Banned(_)) {
            return wrong("`pattern` has a NUL byte in it, but files with NUL bytes are not searched; leave it out");
        }
        let parsed = ParserBuilder::new().utf8(false).multi_line(true).build().parse(self.pattern);
        let (why, at) = match parsed {
            Err(regex_syntax::Error::Parse(err)) => (err.kind().to_string(), err.span().start.offset),
            Err(regex_syntax::Error::Translate(err)) => (err.kind().to_string(), err.span().start.offset),
            Ok(_) | Err(_) => {
                return wrong(
                    "`pattern` is too large once it is compiled; use fewer or smaller repetitions, such as `\\w+` for `\\w{1,1000}`",
                );
            }
        };
        let position = self.pattern.get(..at).map_or(0, |before| before.chars().count()) + 1;
        wrong(&format!(
            "`pattern` is no valid regular expression: {why}, at character {position}; correct it, or set `literal` to search for the text as it is"
        ))
        .with("position", position)
    }
}

fn wrong(message: &str) -> ToolError {
    ToolError::new(ErrorCode::InvalidArgs, message)
}
