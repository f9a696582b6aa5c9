//! Tries the crate alone: plan, show, commit, undo and recover changes, be killed on the way, and measure.
#![expect(clippy::print_stdout, reason = "this is a program for people at a terminal")]

mod bench;
mod crash;

use std::error::Error;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use haft_sandbox::Root;
use haft_sandbox::changes::{ChangeDirection, Changes, Draft, Expected, Selection, recover};

const USAGE: &str = "changes write WORKSPACE DIR PATH   (the content comes from standard input)
changes delete WORKSPACE DIR PATH
changes list DIR
changes diff DIR PATH
changes commit DIR [PATH...]
changes undo DIR [PATH...]
changes discard DIR
changes recover DIR
changes bench [FOLDER]

DIR is <data>/changes/<any name>.";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["write", workspace, dir, path] => write(workspace, dir, path),
        ["delete", workspace, dir, path] => delete(workspace, dir, path),
        ["list", dir] => list(dir),
        ["diff", dir, path] => {
            print!("{}", Changes::open(Path::new(dir))?.diff(path)?.unwrap_or_default());
            Ok(())
        }
        ["commit", dir, ..] => turn(dir, ChangeDirection::Commit, &arguments[2..]),
        ["undo", dir, ..] => turn(dir, ChangeDirection::Undo, &arguments[2..]),
        ["discard", dir] => Ok(Changes::open(Path::new(dir))?.discard()?),
        ["recover", dir] => {
            println!("{:?}", recover(Path::new(dir))?);
            Ok(())
        }
        ["bench"] => bench::run(&std::env::temp_dir()),
        ["bench", folder] => bench::run(Path::new(folder)),
        ["crash", what, workspace, dir, user] => crash::run(what, Path::new(workspace), Path::new(dir), user),
        _ => {
            println!("{USAGE}");
            Ok(())
        }
    }
}

fn write(workspace: &str, dir: &str, path: &str) -> Result<(), Box<dyn Error>> {
    let root = Arc::new(Root::open(Path::new(workspace), &[])?);
    let mut content = Vec::new();
    std::io::stdin().read_to_end(&mut content)?;
    let mut draft = Draft::new(&root, Path::new(dir))?;
    draft.write(&root.place(path)?, &content, Expected::Anything)?;
    draft.seal()?;
    list(dir)
}

fn delete(workspace: &str, dir: &str, path: &str) -> Result<(), Box<dyn Error>> {
    let root = Arc::new(Root::open(Path::new(workspace), &[])?);
    let mut draft = Draft::new(&root, Path::new(dir))?;
    draft.delete(&root.place(path)?, true)?;
    draft.seal()?;
    list(dir)
}

fn list(dir: &str) -> Result<(), Box<dyn Error>> {
    for change in Changes::open(Path::new(dir))?.list() {
        let flags = if change.flags.is_empty() { String::new() } else { format!(" {:?}", change.flags) };
        println!("{:?} {:?} {}{flags}", change.state, change.kind, change.path);
    }
    Ok(())
}

fn turn(dir: &str, direction: ChangeDirection, paths: &[String]) -> Result<(), Box<dyn Error>> {
    let selection = if paths.is_empty() { Selection::All } else { Selection::Some(paths) };
    for change in Changes::open(Path::new(dir))?.turn(direction, selection)? {
        println!("{:?} {}", change.state, change.path);
    }
    Ok(())
}
