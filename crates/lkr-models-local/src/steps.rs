//! What becomes of a pooled vector: linear layers, normalisations, scaling to length 1.

use std::path::{Path, PathBuf};

use lkr_models::Result;
use pulp::Arch;
use serde::Deserialize;

use crate::config::Activation;
use crate::error;
use crate::fingerprint::fingerprint;
use crate::folder::{optional, required};
use crate::kernels;
use crate::linear::{Linear, LinearShape, NormWeights};
use crate::weights::WeightsFile;

/// The name of a vector between modules.
pub(crate) const VECTOR: &str = "sentence_embedding";
/// The constant of a `LayerNorm`, which has no setting for it.
const LAYER_NORM_EPS: f32 = 1e-5;

/// The function behind a linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepActivation {
    Identity,
    Tanh,
    Of(Activation),
}

/// One operation on a vector.
#[derive(Debug)]
pub(crate) enum Step {
    Dense { linear: Linear, activation: StepActivation },
    Norm(NormWeights),
    Normalize,
}

impl Step {
    fn apply(&self, mut vector: Vec<f32>) -> Result<Vec<f32>> {
        match self {
            Self::Dense { linear, activation } => dense(linear, *activation, &vector),
            Self::Norm(norm) => {
                kernels::layer_norm(Arch::new(), &mut vector, norm.as_norm());
                Ok(vector)
            }
            Self::Normalize => {
                // A zero vector stays as it is, as in the reference; the last check refuses it.
                if vector.iter().any(|&x| x != 0.0) {
                    kernels::to_unit(&mut vector);
                }
                Ok(vector)
            }
        }
    }
}

fn dense(linear: &Linear, activation: StepActivation, vector: &[f32]) -> Result<Vec<f32>> {
    let mut out = linear.of_row(vector)?;
    match activation {
        StepActivation::Identity => {}
        StepActivation::Tanh => out.iter_mut().for_each(|x| *x = x.tanh()),
        StepActivation::Of(activation) => {
            let no_bias = vec![0.0; out.len()];
            kernels::activate(Arch::new(), activation, &mut out, &no_bias);
        }
    }
    Ok(out)
}

/// Operations in their order.
#[derive(Debug)]
pub(crate) struct Steps {
    steps: Vec<Step>,
    /// The numbers of the last result.
    pub(crate) width: usize,
    /// The settings and weights as a part of the model's id; empty without steps.
    pub(crate) id: String,
}

impl Steps {
    /// Steps whose weights are part of the transformer's file, which the id of the model covers.
    pub(crate) const fn of_head(steps: Vec<Step>) -> Self {
        Self { steps, width: 1, id: String::new() }
    }

    /// Loads the modules with these names and folders.
    pub(crate) fn load(modules: &[(String, PathBuf)], width: usize, output: &str) -> Result<Self> {
        let mut loaded = Self { steps: Vec::new(), width, id: String::new() };
        let last = modules.len().checked_sub(1);
        for (at, (name, dir)) in modules.iter().enumerate() {
            let output = if Some(at) == last { output } else { VECTOR };
            match name.as_str() {
                "Dense" => loaded.push_dense(dir, output)?,
                "LayerNorm" => loaded.push_layer_norm(dir)?,
                _ => loaded.push_normalize(dir)?,
            }
        }
        Ok(loaded)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(crate) fn apply(&self, vector: Vec<f32>) -> Result<Vec<f32>> {
        self.steps.iter().try_fold(vector, |vector, step| step.apply(vector))
    }

    fn push_dense(&mut self, dir: &Path, output: &str) -> Result<()> {
        let path = dir.join("config.json");
        let config: DenseConfig = required(&path)?;
        let activation = config.check(self.width, output).map_err(|why| error::file(&path, why))?;
        let shape = LinearShape { inputs: self.width, outputs: config.out_features, biased: config.bias };
        let weights = WeightsFile::open_module(&dir.join("model.safetensors"))?;
        let linear = Linear::load(&weights.tensors()?, "linear", shape)?;
        self.id += &format!(" Dense {shape:?} {activation:?} {}", fingerprint(weights.bytes(), &[], ""));
        self.width = shape.outputs;
        self.steps.push(Step::Dense { linear, activation });
        Ok(())
    }

    fn push_layer_norm(&mut self, dir: &Path) -> Result<()> {
        #[derive(Deserialize)]
        struct LayerNormConfig {
            dimension: usize,
        }
        let path = dir.join("config.json");
        let LayerNormConfig { dimension } = required(&path)?;
        if dimension != self.width {
            let why = format_args!("dimension {dimension}, but the vectors have {} numbers", self.width);
            return Err(error::file(&path, why));
        }
        let weights = WeightsFile::open_module(&dir.join("model.safetensors"))?;
        let norm = NormWeights::load(&weights.tensors()?, "norm", dimension, true, LAYER_NORM_EPS)?;
        self.id += &format!(" LayerNorm {}", fingerprint(weights.bytes(), &[], ""));
        self.steps.push(Step::Norm(norm));
        Ok(())
    }

    fn push_normalize(&mut self, dir: &Path) -> Result<()> {
        #[derive(Deserialize, Default)]
        struct NormalizeConfig {
            module_input_name: Option<String>,
        }
        let path = dir.join("config.json");
        let config: NormalizeConfig = optional(&path)?.unwrap_or_default();
        if let Some(name) = config.module_input_name.filter(|name| name != VECTOR) {
            return Err(error::file(&path, format_args!("module_input_name {name} is not supported")));
        }
        self.id += " Normalize";
        self.steps.push(Step::Normalize);
        Ok(())
    }

    /// Drops scaling to length 1 at the end, which the caller does anyway, and its part of the id.
    pub(crate) fn without_last_normalize(mut self) -> Self {
        while matches!(self.steps.last(), Some(Step::Normalize)) {
            self.steps.pop();
            self.id.truncate(self.id.len().saturating_sub(" Normalize".len()));
        }
        self
    }
}

/// config.json of a `Dense`.
#[derive(Deserialize)]
struct DenseConfig {
    in_features: usize,
    out_features: usize,
    #[serde(default = "yes")]
    bias: bool,
    #[serde(default = "tanh")]
    activation_function: String,
    #[serde(default = "vector")]
    module_input_name: String,
    /// The same as the input if absent.
    module_output_name: Option<String>,
    #[serde(default)]
    use_residual: bool,
}

const fn yes() -> bool {
    true
}

fn tanh() -> String {
    "torch.nn.modules.activation.Tanh".to_owned()
}

fn vector() -> String {
    VECTOR.to_owned()
}

impl DenseConfig {
    /// The activation of a layer for vectors with `width` numbers, whose result is called `output`.
    fn check(&self, width: usize, output: &str) -> std::result::Result<StepActivation, String> {
        let Self { in_features, out_features, activation_function, module_input_name, .. } = self;
        if *in_features != width {
            return Err(format!("in_features {in_features}, but the vectors have {width} numbers"));
        }
        if *out_features == 0 {
            return Err("out_features 0 does not make a vector".to_owned());
        }
        if module_input_name != VECTOR {
            return Err(format!("module_input_name {module_input_name} is not supported"));
        }
        let found = self.module_output_name.as_ref().unwrap_or(module_input_name);
        if found != output {
            return Err(format!("module_output_name {found} is not supported here, only {output}"));
        }
        if self.use_residual {
            return Err("use_residual true is not supported".to_owned());
        }
        activation(activation_function)
            .ok_or_else(|| format!("activation_function {activation_function} is not supported"))
    }
}

/// The activation with the name of a class. Only those of torch are known to be what they are called.
fn activation(class: &str) -> Option<StepActivation> {
    match class.strip_prefix("torch.nn.")?.rsplit('.').next()? {
        "Identity" => Some(StepActivation::Identity),
        "Tanh" => Some(StepActivation::Tanh),
        "GELU" => Some(StepActivation::Of(Activation::Gelu)),
        "ReLU" => Some(StepActivation::Of(Activation::Relu)),
        "SiLU" => Some(StepActivation::Of(Activation::Silu)),
        _ => None,
    }
}
