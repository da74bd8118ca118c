//! Which certificates are trusted.

use std::{path::Path, sync::Arc};

use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::{Error, Result};

/// TLS with Mozilla's certificates and those of `ca_file`, which is read.
///
/// # Errors
/// `Invalid` if the file cannot be read or contains no certificate.
pub(crate) fn config(ca_file: Option<&Path>) -> Result<ClientConfig> {
    let mut roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    if let Some(file) = ca_file {
        add(&mut roots, file)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(Error::invalid)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn add(roots: &mut RootCertStore, file: &Path) -> Result<()> {
    let wrong = |reason: String| Error::invalid(format!("certificates {}: {reason}", file.display()));
    let before = roots.len();
    let pem = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| wrong(format!("{error:?}")))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.len() == before { Err(wrong("no certificate found".to_owned())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_without_certificates_is_refused_by_name() {
        assert!(config(None).is_ok());
        for file in ["/nowhere/ca.pem", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")] {
            let error = config(Some(file.as_ref())).unwrap_err();
            assert!(error.to_string().contains(file), "{error}");
        }
    }
}
