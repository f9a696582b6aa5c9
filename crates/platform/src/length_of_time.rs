//! Lengths of time as people write them.

use std::time::Duration;

/// Such as `30m`, `8h` or `7d`.
pub fn length_of_time(text: &str) -> Option<Duration> {
    let split = text.find(|letter: char| !letter.is_ascii_digit())?;
    let number: u64 = text[..split].parse().ok()?;
    let seconds = match &text[split..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return None,
    };
    number.checked_mul(seconds).filter(|seconds| *seconds > 0).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lasts_as_long_as_it_says() {
        assert_eq!(length_of_time("30m"), Some(Duration::from_secs(1800)));
        assert_eq!(length_of_time("7d"), Some(Duration::from_secs(7 * 24 * 3600)));
        for wrong in ["", "8", "h", "0s", "8 h", "1w", "99999999999999999999d", "18446744073709551615d"] {
            assert_eq!(length_of_time(wrong), None, "{wrong}");
        }
    }
}
