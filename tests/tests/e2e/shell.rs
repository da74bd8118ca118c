//! What a person does on the command line, on a server and on a folder.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    process::Child,
};

use lkr_tests::{ADMIN_PASSWORD, CommandLine, Server, free_port, printed};
use serde_json::{Value, json};

const TIDES: &str =
    "# Tides\n\nThe moon pulls the sea twice a day.\n\n## Springs\n\nAt full moon the sun helps.\n";

fn with_notes(lkr: &CommandLine) {
    fs::create_dir_all(lkr.path("notes/old")).unwrap();
    fs::write(lkr.path("notes/tides.md"), TIDES).unwrap();
    fs::write(lkr.path("notes/old/cats.txt"), "Cats purr. Cats sleep all day.\n").unwrap();
}

/// The notes, added as documents.
fn add_notes(lkr: &CommandLine) {
    with_notes(lkr);
    let _ = lkr.print(&["add", "notes"]);
}

/// The commands that work alike on a server and on a folder, which `target` names.
fn use_documents(lkr: &CommandLine, target: &[&'static str]) {
    let with = |arguments: &[&'static str]| [arguments, target].concat();
    with_notes(lkr);
    let added = lkr.print(&with(&["add", "notes"]));
    assert!(added.starts_with("2 documents added, 3 chunks in "), "{added}");

    let found = lkr.print(&with(&["search", "moon", "sea"]));
    assert!(found.contains("1. tides") && found.contains("The moon pulls the sea"), "{found}");
    let found = lkr.json(&with(&["search", "cats", "-n", "1"]));
    assert_eq!(found[0]["results"][0]["source"], "file:notes/old/cats.txt", "{found:?}");
    let answer = lkr.print(&with(&["ask", "who purrs?"]));
    assert!(answer.contains("Cats purr.") && answer.contains("[1] cats"), "{answer}");
    let context = lkr.print(&with(&["context", "full moon", "--max-tokens", "60"]));
    assert!(context.contains("[1]") && context.contains("full moon"), "{context}");

    let listed = lkr.print(&with(&["ls"]));
    assert!(listed.starts_with("DOCUMENT") && listed.lines().count() == 3, "{listed}");
    let ids = lkr.print(&with(&["ls", "--quiet", "ti"]));
    let id = ids.trim();
    assert_eq!(id.len(), 32, "{ids}");
    let shown = lkr.print(&with(&["get", "notes/tides.md"]));
    assert!(shown.starts_with("tides\n") && shown.contains(id) && shown.contains("Springs"), "{shown}");
    assert_eq!(lkr.print(&[&["get", id, "--text"], target].concat()), TIDES);
    assert_eq!(lkr.json(&[&["get", id, "--chunks"], target].concat()).len(), 2);
    let saved = lkr.print(&[&["get", id, "--file"], target].concat());
    assert_eq!(
        (saved.trim(), fs::read_to_string(lkr.path("tides.md")).unwrap().as_str()),
        ("tides.md", TIDES)
    );
    let again = lkr.run(&[&["get", id, "--file"], target].concat());
    assert!(!again.status.success(), "a file was overwritten");
    assert_eq!(lkr.print(&[&["get", id, "--file", "-o", "-"], target].concat()), TIDES);

    let tasks = lkr.json(&with(&["tasks"]));
    assert!(tasks.len() == 2 && tasks.iter().all(|task| task["status"] == "done"), "{tasks:?}");
    let counted = lkr.print(&with(&["rm", "--where", r#"{"field": "title", "eq": "cats"}"#, "--dry-run"]));
    assert_eq!(counted, "1 document would be deleted\n");
    let deleted = lkr.print(&with(&["rm", "--where", r#"{"field": "title", "eq": "cats"}"#, "--yes"]));
    assert_eq!(deleted, "deleted 1 document\n");
    let would = lkr.print(&[&["rm", "--dry-run", "--yes", id], target].concat());
    assert_eq!(would, format!("would delete {id}  tides\n"));
    assert_eq!(lkr.print(&[&["rm", "--yes", "notes/tides.md"], target].concat()), format!("deleted {id}\n"));
    assert_eq!(lkr.json(&with(&["ls"])).len(), 0);
}

#[test]
fn documents_are_added_found_and_deleted_on_a_server() {
    let server = Server::start();
    use_documents(&CommandLine::on(&server), &[]);
}

#[test]
fn documents_are_added_found_and_deleted_in_a_folder_without_a_server() {
    let lkr = CommandLine::alone();
    let missing = lkr.run(&["search", "x", "--data-dir", "kb"]);
    assert_eq!(missing.status.code(), Some(4), "{}", printed(&missing));
    assert!(printed(&missing).contains("kb contains no knowledge base"), "{}", printed(&missing));
    use_documents(&lkr, &["--data-dir", "kb"]);
    // A typing error makes no knowledge base.
    for command in
        [["users"].as_slice(), &["users", "rm", "eva", "--yes"], &["spaces", "set", "sea", "--title", "x"]]
    {
        let missing = lkr.run(&[command, &["--data-dir", "typo"]].concat());
        assert_eq!(missing.status.code(), Some(4), "{command:?} {}", printed(&missing));
        assert!(!lkr.path("typo").exists(), "{command:?}");
    }
    let created = lkr.print(&["spaces", "create", "sea", "--data-dir", "kb"]);
    assert_eq!(created, "created sea\n");
    assert!(lkr.print(&["status", "--data-dir", "kb"]).contains("account    admin (admin)"));
    // Requests to this machine go through no proxy.
    let mut status = lkr.command(&["status", "--data-dir", "kb"]);
    for name in ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY"] {
        status.env(name, "http://127.0.0.1:9");
    }
    let status = status.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
    assert!(status.status.success(), "{}", printed(&status));
    assert!(!lkr.path("kb/store/opened").exists(), "the store is closed at the end of each command");
}

#[test]
fn login_keeps_a_private_key_and_logout_deletes_it() {
    let server = Server::start();
    let lkr = CommandLine::alone();
    let login = lkr.run_with_input(&["--server", &server.url(), "login"], &format!("{ADMIN_PASSWORD}\n"));
    assert!(login.status.success(), "{}", printed(&login));
    let file = lkr.path("config/lkr/logins.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(&file).unwrap().contains(ADMIN_PASSWORD));
    assert!(lkr.print(&["status"]).contains("account    admin (admin)"));
    let keys = lkr.json(&["keys"]);
    assert!(keys.len() == 1 && keys[0]["name"].as_str().unwrap().starts_with("lkr login on "), "{keys:?}");
    let logout = lkr.run(&["logout"]);
    assert!(logout.status.success(), "{}", printed(&logout));
    assert!(CommandLine::on(&server).json(&["keys"]).is_empty());
    assert!(!fs::read_to_string(file).unwrap().contains("lkr_"));
    assert_eq!(lkr.run(&["logout"]).status.code(), Some(4));

    // Of a key that somebody else deleted it is not said that it stays valid.
    let login = lkr.run_with_input(&["--server", &server.url(), "login"], &format!("{ADMIN_PASSWORD}\n"));
    assert!(login.status.success(), "{}", printed(&login));
    let key = lkr.json(&["keys"])[0]["id"].as_str().unwrap().to_owned();
    let _ = CommandLine::on(&server).print(&["keys", "rm", &key]);
    let logout = lkr.run(&["logout"]);
    assert!(logout.status.success() && !printed(&logout).contains("stays valid"), "{}", printed(&logout));

    // A login that cannot be kept leaves no key.
    fs::remove_dir_all(lkr.path("config")).unwrap();
    fs::write(lkr.path("config"), "in the way").unwrap();
    let login = lkr.run_with_input(&["--server", &server.url(), "login"], &format!("{ADMIN_PASSWORD}\n"));
    assert!(!login.status.success(), "{}", printed(&login));
    assert!(CommandLine::on(&server).json(&["keys"]).is_empty());
}

#[test]
fn empty_name_names_no_document() {
    let (server, untitled) = (Server::start(), json!({ "text": "a note without a source" }));
    let lkr = CommandLine::on(&server);
    let id = server.add(&untitled);
    for command in [["rm", "--yes", ""].as_slice(), &["rm", "--yes", " "], &["get", ""]] {
        let refused = lkr.run(command);
        assert_eq!(refused.status.code(), Some(2), "{command:?} {}", printed(&refused));
    }
    assert_eq!(server.get(&format!("/documents/{id}")).status, 200);
}

#[test]
fn login_sets_a_new_password_if_the_account_must_have_one() {
    let server = Server::start_with(&[]);
    let first = fs::read_to_string(server.data_dir().join("initial-admin-password")).unwrap();
    let lkr = CommandLine::alone();
    let input = format!("{}\nmy own long password\n", first.trim());
    let login = lkr.run_with_input(&["login", &server.url()], &input);
    assert!(login.status.success(), "{}", printed(&login));
    let body = json!({"username": "admin", "password": "my own long password"});
    assert_eq!(server.post("/auth/login", &body).status, 200);
    assert_eq!(lkr.print(&["ls", "-q"]), "");
}

#[test]
fn spaces_groups_users_and_keys_are_managed() {
    let server = Server::start();
    let admin = CommandLine::on(&server);
    let created = admin.run_with_input(&["users", "create", "eva", "--keep-password"], "password of eva\n");
    assert_eq!(printed(&created), "created eva\n");
    assert_eq!(admin.print(&["spaces", "create", "sea", "--title", "The sea"]), "created sea\n");
    assert_eq!(admin.print(&["groups", "create", "crew"]), "created crew\n");
    assert_eq!(admin.print(&["groups", "add", "crew", "eva"]), "eva is in crew\n");
    assert_eq!(
        admin.print(&["spaces", "grant", "sea", "group:crew", "writer"]),
        "group:crew is a writer of sea\n"
    );
    assert_eq!(admin.print(&["spaces", "members", "sea", "-q"]), "group:crew\n");

    let body = json!({"username": "eva", "password": "password of eva"});
    let session = server.post("/auth/login", &body).data().clone();
    let eva = CommandLine::with_token(&server, session["access_token"].as_str().unwrap());
    let key =
        eva.print(&["keys", "create", "reading", "--space", "sea", "--read-only", "--expires-in", "1d"]);
    assert!(key.starts_with("lkr_"), "{key}");
    let sea = eva.json(&["spaces"]);
    let roles: Vec<_> = sea.iter().map(|space| (&space["space"], &space["your_role"])).collect();
    assert_eq!(roles, [(&json!("default"), &json!("writer")), (&json!("sea"), &json!("writer"))]);
    let text = eva.run_with_input(&["add", "-", "--space", "sea", "--source", "note"], TIDES);
    assert!(text.status.success(), "{}", printed(&text));

    let reader = CommandLine::with_token(&server, key.trim());
    assert_eq!(reader.json(&["search", "moon"])[0]["results"][0]["source"], "note");
    let refused = reader.run_with_input(&["add", "-", "--space", "sea"], "text");
    assert_eq!(refused.status.code(), Some(3), "{}", printed(&refused));

    assert_eq!(admin.print(&["groups", "drop", "crew", "eva"]), "eva is no longer in crew\n");
    assert_eq!(admin.print(&["groups", "rm", "crew", "--yes"]), "deleted crew\n");
    let hidden = reader.run(&["search", "moon", "--space", "sea"]);
    assert_eq!(hidden.status.code(), Some(4), "{}", printed(&hidden));
    assert_eq!(admin.print(&["users", "set", "eva", "--disable"]), "changed eva\n");
    assert_eq!(eva.run(&["keys"]).status.code(), Some(3));
    let full = admin.run(&["spaces", "rm", "sea", "--yes"]);
    assert!(full.status.code() == Some(3) && printed(&full).contains("--documents"), "{}", printed(&full));
    assert_eq!(admin.print(&["spaces", "rm", "sea", "--documents", "--yes"]), "deleted sea\n");
    assert_eq!(admin.print(&["users", "rm", "eva", "--yes"]), "deleted eva\n");
    assert_eq!(admin.print(&["spaces", "-q"]), "default\n");
}

#[test]
fn exit_code_tells_what_went_wrong_and_the_error_what_to_do() {
    let server = Server::start();
    let lkr = CommandLine::on(&server);
    let nobody = CommandLine::alone();
    let unreachable = format!("http://127.0.0.1:{}", free_port());
    with_notes(&lkr);
    fs::write(lkr.path("notes/bad.pdf"), "%PDF-1.4 no").unwrap();
    let exit = |lkr: &CommandLine, arguments: &[&str], code: i32, part: &str| {
        let output = lkr.run(arguments);
        let shown = printed(&output);
        assert!(output.status.code() == Some(code) && shown.contains(part), "{arguments:?}: {output:?}");
    };
    exit(&lkr, &["search"], 2, "QUERY");
    exit(&lkr, &["rm", "x"], 4, "no document has the id or source x");
    exit(&lkr, &["search", "x", "--where", "{"], 2, "--where");
    exit(&nobody, &["ls", "--server", &server.url(), "--token", "no"], 3, "lkr login");
    exit(&nobody, &["add", "x", "--server", &server.url()], 4, "x is no file");
    exit(&nobody, &["keys", "--server", &server.url()], 3, &format!("lkr login {}", server.url()));
    exit(&nobody, &["ls", "--server", "127.0.0.1:1"], 2, "begins with http://");
    exit(&nobody, &["ls", "--server", &server.url(), "--user", "eva"], 2, "--password-file");
    exit(&lkr, &["search", "x", "--limit", "0"], 2, "top_k");
    exit(&lkr, &["add", "notes/bad.pdf"], 1, "bad.pdf cannot be read");
    exit(&lkr, &["add", "nothing.txt", "notes/tides.md"], 5, "nothing.txt is no file");
    exit(
        &lkr,
        &["add", "--data-dir", "notes", "notes/tides.md"],
        4,
        "notes contains no knowledge base, and is not empty",
    );
    exit(&lkr, &["get", "no such source"], 4, "no such source");
    exit(&lkr, &["rm", "--yes", &"0".repeat(32)], 4, "1004");
    exit(&lkr, &["rm", "notes/tides.md"], 2, "--yes");
    exit(&lkr, &["add", "notes"], 5, "bad.pdf cannot be read");
    exit(&nobody, &["ls", "--server", &unreachable], 6, "lkr serve");
}

#[test]
fn output_in_a_pipe_has_no_escape_codes() {
    let server = Server::start();
    let lkr = CommandLine::on(&server);
    with_notes(&lkr);
    for arguments in [&["add", "notes"][..], &["search", "moon"], &["ls"], &["tasks"], &["--help"]] {
        let shown = printed(&lkr.run(arguments));
        assert!(!shown.contains('\x1b'), "{arguments:?}: {shown:?}");
    }
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let lkr = CommandLine::alone();
    for shell in ["bash", "zsh", "fish"] {
        let script = lkr.print(&["completions", shell]);
        for name in
            ["sync", "search", "spaces", "data-dir", "require-login-for-reads", "reader writer manager"]
        {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
    let man = lkr.print(&["man", "--out", "man"]);
    assert!(man.is_empty());
    for page in ["lkr.1", "lkr-sync.1", "lkr-serve.1", "lkr-spaces-grant.1"] {
        assert!(lkr.path("man").join(page).is_file(), "{page}");
    }
}

#[test]
fn control_characters_of_names_and_titles_are_not_printed() {
    let server = Server::start();
    let lkr = CommandLine::on(&server);
    fs::create_dir(lkr.path("folder")).unwrap();
    fs::write(lkr.path("folder/a\x1b[31m.txt"), "red").unwrap();
    let plan = lkr.print(&["sync", "folder", "--dry-run"]);
    assert_eq!(plan, "new      a [31m.txt\n");
    let file = lkr.run(&["add", "folder/a\x1b[31m.txt"]);
    assert!(file.status.success(), "{}", printed(&file));
    let text = lkr.run_with_input(&["add", "-", "--title", "T\x1b[32m", "--source", "s"], "green");
    assert!(text.status.success(), "{}", printed(&text));
    for arguments in [&["get", "s"][..], &["ls"], &["search", "green"]] {
        let shown = lkr.print(arguments);
        assert!(shown.contains("T [32m") && !shown.contains('\x1b'), "{arguments:?}: {shown:?}");
    }
}

#[test]
fn flags_before_the_command_are_those_behind_it() {
    let server = Server::start();
    let (lkr, url, token) = (CommandLine::alone(), server.url(), server.admin());
    with_notes(&lkr);
    let before = ["--server", &url, "--token", token];
    let _ = lkr.print(&[&before[..], &["add", "notes"]].concat());
    let found = lkr.print(&[&before[..], &["--json", "search", "moon"]].concat());
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["results"][0]["source"], "file:notes/tides.md");
    let members = lkr.print(&[&before[..], &["-q", "spaces", "members", "default"]].concat());
    assert_eq!(members, "");
    let tasks = lkr.print(&[&before[..], &["-q", "tasks"]].concat());
    let task = tasks.lines().next().unwrap();
    assert_eq!(lkr.print(&[&before[..], &["-q", "tasks", "show", task]].concat()), "done\n");
    assert_eq!(lkr.print(&[&before[..], &["tasks", "-q", "show", task]].concat()), "done\n");
    let refused = lkr.run(&[&before[..], &["tasks", "--status", "done", "show", task]].concat());
    assert!(
        refused.status.code() == Some(2) && printed(&refused).contains("--status"),
        "{}",
        printed(&refused)
    );
    assert!(lkr.print(&["--data-dir", "kb", "add", "notes"]).starts_with("2 documents added"));
    // A command without the flag refuses it by name.
    let refused = lkr.run(&["--json", "completions", "bash"]);
    assert!(
        refused.status.code() == Some(2) && printed(&refused).contains("--json"),
        "{}",
        printed(&refused)
    );
}

/// The first digits of an id.
fn beginning(id: &str, digits: usize) -> &str {
    id.get(..digits).unwrap()
}

#[test]
fn beginning_of_an_id_names_what_has_it() {
    let server = Server::start();
    let lkr = CommandLine::on(&server);
    add_notes(&lkr);
    let id = lkr.print(&["ls", "-q", "tides"]).trim().to_owned();
    assert_eq!(lkr.print(&["get", beginning(&id, 31), "--text"]), TIDES);
    let task = lkr.json(&["tasks"])[0]["task_id"].as_str().unwrap().to_owned();
    assert_eq!(lkr.json(&["tasks", "show", beginning(&task, 31)])[0]["task_id"], task.as_str());
    // Ids begin with their time, so those of one run begin alike.
    let shared = lkr.run(&["tasks", "show", beginning(&task, 6)]);
    let shown = printed(&shared);
    assert!(shared.status.code() == Some(2) && shown.contains(&task), "{shown}");
    for arguments in
        [["tasks", "show", "ffffffff"], ["get", "ffffffff", "--text"], ["keys", "rm", "ffffffff"]]
    {
        let missing = lkr.run(&arguments);
        assert_eq!(missing.status.code(), Some(4), "{arguments:?}: {}", printed(&missing));
    }
    let _ = lkr.print(&["keys", "create", "short"]);
    let key = lkr.json(&["keys"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(lkr.print(&["keys", "rm", beginning(&key, 31)]), format!("deleted {key}\n"));
    assert_eq!(lkr.print(&["rm", "--yes", beginning(&id, 31)]), format!("deleted {id}\n"));
}

#[test]
fn absent_member_cannot_be_removed() {
    let server = Server::start();
    let lkr = CommandLine::on(&server);
    let _ = lkr.print(&["spaces", "create", "sea"]);
    let _ = lkr.print(&["groups", "create", "crew"]);
    for (arguments, hint) in [
        (["spaces", "revoke", "sea", "admin"], "lkr spaces members sea"),
        (["spaces", "revoke", "sea", "group:crew"], "lkr spaces members sea"),
        (["groups", "drop", "crew", "admin"], "lkr groups members crew"),
    ] {
        let absent = lkr.run(&arguments);
        let shown = printed(&absent);
        assert!(absent.status.code() == Some(4) && shown.contains(hint), "{arguments:?}: {shown}");
    }
    let _ = lkr.print(&["spaces", "grant", "sea", "admin", "reader"]);
    assert_eq!(lkr.print(&["spaces", "revoke", "sea", "admin"]), "admin is no longer a member of sea\n");
}

#[test]
fn sync_lists_each_file_on_request() {
    let server = Server::start();
    let lkr = CommandLine::on(&server);
    with_notes(&lkr);
    let lines = |arguments: &[&str]| {
        let shown = lkr.print(arguments);
        let mut lines: Vec<String> = shown.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let first = lines(&["sync", "notes", "-v"]);
    assert!(first[0].starts_with("2 new, 0 changed"), "{first:?}");
    assert_eq!(first[1..], ["new      old/cats.txt", "new      tides.md"]);
    fs::write(lkr.path("notes/tides.md"), format!("{TIDES}\nMore of it.\n")).unwrap();
    fs::remove_file(lkr.path("notes/old/cats.txt")).unwrap();
    let second = lines(&["sync", "notes", "--verbose", "--delete"]);
    assert_eq!(second[1..], ["changed  tides.md", "deleted  old/cats.txt"]);
    fs::rename(lkr.path("notes/tides.md"), lkr.path("notes/waves.md")).unwrap();
    assert_eq!(lines(&["sync", "notes", "-v", "-q"]), ["waves.md"]);
}

#[test]
fn backup_is_written_to_the_standard_output_and_reported_as_json() {
    let server = Server::start();
    let lkr = CommandLine::on(&server);
    add_notes(&lkr);
    let piped = lkr.run(&["backup", "-o", "-"]);
    assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stderr));
    assert!(String::from_utf8_lossy(&piped.stderr).contains("in the standard output"));
    fs::write(lkr.path("piped.tar"), piped.stdout).unwrap();
    let made = &lkr.json(&["backup", "-o", "named.tar"])[0];
    assert_eq!((&made["file"], &made["missing"]), (&json!("named.tar"), &json!([])));
    assert!(made["files"].as_u64().unwrap() > 2 && made["bytes"].as_u64().unwrap() > 1_000, "{made}");
    let restored = &lkr.json(&["restore", "piped.tar", "--data-dir", "restored"])[0];
    assert_eq!((&restored["data_dir"], &restored["files"]), (&json!("restored"), &made["files"]));
    assert_eq!(lkr.json(&["ls", "--data-dir", "restored"]).len(), 2);
    let quiet = lkr.run(&["restore", "named.tar", "--data-dir", "again", "-q"]);
    assert_eq!(String::from_utf8_lossy(&quiet.stdout), "again\n");
}

/// Ends a program with the test.
struct EndOnDrop(Child);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn top_prints_an_object_for_each_frame() {
    let server = Server::start();
    let lkr = CommandLine::on(&server);
    let once = &lkr.json(&["top", "--once"])[0];
    assert_eq!((&once["server"], &once["status"]), (&json!(server.url()), &json!("degraded")), "{once}");
    assert!(once["requests_per_second"].as_f64().unwrap() > 0.0 && once["workers"].is_number(), "{once}");
    let mut running = EndOnDrop(lkr.command(&["top", "--json"]).spawn().unwrap());
    let lines = BufReader::new(running.0.stdout.take().unwrap()).lines().take(2);
    for line in lines {
        let frame: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert_eq!(frame["server"], json!(server.url()), "{frame}");
    }
}

#[test]
fn times_are_shown_with_their_zone() {
    let server = Server::start();
    let lkr = CommandLine::on(&server);
    add_notes(&lkr);
    for listing in [&["ls"][..], &["tasks"], &["users"]] {
        let shown = lkr.print(listing);
        assert!(shown.lines().next().unwrap().contains("(UTC)"), "{listing:?}: {shown}");
    }
    let shown = lkr.print(&["get", "notes/tides.md"]);
    assert!(shown.lines().any(|line| line.starts_with("updated") && line.ends_with(" UTC")), "{shown}");
}
