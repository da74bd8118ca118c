//! The space, the documents and the account that are measured with.

use std::{
    io::{self, Write as _},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use lkr::DocId;
use serde_json::{Value, json};

use crate::{connection::Login, http::Client};

/// The number of documents, and of ids without a document. Several, so that no property of one id is measured.
const DOCUMENTS: usize = 8;

/// The pause between two looks at a task.
const PAUSE: Duration = Duration::from_millis(20);

/// A temporary space that only admins read, and an account that is not a member of it.
pub(super) struct Fixture {
    name: String,
    /// The access token of the account.
    pub(super) token: String,
    /// The ids of documents that the account may not read.
    pub(super) unreadable: Vec<String>,
    /// The ids of the tasks that made them.
    pub(super) tasks: Vec<String>,
    /// Ids of no document and of no task.
    pub(super) unknown: Vec<String>,
}

impl Fixture {
    /// Creates everything with the admin's login.
    pub(super) fn create(admin: &Client, login: &Login) -> Result<Self> {
        let name = format!("bench-{}", DocId::new());
        let password =
            format!("{:032x}", std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0));
        let account = json!({ "username": name, "password": password, "must_change_password": false });
        writeln!(
            io::stderr(),
            "the account and the space {name} are removed at the end; after an interruption, remove them by hand"
        )?;
        admin.post("/users", &account).context("create an account")?;
        let mut fixture = Self {
            name,
            token: String::new(),
            unreadable: Vec::new(),
            tasks: Vec::new(),
            unknown: Vec::new(),
        };
        let filled = fixture.fill(admin, login, &password);
        if let Err(error) = filled {
            let _ = fixture.remove(admin);
            return Err(error);
        }
        Ok(fixture)
    }

    fn fill(&mut self, admin: &Client, login: &Login, password: &str) -> Result<()> {
        let credentials = json!({ "username": self.name, "password": password });
        self.token = string(&login.anonymous()?.post("/auth/login", &credentials)?.data, "access_token")?;
        admin.post("/spaces", &json!({ "space": self.name, "read": "members" })).context("create a space")?;
        for n in 0..DOCUMENTS {
            let text = format!("# Basalt {n}\n\nBasalt number {n} is a dark volcanic rock.\n");
            let document = json!({ "text": text, "space": self.name, "force": true });
            let task = string(&admin.post("/documents", &document)?.data, "task_id")?;
            self.unreadable.push(ended(admin, &task)?);
            self.tasks.push(task);
            self.unknown.push(DocId::new().to_string());
        }
        let outsider = login.anonymous()?.with_bearer(&self.token);
        for doc_id in self.unreadable.iter().chain(&self.unknown) {
            ensure!(outsider.get(&format!("/documents/{doc_id}")).is_err(), "the account reads {doc_id}");
        }
        Ok(())
    }

    /// Removes the space with its documents, and the account.
    pub(super) fn remove(&self, admin: &Client) -> Result<()> {
        let space = admin.delete(&format!("/spaces/{}?documents=delete", self.name));
        admin.delete(&format!("/users/{}", self.name)).context("delete the account")?;
        space.context("delete the space").map(drop)
    }
}

fn string(data: &Value, key: &str) -> Result<String> {
    let value = data.get(key).and_then(Value::as_str);
    value.map(str::to_owned).with_context(|| format!("the response has no {key}"))
}

/// The document of a task, once the task is done.
fn ended(admin: &Client, task_id: &str) -> Result<String> {
    loop {
        let task = admin.get(&format!("/documents/tasks/{task_id}"))?.data;
        match task.get("status").and_then(Value::as_str) {
            Some("done") => return string(&task, "doc_id"),
            Some("failed") => bail!("a document could not be added: {task}"),
            _ => thread::sleep(PAUSE),
        }
    }
}
