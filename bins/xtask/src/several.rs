//! `cargo xtask several PART`: tries several processes on Redis, Qdrant and an object store at full size. `LKR_TEST_QDRANT_URL` is the
//! address of a real Qdrant; without it, a server in the tests' process speaks its protocol. `LKR_TEST_QDRANT_SHARDS`,
//! `LKR_TEST_QDRANT_REPLICAS` and `LKR_TEST_QDRANT_WRITE_CONSISTENCY` say how collections are made there.

use std::ffi::{OsStr, OsString};

use anyhow::{Result, bail};

use crate::{cargo, executable, run as run_command, tools, with_model};

/// The check of the contract, seen from the folder of the end-to-end tests.
const CONTRACT_CHECK: &str = "../../shared/tools/contract_check.py";

const USAGE: &str = "usage: cargo xtask several cluster | contract | documents | migration | ratios | suite | versions EARLIER";

/// End-to-end tests that are about the stores in the data folder or files in it, open them, or need no stores.
const OF_THE_DATA_FOLDER: [&str; 20] = [
    "administration::reset_admin_lets",
    "administration::secret_key_file",
    "backup::backup_contains_secret_key",
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

/// Runs a part:
///
/// - `contract`: the check of the contract, where it is present, each server with stores of its own outside of its data folder.
/// - `documents`: 2,000 documents are ingested while processes are killed.
/// - `migration`: 10,000 chunks are moved from a data folder and back while the command is killed.
/// - `ratios`: a second worker and a second server are compared with one, in the release profile.
/// - `versions`: processes of this version and of an earlier `lkr-server`, whose path is given, work on the same stores.
/// - `cluster`: 2,000 documents are ingested while nodes of a Qdrant cluster are killed, and searches go on while one hangs.
///   `LKR_TEST_QDRANT_PROGRAM` must be the path of Qdrant's executable.
/// - `suite`: the end-to-end tests, each server with stores of its own outside of its data folder.
pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    let part = arguments.first().and_then(|part| part.to_str());
    let (filter, variable, value) = match (part, arguments.get(1)) {
        (Some("contract"), None) => ("shared_contract::", "LKR_E2E_CONTRACT", OsStr::new(CONTRACT_CHECK)),
        (Some("cluster"), None) => ("qdrant_cluster::", "LKR_E2E_DOCUMENTS", "2000".as_ref()),
        (Some("documents"), None) => ("several_processes::lesson_43", "LKR_E2E_DOCUMENTS", "2000".as_ref()),
        (Some("migration"), None) => ("migration::", "LKR_E2E_MIGRATED", "10000".as_ref()),
        (Some("ratios"), None) => ("shared_ratios::", "LKR_E2E_RATIOS", "1".as_ref()),
        (Some("suite"), None) => ("", "LKR_E2E_STORES", "shared".as_ref()),
        (Some("versions"), Some(earlier)) => {
            ("several_processes::processes_of_two", "LKR_E2E_EARLIER", earlier.as_os_str())
        }
        _ => bail!(USAGE),
    };
    let mut tests = cargo(&["test", "--workspace", "--test", "e2e", "--", filter, "--nocapture"])?;
    tests.env(variable, value);
    if part == Some("ratios") {
        tests.env("LKR_BIN", executable::build_profile("release")?.join("lkr-server"));
    }
    if part == Some("suite") {
        tests.args(OF_THE_DATA_FOLDER.iter().flat_map(|test| ["--skip", test]));
    }
    with_model(&mut tests)?;
    tools::with_tools(&mut tests)?;
    run_command(tests)
}
