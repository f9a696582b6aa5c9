//! The folders of the user's `PATH`, and what their programs need beside them.

use std::path::{Path, PathBuf};

use super::find::LeftOut;
use super::view::{HomeView, is_system};

/// What makes a folder with a `bin` an installation that is read as a whole: Python, conda, Go, Java.
const SIGNS: [&str; 5] = ["pyvenv.cfg", "conda-meta", "go.env", "src/runtime", "lib/modules"];
/// What is read of any other installation beside its `bin`.
const PARTS: [&str; 6] = ["lib", "lib64", "libexec", "share", "include", "conf"];

/// The `PATH` inside: the same folders in the same order, without those that are not seen, which are told apart.
pub(super) fn folders(view: &mut HomeView, path: &str) -> (Vec<PathBuf>, Vec<LeftOut>) {
    let (mut seen, mut left_out) = (Vec::new(), Vec::new());
    for place in std::env::split_paths(path) {
        match judge(view, &place) {
            Ok(folder) if seen.contains(&folder) => {}
            Ok(folder) => seen.push(folder),
            Err(why) => left_out.push(LeftOut { at: place, why }),
        }
    }
    (seen, left_out)
}

/// Makes a folder readable with what it needs, and says by which path it is found inside.
fn judge(view: &mut HomeView, place: &Path) -> Result<PathBuf, &'static str> {
    if !place.is_absolute() {
        return Err("it is not an absolute path");
    }
    let real = place.canonicalize().map_err(|_| "it is not there")?;
    if !real.is_dir() {
        return Err("it is not a folder");
    }
    if let Some(why) = view.refusal(&real) {
        return Err(why);
    }
    if is_system(place) || real.starts_with(&view.workspace) {
        return Ok(place.to_owned());
    }
    if !view.shows(&real) {
        show_installation(view, &real);
    }
    view.show(place);
    show_what_links_lead_to(view, &real);
    Ok(real)
}

/// Makes readable what lies beside a folder of programs, if that is called `bin`.
fn show_installation(view: &mut HomeView, bin: &Path) {
    let Some(prefix) = bin.parent().filter(|_| bin.ends_with("bin")) else { return };
    if view.refusal(prefix).is_some() {
        return;
    }
    if prefix == view.home.join(".local") {
        // Where `pip install --user` puts what the programs beside it need. The rest is not tools alone.
        return view.show(&prefix.join("lib"));
    }
    if SIGNS.iter().any(|sign| prefix.join(sign).exists()) {
        return view.show(prefix);
    }
    for part in PARTS {
        view.show(&prefix.join(part));
    }
}

/// Makes readable what the links in a folder of programs lead to, each step of the way.
fn show_what_links_lead_to(view: &mut HomeView, folder: &Path) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            continue;
        }
        let (Ok(next), Ok(real)) = (entry.path().read_link(), entry.path().canonicalize()) else { continue };
        if !view.shows(&real) && real.is_file() {
            if let Some(bin) = real.parent() {
                show_installation(view, bin);
            }
            view.show(&real);
        }
        // By way of another link, whose place is not the one that was just made readable.
        let next = folder.join(next);
        if real.is_file() && !next.components().any(|part| part.as_os_str() == "..") && !view.shows(&next) {
            view.show(&next);
        }
    }
}
