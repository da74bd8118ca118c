use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use sha2::{Digest, Sha256};

use super::*;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const OTHER: &str = "76543210fedcba9876543210fedcba9876543210";

/// A repository behind HTTP. Each answer closes its connection.
#[derive(Clone, Default)]
struct Repository {
    files: BTreeMap<String, Vec<u8>>,
    /// The file whose transfers break after half of what is asked for, and how often.
    breaks: Option<(String, usize)>,
    /// The file whose stated digest is wrong.
    wrong_digest: Option<String>,
}

struct Server {
    home: String,
    /// The paths that were asked for.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Repository {
    fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        Self { files: files.collect(), ..Self::default() }
    }

    fn serve(mut self) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let home = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = self.answer(stream.unwrap(), &log);
            }
        });
        Server { home, asked }
    }

    fn answer(&mut self, mut stream: TcpStream, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? == 1 {
            request.push(byte[0]);
        }
        let request = String::from_utf8_lossy(&request).into_owned();
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        log.lock().unwrap().push(path.clone());
        let from: usize = request
            .lines()
            .find_map(|line| line.strip_prefix("Range: bytes=")?.strip_suffix('-')?.parse().ok())
            .unwrap_or_default();
        let Some(body) = self.body(&path) else {
            return stream
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        };
        let rest = &body[from..];
        let status = if from > 0 { "206 Partial Content" } else { "200 OK" };
        let range = format!("Content-Range: bytes {from}-{}/{}\r\n", body.len() - 1, body.len());
        let range = if from > 0 { range } else { String::new() };
        let head = format!(
            "HTTP/1.1 {status}\r\n{range}Content-Length: {}\r\nConnection: close\r\n\r\n",
            rest.len()
        );
        stream.write_all(head.as_bytes())?;
        let sent = match &mut self.breaks {
            Some((file, left)) if path.ends_with(file.as_str()) && *left > 0 => {
                *left -= 1;
                rest.len() / 2
            }
            _ => rest.len(),
        };
        stream.write_all(&rest[..sent])
    }

    fn body(&self, path: &str) -> Option<Vec<u8>> {
        let path = path.strip_prefix("/owner/tiny/resolve/").map_or_else(
            || path.strip_prefix("/api/models/owner/tiny/"),
            |path| path.strip_prefix(COMMIT)?.strip_prefix('/').or(Some("")),
        )?;
        if path == "revision/main" || path == "revision/refs%2Fpr%2F1" {
            return Some(json!({ "sha": COMMIT }).to_string().into_bytes());
        }
        if path == format!("tree/{COMMIT}?recursive=true") {
            return Some(self.tree().to_string().into_bytes());
        }
        self.files.get(path).cloned()
    }

    fn tree(&self) -> Value {
        let entry = |(path, bytes): (&String, &Vec<u8>)| {
            let mut entry = json!({ "type": "file", "path": path, "size": bytes.len(), "oid": "0" });
            if path.ends_with("safetensors") {
                let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
                let is_wrong = self.wrong_digest.as_ref() == Some(path);
                entry["lfs"] = json!({ "oid": if is_wrong { "00".repeat(32) } else { digest } });
            }
            entry
        };
        self.files.iter().map(entry).chain([json!({ "type": "directory", "path": "1_Pooling" })]).collect()
    }
}

/// The weights are long enough that a break leaves something.
fn weights() -> String {
    "weights ".repeat(4000)
}

fn tiny() -> Repository {
    let modules = r#"[{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "1_Pooling"},
                      {"type": "a.Dense", "path": "2_Dense"}, {"type": "a.Normalize", "path": "3_Normalize"}]"#;
    let weights = weights();
    Repository::of(&[
        ("modules.json", modules),
        ("config.json", "{}"),
        ("tokenizer.json", "{}"),
        ("1_Pooling/config.json", "{}"),
        ("2_Dense/config.json", "{}"),
        ("2_Dense/model.safetensors", "dense"),
        ("README.md", "not fetched"),
        ("pytorch_model.bin", "not fetched"),
        (WEIGHTS, &weights),
    ])
}

const TINY: Published = Published {
    name: "tiny",
    repository: "owner/tiny",
    revision: COMMIT,
    weights_sha256: None,
    prompts: None,
};

/// A folder that does not exist yet, in one that is removed with the guard.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("lkr-xtask-{name}-{}", std::process::id()));
        remove_dir(&dir).unwrap();
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn dest(&self) -> PathBuf {
        self.0.join("tiny")
    }

    fn is_empty(&self) -> bool {
        fs::read_dir(&self.0).unwrap().next().is_none()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = remove_dir(&self.0);
    }
}

#[test]
fn model_is_fetched_with_its_modules_and_nothing_else() {
    let (server, place) = (tiny().serve(), Place::new("whole"));
    let said = fetch(&server.home, &TINY, None, &place.dest()).unwrap();
    assert!(said.contains(COMMIT) && said.contains("which is pinned"), "{said}");
    assert!(said.contains("as its repository states; no digest was known beforehand"), "{said}");
    assert_eq!(fs::read_to_string(place.dest().join(WEIGHTS)).unwrap(), weights());
    let origin = read_json(&place.dest().join(ORIGIN)).unwrap();
    assert_eq!((&origin["repository"], &origin["revision"]), (&json!("owner/tiny"), &json!(COMMIT)));
    let files: Vec<&String> = origin["sha256"].as_object().unwrap().keys().collect();
    let expected = [
        "1_Pooling/config.json",
        "2_Dense/config.json",
        "2_Dense/model.safetensors",
        "config.json",
        WEIGHTS,
        "modules.json",
        "tokenizer.json",
    ];
    assert_eq!(files, expected);
    for file in ["README.md", "pytorch_model.bin", "answer.json"] {
        assert!(!place.dest().join(file).exists(), "{file}");
    }
    // The second time it is checked, without the server.
    let asked = server.asked.lock().unwrap().len();
    assert!(fetch(&server.home, &TINY, None, &place.dest()).unwrap().contains("is there already"));
    assert_eq!(server.asked.lock().unwrap().len(), asked);
}

#[test]
fn changed_file_of_a_fetched_folder_is_named() {
    let (server, place) = (tiny().serve(), Place::new("changed"));
    for file in [WEIGHTS, "tokenizer.json", "1_Pooling/config.json"] {
        remove_dir(&place.dest()).unwrap();
        fetch(&server.home, &TINY, None, &place.dest()).unwrap();
        fs::write(place.dest().join(file), "changed").unwrap();
        let error = fetch(&server.home, &TINY, None, &place.dest()).unwrap_err();
        assert!(format!("{error:#}").contains(&format!("{file} has sha256")), "{error:#}");
        assert!(format!("{error:#}").contains("remove it"), "{error:#}");
    }
}

#[test]
fn folder_placed_by_hand_is_accepted_by_the_known_digest_alone() {
    let place = Place::new("placed");
    fs::create_dir_all(place.dest()).unwrap();
    fs::write(place.dest().join(WEIGHTS), "weights").unwrap();
    let digest: String = Sha256::digest("weights").iter().map(|byte| format!("{byte:02x}")).collect();
    let known = Published { weights_sha256: Some(digest.leak()), ..TINY };
    assert!(check(&known, None, &place.dest()).unwrap().contains("known digest"));
    for (model, revision, missing) in [
        (TINY, None, "no origin.json, and no digest of its weights is known"),
        (known, Some("main"), "its commit is not known"),
        (Published { weights_sha256: Some("11"), ..TINY }, None, "not 11"),
    ] {
        let error = format!("{:#}", check(&model, revision, &place.dest()).unwrap_err());
        assert!(error.contains(missing) && error.contains("remove it"), "{error}");
    }
}

#[test]
fn interrupted_transfer_is_continued() {
    let (mut repository, place) = (tiny(), Place::new("continued"));
    repository.breaks = Some((WEIGHTS.to_owned(), 2));
    // The weights of the Dense break once, those of the transformer once.
    fetch(&repository.serve().home, &TINY, None, &place.dest()).unwrap();
    assert_eq!(fs::read_to_string(place.dest().join(WEIGHTS)).unwrap(), weights());
}

#[test]
fn transfer_that_breaks_again_and_again_leaves_nothing() {
    let (mut repository, place) = (tiny(), Place::new("broken"));
    repository.breaks = Some((format!("{COMMIT}/{WEIGHTS}"), usize::MAX));
    let error = fetch(&repository.serve().home, &TINY, None, &place.dest()).unwrap_err();
    assert!(format!("{error:#}").contains(WEIGHTS), "{error:#}");
    assert!(place.is_empty());
    // The next try starts anew.
    fetch(&tiny().serve().home, &TINY, None, &place.dest()).unwrap();
}

#[test]
fn wrong_digest_leaves_nothing() {
    for file in [WEIGHTS, "2_Dense/model.safetensors"] {
        let (mut repository, place) = (tiny(), Place::new("digest"));
        repository.wrong_digest = Some(file.to_owned());
        let error = fetch(&repository.serve().home, &TINY, None, &place.dest()).unwrap_err();
        assert!(format!("{error:#}").contains(&format!("{file} has sha256")), "{error:#}");
        assert!(place.is_empty());
    }
    let place = Place::new("known");
    let model = Published { weights_sha256: Some("11"), ..TINY };
    let error = fetch(&tiny().serve().home, &model, None, &place.dest()).unwrap_err();
    assert!(format!("{error:#}").contains("not 11"), "{error:#}");
    assert!(place.is_empty());
}

#[test]
fn missing_file_is_named_if_it_is_needed() {
    let place = Place::new("needed");
    for file in [WEIGHTS, "tokenizer.json", "1_Pooling/config.json", "2_Dense/model.safetensors"] {
        let mut repository = tiny();
        repository.files.remove(file).unwrap();
        let error = fetch(&repository.serve().home, &TINY, None, &place.dest()).unwrap_err();
        assert!(format!("{error:#}").contains(&format!("has no file {file}")), "{error:#}");
        assert!(place.is_empty());
    }
    // A reranker in the format of transformers has no modules.
    let mut repository = tiny();
    repository.files.remove("modules.json").unwrap();
    fetch(&repository.serve().home, &TINY, None, &place.dest()).unwrap();
    assert!(!place.dest().join("2_Dense").exists());
}

#[test]
fn pinned_commit_is_the_one_that_is_fetched() {
    let (server, place) = (tiny().serve(), Place::new("pinned"));
    let gone = Published { revision: OTHER, ..TINY };
    let error = fetch(&server.home, &gone, None, &place.dest()).unwrap_err();
    assert!(format!("{error:#}").contains("cargo xtask model tiny --revision main"), "{error:#}");
    assert!(place.is_empty());
    fetch(&server.home, &TINY, None, &place.dest()).unwrap();
    assert!(!server.asked.lock().unwrap().iter().any(|path| path.contains("main")));
}

#[test]
fn other_revision_is_fetched_if_it_is_asked_for() {
    for revision in ["main", "refs/pr/1"] {
        let (server, place) = (tiny().serve(), Place::new("revision"));
        let gone = Published { revision: OTHER, ..TINY };
        let said = fetch(&server.home, &gone, Some(revision), &place.dest()).unwrap();
        assert!(said.contains(COMMIT) && said.contains("not the pinned one"), "{said}");
        // The folder is used as it is afterwards, unless yet another revision is asked for.
        fetch(&server.home, &gone, None, &place.dest()).unwrap();
        fetch(&server.home, &gone, Some(COMMIT), &place.dest()).unwrap();
        let error = fetch(&server.home, &gone, Some(OTHER), &place.dest()).unwrap_err();
        assert!(format!("{error:#}").contains(&format!("not from {OTHER}")), "{error:#}");
    }
    let (server, place) = (tiny().serve(), Place::new("unknown"));
    let error = fetch(&server.home, &TINY, Some("unknown"), &place.dest()).unwrap_err();
    assert!(format!("{error:#}").contains("at unknown"), "{error:#}");
    assert!(place.is_empty());
}

#[test]
fn module_outside_of_the_folder_is_refused() {
    for path in ["../other", "/etc", "a/b"] {
        let (mut repository, place) = (tiny(), Place::new("outside"));
        let modules = json!([{ "type": "a.Dense", "path": path }]).to_string();
        repository.files.insert("modules.json".to_owned(), modules.into_bytes());
        let error = fetch(&repository.serve().home, &TINY, None, &place.dest()).unwrap_err();
        assert!(format!("{error:#}").contains("not the name of a folder"), "{error:#}");
        assert!(place.is_empty());
    }
}

#[test]
fn prompts_of_the_card_are_added_where_the_folder_has_none() {
    let model = Published { prompts: Some(["query: ", "passage: "]), ..TINY };
    for (settings, expected) in [
        (None, json!({ "query": "query: ", "document": "passage: " })),
        (
            Some(r#"{"prompts": {"query": "", "document": ""}}"#),
            json!({ "query": "query: ", "document": "passage: " }),
        ),
        (Some(r#"{"prompts": {"query": "ask: "}}"#), json!({ "query": "ask: " })),
    ] {
        let (mut repository, place) = (tiny(), Place::new("prompts"));
        if let Some(settings) = settings {
            repository.files.insert(SETTINGS.to_owned(), settings.as_bytes().to_vec());
        }
        let said = fetch(&repository.serve().home, &model, None, &place.dest()).unwrap();
        assert_eq!(said.contains("prompts of its card"), expected["document"].is_string(), "{said}");
        assert_eq!(read_json(&place.dest().join(SETTINGS)).unwrap()["prompts"], expected);
        check(&model, None, &place.dest()).unwrap();
    }
}
