//! The address of a PostgreSQL server and how to speak to it: `sslmode` as `libpq` means it.

use crate::error::Error;
use postgres::{Config, config::SslMode};
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use rustls_platform_verifier::BuilderVerifierExt;
use std::{str::FromStr, sync::Arc, time::Duration};
use tokio_postgres_rustls::MakeRustlsConnect;

/// An address, read.
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
}

impl Address {
    /// Reads a `postgres://` URL.
    pub(super) fn read(url: &str) -> Result<Self, Error> {
        let (url, verify, root) = own_options(url)?;
        let mut config = Config::from_str(&url).map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            invalid(&cause.unwrap_or_else(|| error.to_string()))
        })?;
        config.connect_timeout(Duration::from_secs(5));
        config.tcp_user_timeout(Duration::from_secs(10));
        config.keepalives_idle(Duration::from_secs(5));
        config.keepalives_interval(Duration::from_secs(2));
        config.keepalives_retries(3);
        if config.get_application_name().is_none() {
            config.application_name("purvey");
        }
        if verify {
            config.ssl_mode(SslMode::Require);
        }
        Ok(Self {
            config,
            tls: MakeRustlsConnect::new(client(verify, root.as_deref())?),
        })
    }
}

fn invalid(reason: &str) -> Error {
    Error::Store {
        detail: format!(
            "the database address is not usable: {reason}; it must be like postgres://user:password@host:5432/name?sslmode=verify-full"
        ),
    }
}

/// Takes out what the PostgreSQL client does not know itself: `sslmode=verify-full` and `sslrootcert`.
fn own_options(url: &str) -> Result<(String, bool, Option<String>), Error> {
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        return Err(invalid("it does not begin with postgres://"));
    }
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let (mut verify, mut root, mut rest) = (false, None, Vec::new());
    for option in query.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("sslmode", "verify-full")) => verify = true,
            Some(("sslmode", "verify-ca" | "allow")) => {
                return Err(invalid(
                    "sslmode must be disable, prefer, require or verify-full",
                ));
            }
            Some(("sslrootcert", path)) => {
                let path = url::form_urlencoded::parse(path.as_bytes())
                    .map(|(path, _)| path.into_owned())
                    .next();
                root = Some(path.unwrap_or_default());
            }
            _ => rest.push(option),
        }
    }
    if root.is_some() && !verify {
        return Err(invalid("sslrootcert needs sslmode=verify-full"));
    }
    let url = match rest.is_empty() {
        true => base.to_owned(),
        false => format!("{base}?{}", rest.join("&")),
    };
    Ok((url, verify, root))
}

fn client(verify: bool, root: Option<&str>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let failed = |error: &dyn std::fmt::Display| invalid(&format!("TLS cannot be used: {error}"));
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let builder = match (verify, root) {
        (true, None) => builder
            .with_platform_verifier()
            .map_err(|error| failed(&error))?,
        (true, Some(path)) => {
            let unusable =
                |reason: &dyn std::fmt::Display| invalid(&format!("sslrootcert {path}: {reason}"));
            let mut roots = RootCertStore::empty();
            for certificate in
                CertificateDer::pem_file_iter(path).map_err(|error| unusable(&error))?
            {
                let certificate = certificate.map_err(|error| unusable(&error))?;
                roots.add(certificate).map_err(|error| unusable(&error))?;
            }
            if roots.is_empty() {
                return Err(unusable(&"it holds no certificate"));
            }
            builder.with_root_certificates(roots)
        }
        (false, _) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified(provider))),
    };
    Ok(builder.with_no_client_auth())
}

/// What `prefer` and `require` mean: encrypted, but to whom is not asked.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_say_what_is_wrong_with_them() {
        for (url, reason) in [
            ("work.db", "does not begin with postgres://"),
            ("postgres://h/d?sslmode=allow", "sslmode must be"),
            ("postgres://h/d?sslmode=never", "sslmode"),
            ("postgres://h/d?sslrootcert=/x", "needs sslmode=verify-full"),
            (
                "postgres://h/d?sslmode=verify-full&sslrootcert=/no/such",
                "sslrootcert /no/such",
            ),
            ("postgres://h/d?colour=red", "colour"),
        ] {
            let error = Address::read(url).err().expect(url).to_string();
            assert!(error.contains(reason), "{url}: {error}");
        }
        let read = |url| match Address::read(url) {
            Ok(address) => address.config.get_ssl_mode(),
            Err(error) => panic!("{url}: {error}"),
        };
        assert_eq!(read("postgres://h/d"), SslMode::Prefer);
        assert_eq!(read("postgres://h/d?sslmode=disable"), SslMode::Disable);
        assert_eq!(read("postgres://h/d?sslmode=require"), SslMode::Require);
    }
}
