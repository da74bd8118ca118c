//! The check of the contract on Redis, Qdrant and an object store. `cargo xtask several contract` runs it.

use std::{env, fs, os::unix::fs::PermissionsExt, process::Command};

use lkr_tests::{Role, SharedStores, model_dir, server_binary};

/// The path of the check, a program that starts the server in `LKR_BIN`.
const CHECK: &str = "LKR_E2E_CONTRACT";

/// What a server for each data folder needs: stores of its own, which its restart finds again.
const OF_THE_FOLDER: &str = r#"
name=$(printf %s "$LKR_DATA_DIR" | cksum | cut -d ' ' -f 1)
export LKR_REDIS_PREFIX="lkr-$name"
export LKR_QDRANT_PREFIX="$LKR_QDRANT_PREFIX$name-"
export LKR_BLOBS="$LKR_BLOBS/$name"
"#;

#[test]
fn contract_holds_on_shared_stores() {
    let Some(check) = env::var_os(CHECK) else {
        eprintln!("skipped: `cargo xtask several contract` checks the contract on shared stores");
        return;
    };
    let (Some(stores), Some(model)) = (SharedStores::start(), model_dir()) else { return };
    // What the check sets takes precedence.
    let keys = stores.environment(Role::All);
    let keys: String =
        keys.iter().map(|(key, value)| format!("export {key}=\"${{{key}:-{value}}}\"\n")).collect();
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("lkr-server");
    let program = server_binary().display();
    fs::write(&server, format!("#!/bin/sh\n{keys}{OF_THE_FOLDER}exec '{program}' \"$@\"\n")).unwrap();
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).unwrap();
    let mut checked = Command::new("python3");
    checked.arg(check).env("LKR_BIN", &server).env("LKR_MODEL_DIR", model);
    assert!(checked.status().unwrap().success(), "the contract does not hold on shared stores");
}
