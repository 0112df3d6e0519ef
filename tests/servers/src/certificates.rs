//! Certificates for servers that speak TLS: an authority, a server on loopback, and a client.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

/// Files `<name>.pem` and `<name>.key` for the names `authority`, `server` and `client`.
pub struct Certificates {
    folder: TempDir,
}

/// The name in the client's certificate, which is also the PostgreSQL user.
pub const CLIENT: &str = "holdfast";

/// With openssl's own defaults, each certificate would be an authority.
const NO_DEFAULTS: &str = "[req]\ndistinguished_name=dn\n[dn]\n";

impl Certificates {
    /// Creates a new authority, and signs the other two certificates with it.
    pub fn make() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        fs::write(folder.path().join("openssl.cnf"), NO_DEFAULTS).expect("a file can be written");
        let certificates = Self { folder };
        certificates.sign("authority", "/CN=authority", &["basicConstraints=critical,CA:TRUE"]);
        let leaf = "basicConstraints=critical,CA:FALSE";
        certificates.sign("server", "/CN=server", &[leaf, "subjectAltName=IP:127.0.0.1"]);
        certificates.sign("client", &format!("/CN={CLIENT}"), &[leaf]);
        certificates
    }

    /// Returns the path of a file, such as `server.key`.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Returns the query of a URL with which both sides check certificates.
    pub fn parameters(&self) -> String {
        let [root, certificate, key] =
            ["authority.pem", "client.pem", "client.key"].map(|file| self.path(file).display().to_string());
        format!("sslrootcert={root}&sslcert={certificate}&sslkey={key}")
    }

    fn sign(&self, name: &str, subject: &str, extensions: &[&str]) {
        let mut openssl = Command::new("openssl");
        openssl.current_dir(self.folder.path()).args([
            "req",
            "-x509",
            "-config",
            "openssl.cnf",
            "-nodes",
            "-days",
            "2",
        ]);
        openssl.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-subj", subject]);
        openssl.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
        for extension in extensions {
            openssl.args(["-addext", extension]);
        }
        if name != "authority" {
            openssl.args(["-CA", "authority.pem", "-CAkey", "authority.key"]);
        }
        let output = openssl.output().expect("openssl is installed; ./check says how to get it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Copies the server's files to a folder that it can read.
    pub(crate) fn copy_to(&self, folder: &Path) {
        for file in ["authority.pem", "server.pem", "server.key"] {
            fs::copy(self.path(file), folder.join(file)).expect("a file can be copied");
        }
    }
}
