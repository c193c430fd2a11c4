//! TLS in front of the engine, with its own certificate authority.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::Result;

/// A proxy that terminates TLS.
pub(crate) struct Terminator {
    address: SocketAddr,
    server: JoinHandle<()>,
}

impl Terminator {
    /// Starts the proxy in front of the engine at `http://…`, and writes the certificate of its
    /// authority to a file.
    pub(crate) async fn start(engine: &str, authority: &Path) -> Result<Self> {
        let engine = engine.trim_start_matches("http://").parse()?;
        let acceptor = TlsAcceptor::from(Arc::new(configuration(authority)?));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A connection error appears as a failed call.
                tokio::spawn(forward(acceptor.clone(), stream, engine));
            }
        });
        Ok(Self { address, server })
    }

    /// Returns the URL of the proxy.
    pub(crate) fn endpoint(&self) -> String {
        format!("https://{}", self.address)
    }
}

impl Drop for Terminator {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn forward(acceptor: TlsAcceptor, client: TcpStream, engine: SocketAddr) -> Result<()> {
    client.set_nodelay(true)?;
    let mut client = acceptor.accept(client).await?;
    let mut engine = TcpStream::connect(engine).await?;
    engine.set_nodelay(true)?;
    tokio::io::copy_bidirectional(&mut client, &mut engine).await?;
    Ok(())
}

/// Returns a server configuration with a new loopback certificate, signed by a new authority.
fn configuration(authority_file: &Path) -> Result<ServerConfig> {
    let mut authority = CertificateParams::new([])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    authority.distinguished_name.push(DnType::CommonName, "Waymark benchmark");
    let authority_key = KeyPair::generate()?;
    std::fs::write(authority_file, authority.self_signed(&authority_key)?.pem())?;
    let issuer = Issuer::new(authority, authority_key);

    let key = KeyPair::generate()?;
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let certificate = CertificateParams::new(names)?.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    // This program can link several cryptography providers, so there is no default one.
    Ok(ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?)
}
