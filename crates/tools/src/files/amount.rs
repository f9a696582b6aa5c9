//! Numbers with their noun.

use std::fmt;

/// `1 byte`, `2 bytes`.
pub(super) struct Amount<'a>(pub(super) u64, pub(super) &'a str);

impl fmt::Display for Amount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::Amount;

    #[test]
    fn one_is_singular() {
        let told = [0, 1, 2].map(|number| Amount(number, "byte").to_string());
        assert_eq!(told, ["0 bytes", "1 byte", "2 bytes"]);
    }
}
