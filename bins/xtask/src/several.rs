//! `cargo xtask several PART`: tries several processes on Redis, Qdrant and an object store at full size. `LKR_TEST_QDRANT_URL` is the
//! address of a real Qdrant; without it, a server in the tests' process speaks its protocol.

use anyhow::{Result, bail};

use crate::{cargo, executable, run as run_command, tools, with_model};

const USAGE: &str = "usage: cargo xtask several documents | migration | ratios | suite";

/// End-to-end tests that are about the stores in the data folder or files in it, open them, or need no stores.
const OF_THE_DATA_FOLDER: [&str; 20] = [
    "administration::reset_admin_lets",
    "administration::secret_key_file",
    "backup::",
    "console::",
    "docs::",
    "doctor::",
    "files::corrupted_original",
    "files::missing_or_symlinked_original",
    "files::original_is_stored",
    "files::upload_is_ingested_although",
    "full_disk::",
    "kill9::kills_with_damaged",
    "language_models::lesson_03_model_replies",
    "lesson_08",
    "lesson_12_kills",
    "lesson_14_damaged",
    "lesson_27_malicious",
    "second_process::",
    "secrets::no_secret",
    "upgrade",
];

/// End-to-end tests that look, right after kills, for what nothing refers to and for tags that are not set yet. On shared stores a
/// killed process counts as running for a minute, and what it stored for nothing is swept after an hour.
const OF_KILLS: [&str; 3] = ["kill9::kills_at", "kill9::kills_during", "lesson_05_delete_leaves"];

/// Runs a part:
///
/// - `documents`: 2,000 documents are ingested while processes are killed.
/// - `migration`: 10,000 chunks are moved from a data folder and back while the command is killed.
/// - `ratios`: a second worker and a second server are compared with one, in the release profile.
/// - `suite`: the end-to-end tests, each server with stores of its own outside of its data folder.
pub(crate) fn run(part: Option<&str>) -> Result<()> {
    let (filter, variable, value) = match part {
        Some("documents") => ("several_processes::lesson_43", "LKR_E2E_DOCUMENTS", "2000"),
        Some("migration") => ("migration::", "LKR_E2E_MIGRATED", "10000"),
        Some("ratios") => ("shared_ratios::", "LKR_E2E_RATIOS", "1"),
        Some("suite") => ("", "LKR_E2E_STORES", "shared"),
        _ => bail!(USAGE),
    };
    let mut tests = cargo(&["test", "--workspace", "--test", "e2e", "--", filter, "--nocapture"])?;
    tests.env(variable, value);
    if part == Some("ratios") {
        tests.env("LKR_BIN", executable::build_profile("release")?.join("lkr-server"));
    }
    if part == Some("suite") {
        tests.args(OF_THE_DATA_FOLDER.iter().chain(&OF_KILLS).flat_map(|test| ["--skip", test]));
    }
    with_model(&mut tests)?;
    tools::with_tools(&mut tests)?;
    run_command(tests)
}
