//! Bounds: what they refuse to be, and that wider ones never refuse what narrower ones accept.

use globset::GlobBuilder;
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::json;

use super::{Bounds, CallFacts, WrittenBounds, paths::escaped};
use crate::{CallId, Change, ChangeKind, ChangeList, Evidence, Flag, ToolOutput, Turn};

const PATHS: &[&str] = &["a", "src/a", "src/b.rs", "src/deep/c.rs", "doc/a", ".envrc", "we[ir]d*/{x}"];
const GLOBS: &[&str] = &[
    "**",
    "*",
    "src/**",
    "src/*",
    "**/*.rs",
    "doc/a",
    "a",
    ".envrc",
    "src/{a,b.rs}",
    "[a-d]*",
    "**/a",
    "src/**/c.rs",
    "**/{a,c}*",
    "?",
    "s?c/a",
    "we\\[*",
];
const KINDS: &[ChangeKind] = &[ChangeKind::Created, ChangeKind::Changed, ChangeKind::Deleted, ChangeKind::Renamed];

fn refused(written: WrittenBounds) -> String {
    Bounds::try_from(written).map(|bounds| format!("taken: {bounds:?}")).unwrap_or_else(|err| err.to_string())
}

#[test]
fn a_path_that_can_match_nothing_is_refused() {
    for path in ["**/../x", "../x", "/etc/**", "./src", "src/", "", "a//b", "src/./a", ".."] {
        let said = refused(WrittenBounds { paths: Some(vec![path.into()]), ..WrittenBounds::default() });
        assert!(said.contains("can match nothing"), "{path}: {said}");
    }
    for path in ["src/[", "{a,b", "a\\"] {
        let said = refused(WrittenBounds { paths: Some(vec![path.into()]), ..WrittenBounds::default() });
        assert!(said.contains("is no glob"), "{path}: {said}");
    }
    let long = refused(WrittenBounds { paths: Some(vec!["a".repeat(5000)]), ..WrittenBounds::default() });
    assert!(long.contains("too long"), "{long}");
    let many = refused(WrittenBounds { paths: Some(vec!["a".into(); 1001]), ..WrittenBounds::default() });
    assert!(many.contains("too many"), "{many}");
}

#[test]
fn everything_beneath_a_folder_is_also_the_new_folder() {
    let bounds = |glob: &str| {
        let written = WrittenBounds { paths: Some(vec![glob.to_owned()]), ..WrittenBounds::default() };
        Bounds::try_from(written).unwrap()
    };
    let new = Change { directory: true, ..Change::staged("target", ChangeKind::Created) };
    let covers = |glob: &str, change: &Change| {
        let bounds = bounds(glob);
        let is_inside = bounds.outside(change).is_none();
        assert_eq!(bounds.touch(change), is_inside, "{glob}: {change:?}");
        is_inside
    };
    for glob in ["target/**", "t*/**", "**/target/**", "**", "target"] {
        assert!(covers(glob, &new), "{glob}");
    }
    for glob in ["target/*", "target/x", "targets/**", "target/**/x", "tar/**"] {
        assert!(!covers(glob, &new), "{glob}");
    }
    let file = Change::staged("target", ChangeKind::Created);
    let gone = Change { directory: true, ..Change::staged("target", ChangeKind::Deleted) };
    assert!(!covers("target/**", &file) && !covers("target/**", &gone));
}

#[test]
fn bounds_that_cover_nothing_are_refused() {
    let none = WrittenBounds::default();
    for (written, name) in [
        (WrittenBounds { paths: Some(vec![]), ..none.clone() }, "paths"),
        (WrittenBounds { kinds: Some(vec![]), ..none.clone() }, "kinds"),
        (WrittenBounds { hosts: Some(vec![]), ..none.clone() }, "hosts"),
        (WrittenBounds { max_files: Some(0), ..none.clone() }, "max_files"),
    ] {
        assert!(refused(written).contains(name), "{name}");
    }
    let huge = WrittenBounds { max_files: Some(usize::MAX), max_bytes: Some(u64::MAX), ..none };
    assert!(Bounds::try_from(huge).is_ok());
}

#[test]
fn bounds_are_checked_when_they_are_read() {
    let read = |value| serde_json::from_value::<Bounds>(value).map_err(|err| err.to_string());
    assert_eq!(read(json!({"paths": ["src/**"]})).unwrap().written().paths, Some(vec!["src/**".to_owned()]));
    assert!(read(json!({"paths": ["../x"]})).unwrap_err().contains("can match nothing"));
    assert!(read(json!({"pathes": ["x"]})).unwrap_err().contains("pathes"));
    let written = json!({"paths": ["a"], "max_files": 2});
    assert_eq!(serde_json::to_value(read(written.clone()).unwrap()).unwrap(), written);
}

fn evidence(changes: Vec<Change>) -> Evidence {
    let turn = Turn::commit(CallId::new());
    Evidence::Staged { output: ToolOutput::default(), changes: ChangeList(changes), turn, isolation: None }
}

fn any_path() -> impl Strategy<Value = String> {
    select(PATHS).prop_map(str::to_owned)
}

fn any_change() -> impl Strategy<Value = Change> {
    let facts = (any::<bool>(), 0..100_u64, prop::bool::weighted(0.1), prop::bool::weighted(0.7));
    (any_path(), select(KINDS), option::of(any_path()), facts).prop_map(
        |(path, kind, from, (executable, size, flagged, derived))| Change {
            from: from.filter(|_| kind == ChangeKind::Renamed),
            executable,
            size,
            derived,
            flags: if flagged { vec![Flag::RunsByItself] } else { vec![] },
            ..Change::staged(path, kind)
        },
    )
}

fn any_bounds() -> impl Strategy<Value = WrittenBounds> {
    let globs = option::of(vec(select(GLOBS).prop_map(str::to_owned), 1..4));
    (
        globs,
        option::of(vec(select(KINDS), 1..4)),
        option::of(1..5_usize),
        option::of(0..200_u64),
        any::<bool>(),
        any::<bool>(),
        option::of(0..2_u8),
    )
        .prop_map(|(paths, kinds, max_files, max_bytes, executables, derived, input)| WrittenBounds {
            paths,
            kinds,
            max_files,
            max_bytes,
            executables,
            derived,
            hosts: None,
            input: input.map(|number| json!({ "n": number })),
        })
}

/// One bound made wider in each way there is.
fn widened(narrow: &WrittenBounds) -> Vec<WrittenBounds> {
    let mut wider = vec![
        WrittenBounds { kinds: None, ..narrow.clone() },
        WrittenBounds { max_files: None, ..narrow.clone() },
        WrittenBounds { max_bytes: None, ..narrow.clone() },
        WrittenBounds { input: None, ..narrow.clone() },
        WrittenBounds { executables: true, ..narrow.clone() },
        WrittenBounds { derived: false, ..narrow.clone() },
        WrittenBounds { max_files: narrow.max_files.map(|most| most + 1), ..narrow.clone() },
        WrittenBounds { max_bytes: narrow.max_bytes.map(|most| most + 1), ..narrow.clone() },
    ];
    for glob in GLOBS {
        let paths = narrow.paths.clone().map(|paths| [paths, vec![(*glob).to_owned()]].concat());
        wider.push(WrittenBounds { paths, ..narrow.clone() });
    }
    for kind in KINDS {
        let kinds = narrow.kinds.clone().map(|kinds| [kinds, vec![*kind]].concat());
        wider.push(WrittenBounds { kinds, ..narrow.clone() });
    }
    wider
}

proptest! {
    #[test]
    fn wider_bounds_never_refuse_what_narrower_accept(
        narrow in any_bounds(), changes in vec(any_change(), 0..5), number in 0..2_u8
    ) {
        let (input, evidence) = (json!({"n": number}), evidence(changes));
        let seen = CallFacts::new(&input, &evidence);
        let contains = |written: WrittenBounds| Bounds::try_from(written).unwrap().contain(&seen).is_ok();
        if contains(narrow.clone()) {
            for wide in widened(&narrow) {
                prop_assert!(contains(wide.clone()), "{narrow:?} contains {seen:?}, but {wide:?} does not");
            }
        }
    }

    #[test]
    fn paths_are_matched_as_globset_does(globs in vec(select(GLOBS), 1..4), path in any_path()) {
        let paths = Some(globs.iter().map(|&glob| glob.to_owned()).collect());
        let bounds = Bounds::try_from(WrittenBounds { paths, ..WrittenBounds::default() }).unwrap();
        let held = bounds.paths.unwrap().hold(&path);
        let plainly = |glob: &&str| {
            GlobBuilder::new(glob).literal_separator(true).build().unwrap().compile_matcher().is_match(&path)
        };
        prop_assert_eq!(held, globs.iter().any(plainly));
    }

    #[test]
    fn an_escaped_path_is_that_path_and_no_other(path in "[a-z*?{}\\[\\]\\\\!,.]{1,6}(/[a-z*?{}\\[\\]]{1,4})?") {
        prop_assume!(!path.split('/').any(|part| part == "." || part == ".."));
        let glob = escaped(&path);
        let bounds = WrittenBounds { paths: Some(vec![glob.clone()]), ..WrittenBounds::default() };
        let paths = Bounds::try_from(bounds).unwrap().paths.unwrap();
        let longer = format!("{path}x");
        prop_assert!(paths.name(&path) && !paths.hold(&longer));
        let plainly = GlobBuilder::new(&glob).literal_separator(true).build().unwrap().compile_matcher();
        prop_assert!(plainly.is_match(&path));
    }
}
