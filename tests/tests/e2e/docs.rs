//! The commands in the documentation: every block of shell commands is run as it is written, against a server of the test.

use std::{
    collections::BTreeSet,
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use lkr_tests::{Server, cli_binary, printed, workspace};
use serde_json::json;

/// The password in the pages.
const PASSWORD: &str = "my own long password";

/// Makes `curl` fail if the server refuses a request, except where the state of a task or document is another than the page
/// supposes. `lkr top` without `--once` runs until it is stopped.
const PRELUDE: &str = r#"
curl() {
    answer=$(command curl --fail-with-body "$@") || case "$answer" in
        *'"code":1003'*) ;;
        *) echo "curl $*: $answer" >&2; return 22 ;;
    esac
    printf '%s\n' "$answer"
}
lkr() {
    case "$*" in
        top*--once*) command lkr "$@" ;;
        top*) timeout 2 lkr "$@" > /dev/null || [ $? = 124 ] ;;
        *) command lkr "$@" ;;
    esac
}
"#;

/// A page with blocks of shell commands.
struct Page {
    path: &'static str,
    /// What the page supposes.
    prepare: fn(&Guide),
}

const PAGES: &[Page] = &[
    Page { path: "README.md", prepare: |_| {} },
    Page { path: "docs/administration.md", prepare: |guide| guide.create_account("eva") },
    Page { path: "docs/documents.md", prepare: |guide| guide.create_space("legal") },
    Page { path: "docs/files.md", prepare: |_| {} },
    Page { path: "docs/integrations/dify.md", prepare: |_| {} },
    Page { path: "docs/integrations/langchain.md", prepare: |_| {} },
    Page { path: "docs/integrations/llama_index.md", prepare: |_| {} },
    Page { path: "docs/integrations/mcp.md", prepare: |guide| guide.create_space("handbook") },
    Page { path: "docs/integrations/open_webui.md", prepare: |_| {} },
    Page { path: "docs/integrations/openai.md", prepare: |_| {} },
    Page { path: "docs/models.md", prepare: |_| {} },
    Page { path: "docs/operations.md", prepare: |_| {} },
    Page { path: "docs/search.md", prepare: |_| {} },
    Page { path: "docs/sync.md", prepare: |guide| guide.create_space("handbook") },
    Page { path: "docs/tutorial.md", prepare: |_| {} },
    Page { path: "docs/webhooks.md", prepare: |_| {} },
];

/// Pages whose commands need what a test does not have.
const NOT_RUN: &[(&str, &str)] = &[("docs/releases.md", "an archive of a release")];

/// A server and the folder in which the commands of a page run.
struct Guide {
    server: Server,
    folder: PathBuf,
}

impl Guide {
    /// The pages that begin at the beginning log in with the first password; the others suppose that this is done.
    fn new(path: &str) -> Self {
        let is_first = ["README.md", "docs/tutorial.md"].contains(&path);
        let library = env::var("LKR_PDFIUM_LIBRARY").unwrap_or_default();
        let configured = [("LKR_ADMIN_PASSWORD", PASSWORD), ("LKR_PDFIUM_LIBRARY", library.as_str())];
        let server = Server::start_with(if is_first { &[] } else { &configured });
        let folder = server.folder().join("work");
        fs::create_dir_all(folder.join("handbook")).unwrap();
        for name in ["report.pdf", "report-2.pdf"] {
            fs::write(
                folder.join(name),
                crate::files::pdf(&[[name, "Figures of the year.", "They are good."]]),
            )
            .unwrap();
        }
        fs::write(folder.join("handbook/rules.md"), "# Rules\n\nBe kind.\n").unwrap();
        if path == "README.md" {
            fs::create_dir(folder.join("docs")).unwrap();
            for name in ["CONTRIBUTING.md", "docs/search.md", "docs/documents.md"] {
                fs::copy(workspace().join(name), folder.join(name)).unwrap();
            }
        }
        Self { server, folder }
    }

    fn token(&self) -> String {
        let body = json!({"username": "admin", "password": PASSWORD});
        self.server.post("/auth/login", &body).data()["access_token"].as_str().unwrap().to_owned()
    }

    fn call(&self, path: &str, body: &serde_json::Value) {
        let response = self.server.call("POST", path, Some(body), Some(&self.token()));
        assert!(response.status < 300, "{}", response.message());
    }

    fn create_space(&self, name: &str) {
        self.call("/spaces", &json!({"space": name}));
    }

    fn create_account(&self, name: &str) {
        self.call("/users", &json!({"username": name, "password": PASSWORD}));
    }

    /// The variables that the pages use: an access token, and a document with its task.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![("URL", format!("{}/api/v1", self.server.url()))];
        if let Ok(first) = fs::read_to_string(self.server.data_dir().join("initial-admin-password")) {
            variables.push(("FIRST", first.trim().to_owned()));
            return variables;
        }
        let token = self.token();
        let document = json!({"text": "# Tides\n\nThe moon pulls the sea.", "source": "tides of the test"});
        let task = self.server.call("POST", "/documents", Some(&document), Some(&token)).data().clone();
        let task = task["task_id"].as_str().unwrap().to_owned();
        let done = self.server.wait_for_task(&task);
        let id = done["doc_id"].as_str().unwrap().to_owned();
        variables.extend([("DOC_ID", id), ("TASK", task), ("LKR_TOKEN", token.clone()), ("TOKEN", token)]);
        variables
    }

    /// Runs a script, and returns what it printed; an error if a command fails.
    fn run(&self, script: &str) -> Result<String, String> {
        let restored = self.folder.join("restored").display().to_string();
        let script =
            script.replace("http://127.0.0.1:8080", &self.server.url()).replace("/srv/lkr", &restored);
        let variables = self.variables();
        let first = variables.iter().find(|(name, _)| *name == "FIRST").map(|(_, value)| value.clone());
        let programs = cli_binary().parent().unwrap().display();
        let mut command = Command::new("sh");
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LKR_")) {
            command.env_remove(name);
        }
        let mut child = command
            .args(["-e", "-c", &format!("{PRELUDE}\n{script}")])
            .current_dir(&self.folder)
            .env("PATH", format!("{programs}:{}", env::var("PATH").unwrap()))
            .env("XDG_CONFIG_HOME", self.folder.join("config"))
            .env("LKR_URL", self.server.url())
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // What a person types into `lkr login`.
        let typed = first.map(|first| format!("{first}\n{PASSWORD}\n")).unwrap_or_default();
        let _ = child.stdin.take().unwrap().write_all(typed.as_bytes());
        let output = child.wait_with_output().unwrap();
        if output.status.success() {
            Ok(printed(&output))
        } else {
            Err(printed(&output) + &self.server.log())
        }
    }
}

/// The blocks of shell commands in a page.
fn blocks(page: &str) -> Vec<&str> {
    page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(workspace().join(path)).unwrap()
}

fn has(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn commands_of_every_page_work_as_written() {
    if !has("curl") || !has("python3") {
        return lkr_test_support::skip("the pages need curl and python3");
    }
    let mut failures = Vec::new();
    for Page { path, prepare } in PAGES {
        if *path == "docs/files.md" && (env::var_os("LKR_PDFIUM_LIBRARY").is_none() || !has("tesseract")) {
            lkr_test_support::skip("docs/files.md needs PDFium and tesseract");
            continue;
        }
        let guide = Guide::new(path);
        prepare(&guide);
        let page = read(path);
        let mut script = blocks(&page).join("\n");
        if *path == "README.md" {
            // A document of a reader is the newest one of the test.
            script = script.replace("$DOC_ID", "$(lkr ls -q | head -n 1)");
        }
        match guide.run(&script) {
            Err(failure) => failures.push(format!("{path}:\n{failure}")),
            Ok(shown) => {
                for part in expected(path) {
                    assert!(shown.contains(part), "{path}: {part} is missing in {shown}");
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What the commands of a page print, among other things.
fn expected(path: &str) -> &'static [&'static str] {
    match path {
        "README.md" => &["\"title\":\"Tides\"", "\"summary\":{\"text\":"],
        "docs/tutorial.md" => &["1. tides", "1 new, 0 changed, 1 moved", "1 deleted"],
        _ => &[],
    }
}

#[test]
fn every_page_with_commands_is_run_or_says_why_not() {
    let mut pages =
        BTreeSet::from(["README.md".to_owned(), "CONTRIBUTING.md".to_owned(), "deploy/README.md".to_owned()]);
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(workspace().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            if workspace().join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.insert(path.to_str().unwrap().to_owned());
            }
        }
    }
    let run: BTreeSet<&str> = PAGES.iter().map(|page| page.path).collect();
    for (path, needs) in NOT_RUN {
        eprintln!("not run: {path}: it needs {needs}");
    }
    for path in pages {
        let is_known = run.contains(path.as_str()) || NOT_RUN.iter().any(|(not_run, _)| *not_run == path);
        assert_eq!(!blocks(&read(&path)).is_empty(), is_known, "{path}");
    }
}
