use std::{ffi::OsString, fs, path::Path};

use super::*;
use crate::{
    config::{LogFormat, show},
    program::one_line,
};

fn load_with(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Result<LoadedConfig> {
    let arguments = std::iter::once(&"lkr-server").chain(arguments).map(OsString::from).collect();
    let environment = environment.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))).collect();
    load(&ConfigSources { folder: folder.to_owned(), environment, arguments })
}

fn load_error(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> String {
    let line = one_line(&load_with(folder, environment, arguments).unwrap_err());
    assert!(!line.contains('\n'));
    line
}

#[test]
fn load_without_sources_returns_the_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = load_with(folder.path(), &[], &[]).unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.config.model_dir(), Path::new("./lkr-data/models/default"));
    assert!(loaded.warnings.is_empty() && !loaded.check_only);
}

#[test]
fn flag_overrides_environment_and_environment_overrides_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lkr.toml"), "listen = \"a:1\"\ndata_dir = \"f\"\nupload_max_size_mb = 7")
        .unwrap();
    let loaded = load_with(
        folder.path(),
        &[("LKR_LISTEN", "b:2"), ("LKR_DATA_DIR", "e"), ("PATH", "/bin")],
        &["--listen", "c:3", "--require-login-for-reads"],
    );
    let config = loaded.unwrap().config;
    assert_eq!((config.listen.as_str(), config.upload_max_size_mb), ("c:3", 7));
    assert_eq!(config.data_dir, Path::new("e"));
    assert!(config.require_login_for_reads);
}

#[test]
fn missing_named_config_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("other.toml"), "trusted_proxies = [\"10.0.0.0/8\", \"::1\"]").unwrap();
    let config = load_with(folder.path(), &[], &["--config", "other.toml"]).unwrap().config;
    assert!(show(&config).contains("trusted_proxies = \"10.0.0.0/8,::1\""));
    assert!(load_error(folder.path(), &[], &["--config=absent.toml"]).contains("absent.toml"));
}

#[test]
fn unknown_key_is_named_in_the_warning_or_error() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = load_with(folder.path(), &[("LKR_NOPE", "1")], &[]).unwrap();
    assert_eq!(loaded.warnings, ["unknown key LKR_NOPE in the environment"]);
    assert!(load_error(folder.path(), &[], &["--nope", "1"]).contains("--nope"));
    assert!(load_error(folder.path(), &[], &["nope"]).contains("nope"));
    fs::write(folder.path().join("lkr.toml"), "nope = 1").unwrap();
    assert!(load_error(folder.path(), &[], &[]).contains("unknown key nope"));
}

#[test]
fn bad_value_is_named_with_its_source_and_secrets_are_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    for (name, value) in [
        ("LKR_LISTEN", "8080"),
        ("LKR_LISTEN", "host:99999"),
        ("LKR_LISTEN", "[::1:80"),
        ("LKR_LISTEN", "::1:80"),
        ("LKR_LISTEN", "[::1]"),
        ("LKR_LISTEN", "a b:80"),
        ("LKR_DATA_DIR", ""),
        ("LKR_ADMIN_PASSWORD", "short"),
        ("LKR_SECRET_KEY", "abc"),
        ("LKR_VECTORS", "faiss"),
        ("LKR_QDRANT_URL", "nowhere"),
        ("LKR_QDRANT_TIMEOUT_MS", "0"),
        ("LKR_QDRANT_CONNECT_TIMEOUT_MS", "0"),
        ("LKR_QDRANT_CONNECT_TIMEOUT_MS", "0.5"),
        ("LKR_QDRANT_WRITE_TIMEOUT_MS", "3600001"),
        ("LKR_QDRANT_WRITE_TIMEOUT_MS", "30s"),
        ("LKR_STATE", "Redis"),
        ("LKR_BLOBS", "ftp://x"),
        ("LKR_ROLE", "boss"),
        ("LKR_REQUIRE_LOGIN_FOR_READS", "maybe"),
        ("LKR_SECOND_ROUND", ""),
        ("LKR_OUTGOING_HOSTS", "http://a"),
        ("LKR_TRUSTED_PROXIES", "10.0.0.0/33"),
        ("LKR_CORS_ORIGINS", "*"),
        ("LKR_UPLOAD_ALLOWED_EXTENSIONS", ".exe"),
        ("LKR_UPLOAD_MAX_SIZE_MB", "0"),
        ("LKR_UPLOAD_MAX_SIZE_MB", "1.5"),
        ("LKR_AUTH_REGISTER_ENABLED", "2"),
        ("LKR_TASK_RETENTION_DAYS", "0"),
        ("LKR_TASK_RETENTION_DAYS", "30d"),
        ("LKR_TASK_RETENTION_DAYS", "3651"),
        ("LKR_OTLP_ENDPOINT", "collector:4318"),
        ("LKR_OTLP_ENDPOINT", "http://collector:4318?key=1"),
        ("LKR_LOG_FORMAT", "JSON"),
        ("LKR_SLOW_SEARCH_MS", "-1"),
        ("LKR_SLOW_SEARCH_MS", "3600001"),
    ] {
        let line = load_error(folder.path(), &[(name, value)], &[]);
        assert!(line.contains(&format!(" for {name}: expected")), "{line}");
        let may_be_secret =
            ["PASSWORD", "SECRET", "URL", "BLOBS", "ENDPOINT"].iter().any(|part| name.contains(part));
        assert_eq!(line.contains(&format!("bad value {value:?}")), !may_be_secret, "{line}");
        let flag = format!("--{}", name.trim_start_matches("LKR_").to_lowercase().replace('_', "-"));
        let line = load_error(folder.path(), &[], &[&format!("{flag}={value}")]);
        assert!(line.contains(&flag), "{line}");
    }
    for toml in [
        "listen = 1",
        "upload_max_size_mb = \"1\"",
        "second_round = 1",
        "cors_origins = [1]",
        "= 1",
        "[listen]",
    ] {
        fs::write(folder.path().join("lkr.toml"), toml).unwrap();
        assert!(load_error(folder.path(), &[], &[]).contains("lkr.toml"), "{toml}");
    }
}

#[test]
fn store_that_is_not_configured_completely_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let key = "0".repeat(64);
    let redis = [("LKR_STATE", "redis"), ("LKR_REDIS_URL", "redis://r")];
    let qdrant = [("LKR_VECTORS", "qdrant"), ("LKR_QDRANT_URL", "http://q:6334")];
    let secret = [("LKR_SECRET_KEY", key.as_str())];
    let s3 =
        [("LKR_BLOBS", "s3://bucket"), ("LKR_S3_ACCESS_KEY_ID", "id"), ("LKR_S3_SECRET_ACCESS_KEY", "hush")];
    for (environment, missing) in [
        (&qdrant[..1], "qdrant_url"),
        (&redis[..1], "redis_url"),
        (&redis[..], "secret_key"),
        (&s3[..1], "s3_access_key_id"),
        (&s3[..2], "s3_secret_access_key"),
        (&[("LKR_ROLE", "worker")][..], "state = redis"),
        (&[&redis[..], &secret, &[("LKR_ROLE", "api")]].concat()[..], "vectors = qdrant"),
        (&[("LKR_REDIS_CA_FILE", "/nowhere")], "redis_ca_file"),
    ] {
        let line = load_error(folder.path(), environment, &[]);
        assert!(line.contains(missing), "{environment:?}: {line}");
    }
    let all = [&qdrant[..], &redis, &secret, &s3, &[("LKR_ROLE", "worker")]].concat();
    let loaded = load_with(folder.path(), &all, &[]).unwrap();
    assert!(loaded.config.is_shared() && loaded.warnings.is_empty());
    assert_eq!(loaded.config.object_store(), Some("s3://bucket"));
}

#[test]
fn setting_of_a_store_that_is_not_used_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    for (name, value) in [
        ("LKR_QDRANT_URL", "http://q:6334"),
        ("LKR_REDIS_URL", "redis://r"),
        ("LKR_S3_ENDPOINT", "http://s:9000"),
    ] {
        let warnings = load_with(folder.path(), &[(name, value)], &[]).unwrap().warnings;
        let key = name.trim_start_matches("LKR_").to_lowercase();
        assert!(matches!(&*warnings, [warning] if warning.contains(&key)), "{warnings:?}");
    }
}

#[test]
fn cors_origins_accepts_origins_only() {
    let folder = tempfile::tempdir().unwrap();
    let load_origins = |value| load_with(folder.path(), &[("LKR_CORS_ORIGINS", value)], &[]);
    let listed = load_origins("https://App.example, http://localhost:3000,http://[::1]:8000").unwrap().config;
    assert_eq!(listed.cors_origins, ["https://app.example", "http://localhost:3000", "http://[::1]:8000"]);
    for value in [
        "https://a.example/",
        "a.example",
        "null",
        "https://",
        "https://u@a.example",
        "https://a b",
        "ftp://a",
    ] {
        let line = load_error(folder.path(), &[("LKR_CORS_ORIGINS", value)], &[]);
        assert!(line.contains("is not an origin"), "{value}: {line}");
    }
}

#[test]
fn outgoing_hosts_accepts_host_names_only() {
    let folder = tempfile::tempdir().unwrap();
    let load_hosts = |value| load_with(folder.path(), &[("LKR_OUTGOING_HOSTS", value)], &[]);
    let listed = load_hosts("models.example, 10.0.0.5,localhost").unwrap().config;
    let expected = ["models.example", "10.0.0.5", "localhost"].map(str::to_owned).to_vec();
    assert_eq!(listed.outgoing_hosts, Some(expected));
    assert!(show(&listed).contains("outgoing_hosts = \"models.example,10.0.0.5,localhost\""));
    assert_eq!(load_hosts("").unwrap().config.outgoing_hosts, None);
    for wrong in ["http://models.example", "models.example:8080", "a b", "u@h", "*.example", "a/b"] {
        let error = load_error(folder.path(), &[("LKR_OUTGOING_HOSTS", wrong)], &[]);
        assert!(error.contains("LKR_OUTGOING_HOSTS") && error.contains(wrong), "{error}");
    }
    for no_host in [",", " ", " , ,"] {
        let error = load_error(folder.path(), &[("LKR_OUTGOING_HOSTS", no_host)], &[]);
        assert!(error.contains("LKR_OUTGOING_HOSTS") && error.contains("names no host"), "{error}");
    }
}

#[test]
fn shown_configuration_masks_secrets_and_parses_as_toml() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "5".repeat(64);
    let environment = [("LKR_ADMIN_PASSWORD", "hush-hush-hush"), ("LKR_SECRET_KEY", secret.as_str())];
    let loaded = load_with(folder.path(), &environment, &["--check-config"]).unwrap();
    assert!(loaded.check_only);
    let text = show(&loaded.config);
    assert!(!text.contains("hush") && !text.contains("555"), "{text}");
    let shown: toml::Table = text.parse().unwrap();
    assert_eq!(shown["admin_password"].as_str(), Some("********"));
    assert_eq!(shown["upload_max_size_mb"].as_integer(), Some(50));

    let config = Config { redis_url: Some("redis://user:hush@host:1".to_owned()), ..Config::default() };
    assert!(show(&config).contains("redis://********@host:1"));
    let url = "redis+sentinel://me:hush@a,b/main?sentinel-user=me&sentinel-password=hush&database=1";
    let config = Config { redis_url: Some(url.to_owned()), ..Config::default() };
    let masked = "redis+sentinel://********@a,b/main?sentinel-user=me&sentinel-password=********&database=1";
    assert!(show(&config).contains(masked), "{}", show(&config));
}

#[test]
fn help_lists_the_flags() {
    let folder = tempfile::tempdir().unwrap();
    let help = load_with(folder.path(), &[], &["--help"]).unwrap().print.unwrap();
    assert!(help.contains("--upload-max-size-mb") && help.contains("--check-config"));
}

#[test]
fn reset_admin_accepts_the_same_flags() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["reset-admin", "--data-dir", "d"][..], &["--data-dir", "d", "reset-admin"]] {
        let loaded = load_with(folder.path(), &[("LKR_LISTEN", "e:2")], arguments).unwrap();
        assert!(loaded.reset_admin);
        assert_eq!(
            (loaded.config.data_dir.as_path(), loaded.config.listen.as_str()),
            (Path::new("d"), "e:2")
        );
    }
    assert!(load_error(folder.path(), &[], &["reset-everything"]).contains("reset-everything"));
    assert!(!load_with(folder.path(), &[], &[]).unwrap().reset_admin);
}

#[test]
fn observation_keys_are_read_from_all_sources_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lkr.toml"), "log_format = \"json\"\nslow_search_ms = 0").unwrap();
    let environment = [("LKR_OTLP_ENDPOINT", "http://collector:4318/")];
    let config = load_with(folder.path(), &environment, &["--slow-search-ms", "250"]).unwrap().config;
    assert_eq!((config.log_format, config.slow_search_ms), (LogFormat::Json, 250));
    assert_eq!(config.otlp_endpoint.as_deref(), Some("http://collector:4318"));
    let shown = show(&config);
    for line in ["otlp_endpoint = \"http://collector:4318\"", "log_format = \"json\"", "slow_search_ms = 250"]
    {
        assert!(shown.contains(line), "{shown}");
    }
    assert!(show(&Config::default()).contains("# otlp_endpoint is not set"));
}

#[test]
fn collector_that_may_not_be_called_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let environment =
        [("LKR_OTLP_ENDPOINT", "http://collector:4318"), ("LKR_OUTGOING_HOSTS", "models.example")];
    let line = load_error(folder.path(), &environment, &[]);
    assert!(line.contains("otlp_endpoint") && line.contains("collector"), "{line}");
    let environment = [environment[0], ("LKR_OUTGOING_HOSTS", "models.example,collector")];
    assert!(load_with(folder.path(), &environment, &[]).is_ok());
}
