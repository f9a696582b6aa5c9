//! Whether a run of characters looks like a key that a machine has made, and not like a name, a path or a hash.

/// Longer runs are data, not keys.
const LONGEST: usize = 512;
/// What stands before runs that are public: hashes, fingerprints and pictures.
const PUBLIC_BEFORE: &[&str] = &["h1:", "SHA256:", "base64,"];
/// How public runs begin: hashes of packages, public keys for ssh.
const PUBLIC: &[&str] = &["sha1-", "sha256-", "sha384-", "sha512-", "AAAAB3Nza", "AAAAC3Nza", "AAAAE2Vj"];

/// Whether a long run of letters and digits is random. Hexadecimal ones are not taken for keys: nearly all of them are
/// hashes, commits or ids.
pub(super) fn is_random(run: &str, before: &str) -> bool {
    if run.len() > LONGEST
        || PUBLIC.iter().any(|known| run.starts_with(known))
        || PUBLIC_BEFORE.iter().any(|known| before.ends_with(known))
    {
        return false;
    }
    let letters: Vec<u8> = run.bytes().filter(u8::is_ascii_alphanumeric).collect();
    let turns = letters.windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count();
    let turns = turns as f64 / letters.len().max(1) as f64;
    let mixed = letters.iter().any(u8::is_ascii_lowercase) && letters.iter().any(u8::is_ascii_uppercase);
    // Words turn from small to large letters at their beginning; keys turn all the time, and to digits too.
    let is_restless = if mixed { turns >= 0.45 } else { turns >= 0.3 };
    let numbers = numbers(&letters);
    let has_numbers = if mixed { numbers >= 2 } else { numbers >= 5 };
    is_restless && has_numbers && !is_hex(run) && entropy(&letters) >= 3.7
}

/// Whether a text has letters and digits, and not the same few over and over.
pub(super) fn is_varied(text: &str) -> bool {
    let letters = text.as_bytes();
    letters.iter().any(u8::is_ascii_digit) && letters.iter().any(u8::is_ascii_alphabetic) && entropy(letters) >= 2.5
}

/// Hexadecimal, perhaps at the end of a path, behind the prefix of an id such as `tc_`, or with dashes.
fn is_hex(run: &str) -> bool {
    let is_word = |letter: u8| letter.is_ascii_lowercase() || matches!(letter, b'/' | b'-' | b'_');
    let run = match run.rsplit_once('/') {
        Some((path, last)) if path.bytes().all(is_word) => last,
        Some(_) | None => run,
    };
    let number = match run.split_once('_') {
        Some((prefix, rest)) if prefix.len() <= 4 => rest,
        Some(_) | None => run,
    };
    number.bytes().all(|letter| letter.is_ascii_hexdigit() || letter == b'-')
}

fn kind(letter: u8) -> u8 {
    match letter {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        _ => 2,
    }
}

/// How many times digits begin.
fn numbers(letters: &[u8]) -> usize {
    let begins = |at: usize| letters[at].is_ascii_digit() && (at == 0 || !letters[at - 1].is_ascii_digit());
    (0..letters.len()).filter(|at| begins(*at)).count()
}

/// Bits in each character.
fn entropy(letters: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    letters.iter().for_each(|letter| counts[usize::from(*letter)] += 1);
    let all = letters.len().max(1) as f64;
    let share = |count: u32| f64::from(count) / all;
    counts.iter().filter(|count| **count > 0).map(|count| -share(*count) * share(*count).log2()).sum()
}
