//! The browser of whoever sits at this machine.

use std::{collections::BTreeMap, path::Path, process::Stdio};

use tokio::process::Command;

/// Programs that open a page in the browser that somebody has chosen.
const OPENERS: [&[&str]; 4] = [&["xdg-open"], &["gio", "open"], &["sensible-browser"], &["wslview"]];

/// Opens a file or an address in a browser and says by which program; `None` where there is none.
pub(crate) fn open(variables: &BTreeMap<String, String>, file: &Path) -> Option<String> {
    let file = file.to_str()?;
    let chosen = variables.get("BROWSER").map(String::as_str).unwrap_or_default();
    let chosen = chosen.split(':').map(|one| one.split_whitespace().collect::<Vec<_>>());
    // Without a screen these would start a browser in the terminal.
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| variables.contains_key(*name));
    let others = OPENERS.iter().map(|words| words.to_vec()).filter(|_| has_screen);
    chosen.chain(others).filter(|words| !words.is_empty()).find_map(|words| started(&words, file))
}

/// Starts one of them, which may go on for as long as the browser does.
fn started(words: &[&str], file: &str) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    match arguments.iter().any(|argument| argument.contains("%s")) {
        true => command.args(arguments.iter().map(|argument| argument.replace("%s", file))),
        false => command.args(arguments).arg(file),
    };
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command.spawn().ok().map(|_goes_on| (*program).to_owned())
}
