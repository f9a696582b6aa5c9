//! What a caller has to know, and who the caller is then.

use haft_runtime::Caller;
use subtle::ConstantTimeEq;

/// A bearer token. Comparing takes the same time wherever the difference is.
pub struct Token {
    text: String,
    caller: Caller,
}

impl Token {
    /// A token that somebody has chosen or that was made at random, and whose it is; an empty one admits nobody.
    pub fn new(token: impl Into<String>, caller: Caller) -> Self {
        Self { text: token.into(), caller }
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(crate) fn is(&self, given: &str) -> bool {
        !self.text.is_empty() && bool::from(self.text.as_bytes().ct_eq(given.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_the_token() {
        let owner = Caller::owner("ann", haft_runtime::Scope::local("w"), haft_runtime::Source::Mcp);
        let token = Token::new("abc", owner.clone());
        assert!(token.is("abc") && !token.is("ab") && !token.is("abcd") && !token.is(""));
        assert!(!Token::new("", owner).is(""));
    }
}
