//! What a caller has to know.

use subtle::ConstantTimeEq;

/// A bearer token. Comparing takes the same time wherever the difference is.
pub struct Token(String);

impl Token {
    /// A token that somebody has chosen or that was made at random; an empty one admits nobody.
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    pub(crate) fn is(&self, given: &str) -> bool {
        !self.0.is_empty() && bool::from(self.0.as_bytes().ct_eq(given.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = Token::new("abc");
        assert!(token.is("abc") && !token.is("ab") && !token.is("abcd") && !token.is(""));
        assert!(!Token::new("").is(""));
    }
}
