//! The samples in `deploy` fit one another, the documentation and the code. These checks need no further program.

use std::{collections::BTreeSet, fs, net::Ipv4Addr, ops::RangeInclusive, path::PathBuf};

use serde_json::Value;

use super::yaml;
use crate::{entries, root, tools};

/// Variables that the samples give to programs other than lkr.
const VARIABLES_OF_OTHERS: [&str; 3] = ["LKR_API_NAME", "LKR_API_PORT", "LKR_DOMAIN"];

/// The keys by which the two units may differ.
const DIFFERENT_IN_UNITS: [&str; 6] =
    ["Description", "EnvironmentFile", "ExecStart", "Restart", "StateDirectory", "WorkingDirectory"];

fn read(path: &str) -> String {
    fs::read_to_string(root().unwrap().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All files below a folder of the repository.
fn files_below(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(&root().unwrap().join(folder)).unwrap() {
        if path.is_dir() {
            found.extend(files_below(path.to_str().unwrap()));
        } else {
            found.push(path);
        }
    }
    found
}

/// The words of a text that begin with one of these prefixes and consist of letters of names.
fn words(text: &str, prefixes: &[&str]) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix))).map(str::to_owned).collect()
}

/// The rest of the first line that begins so.
fn after<'a>(text: &'a str, prefix: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(prefix));
    line.unwrap_or_else(|| panic!("no line begins with {prefix}")).trim().trim_matches('"')
}

/// The paths of keys of a YAML file, such as `image.tag`. Lists add nothing to a path.
fn key_paths(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    add_key_paths(&yaml::read(text).unwrap_or_else(|error| panic!("{error}")), "", &mut found);
    found
}

fn add_key_paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                add_key_paths(value, &path, found);
                found.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add_key_paths(item, path, found)),
        _ => {}
    }
}

#[test]
fn key_paths_are_those_of_nested_mappings() {
    let yaml = "a: 1\nb:\n  c: {d: x, e: [1, {f: 2}]}\n";
    let paths: Vec<String> = key_paths(yaml).into_iter().collect();
    assert_eq!(paths, ["a", "b", "b.c", "b.c.d", "b.c.e", "b.c.e.f"]);
}

#[test]
fn yaml_and_json_samples_can_be_parsed() {
    let mut count = 0;
    for path in files_below("deploy") {
        let text = fs::read_to_string(&path).unwrap();
        let is_template = path.components().any(|part| part.as_os_str() == "templates");
        match path.extension().and_then(|suffix| suffix.to_str()) {
            Some("yaml") if !is_template => assert!(!key_paths(&text).is_empty(), "{}", path.display()),
            Some("json") => drop(serde_json::from_str::<Value>(&text).unwrap()),
            _ => continue,
        }
        count += 1;
    }
    assert!(count >= 8, "{count} samples");
}

#[test]
fn metrics_of_dashboard_and_alerts_are_those_of_the_documentation() {
    const PREFIXES: [&str; 5] =
        ["lkr_", "process_cpu_", "process_open_", "process_resident_", "process_start_"];
    let documented = words(&read("docs/metrics.md"), &PREFIXES);
    let dashboard = words(&read("deploy/grafana/lkr.json"), &PREFIXES);
    let alerts = words(&read("deploy/prometheus/alerts.yaml"), &PREFIXES);
    let scaling = words(&read("deploy/helm/lkr/values.yaml"), &PREFIXES);
    let base = |name: &String| name.strip_suffix("_bucket").unwrap_or(name).to_owned();
    for used in dashboard.iter().chain(&alerts).chain(&scaling) {
        assert!(documented.contains(&base(used)), "docs/metrics.md does not list {used}");
    }
    assert!(!scaling.is_empty(), "the chart scales by a metric");
    let shown: BTreeSet<String> = dashboard.iter().map(base).collect();
    let missing: Vec<&String> = documented.difference(&shown).collect();
    assert!(missing.is_empty(), "the dashboard does not show {missing:?}");
}

#[test]
fn each_alert_is_raised_in_a_test() {
    let tests = read("deploy/prometheus/alerts_test.yaml");
    let alerts = read("deploy/prometheus/alerts.yaml");
    let names: Vec<&str> = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "no test raises {name}");
    }
}

#[test]
fn keys_that_samples_set_are_documented() {
    let documented = ["docs/configuration.md", "docs/scaling.md", "docs/cli.md"].map(read).concat();
    let documented = words(&documented, &["LKR_"]);
    let mut count = 0;
    for path in files_below("deploy") {
        // A beginning such as `LKR_S3_` stands for several.
        let keys = words(&fs::read_to_string(&path).unwrap(), &["LKR_"]);
        for key in keys.into_iter().filter(|key| !key.ends_with('_')) {
            let is_known = documented.contains(&key) || VARIABLES_OF_OTHERS.contains(&key.as_str());
            assert!(is_known, "{}: {key} is not documented", path.display());
            count += 1;
        }
    }
    assert!(count > 40, "{count} keys");
}

#[test]
fn compose_pins_images_and_demands_secrets() {
    let (compose, example) = (read("deploy/compose.yaml"), read("deploy/compose.env.example"));
    for image in compose.lines().filter_map(|line| line.trim().strip_prefix("image: ")) {
        let tag = image.split_once(':').unwrap_or_else(|| panic!("{image} has no tag")).1;
        assert!(tag.starts_with(|c: char| c.is_ascii_digit() || c == 'v'), "{image} is not pinned");
    }
    let variables: Vec<&str> = compose
        .split("${")
        .skip(1)
        .map(|rest| rest.split('}').next().unwrap())
        .filter(|variable| !variable.contains(":-"))
        .collect();
    assert!(variables.len() > 5, "{variables:?}");
    for variable in variables {
        let (name, _) = variable.split_once(":?").unwrap_or_else(|| panic!("{variable} may be empty"));
        assert!(
            example.lines().any(|line| line.starts_with(&format!("{name}="))),
            "{name} is not in the example"
        );
    }
}

#[test]
fn containers_without_a_fixed_address_leave_those_of_others_free() {
    let compose = yaml::read(&read("deploy/compose.yaml")).unwrap();
    let networks = compose["networks"].as_object().unwrap();
    let mut count = 0;
    for (name, service) in compose["services"].as_object().unwrap() {
        for (network, settings) in service["networks"].as_object().into_iter().flatten() {
            let Some(address) = settings["ipv4_address"].as_str() else { continue };
            let range = |key: &str| networks[network]["ipam"]["config"][0][key].as_str().map(addresses);
            let (subnet, given_out) = (range("subnet").unwrap(), range("ip_range"));
            let address = u32::from(address.parse::<Ipv4Addr>().unwrap());
            assert!(subnet.contains(&address), "{name} is not in its network {network}");
            let given_out =
                given_out.unwrap_or_else(|| panic!("{network} may give {name}'s address to others"));
            assert!(subnet.contains(given_out.start()) && subnet.contains(given_out.end()), "{network}");
            assert!(!given_out.contains(&address), "{network} may give {name}'s address to others");
            count += 1;
        }
    }
    assert!(count > 0, "the proxy has a fixed address");
}

/// The addresses of a network in CIDR notation.
fn addresses(network: &str) -> RangeInclusive<u32> {
    let (first, length) = network.split_once('/').unwrap();
    let first = u32::from(first.parse::<Ipv4Addr>().unwrap());
    first..=first + (u32::MAX >> length.parse::<u32>().unwrap())
}

#[test]
fn image_is_built_from_every_member_of_the_workspace() {
    let members: Vec<String> = serde_json::from_str(after(&read("Cargo.toml"), "members = ")).unwrap();
    let sent = read(".dockerignore");
    assert!(members.len() > 3, "{members:?}");
    for member in members {
        let folder = member.split('/').next().unwrap();
        // Cargo reads the manifests of all members, whichever it builds.
        assert!(
            sent.lines().any(|line| line.strip_prefix('!') == Some(folder)),
            "the builder lacks {folder}"
        );
    }
}

#[test]
fn versions_in_samples_are_those_of_the_workspace() {
    let (dockerfile, version) = (read("deploy/Dockerfile"), env!("CARGO_PKG_VERSION"));
    let rust = after(&read("Cargo.toml"), "rust-version = ").to_owned();
    assert_eq!(after(&dockerfile, "ARG RUST_VERSION="), rust);
    assert_eq!(format!("pypdfium2=={}", after(&dockerfile, "ARG PDFIUM_VERSION=")), tools::PDFIUM_PACKAGE);
    assert!(dockerfile.contains(&format!("image.version=\"{version}\"")));
    assert!(read("deploy/compose.yaml").contains(&format!("image: lkr:{version}\n")));
    let chart = read("deploy/helm/lkr/Chart.yaml");
    assert_eq!([after(&chart, "version: "), after(&chart, "appVersion: ")], [version; 2]);
}

#[test]
fn dockerfile_runs_as_a_number_and_lists_no_shell_form() {
    let dockerfile = read("deploy/Dockerfile");
    let user = after(&dockerfile, "USER ");
    assert!(user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)), "{user}");
    for instruction in ["ENTRYPOINT ", "HEALTHCHECK ", "CMD "] {
        assert!(dockerfile.lines().any(|line| line.trim().starts_with(instruction)), "{instruction}");
    }
    assert!(after(&dockerfile, "ENTRYPOINT ").starts_with('['), "a shell would not pass signals on");
}

#[test]
fn chart_has_a_value_and_a_schema_for_all_that_templates_read() {
    let values = key_paths(&read("deploy/helm/lkr/values.yaml"));
    let schema: Value = serde_json::from_str(&read("deploy/helm/lkr/values.schema.json")).unwrap();
    let mut count = 0;
    for path in files_below("deploy/helm/lkr/templates") {
        let text = fs::read_to_string(&path).unwrap();
        for rest in text.split(".Values.").skip(1) {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
            let read = rest.get(..end).unwrap().trim_end_matches('.');
            assert!(values.contains(read), "{}: values.yaml has no {read}", path.display());
            count += 1;
        }
    }
    assert!(count > 20, "{count} values are read");
    let described: BTreeSet<&str> = schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .filter(|key| *key != "global")
        .collect();
    let top: BTreeSet<&str> = values.iter().map(String::as_str).filter(|path| !path.contains('.')).collect();
    assert_eq!(described, top);
}

#[test]
fn units_differ_only_in_what_they_start() {
    let settings = |unit: &str| -> BTreeSet<String> {
        let text = read(unit);
        let lines = text.lines().filter(|line| line.contains('=') && !line.starts_with('#'));
        let lines = lines.filter(|line| !DIFFERENT_IN_UNITS.contains(&line.split('=').next().unwrap()));
        lines.map(str::to_owned).collect()
    };
    let server = settings("deploy/lkr-server.service");
    assert!(server.contains("NoNewPrivileges=yes"));
    assert_eq!(server, settings("deploy/lkr-worker@.service"));
}

#[test]
fn each_sample_is_explained() {
    let page = read("deploy/README.md");
    for path in entries(&root().unwrap().join("deploy")).unwrap() {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            name == "README.md" || name == ".env" || page.contains(name),
            "deploy/README.md does not explain {name}"
        );
    }
}
