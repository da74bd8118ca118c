//! `lkr parse` as a program, with workers of its own.

#![expect(clippy::unwrap_used, reason = "a test ends where something fails")]

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

fn said(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

#[test]
fn one_file_is_printed_alone_and_several_under_their_names() {
    let dir = folder(&[("a.txt", "Größe\n"), ("b.html", "<p>One &amp; two</p>")]);
    let one = parse(dir.path(), &["a.txt"]);
    assert!(one.status.success());
    assert_eq!(said(&one.stdout), "Größe\n");
    assert!(said(&one.stderr).starts_with("1 read, 0 refused, "), "{}", said(&one.stderr));
    let all = parse(dir.path(), &["."]);
    assert_eq!(said(&all.stdout), "==> a.txt <==\nGröße\n==> b.html <==\nOne & two\n");
}

#[test]
fn a_refusal_is_one_line_and_fails_unless_told_to_go_on() {
    let dir = folder(&[("a.pdf", "no such thing"), ("b.txt", "words"), ("c.exe", "MZ")]);
    let arguments = ["a.pdf", "b.txt", "c.exe", "absent.md"];
    let output = parse(dir.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(said(&output.stdout), "==> b.txt <==\nwords\n");
    let lines: Vec<&str> = said(&output.stderr).lines().collect();
    let [pdf, exe, absent, last] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(pdf.starts_with("a.pdf: "), "{pdf}");
    assert!(exe.starts_with("c.exe: files that end with .exe are not read"), "{exe}");
    assert!(absent.starts_with("absent.md: No such file"), "{absent}");
    assert!(last.starts_with("1 read, 3 refused, "), "{last}");
    let arguments = [&arguments[..], &["--keep-going"]].concat();
    assert!(parse(dir.path(), &arguments).status.success());
}

#[test]
fn files_go_into_a_folder_with_their_blocks() {
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
fn a_body_is_what_is_no_furniture() {
    let article =
        format!("<article><h1>Day</h1><p>{}</p></article>", "A fine long day in the hills. ".repeat(40));
    let page = format!("<html><body><nav><a href=/>Start page</a></nav>{article}</body></html>");
    let dir = folder(&[("a.html", &page)]);
    let whole = parse(dir.path(), &["a.html"]);
    let body = parse(dir.path(), &["a.html", "--body"]);
    assert!(said(&whole.stdout).contains("Start page"), "{}", said(&whole.stdout));
    assert!(!said(&body.stdout).contains("Start page") && said(&body.stdout).contains("fine long day"));
    let plain = parse(dir.path(), &["a.html", "--html", "html2text", "--json"]);
    let plain: serde_json::Value = serde_json::from_slice(&plain.stdout).unwrap();
    assert_eq!(plain["plugin"], "html2text");
}

#[test]
fn a_plugin_that_is_not_here_is_refused_before_anything_is_read() {
    let dir = folder(&[("a.txt", "words")]);
    let output = parse(dir.path(), &["a.txt", "--pdf", "pdfium"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let line =
        "lkr: --pdf pdfium: plugin not available; available: pdf_oxide, lopdf; give its library with --pdfium\n";
    assert_eq!(said(&output.stderr), line);
}
