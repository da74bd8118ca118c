//! The console in a real browser. The tests of its pages are in `crates/lkr-console/web/tests`; each file has a server of its own.

use std::{
    env,
    process::{Command, Stdio},
};

use lkr_test_support::{note_skip, real_data, skip};
use lkr_tests::{ADMIN_PASSWORD, Server, model_dir, workspace};

/// Runs the tests in a file of the console against a server. `prepare` adds what the file needs.
fn run_in_browser(file: &str, server: &Server, prepare: impl FnOnce(&mut Command)) {
    let Some(chromium) = env::var_os("LKR_CHROMIUM") else {
        return skip("LKR_CHROMIUM names no Chromium");
    };
    let mut node = Command::new("node");
    node.current_dir(workspace().join("crates/lkr-console/web"))
        .args(["--test", "--test-reporter=spec"])
        .arg(format!("tests/{file}.test.mjs"))
        .env("LKR_CHROMIUM", chromium)
        .env("LKR_URL", server.url())
        .env("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD)
        .stdin(Stdio::null());
    prepare(&mut node);
    let output = match node.output() {
        Ok(output) => output,
        Err(error) => return skip(&format!("node cannot be run: {error}")),
    };
    assert!(
        output.status.success(),
        "{}\n{}\nthe server's log:\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        server.log()
    );
    // What a test measured.
    let printed = String::from_utf8_lossy(&output.stdout);
    printed.lines().filter(|line| line.contains(" median ")).for_each(|line| eprintln!("{line}"));
}

/// The variable with the path of PDFium, which shows pages.
const PDFIUM: &str = "LKR_PDFIUM_LIBRARY";

/// A server with accounts of its own, with the model and with PDFium where there are such.
fn server(environment: &[(&str, &str)]) -> Server {
    let model = model_dir().map(|folder| folder.display().to_string());
    let pdfium = env::var(PDFIUM).ok();
    let mut all = environment.to_vec();
    all.extend(model.as_deref().map(|folder| ("LKR_MODEL_DIR", folder)));
    all.extend(pdfium.as_deref().map(|library| (PDFIUM, library)));
    Server::start_with(&all)
}

const ADMIN: (&str, &str) = ("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD);

/// The executable alone, in an empty folder, serves the page and every file that the page names.
#[test]
fn lesson_42_console_is_in_the_executable() {
    let server = Server::start_without_config();
    for path in ["/", "/documents/018f", "/admin/users"] {
        let page = server.try_call("GET", path, None, None).expect("a response");
        let html = String::from_utf8(page.body).expect("text");
        let files: Vec<&str> = html.split('"').filter(|value| value.starts_with("/console/")).collect();
        assert!(page.status == 200 && files.len() >= 3, "{path}: {} {html}", page.status);
        for file in files {
            let found = server.try_call("GET", file, None, None).expect("a response");
            assert!(found.status == 200 && !found.body.is_empty(), "{file}: {}", found.status);
        }
    }
}

#[test]
fn newcomer_goes_from_the_first_password_to_a_cited_answer() {
    let server = server(&[]);
    let password = server.data_dir().join("initial-admin-password");
    run_in_browser("newcomer", &server, |node| {
        node.env("LKR_INITIAL_PASSWORD_FILE", &password);
        if env::var_os(PDFIUM).is_none() {
            return skip("LKR_PDFIUM_LIBRARY names no PDFium, so no page is shown");
        }
        if let Some(pdf) = real_data("data/files/pdf/docling__bookmark_sample.pdf") {
            node.env("LKR_CONSOLE_PDF", pdf);
        }
    });
}

#[test]
fn pages_of_each_kind_are_whole_and_accessible() {
    run_in_browser("pages", &server(&[ADMIN]), |_| {});
}

#[test]
fn refused_files_are_named_after_a_reload() {
    run_in_browser("adding", &server(&[ADMIN]), |_| {});
}

#[test]
fn unsaved_changes_are_asked_about_before_they_are_lost() {
    run_in_browser("leaving", &server(&[ADMIN]), |_| {});
}

#[test]
fn sessions_that_end_or_begin_leave_pages_as_they_were() {
    run_in_browser("sessions", &server(&[ADMIN]), |_| {});
}

#[test]
fn documents_change_by_what_a_person_changed_alone() {
    run_in_browser("changing", &server(&[ADMIN]), |_| {});
}

#[test]
fn many_documents_are_deleted_after_a_question() {
    run_in_browser("documents", &server(&[ADMIN]), |_| {});
}

#[test]
fn conditions_narrow_a_search_and_stay_in_its_address() {
    run_in_browser("search", &server(&[ADMIN]), |_| {});
}

#[test]
fn documents_are_read_with_their_format_and_marked_exactly() {
    run_in_browser("reading", &server(&[ADMIN]), |node| {
        if env::var_os(PDFIUM).is_none() {
            return skip("LKR_PDFIUM_LIBRARY names no PDFium, so no page is shown");
        }
        node.env("LKR_CONSOLE_PAGES", "1");
    });
}

#[test]
fn administration_loses_nothing_and_follows_changes() {
    run_in_browser("administration", &server(&[ADMIN]), |_| {});
}

#[test]
fn unknown_documents_of_a_gold_set_are_told_before_it_is_run() {
    run_in_browser("evaluation", &server(&[ADMIN]), |_| {});
}

#[test]
fn hostile_texts_stay_texts_in_the_console() {
    run_in_browser("hostile", &server(&[ADMIN]), |_| {});
}

#[test]
fn console_shows_nothing_of_unreadable_spaces() {
    run_in_browser("spaces", &server(&[ADMIN]), |_| {});
}

#[test]
fn console_works_by_keyboard_alone() {
    run_in_browser("keyboard", &server(&[ADMIN]), |_| {});
}

/// Minutes, and figures that depend on the machine: a command of its own (`cargo xtask console speed`).
#[test]
fn console_answers_quickly_on_a_slow_processor() {
    if env::var_os("LKR_CONSOLE_SPEED").is_none() {
        return note_skip("cargo xtask console speed runs it");
    }
    run_in_browser("speed", &server(&[ADMIN]), |_| {});
}
