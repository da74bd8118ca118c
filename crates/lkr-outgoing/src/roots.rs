//! Trusted root certificates.

use std::path::Path;

use tokio_rustls::rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::{Error, ErrorKind, Result};

/// The certificate bundles of common systems.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Trusted root certificates.
#[derive(Debug, Clone, Default)]
pub enum Roots {
    /// The operating system's; if it has none, Mozilla's as of the build.
    #[default]
    System,
    /// Only these, in PEM.
    Pem(Vec<u8>),
}

impl Roots {
    /// Reads the certificates. May block on files.
    ///
    /// # Errors
    /// `Invalid` if the given ones cannot be read.
    pub(crate) fn load(&self) -> Result<RootCertStore> {
        match self {
            Self::System => {
                Ok(BUNDLES.into_iter().find_map(|file| system(Path::new(file))).unwrap_or_else(bundled))
            }
            Self::Pem(pem) => given(pem),
        }
    }
}

/// The certificates in a file; `None` if there are none.
fn system(file: &Path) -> Option<RootCertStore> {
    let mut store = RootCertStore::empty();
    // An unreadable certificate does not affect others.
    store.add_parsable_certificates(CertificateDer::pem_file_iter(file).ok()?.flatten());
    (!store.is_empty()).then_some(store)
}

fn bundled() -> RootCertStore {
    webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()
}

fn given(pem: &[u8]) -> Result<RootCertStore> {
    let wrong = |reason: String| Error::new(ErrorKind::Invalid, "read certificates", reason);
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| wrong(format!("{error:?}")))?;
        store.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if store.is_empty() { Err(wrong("no certificate found".to_owned())) } else { Ok(store) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_roots_are_not_empty() {
        assert!(bundled().len() > 50);
        assert!(!Roots::System.load().unwrap().is_empty());
        assert!(system(Path::new("/nowhere")).is_none());
    }

    #[test]
    fn pem_without_certificates_is_refused() {
        for pem in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(Roots::Pem(pem.into()).load().is_err(), "{pem}");
        }
    }
}
