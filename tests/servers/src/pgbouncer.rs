//! A private PgBouncer in front of PostgreSQL.

use std::{fs, net::TcpStream, path::Path};

use tempfile::TempDir;

use crate::{free_port, postgres::as_unprivileged, supervised::SupervisedChild};

/// A running PgBouncer with eight connections to PostgreSQL.
pub struct PgBouncer {
    url: String,
    _server: SupervisedChild,
    _folder: TempDir,
}

/// The version of PgBouncer, of which `tests/servers/pgbouncer.sh` makes two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PgBouncerVersion {
    /// 1.18, which leaves the names of prepared statements as they are.
    Old,
    /// 1.24, which replaces them.
    New,
}

impl PgBouncer {
    /// Starts PgBouncer before the server of this URL. `mode` is its `pool_mode`.
    pub fn before(url: &str, version: PgBouncerVersion, mode: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let port = free_port();
        let (user, rest) = url.split_once('@').expect("the URL has a user");
        let (server, database) = rest.split_once('/').expect("the URL has a database");
        let (host, server_port) = server.split_once(':').expect("the URL has a port");
        let users = folder.path().join("users.txt");
        let settings = format!(
            "[databases]\n* = host={host} port={server_port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = {mode}\ndefault_pool_size = 8\n\
             ignore_startup_parameters = extra_float_digits,options\n",
            users.display()
        );
        let path = folder.path().join("pgbouncer.ini");
        // It refuses to run as root, and its user must read the files.
        fs::write(&users, "\"postgres\" \"\"\n").expect("a file can be written");
        fs::write(&path, settings).expect("a file can be written");
        open_to_others(folder.path());
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/pgbouncer");
        let program = target.join(match version {
            PgBouncerVersion::Old => "old/usr/sbin/pgbouncer",
            PgBouncerVersion::New => "new",
        });
        assert!(program.is_file(), "{} is missing: run tests/servers/pgbouncer.sh target/pgbouncer", program.display());
        let command = as_unprivileged([program, path].iter().map(|path| path.display().to_string()).collect());
        let server = SupervisedChild::start(&command, "TERM", folder.path(), &folder.path().join("pgbouncer.log"));
        server.wait_until(|| TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { url: format!("{user}@127.0.0.1:{port}/{database}"), _server: server, _folder: folder }
    }

    /// Returns the URL for clients.
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn open_to_others(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("the folder belongs to this process");
}
