//! modules.json: the parts of a sentence-transformers model, in their order.

use std::path::{Path, PathBuf};

use lkr_models::Result;
use serde::Deserialize;

use crate::error;
use crate::folder::{optional, required};
use crate::pooling::{Pooling, read_pooling};
use crate::steps::Steps;

/// An entry of modules.json.
#[derive(Deserialize)]
struct RawModule {
    path: String,
    #[serde(rename = "type")]
    class: String,
}

impl RawModule {
    /// The name of its class. The packages before it were renamed several times.
    fn name(&self) -> &str {
        self.class.rsplit('.').next().unwrap_or_default()
    }
}

/// The form of a folder that may be of transformers or of sentence-transformers.
#[derive(Debug)]
pub(crate) enum Layout {
    /// A transformer in this folder, and nothing else.
    Transformer(PathBuf),
    Modules(Modules),
}

impl Layout {
    /// Reads modules.json of `dir`. Without it, `dir` is the folder of a transformer.
    pub(crate) fn read(dir: &Path) -> Result<Self> {
        let path = dir.join("modules.json");
        match optional::<Vec<RawModule>>(&path)?.as_deref() {
            None => Ok(Self::Transformer(dir.to_owned())),
            Some([only]) if only.name() == "Transformer" => Ok(Self::Transformer(dir.join(&only.path))),
            Some(modules) => Modules::of(dir, &path, modules).map(Self::Modules),
        }
    }

    /// The folder of the transformer.
    pub(crate) fn transformer(&self) -> &Path {
        match self {
            Self::Transformer(folder) => folder,
            Self::Modules(modules) => &modules.transformer,
        }
    }
}

/// A transformer, a pooling, and what follows.
#[derive(Debug)]
pub(crate) struct Modules {
    /// The folder of the transformer.
    pub(crate) transformer: PathBuf,
    pub(crate) pooling: Pooling,
    steps: Vec<(String, PathBuf)>,
}

impl Modules {
    /// Reads modules.json of `dir`, which must exist.
    pub(crate) fn read(dir: &Path) -> Result<Self> {
        let path = dir.join("modules.json");
        Self::of(dir, &path, &required::<Vec<RawModule>>(&path)?)
    }

    fn of(dir: &Path, path: &Path, modules: &[RawModule]) -> Result<Self> {
        let known = ["Transformer", "Pooling", "Dense", "LayerNorm", "Normalize"];
        if let Some(module) = modules.iter().find(|module| !known.contains(&module.name())) {
            return Err(error::file(path, format_args!("module {} is not supported", module.class)));
        }
        let fail = |why: &str| {
            let names: Vec<&str> = modules.iter().map(RawModule::name).collect();
            error::file(path, format_args!("modules {names:?}: {why}"))
        };
        let [transformer, pooling, steps @ ..] = modules else {
            return Err(fail("a Transformer and a Pooling are needed"));
        };
        let later = steps.iter().any(|step| ["Transformer", "Pooling"].contains(&step.name()));
        if transformer.name() != "Transformer" || pooling.name() != "Pooling" || later {
            return Err(fail("the first must be the Transformer and the second the Pooling"));
        }
        Ok(Self {
            transformer: dir.join(&transformer.path),
            pooling: read_pooling(&dir.join(&pooling.path).join("config.json"))?,
            steps: steps.iter().map(|step| (step.name().to_owned(), dir.join(&step.path))).collect(),
        })
    }

    /// Loads what follows the pooling of vectors with `width` numbers. Its last result is called `output`.
    pub(crate) fn load_steps(&self, width: usize, output: &str) -> Result<Steps> {
        Steps::load(&self.steps, width, output)
    }
}
