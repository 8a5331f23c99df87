//! A certificate and its private key, read from their files and checked.

use aldaba_delivery::Timestamp;
use aldaba_engine::wire::first_expiry;
use rustls::InconsistentKeys;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Larger files are no certificates.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The files of the settings `tls_certificate` and `tls_key`. They may be one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM: the server's certificate, then those of its issuers.
    pub certificate: PathBuf,
    /// PEM: the private key, as PKCS#8, PKCS#1 or SEC1.
    pub key: PathBuf,
}

/// What the files hold, by its hash: it tells whether they have changed.
pub(super) type FilesDigest = [u8; 32];

/// Why the files cannot be used: the setting, the file, what is wrong and what to do. No variant holds any of a key.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error(
        "{setting}: cannot read {}: {source}. Check the path, and that the user of the server may read the file",
        file.display()
    )]
    Unreadable { setting: &'static str, file: PathBuf, source: io::Error },
    #[error(
        "{setting}: {} is not a regular file; name a file with PEM, or a symbolic link to one, not a folder, pipe or device",
        file.display()
    )]
    NotRegular { setting: &'static str, file: PathBuf },
    #[error(
        "{setting}: {} is larger than 1 MiB; name a file that holds only the certificates or the key, as PEM",
        file.display()
    )]
    TooLarge { setting: &'static str, file: PathBuf },
    #[error(
        "{setting}: {} is not PEM: a block between `-----BEGIN …-----` and `-----END …-----` cannot be read. Is it whole, and not DER?",
        file.display()
    )]
    Pem { setting: &'static str, file: PathBuf },
    #[error(
        "tls_certificate: {} holds no certificate; expected a `CERTIFICATE` block: the server's first, those of its issuers after it",
        .0.display()
    )]
    NoCertificate(PathBuf),
    #[error(
        "tls_certificate: {} holds a certificate that is not valid X.509 version 3; replace it (`openssl x509 -req` may make version 1, unless it has `-extfile`)",
        .0.display()
    )]
    Certificate(PathBuf),
    #[error(
        "tls_key: {} holds no private key; expected a `PRIVATE KEY`, `RSA PRIVATE KEY` or `EC PRIVATE KEY` block (PKCS#8, PKCS#1 or SEC1)",
        .0.display()
    )]
    NoKey(PathBuf),
    #[error(
        "tls_key: {file} holds an encrypted private key; store it without a passphrase (`openssl pkey -in {file} -out key.pem`)"
    )]
    Encrypted { file: String },
    #[error("tls_key: {} holds more than one private key; keep the one of the certificate", .0.display())]
    ManyKeys(PathBuf),
    #[error(
        "tls_key: {} holds a key of a kind that cannot be used; expected RSA, ECDSA (P-256, P-384, P-521) or Ed25519",
        .0.display()
    )]
    Key(PathBuf),
    #[error(
        "tls_key: the key in {} does not belong to the first certificate in {}; expected the server's certificate first, and its key",
        key.display(),
        certificate.display()
    )]
    Mismatch { key: PathBuf, certificate: PathBuf },
    #[error(
        "tls_certificate: the certificate in {} has expired at {expired_at}; replace it with a new one",
        file.display()
    )]
    Expired { file: PathBuf, expired_at: String },
    #[error("tls_certificate: TLS cannot be set up: {0}")]
    Setup(rustls::Error),
}

/// A certificate that can be used, with its key.
pub(super) struct ServerCertificate {
    pub(super) key: CertifiedKey,
    /// When the first of the certificates in the file expires.
    pub(super) expires_at: Option<Timestamp>,
}

impl fmt::Debug for ServerCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCertificate").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// The content of both files.
pub(super) struct FileContents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl CertificateFiles {
    pub(super) fn read(&self) -> Result<FileContents, CertificateError> {
        let certificate = content("tls_certificate", &self.certificate)?;
        Ok(FileContents { certificate, key: content("tls_key", &self.key)? })
    }

    /// Warns of a key that everybody on the machine can read.
    pub(super) fn warn_of_readers(&self) {
        let mode = fs::metadata(&self.key).map(|found| found.permissions().mode());
        if mode.is_ok_and(|mode| mode & 0o007 != 0) {
            tracing::warn!(file = %self.key.display(), "tls_key: every user of this machine may read the file; set its mode to 0600 or 0640");
        }
    }
}

impl FileContents {
    pub(super) fn digest(&self) -> FilesDigest {
        let mut hash = Sha256::new();
        for content in [&self.certificate, &self.key] {
            hash.update((content.len() as u64).to_be_bytes());
            hash.update(content);
        }
        hash.finalize().into()
    }

    /// Checks everything but the time.
    pub(super) fn parse(self, files: &CertificateFiles) -> Result<ServerCertificate, CertificateError> {
        let file = || files.certificate.clone();
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<_, _>>()
            .map_err(|_| CertificateError::Pem { setting: "tls_certificate", file: file() })?;
        if certificates.is_empty() {
            return Err(CertificateError::NoCertificate(file()));
        }
        if !certificates.iter().all(|certificate| ParsedCertificate::try_from(certificate).is_ok()) {
            return Err(CertificateError::Certificate(file()));
        }
        let expires_at = first_expiry(certificates.iter().map(|certificate| &**certificate));
        let key = only_key(&self.key, &files.key)?;
        let key =
            CertifiedKey::from_der(certificates, key, &default_provider()).map_err(|error| match error {
                rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                    CertificateError::Mismatch { key: files.key.clone(), certificate: file() }
                }
                rustls::Error::InvalidCertificate(_) => CertificateError::Certificate(file()),
                _ => CertificateError::Key(files.key.clone()),
            })?;
        Ok(ServerCertificate { key, expires_at })
    }
}

fn content(setting: &'static str, file: &Path) -> Result<Vec<u8>, CertificateError> {
    let unreadable = |source| CertificateError::Unreadable { setting, file: file.into(), source };
    // Symbolic links are followed: Kubernetes mounts secrets as such. To open a pipe would wait for its writer.
    if !fs::metadata(file).map_err(unreadable)?.is_file() {
        return Err(CertificateError::NotRegular { setting, file: file.into() });
    }
    let mut content = Vec::new();
    let mut limited = File::open(file).map_err(unreadable)?.take(MAX_FILE_BYTES + 1);
    limited.read_to_end(&mut content).map_err(unreadable)?;
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(CertificateError::TooLarge { setting, file: file.into() });
    }
    Ok(content)
}

fn only_key(pem: &[u8], file: &Path) -> Result<PrivateKeyDer<'static>, CertificateError> {
    // PKCS#8 says so in the name of its block, the older forms in a header of it.
    if pem.windows(9).any(|part| part == b"ENCRYPTED") {
        return Err(CertificateError::Encrypted { file: file.display().to_string() });
    }
    let broken = |_: PemError| CertificateError::Pem { setting: "tls_key", file: file.into() };
    let mut keys = PrivateKeyDer::pem_slice_iter(pem);
    let key = keys.next().ok_or_else(|| CertificateError::NoKey(file.into()))?.map_err(broken)?;
    match keys.next() {
        None => Ok(key),
        Some(_) => Err(CertificateError::ManyKeys(file.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};
    use std::os::unix::fs::symlink;
    use std::process::Command;
    use tempfile::TempDir;

    /// Made by `openssl x509 -req` of OpenSSL 3.0, without `-extfile`.
    const VERSION_1: &str = "-----BEGIN CERTIFICATE-----
MIIBJDCBywIUSVaHOUj/JTyggvzVAJbinB6QgvswCgYIKoZIzj0EAwIwFDESMBAG
A1UEAwwJbG9jYWxob3N0MCAXDTI2MTExOTIwMjM1MloYDzIxMjYxMDI2MjAyMzUy
WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQL6y+n8ypS3ASZudqki1/+nQ1EcKB7B8UMA8CERLG0hIhDu8siAfJ9ueDXl1Y2
cPq0nJtd2BlFOdErAZfxB5EGMAoGCCqGSM49BAMCA0gAMEUCIQC62so4SodId9Qn
kMuySrCXz3YFX3uYuRXE52YPHIKwkwIgVQWKW+qBIxCubW15xcVWp48JJn86k0SQ
e7eK7XSOM2o=
-----END CERTIFICATE-----
";

    fn pair() -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![]).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn files(certificate: &str, key: &str) -> (TempDir, CertificateFiles) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let files = CertificateFiles { certificate: at("certificate.pem"), key: at("key.pem") };
        fs::write(&files.certificate, certificate).unwrap();
        fs::write(&files.key, key).unwrap();
        (folder, files)
    }

    fn read(files: &CertificateFiles) -> Result<ServerCertificate, CertificateError> {
        files.read()?.parse(files)
    }

    #[test]
    fn a_chain_with_its_key_is_read_and_both_may_be_in_one_file() {
        let ((certificate, key), (issuer, _)) = (pair(), pair());
        let (_folder, apart) = files(&format!("{certificate}{issuer}"), &key);
        assert_eq!(read(&apart).unwrap().key.cert.len(), 2);
        let (_folder, mut together) = files(&format!("{key}{certificate}"), "");
        together.key.clone_from(&together.certificate);
        assert!(read(&together).unwrap().expires_at.is_some());
        assert!(!format!("{:?}", read(&together).unwrap()).contains("PRIVATE"));
    }

    #[test]
    fn each_wrong_file_has_an_error_that_names_the_setting_the_file_and_what_to_do() {
        let ((certificate, key), (_, other)) = (pair(), pair());
        let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let old =
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nAAAA\n-----END RSA PRIVATE KEY-----\n";
        let large = "x".repeat((MAX_FILE_BYTES + 1) as usize);
        for (certificate, key, setting, said) in [
            ("", &key[..], "tls_certificate", "certificate.pem holds no certificate; expected"),
            (&key, &key, "tls_certificate", "holds no certificate"),
            (nonsense, &key, "tls_certificate", "a certificate that is not valid X.509 version 3; replace"),
            (VERSION_1, &key, "tls_certificate", "a certificate that is not valid X.509 version 3; replace"),
            ("-----BEGIN CERTIFICATE-----\n!\n", &key, "tls_certificate", "is not PEM"),
            (&large, &key, "tls_certificate", "is larger than 1 MiB; name a file"),
            (&certificate, &large, "tls_key", "is larger than 1 MiB; name a file"),
            (&certificate, "", "tls_key", "key.pem holds no private key; expected a `PRIVATE KEY`"),
            (&certificate, no_key, "tls_key", "a kind that cannot be used; expected RSA"),
            (&certificate, locked, "tls_key", "an encrypted private key; store it without"),
            (&certificate, old, "tls_key", "an encrypted private key"),
            (&certificate, &format!("{key}{other}"), "tls_key", "more than one private key"),
            (&certificate, &other, "tls_key", "does not belong to the first certificate in "),
        ] {
            let (_folder, files) = files(certificate, key);
            let error = read(&files).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{setting}: ")) && error.contains(said), "{error}");
        }
        let (folder, files) = files(&certificate, &key);
        drop(folder);
        let error = read(&files).unwrap_err().to_string();
        assert!(
            error.contains("certificate.pem: No such file") && error.contains("Check the path"),
            "{error}"
        );
    }

    #[test]
    fn a_folder_a_pipe_and_a_device_are_refused_without_being_opened_and_a_link_to_a_file_is_read() {
        let (certificate, key) = pair();
        let (folder, mut files) = files(&certificate, &key);
        files.certificate = folder.path().join("link.pem");
        // As in Kubernetes: a link into a folder that is a link.
        symlink(folder.path(), folder.path().join("..data")).unwrap();
        symlink("..data/certificate.pem", &files.certificate).unwrap();
        assert!(read(&files).is_ok());
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for file in [pipe.as_path(), folder.path(), Path::new("/dev/zero")] {
            files.key = file.into();
            let error = read(&files).unwrap_err().to_string();
            let expected = format!("tls_key: {} is not a regular file; name a file with PEM", file.display());
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
