//! The configuration that each sample gives to the server, and whether the server accepts it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{
    SCRATCH,
    dockerfile::{self, Variables, assignments},
    read, sample, yaml,
};
use crate::{executable, root, tools};

/// Stands for each secret that a sample leaves empty; the longest form that one must have is that of `LKR_SECRET_KEY`.
const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The keys in the secret of the chart, with mode scaled. Mode embedded needs the first alone.
const SECRET_OF_CHART: [&str; 5] = [
    "LKR_ADMIN_PASSWORD",
    "LKR_SECRET_KEY",
    "LKR_REDIS_URL",
    "LKR_S3_ACCESS_KEY_ID",
    "LKR_S3_SECRET_ACCESS_KEY",
];

/// What a sample starts a server with.
#[derive(Debug)]
pub(crate) struct Configuration {
    /// The sample, and the service or file in it.
    pub(crate) name: String,
    pub(crate) variables: Variables,
    /// The arguments of `lkr`.
    pub(crate) arguments: Vec<String>,
}

/// The configurations of the samples that can be read without further programs: all but those of the chart.
pub(crate) fn of_files() -> Result<Vec<Configuration>> {
    of_texts(|name| read(&sample(name)?))
}

/// The same, with a function that reads a sample by its name.
fn of_texts(text: impl Fn(&str) -> Result<String>) -> Result<Vec<Configuration>> {
    let image = of_dockerfile(&text("Dockerfile")?)?;
    let mut found = of_compose(&text("compose.yaml")?, &text("compose.env.example")?, &image)?;
    let variables = environment_file(&text("lkr.env.example")?);
    for unit in ["lkr-server.service", "lkr-worker@.service"] {
        found.extend(of_unit(unit, &text(unit)?, &variables)?);
    }
    found.push(image);
    Ok(found)
}

/// The example of an environment file, with a value for each empty secret.
pub(crate) fn filled(example: &str) -> String {
    example
        .lines()
        .map(|line| if line.ends_with('=') { format!("{line}{SECRET}\n") } else { format!("{line}\n") })
        .collect()
}

/// The variables of an environment file: NAME=VALUE on each line that is no comment.
fn environment_file(text: &str) -> Variables {
    let text = filled(text);
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.filter_map(|line| line.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
}

/// What a container of the image starts with.
fn of_dockerfile(text: &str) -> Result<Configuration> {
    let stages = dockerfile::stages(text)?;
    let image = stages.last().context("no stage")?;
    let (mut variables, mut arguments) = (Variables::new(), Vec::new());
    for instruction in &image.instructions {
        match instruction.keyword.as_str() {
            "ENV" => variables.extend(assignments(&instruction.text)?),
            "CMD" => {
                arguments = serde_json::from_str(&instruction.text).context("CMD is no list of strings")?;
            }
            _ => {}
        }
    }
    Ok(Configuration { name: "Dockerfile".to_owned(), variables, arguments })
}

/// What the services of a Compose file start with that use the image of lkr. `example` is the file of their secrets.
fn of_compose(compose: &str, example: &str, image: &Configuration) -> Result<Vec<Configuration>> {
    let secrets = environment_file(example);
    let compose = yaml::read(compose)?;
    let services = compose.get("services").and_then(Value::as_object).context("no services")?;
    let is_lkr = |service: &Value| {
        service.get("image").and_then(Value::as_str).is_some_and(|image| image.starts_with("lkr:"))
    };
    let mut found = Vec::new();
    for (name, service) in services.iter().filter(|(_, service)| is_lkr(service)) {
        let mut variables = image.variables.clone();
        let environment = service.get("environment").and_then(Value::as_object).into_iter().flatten();
        for (key, value) in environment {
            let value = value.as_str().with_context(|| format!("{key} is no text"))?;
            variables.insert(key.clone(), interpolated(value, &secrets)?);
        }
        let name = format!("compose.yaml, {name}");
        found.push(Configuration { name, variables, arguments: image.arguments.clone() });
    }
    ensure!(!found.is_empty(), "no service uses the image of lkr");
    Ok(found)
}

/// A text of a Compose file with values in place of `${NAME:?message}` and `${NAME:-default}`.
fn interpolated(text: &str, variables: &Variables) -> Result<String> {
    let mut parts = text.split("${");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (variable, rest) = part.split_once('}').with_context(|| format!("{text} lacks a brace"))?;
        let (name, default) = match variable.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (variable.split(':').next().unwrap_or_default(), None),
        };
        let value = variables.get(name).map(String::as_str).or(default);
        filled.push_str(value.with_context(|| format!("{name} has no value"))?);
        filled.push_str(rest);
    }
    Ok(filled)
}

/// What a unit starts: without its environment file too, if that may be absent. The instance is a port.
fn of_unit(name: &str, unit: &str, file: &Variables) -> Result<Vec<Configuration>> {
    let setting = |key: &str| unit.lines().find_map(|line| line.trim().strip_prefix(key));
    let start =
        setting("ExecStart=").context("no ExecStart")?.replace("%S", "/var/lib").replace("%i", "8091");
    let mut words = start.split_whitespace().map(str::to_owned);
    let program = words.next().context("ExecStart is empty")?;
    ensure!(program.ends_with("/lkr-server"), "{name} starts {program}");
    let arguments: Vec<String> = [executable::SERVE.to_owned()].into_iter().chain(words).collect();
    let environment_file = setting("EnvironmentFile=").context("no EnvironmentFile")?;
    let mut own = Variables::new();
    for line in unit.lines().filter_map(|line| line.trim().strip_prefix("Environment=")) {
        own.extend(assignments(line)?);
    }
    let with = |what: &str, variables: Variables| Configuration {
        name: format!("{name}, {what} environment file"),
        variables,
        arguments: arguments.clone(),
    };
    let mut all = own.clone();
    all.extend(file.clone());
    let mut found = vec![with("with its", all)];
    if environment_file.starts_with('-') {
        found.push(with("without its", own));
    }
    Ok(found)
}

/// What each container of the chart starts with, rendered with each file of values. `packages` is the folder of Helm.
pub(crate) fn of_chart(packages: &Path) -> Result<Vec<Configuration>> {
    let image = of_dockerfile(&read(&sample("Dockerfile")?)?)?;
    let mut script = tools::python(packages)?;
    script.arg(root()?.join("tools/check_chart.py")).arg(sample("helm/lkr")?).arg("--configurations");
    let output = script.output().context("cannot run python3")?;
    ensure!(
        output.status.success(),
        "the chart cannot be rendered: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let rendered: Value = serde_json::from_slice(&output.stdout)?;
    let mut found = Vec::new();
    for (values, containers) in rendered.as_object().into_iter().flatten() {
        for (container, own) in containers.as_object().into_iter().flatten() {
            let mut variables = image.variables.clone();
            for (key, value) in own.as_object().into_iter().flatten() {
                variables.insert(key.clone(), value.as_str().context("a variable is no text")?.to_owned());
            }
            let is_scaled = variables.contains_key("LKR_STATE");
            for key in SECRET_OF_CHART.iter().take(if is_scaled { SECRET_OF_CHART.len() } else { 1 }) {
                let url = key.ends_with("_URL").then(|| format!("redis://:{SECRET}@redis:6379/0"));
                variables.insert((*key).to_owned(), url.unwrap_or_else(|| SECRET.to_owned()));
            }
            let name = format!("chart, {values}, {container}");
            found.push(Configuration { name, variables, arguments: image.arguments.clone() });
        }
    }
    ensure!(found.len() > 3, "the chart has {} containers", found.len());
    Ok(found)
}

/// Fails unless the server accepts the configuration, without a warning.
pub(crate) fn accept(lkr: &Path, configuration: &Configuration) -> Result<()> {
    let Configuration { name, variables, arguments } = configuration;
    // Without a file of configuration.
    let folder = root()?.join(SCRATCH).join("empty");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut check = Command::new(lkr);
    check.args(arguments).arg("--check-config").env_clear().envs(variables).current_dir(folder);
    let output = check.output().with_context(|| format!("cannot run {}", lkr.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} refuses {name}: {}", lkr.display(), said.trim());
    ensure!(said.is_empty(), "{} warns of {name}: {}", lkr.display(), said.trim());
    Ok(())
}

/// Fails unless the server accepts all of these configurations.
pub(crate) fn accept_all(lkr: &Path, configurations: &[Configuration]) -> Result<()> {
    configurations.iter().try_for_each(|configuration| accept(lkr, configuration))
}

/// The executable that is built: the one that `LKR_BIN` names, otherwise that of the profile of the tests.
pub(crate) fn built_executable() -> Result<Option<PathBuf>> {
    let named = env::var_os("LKR_BIN").filter(|named| !named.is_empty()).map(PathBuf::from);
    let program = match named {
        Some(named) => std::path::absolute(named)?,
        None => executable::target_dir("dev")?.join(format!("lkr{}", env::consts::EXE_SUFFIX)),
    };
    Ok(program.is_file().then_some(program))
}

/// The executable, which is built if there is none.
pub(crate) fn executable() -> Result<PathBuf> {
    match built_executable()? {
        Some(program) => Ok(program),
        None => Ok(executable::build_profile("dev")?.join(format!("lkr{}", env::consts::EXE_SUFFIX))),
    }
}

#[cfg(test)]
mod tests {
    use lkr_test_support::{cli_binary, note_skip};

    use super::*;

    #[test]
    fn server_accepts_the_configuration_of_each_sample() {
        let configurations = of_files().unwrap();
        assert_eq!(configurations.len(), 6, "{configurations:?}");
        accept_all(cli_binary(), &configurations).unwrap();
    }

    #[test]
    fn server_accepts_the_configuration_of_each_container_of_the_chart() {
        match super::super::present_chart_packages().unwrap() {
            Some(packages) => accept_all(cli_binary(), &of_chart(&packages).unwrap()).unwrap(),
            None => note_skip("Helm is not installed; `cargo xtask deploy` installs it"),
        }
    }

    /// What is said against the samples after one change in a file.
    fn refusal(file: &str, from: &str, to: &str) -> String {
        let changed = |name: &str| {
            let text = read(&sample(name)?)?;
            if name != file {
                return Ok(text);
            }
            assert!(text.contains(from), "{name} does not contain {from}");
            Ok(text.replacen(from, to, 1))
        };
        let refused = of_texts(changed).and_then(|all| accept_all(cli_binary(), &all));
        refused.expect_err(&format!("{file} with {to}")).to_string()
    }

    #[test]
    fn server_refuses_samples_with_mistakes() {
        for (file, from, to, said) in [
            ("Dockerfile", "LKR_LISTEN=0.0.0.0:8080", "LKR_LISTEN=everywhere", "LKR_LISTEN"),
            ("Dockerfile", "LKR_DATA_DIR=", "LKR_DATA_FOLDER=", "LKR_DATA_FOLDER"),
            ("compose.yaml", "LKR_ROLE: api", "LKR_ROLE: server", "refuses compose.yaml, api"),
            ("compose.yaml", "LKR_QDRANT_URL:", "LKR_QDRANT_ADDRESS:", "needs qdrant_url"),
            ("compose.env.example", "REDIS_PASSWORD=", "REDIS_PASS=", "REDIS_PASSWORD has no value"),
            ("lkr-server.service", "--data-dir %S/lkr", "--data-directory %S/lkr", "--data-directory"),
            ("lkr-worker@.service", "--role worker", "--role reader", "refuses lkr-worker@.service"),
            ("lkr.env.example", "LKR_SECRET_KEY=", "LKR_SECRET=", "needs secret_key"),
        ] {
            let error = refusal(file, from, to);
            assert!(error.contains(said), "{file} with {to}: {error}");
        }
    }
}
