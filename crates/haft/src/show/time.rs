//! Times, sizes and numbers as people say them.

use std::time::Duration;

use jiff::Timestamp;

/// `12s ago`, `5m ago`, `3h ago`, `2d ago`.
pub(crate) fn ago(then: Timestamp) -> String {
    let seconds = Timestamp::now().as_second().saturating_sub(then.as_second()).max(0);
    format!("{} ago", length(Duration::from_secs(seconds.unsigned_abs())))
}

/// `in 5m`, `in 3h`; `5m ago` once it is over.
pub(crate) fn from_now(then: Timestamp) -> String {
    let seconds = then.as_second().saturating_sub(Timestamp::now().as_second());
    if seconds <= 0 {
        return ago(then);
    }
    format!("in {}", whole(seconds.unsigned_abs()))
}

/// A time to come, as it was probably said: `8h` a moment after somebody said so, `1h 30m`, `7d`.
fn whole(seconds: u64) -> String {
    let step = match seconds {
        0..60 => 1,
        60..86_400 => 60,
        _ => 3600,
    };
    let seconds = seconds.div_ceil(step) * step;
    let parts = [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let told: Vec<String> =
        parts.iter().filter(|(number, _)| *number > 0).map(|(number, unit)| format!("{number}{unit}")).collect();
    told.join(" ")
}

/// `12s`, `5m`, `3h`, `2d`.
pub(crate) fn length(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// `340 ms`, `2.1s`, `5m`: how long something took.
pub(crate) fn took(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{:.1}s", duration.as_secs_f64()),
        _ => length(duration),
    }
}

/// `1 path`, `2 paths`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `812 B`, `1.4 KB`, `3.2 MB`.
pub(crate) fn bytes(size: u64) -> String {
    let units = ["KB", "MB", "GB", "TB"];
    if size < 1000 {
        return format!("{size} B");
    }
    let mut value = size as f64 / 1000.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::{count, whole};

    #[test]
    fn what_is_to_come_is_told_as_it_was_said() {
        for (seconds, told) in [(28_799, "8h"), (28_800, "8h"), (5400, "1h 30m"), (604_799, "7d"), (59, "59s")] {
            assert_eq!(whole(seconds), told);
        }
        assert_eq!(
            (count(1, "path"), count(0, "path"), count(2, "more line")),
            ("1 path".into(), "0 paths".into(), "2 more lines".into())
        );
    }
}
