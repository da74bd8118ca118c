//! `lkr parse` as a program with its worker processes.

#![expect(clippy::unwrap_used, reason = "a failing test panics")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

fn parse(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lkr"));
    command
        .arg("parse")
        .args(arguments)
        .current_dir(folder)
        .env_remove("LKR_PDFIUM_LIBRARY")
        .output()
        .unwrap()
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn utf8(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

#[test]
fn parse_prints_file_names_only_above_several_files() {
    let dir = folder(&[("a.txt", "Größe\n"), ("b.html", "<p>One &amp; two</p>")]);
    let one = parse(dir.path(), &["a.txt"]);
    assert!(one.status.success());
    assert_eq!(utf8(&one.stdout), "Größe\n");
    assert!(utf8(&one.stderr).starts_with("1 read, 0 refused, "), "{}", utf8(&one.stderr));
    let all = parse(dir.path(), &["."]);
    assert_eq!(utf8(&all.stdout), "==> a.txt <==\nGröße\n==> b.html <==\nOne & two\n");
}

#[test]
fn refused_file_fails_the_command_unless_keep_going_is_given() {
    let dir = folder(&[("a.pdf", "no such thing"), ("b.txt", "words"), ("c.exe", "MZ")]);
    let arguments = ["a.pdf", "b.txt", "c.exe", "absent.md"];
    let output = parse(dir.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(utf8(&output.stdout), "==> b.txt <==\nwords\n");
    let lines: Vec<&str> = utf8(&output.stderr).lines().collect();
    let [pdf, exe, absent, last] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(pdf.starts_with("a.pdf: "), "{pdf}");
    assert!(exe.starts_with("c.exe: files that end with .exe are not supported"), "{exe}");
    assert!(absent.starts_with("absent.md: No such file"), "{absent}");
    assert!(last.starts_with("1 read, 3 refused, "), "{last}");
    let arguments = [&arguments[..], &["--keep-going"]].concat();
    assert!(parse(dir.path(), &arguments).status.success());
}

#[test]
fn out_writes_texts_and_json_into_a_folder() {
    let dir = folder(&[("a.md", "# Über\n\nText.\n"), ("b.txt", "words")]);
    let output = parse(dir.path(), &["a.md", "b.txt", "--out", "out"]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(fs::read_to_string(dir.path().join("out/a.md.txt")).unwrap(), "# Über\n\nText.\n");
    assert_eq!(fs::read_to_string(dir.path().join("out/b.txt.txt")).unwrap(), "words");
    assert!(parse(dir.path(), &["a.md", "--out", "out", "--json"]).status.success());
    let json = fs::read(dir.path().join("out/a.md.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&json["file"], &json["plugin"]), (&"a.md".into(), &"markdown".into()));
    let heading = &json["blocks"][0];
    assert_eq!(
        (&heading["kind"], &heading["level"], &heading["title"]),
        (&"heading".into(), &1.into(), &"Über".into())
    );
    assert_eq!((&heading["char_start"], &heading["char_end"]), (&0.into(), &6.into()));
}

#[test]
fn body_omits_furniture() {
    let article =
        format!("<article><h1>Day</h1><p>{}</p></article>", "A fine long day in the hills. ".repeat(40));
    let page = format!("<html><body><nav><a href=/>Start page</a></nav>{article}</body></html>");
    let dir = folder(&[("a.html", &page)]);
    let complete = parse(dir.path(), &["a.html"]);
    let body = parse(dir.path(), &["a.html", "--body"]);
    assert!(utf8(&complete.stdout).contains("Start page"), "{}", utf8(&complete.stdout));
    assert!(!utf8(&body.stdout).contains("Start page") && utf8(&body.stdout).contains("fine long day"));
    let plain = parse(dir.path(), &["a.html", "--html", "html2text", "--json"]);
    let plain: serde_json::Value = serde_json::from_slice(&plain.stdout).unwrap();
    assert_eq!(plain["plugin"], "html2text");
}

#[test]
fn unavailable_plugin_is_refused_before_any_file_is_read() {
    let dir = folder(&[("a.txt", "words")]);
    let output = parse(dir.path(), &["a.txt", "--pdf", "pdfium"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let line = "lkr: --pdf pdfium: plugin not available; available: pdf_oxide, lopdf; give its library with --pdfium\n";
    assert_eq!(utf8(&output.stderr), line);
}
