//! `read_file`

use std::{
    fs::{self, File},
    io::Write,
    time::{Duration, UNIX_EPOCH},
};

use haft_runtime::ErrorCode;
use serde_json::json;

use crate::place::{Place, ctx};

#[test]
fn text_comes_raw_and_numbered() {
    let place = Place::new();
    let path = place.put("src/a.txt", "one\ntwo\n");
    File::options().append(true).open(&path).unwrap().set_modified(UNIX_EPOCH + Duration::from_secs(1)).unwrap();
    let output = place.read("read_file", json!({ "path": "src/a.txt" })).unwrap();
    assert_eq!(
        *output.structured,
        json!({
            "path": "src/a.txt", "content": "one\ntwo\n", "encoding": "utf-8", "size": 8,
            "modified": "1970-01-01T00:00:01Z", "startLine": 1, "endLine": 2, "totalLines": 2,
            "truncated": false, "binary": false, "mimeType": "text/plain",
        })
    );
    assert_eq!(output.content, "     1→one\n     2→two");
    assert_eq!(output.metadata["path"], "src/a.txt");
    assert_eq!(output.metadata.get("hard_links"), None);
}

#[test]
fn a_window_of_lines() {
    let place = Place::new();
    place.put("a", "one\r\ntwo\r\nthree");
    let window = |offset, limit| {
        let output = place.read("read_file", json!({ "path": "a", "offset": offset, "limit": limit })).unwrap();
        (output.structured, output.content)
    };
    let (found, text) = window(2, 1);
    assert_eq!(
        (&found["content"], &found["totalLines"], &found["truncated"]),
        (&json!("two\r\n"), &json!(3), &json!(true))
    );
    assert_eq!(text, "     2→two\n(line 2 of 3; read on with offset=3)");
    let (found, _) = window(3, 10);
    assert_eq!(
        (&found["content"], &found["endLine"], &found["truncated"]),
        (&json!("three"), &json!(3), &json!(false))
    );
    let (found, text) = window(4, 10);
    assert_eq!((&found["content"], &found["startLine"], &found["endLine"]), (&json!(""), &json!(4), &json!(3)));
    assert_eq!(text, "a has 3 lines, so there is nothing at offset 4. Use an offset up to 3.");
    let (found, _) = window(u64::MAX, u64::MAX);
    assert_eq!(found["totalLines"], 3);
}

#[test]
fn two_thousand_lines_come_unasked_and_long_ones_are_cut_in_the_text_only() {
    let place = Place::new();
    place.put("long", "x\n".repeat(2001));
    let output = place.read("read_file", json!({ "path": "long" })).unwrap();
    assert_eq!((&output.structured["endLine"], &output.structured["truncated"]), (&json!(2000), &json!(true)));
    assert!(output.content.ends_with("  2000→x\n(line 2000 of 2001; read on with offset=2001)"));
    place.put("wide", "y".repeat(5000));
    let output = place.read("read_file", json!({ "path": "wide" })).unwrap();
    assert_eq!(output.structured["content"].as_str().unwrap().len(), 5000);
    assert!(output.content.ends_with("y… (3000 more characters)"));
}

#[test]
fn without_line_numbers_the_text_is_the_content() {
    let place = Place::new();
    place.put("a", "\u{feff}one\n");
    let output = place.read("read_file", json!({ "path": "a", "lineNumbers": false })).unwrap();
    assert_eq!(output.content, "\u{feff}one\n");
    assert_eq!(output.structured["content"], "\u{feff}one\n");
}

#[test]
fn an_empty_file() {
    let place = Place::new();
    place.put("empty", "");
    let output = place.read("read_file", json!({ "path": "empty" })).unwrap();
    assert_eq!(output.content, "empty is empty.");
    let found = output.structured;
    assert_eq!((&found["totalLines"], &found["startLine"], &found["endLine"]), (&json!(0), &json!(1), &json!(0)));
    assert_eq!((&found["binary"], &found["size"]), (&json!(false), &json!(0)));
}

#[test]
fn binary_is_an_indication() {
    let place = Place::new();
    place.put("bin", (0..=255).collect::<Vec<u8>>());
    place.put("late", [vec![b'a'; 9000], b"\n\xff\0\n".to_vec()].concat());
    for (name, size) in [("bin", 256), ("late", 9004)] {
        let output = place.read("read_file", json!({ "path": name })).unwrap();
        assert_eq!((&output.structured["binary"], &output.structured["content"]), (&json!(true), &json!("")), "{name}");
        assert_eq!(output.structured.get("encoding"), None);
        let told = format!("Binary file {name} (application/octet-stream, {size} bytes). Use encoding=base64.");
        assert_eq!(output.content, told);
        assert_eq!(output.structured.get("startLine"), None);
    }
    // The beginning of the last one is text and can be read.
    let output = place.read("read_file", json!({ "path": "late", "limit": 1 })).unwrap();
    assert_eq!(output.structured["binary"], false);
    // Text in another encoding is text, wherever that shows.
    place.put("latin", [vec![b'a'; 9000], b"\ncaf\xe9\n".to_vec()].concat());
    let output = place.read("read_file", json!({ "path": "latin", "offset": 2 })).unwrap();
    assert_eq!((&output.structured["content"], &output.structured["binary"]), (&json!("café\n"), &json!(false)));
    assert_eq!(output.structured["charset"], json!("windows-1252"));
}

#[test]
fn base64_gives_the_exact_bytes() {
    let place = Place::new();
    place.put("bin", b"\0\xff");
    let output = place.read("read_file", json!({ "path": "bin", "encoding": "base64" })).unwrap();
    assert_eq!((&output.structured["content"], &output.structured["encoding"]), (&json!("AP8="), &json!("base64")));
    assert_eq!((&output.structured["binary"], output.content.as_str()), (&json!(true), "AP8="));
    let refused = place.read("read_file", json!({ "path": "bin", "encoding": "base64", "limit": 1 })).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArgs);
    File::create(place.path("big")).unwrap().set_len((256 << 10) + 1).unwrap();
    let refused = place.read("read_file", json!({ "path": "big", "encoding": "base64" })).unwrap_err();
    assert_eq!(refused.code, ErrorCode::TooLarge);
    File::create(place.path("fits")).unwrap().set_len(256 << 10).unwrap();
    assert!(place.read("read_file", json!({ "path": "fits", "encoding": "base64" })).is_ok());
}

#[test]
fn a_picture_is_shown() {
    let place = Place::new();
    let picture = [b"\x89PNG\r\n\x1a\n\0\0".as_slice(), &[7; 10_000]].concat();
    place.put("look.dat", &picture);
    let output = place.read("read_file", json!({ "path": "look.dat" })).unwrap();
    assert_eq!((output.structured.get("content"), output.structured.get("encoding")), (None, None), "no empty text");
    assert_eq!(output.images.len(), 1);
    assert_eq!(output.images[0].mime_type, "image/png");
    assert_eq!(output.images[0].data.len(), picture.len().div_ceil(3) * 4);
    assert_eq!(output.structured["binary"], true);
    assert_eq!(output.structured["mimeType"], "image/png");
    assert_eq!(output.content, "Picture look.dat (image/png, 10010 bytes).");
    File::options().append(true).open(place.path("look.dat")).unwrap().set_len((5 << 20) + 1).unwrap();
    let output = place.read("read_file", json!({ "path": "look.dat" })).unwrap();
    assert!(output.images.is_empty() && output.content.starts_with("Binary file look.dat (image/png"));
}

#[test]
fn hard_links_are_reported() {
    let place = Place::new();
    let path = place.put("a", "one\n");
    fs::hard_link(path, place.path("b")).unwrap();
    let output = place.read("read_file", json!({ "path": "a" })).unwrap();
    assert_eq!(output.metadata["hard_links"], 2);
}

#[test]
fn a_missing_file_names_the_nearest() {
    let place = Place::new();
    place.put("src/a.txt", "");
    let refused = place.read("read_file", json!({ "path": "src/b.txt" })).unwrap_err();
    assert_eq!(refused.code, ErrorCode::FileNotFound);
    assert_eq!(refused.message, "cannot read `src/b.txt`: it does not exist; did you mean `src/a.txt`?");
    assert_eq!(refused.details["nearest"], json!(["src/a.txt"]));
    let refused = place.read("read_file", json!({ "path": "src" })).unwrap_err();
    assert_eq!(refused.code, ErrorCode::IsADirectory);
}

#[test]
fn a_file_that_changes_while_it_is_read_does_no_harm() {
    let place = Place::new();
    let path = place.put("a", "line\n".repeat(100_000));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = File::options().write(true).open(path).unwrap();
            let mut size = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                file.set_len(size % 700_000).unwrap();
                size += 77_777;
            }
        });
        for offset in [1, 50, 99_999] {
            for _ in 0..20 {
                assert!(place.read("read_file", json!({ "path": "a", "offset": offset })).is_ok());
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_stopped_call_ends_soon() {
    let place = Place::new();
    let file = File::create(place.path("huge")).unwrap();
    file.set_len(64 << 30).unwrap();
    (&file).write_all(&[b'a'; 9000]).unwrap();
    let ctx = ctx();
    ctx.cancel.cancel();
    let input = json!({ "path": "huge", "offset": 2 });
    let refused = place.wait(place.tool("read_file").run(&ctx, &input)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Cancelled);
}
