//! Private PostgreSQL servers: one that all tests of a process share, with a database for each test, or one for a single
//! test.

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use tempfile::TempDir;

use crate::{CLIENT, Certificates, free_port, supervised::SupervisedChild};

/// A running server.
pub struct Postgres {
    port: u16,
    kind: ServerKind,
    folder: TempDir,
    server: Option<SupervisedChild>,
}

/// The differences of a server from the usual one.
#[derive(Default)]
struct ServerKind {
    certificates: Option<Certificates>,
    /// Whether it is one of a pair of primary and standby.
    is_of_a_pair: bool,
    /// Whether its databases can have the extension `vector`.
    has_pgvector: bool,
    /// Whether it counts what each statement reads, and takes no statistics of tables by itself.
    counts_statements: bool,
}

/// A database of one test.
pub struct TestDatabase {
    name: String,
    url: String,
    /// On the shared server: the URL for dropping the database, because its successors need the room.
    shared_at: Option<String>,
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Some(server) = self.shared_at.take() else { return };
        let sql = format!("drop database if exists {} with (force)", self.name);
        // No test waits for it.
        std::thread::spawn(move || psql(&server, &sql));
    }
}

/// Counts the checks of foreign keys too, which are statements of the server.
const COUNT_ALL: &str = "pg_stat_statements.track=all";

/// The only user that needs a password; no password is right.
const REFUSED_USER: &str = "stranger";

static SHARED: OnceLock<Postgres> = OnceLock::new();
static SHARED_WITH_PGVECTOR: OnceLock<Postgres> = OnceLock::new();
/// A database with the schema, of which each test gets a copy.
static TEMPLATE: OnceLock<TestDatabase> = OnceLock::new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

impl TestDatabase {
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Executes SQL as an operator does by hand.
    pub fn execute(&self, sql: &str) {
        let done = psql(&self.url, sql);
        assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Returns the database as `pg_dump` writes it, with `arguments`.
    pub fn dump(&self, arguments: &[&str]) -> Vec<u8> {
        let dumped =
            Command::new(binary("pg_dump")).args(arguments).arg(&self.url).output().expect("pg_dump can be started");
        assert!(dumped.status.success(), "pg_dump: {}", String::from_utf8_lossy(&dumped.stderr));
        dumped.stdout
    }

    /// Makes an empty database one that `dump` has written.
    pub fn restore(&self, dump: &[u8]) {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
        file.write_all(dump).expect("a temporary file can be written");
        let mut restore = Command::new(binary("psql"));
        run(restore.args(["-qX", "-v", "ON_ERROR_STOP=1", "-f"]).arg(file.path()).arg(&self.url));
    }

    /// Returns the database's URL with a password that the server refuses.
    pub fn url_with_wrong_password(&self) -> String {
        self.url.replacen("postgres@", &format!("{REFUSED_USER}:wrong@"), 1)
    }
}

impl Postgres {
    /// Creates a database on the server that all tests of this process share.
    pub fn database() -> TestDatabase {
        Self::database_on(SHARED.get_or_init(Self::start))
    }

    /// Creates a database in which a test can create the extension `vector`, on another such server.
    pub fn database_for_pgvector() -> TestDatabase {
        let kind = || ServerKind { has_pgvector: true, ..ServerKind::default() };
        Self::database_on(SHARED_WITH_PGVECTOR.get_or_init(|| Self::start_as(kind())))
    }

    fn database_on(server: &Self) -> TestDatabase {
        let mut database = server.create_database();
        database.shared_at = Some(server.url_of("postgres"));
        database
    }

    /// Creates a database with the schema on the server that all tests of this process share. The first call makes the
    /// schema with `migrate`, which must close its connections.
    pub fn migrated_database(migrate: impl FnOnce(&str)) -> TestDatabase {
        let server = SHARED.get_or_init(Self::start);
        let template = TEMPLATE.get_or_init(|| {
            let template = server.create_database();
            migrate(template.url());
            template
        });
        let mut copy = server.create_named(&next_name(), &template.name);
        copy.shared_at = Some(server.url_of("postgres"));
        copy
    }

    /// Starts a server for one test, which may stop and restart it.
    pub fn start() -> Self {
        Self::start_as(ServerKind::default())
    }

    /// Starts a server whose `pg_stat_statements` counts what each statement reads. No table is analyzed or cleaned unless the
    /// test says so.
    pub fn start_counting() -> Self {
        Self::start_as(ServerKind { counts_statements: true, ..ServerKind::default() })
    }

    /// Starts a primary, and a standby that has each commit before the primary acknowledges it.
    pub fn start_with_standby() -> (Self, Self) {
        let primary = Self::start_as(ServerKind { is_of_a_pair: true, ..ServerKind::default() });
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let data = folder.path().join("data").display().to_string();
        if is_root() {
            run(Command::new("chown").arg(unprivileged_user()).arg(folder.path()));
        }
        let port = primary.port.to_string();
        let backup = [&binary("pg_basebackup"), "-D", &data, "-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-R"];
        let backup = as_unprivileged(backup.map(str::to_owned).into_iter().chain(["--no-sync".to_owned()]).collect());
        run(Command::new(&backup[0]).args(&backup[1..]).current_dir("/"));
        let kind = ServerKind { is_of_a_pair: true, ..ServerKind::default() };
        let mut standby = Self { port: free_port(), kind, folder, server: None };
        let server = standby.launch();
        server.wait_until(|| standby.psql("select 1").status.success());
        standby.server = Some(server);
        let is_synchronous = "select 1 / count(*) from pg_stat_replication where sync_state = 'sync'";
        let waits = "alter system set synchronous_standby_names = '*'";
        for sql in [waits, "select pg_reload_conf()"] {
            assert!(primary.psql(sql).status.success(), "{sql}");
        }
        let server = primary.server.as_ref().expect("it runs");
        server.wait_until(|| primary.psql(is_synchronous).status.success());
        (primary, standby)
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        let promoted = self.psql("select pg_promote()");
        assert!(promoted.status.success(), "pg_promote: {}", String::from_utf8_lossy(&promoted.stderr));
    }

    /// Returns the folder with all that the server has written.
    pub fn data_folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts a server that refuses the user `CLIENT` without TLS and a certificate.
    pub fn start_with_tls() -> Self {
        let postgres = Self::start_as(ServerKind { certificates: Some(Certificates::make()), ..ServerKind::default() });
        let created = postgres.psql(&format!("create role {CLIENT} superuser login"));
        assert!(created.status.success(), "create role: {}", String::from_utf8_lossy(&created.stderr));
        postgres
    }

    /// Creates a database; returns its URL for that user, and the certificates.
    pub fn tls_url(&self) -> (String, &Certificates) {
        let url = self.create_database().url.replacen("postgres@", &format!("{CLIENT}@"), 1);
        (url, self.kind.certificates.as_ref().expect("it was started with TLS"))
    }

    fn start_as(kind: ServerKind) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("a folder can be made in the temporary folder");
        if is_root() {
            run(Command::new("chown").arg("-R").arg(unprivileged_user()).arg(folder.path()));
        }
        let mut initdb = vec![kind.binary("initdb"), "-D".into(), data.display().to_string()];
        initdb.extend(
            ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"].map(str::to_owned),
        );
        let initdb = as_unprivileged(initdb);
        run(Command::new(&initdb[0]).args(&initdb[1..]).current_dir("/"));
        let rules = data.join("pg_hba.conf");
        let trusting = fs::read_to_string(&rules).expect("initdb has written the rules");
        let by_certificate = format!("hostssl all {CLIENT} all cert\nhost all {CLIENT} all reject\n");
        let rest = format!("host all {REFUSED_USER} all scram-sha-256\n{trusting}");
        let all = if kind.certificates.is_some() { by_certificate + &rest } else { rest };
        fs::write(&rules, all).expect("rules can be added");
        if let Some(certificates) = &kind.certificates {
            certificates.copy_to(&data);
            if is_root() {
                run(Command::new("chown").arg("-R").arg(unprivileged_user()).arg(&data));
            }
        }
        let mut postgres = Self { port: free_port(), kind, folder, server: None };
        postgres.restart();
        postgres
    }

    /// Stops the server, if it runs, as a crash does, and starts it again on the same port.
    pub fn restart(&mut self) {
        self.stop();
        let _ = fs::remove_file(self.standby_signal());
        let server = self.launch();
        server.wait_until(|| self.psql("select 1").status.success());
        self.server = Some(server);
    }

    /// Restarts the server so that it refuses connections, as a server that recovers does.
    pub fn restart_unready(&mut self) {
        self.stop();
        fs::write(self.standby_signal(), "").expect("a file can be made in the data folder");
        let server = self.launch();
        let refuses = || String::from_utf8_lossy(&self.psql("select 1").stderr).contains("not accepting connections");
        server.wait_until(refuses);
        self.server = Some(server);
    }

    fn standby_signal(&self) -> PathBuf {
        self.folder.path().join("data/standby.signal")
    }

    fn launch(&self) -> SupervisedChild {
        let data = self.folder.path().join("data");
        let mut command = vec![
            self.kind.binary("postgres"),
            "-D".into(),
            data.display().to_string(),
            "-p".into(),
            self.port.to_string(),
        ];
        let socket_folder = format!("unix_socket_directories={}", data.display());
        // A standby of a pair accepts connections and refuses writes; one that recovers refuses connections.
        let hot_standby = if self.kind.is_of_a_pair { "hot_standby=on" } else { "hot_standby=off" };
        for setting in ["listen_addresses=127.0.0.1", &socket_folder, "max_connections=500", "fsync=off", hot_standby] {
            command.extend(["-c".to_owned(), setting.to_owned()]);
        }
        if self.kind.certificates.is_some() {
            for setting in
                ["ssl=on", "ssl_ca_file=authority.pem", "ssl_cert_file=server.pem", "ssl_key_file=server.key"]
            {
                command.extend(["-c".to_owned(), setting.to_owned()]);
            }
        }
        if self.kind.counts_statements {
            for setting in ["shared_preload_libraries=pg_stat_statements", COUNT_ALL, "autovacuum=off"] {
                command.extend(["-c".to_owned(), setting.to_owned()]);
            }
        }
        let log = self.folder.path().join("postgres.log");
        SupervisedChild::start(&as_unprivileged(command), "QUIT", self.folder.path(), &log)
    }

    /// Stops the server without waiting for its clients.
    pub fn stop(&mut self) {
        drop(self.server.take());
    }

    /// Creates a database on this server.
    pub fn create_database(&self) -> TestDatabase {
        self.create_named(&next_name(), "template1")
    }

    /// Creates a copy of a database to which no client is connected.
    pub fn copy_database(&self, template: &TestDatabase) -> TestDatabase {
        self.create_named(&next_name(), &template.name)
    }

    fn create_named(&self, name: &str, template: &str) -> TestDatabase {
        let created = self.psql(&format!("create database {name} template {template}"));
        assert!(created.status.success(), "create database: {}", String::from_utf8_lossy(&created.stderr));
        TestDatabase { name: name.to_owned(), url: self.url_of(name), shared_at: None }
    }

    fn psql(&self, sql: &str) -> Output {
        psql(&self.url_of("postgres"), sql)
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

impl ServerKind {
    /// Returns the path of a program of the server.
    fn binary(&self, name: &str) -> String {
        if !self.has_pgvector {
            return binary(name);
        }
        let libraries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/pgvector/lib");
        let versions = fs::read_dir(&libraries).into_iter().flatten().flatten();
        let programs = versions.map(|python| python.path().join("site-packages/pgserver/pginstall/bin").join(name));
        let program = programs.into_iter().find(|path| path.is_file());
        program.unwrap_or_else(|| panic!("{} has no pgserver: run ./check", libraries.display())).display().to_string()
    }
}

fn next_name() -> String {
    format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed))
}

fn psql(url: &str, sql: &str) -> Output {
    Command::new(binary("psql")).args(["-tAc", sql, url]).output().expect("psql can be started")
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("there is an `id`");
    id.stdout.starts_with(b"0")
}

/// PostgreSQL and PgBouncer refuse to run as root.
fn unprivileged_user() -> &'static str {
    let has_postgres_user = Command::new("id").arg("postgres").output().is_ok_and(|id| id.status.success());
    if has_postgres_user { "postgres" } else { "nobody" }
}

pub fn as_unprivileged(command: Vec<String>) -> Vec<String> {
    if !is_root() {
        return command;
    }
    let prefix = ["setpriv", "--reuid", unprivileged_user(), "--regid", "nogroup", "--clear-groups"].map(str::to_owned);
    prefix.into_iter().chain(command).collect()
}

/// Returns the path of a program of the newest installed PostgreSQL. Debian does not put it into the search path.
pub fn binary(name: &str) -> String {
    let mut folders: Vec<PathBuf> = match fs::read_dir("/usr/lib/postgresql") {
        Ok(versions) => versions.flatten().map(|version| version.path().join("bin")).collect(),
        Err(_) => Vec::new(),
    };
    folders.sort();
    folders.reverse();
    folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let program = folders.iter().map(|folder| folder.join(name)).find(|path| Path::is_file(path));
    program
        .unwrap_or_else(|| {
            panic!("{name} is not installed: run `./check --install`, or install the package postgresql")
        })
        .display()
        .to_string()
}

fn run(command: &mut Command) {
    let output = command.output().expect("the command can be started");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
