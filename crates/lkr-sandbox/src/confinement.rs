use std::fmt;

use serde::{Deserialize, Serialize};

/// A mechanism of the system that confines a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Layer {
    /// The process and its children gain no privileges by starting programs.
    NoNewPrivileges,
    /// Other processes of the same user cannot read its memory, and it leaves no core file.
    NotDumpable,
    /// It has none of the superuser's capabilities, even if the server runs as root.
    NoCapabilities,
    /// Landlock: it cannot open files and folders. Since Linux 5.13.
    Landlock,
    /// Landlock: it cannot send signals to processes outside, nor connect to abstract sockets. Since Linux 6.12.
    LandlockScope,
    /// Its root folder is empty. Used where Landlock is not available.
    EmptyRoot,
    /// A filter denies the system calls that a parser does not need.
    SystemCallFilter,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoNewPrivileges => "no new privileges",
            Self::NotDumpable => "not dumpable",
            Self::NoCapabilities => "no capabilities",
            Self::Landlock => "Landlock",
            Self::LandlockScope => "Landlock scope",
            Self::EmptyRoot => "empty root folder",
            Self::SystemCallFilter => "system call filter",
        })
    }
}

/// The layers that the system enforces on a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    pub(crate) layers: Vec<Layer>,
}

impl Confinement {
    /// Whether a layer is enforced.
    #[must_use]
    pub fn has(&self, layer: Layer) -> bool {
        self.layers.contains(&layer)
    }

    /// The layers that are not enforced and that no other layer replaces.
    #[must_use]
    pub fn missing(&self) -> Vec<Layer> {
        let always =
            [Layer::NoNewPrivileges, Layer::NotDumpable, Layer::NoCapabilities, Layer::SystemCallFilter];
        let mut missing: Vec<_> = always.into_iter().filter(|layer| !self.has(*layer)).collect();
        if !self.has(Layer::Landlock) && !self.has(Layer::EmptyRoot) {
            missing.push(Layer::Landlock);
        }
        missing
    }

    /// The enforced layers, for logs.
    #[must_use]
    pub fn describe(&self) -> String {
        list(&self.layers)
    }
}

/// Logs what confines the workers, as a warning if something is missing.
pub(crate) fn log(confinement: &Confinement) {
    let (enforced, missing) = (confinement.describe(), confinement.missing());
    if missing.is_empty() {
        tracing::info!(enforced, "parser workers are confined");
    } else {
        let missing = list(&missing);
        tracing::warn!(
            enforced,
            missing,
            "parser workers are not fully confined; a parser that is taken over by a file may reach files of the server"
        );
    }
}

fn list(layers: &[Layer]) -> String {
    let names: Vec<_> = layers.iter().map(Layer::to_string).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing_without(layers: &[Layer]) -> Vec<Layer> {
        let all = [
            Layer::NoNewPrivileges,
            Layer::NotDumpable,
            Layer::NoCapabilities,
            Layer::Landlock,
            Layer::LandlockScope,
            Layer::SystemCallFilter,
        ];
        let layers = all.into_iter().filter(|layer| !layers.contains(layer)).collect();
        Confinement { layers }.missing()
    }

    #[test]
    fn layer_that_another_layer_replaces_is_not_missing() {
        assert_eq!(missing_without(&[]), []);
        assert_eq!(missing_without(&[Layer::LandlockScope]), [], "the filter denies signals");
        assert_eq!(missing_without(&[Layer::Landlock]), [Layer::Landlock]);
        assert_eq!(Confinement { layers: vec![Layer::EmptyRoot] }.missing().len(), 4, "Landlock is replaced");
        assert_eq!(Confinement::default().missing().len(), 5);
        assert_eq!(Confinement::default().describe(), "nothing");
    }
}
