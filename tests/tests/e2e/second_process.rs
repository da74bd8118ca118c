//! Failing starts print one clear line.

use std::{fs, net::TcpListener, process::Command};

use lkr_tests::Server;

/// Runs a server that must exit by itself, and returns its one line of output.
fn failed_start(command: &mut Command) -> String {
    // Log lines do not matter here.
    let output = command.env("RUST_LOG", "off").output().unwrap();
    let printed =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "the server started: {printed}");
    assert!(output.status.code().is_some(), "the server was killed: {printed}");
    let lines: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
    assert_eq!(lines.len(), 1, "expected one line:\n{printed}");
    assert!(!printed.contains("panicked") && !printed.contains("RUST_BACKTRACE"), "{printed}");
    printed
}

#[test]
fn second_process_on_the_same_folder_fails_to_start() {
    let server = Server::start();
    let mut second = server.command();
    let line = failed_start(second.env("LKR_LISTEN", format!("127.0.0.1:{}", lkr_tests::free_port())));
    assert!(line.contains(&server.data_dir().display().to_string()), "the error names the folder: {line}");
    // The first server keeps running.
    assert_eq!(server.get("/knowledge/stats").data()["documents_total"], 0);
}

#[test]
fn port_in_use_stops_start() {
    let server = Server::start();
    let other = tempfile::tempdir().unwrap();
    let line = failed_start(server.command().env("LKR_DATA_DIR", other.path()));
    assert!(line.contains(&server.port().to_string()), "the error names the address: {line}");
    drop(TcpListener::bind(("127.0.0.1", server.port())).expect_err("the first server still listens"));
}

#[test]
fn wrong_configuration_is_named_in_the_error() {
    let server = Server::start();
    server.stop();
    for (key, value) in [
        ("LKR_LISTEN", "nowhere"),
        ("LKR_LISTEN", "127.0.0.1:99999"),
        ("LKR_REQUIRE_LOGIN_FOR_READS", "perhaps"),
        ("LKR_VECTORS", "pigeons"),
        ("LKR_ROLE", "boss"),
        ("LKR_UPLOAD_MAX_SIZE_MB", "-3"),
    ] {
        let line = failed_start(server.command().env(key, value));
        assert!(line.contains(key), "{key}={value}: {line}");
    }
    for (arguments, named) in [
        (["--no-such-flag", "x"], "--no-such-flag"),
        (["--listen", "127.0.0.1:99999"], "listen"),
        (["--config", "/nowhere/lkr.toml"], "/nowhere/lkr.toml"),
    ] {
        let line = failed_start(server.command().args(arguments));
        assert!(line.contains(named), "{arguments:?}: {line}");
    }
    for (text, named) in [
        ("colour = 'red'\n", "colour"),
        ("listen = 5\n", "listen"),
        ("listen = 'x\n", "lkr.toml"),
        ("[server]\nlisten = '127.0.0.1:1'\n", "server"),
    ] {
        fs::write(server.folder().join("lkr.toml"), text).unwrap();
        let line = failed_start(&mut server.command());
        assert!(line.contains(named), "{text:?}: {line}");
    }
}

#[test]
fn unusable_model_is_named_in_the_error() {
    let server = Server::start();
    server.stop();
    let broken = server.folder().join("model");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("config.json"), "{").unwrap();
    let line = failed_start(server.command().env("LKR_MODEL_DIR", &broken));
    assert!(line.contains("model"), "{line}");
}

#[test]
fn unknown_variable_logs_a_warning() {
    let mut server = Server::start();
    server.set("LKR_NO_SUCH_THING", "1");
    server.restart();
    assert!(server.log().contains("LKR_NO_SUCH_THING"), "{}", server.log());
}

#[test]
fn check_config_prints_effective_values_without_secrets() {
    let server = Server::start();
    let secret = "0f0e0d0c0b0a09080706050403020100ffeeddccbbaa99887766554433221100";
    fs::write(server.folder().join("lkr.toml"), "upload_max_size_mb = 7\nlisten = '127.0.0.1:9'\n").unwrap();
    let mut command = server.command();
    let output = command
        .env("LKR_SECRET_KEY", secret)
        .args(["--check-config", "--require-login-for-reads", "true"])
        .output();
    let output = output.unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    // A flag overrides the environment, which overrides the file.
    assert!(shown.contains("upload_max_size_mb = 7"), "{shown}");
    assert!(
        shown.contains(&format!("127.0.0.1:{}", server.port())) && !shown.contains("127.0.0.1:9\""),
        "{shown}"
    );
    assert!(shown.contains("require_login_for_reads = true"), "{shown}");
    let output = shown + &String::from_utf8_lossy(&output.stderr);
    assert!(!output.contains(secret) && !output.contains(lkr_tests::ADMIN_PASSWORD), "{output}");
}
