//! A private nginx in front of two APIs, with the configuration of `deploy/`.

use std::{fs, net::TcpStream, path::Path, process::Command};

use tempfile::TempDir;

use crate::{
    free_port,
    supervised::{SupervisedChild, pause},
};

/// A running nginx.
pub struct Nginx {
    port: u16,
    _server: SupervisedChild,
    _folder: TempDir,
}

/// The main configuration of nginx's official image, with all paths in one folder. As root, all processes stay root, because
/// no other user may read that folder.
const MAIN_CONFIGURATION: &str = "user root;
daemon off;
pid nginx.pid;
error_log stderr;
events {}
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include holdfast.conf;
}
";

impl Nginx {
    /// Starts nginx in front of two APIs, each as `host:port`.
    pub fn in_front_of(apis: [&str; 2]) -> Self {
        Self::limiting(apis, 256, "")
    }

    /// Starts nginx with this limit of concurrent requests for one address, and with these trusted proxies.
    pub fn limiting(apis: [&str; 2], requests: usize, trusted_proxies: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let port = free_port();
        let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/nginx.conf.template");
        let template = fs::read_to_string(template).expect("the configuration is in the repository");
        let filled_in = template
            .replace("${HOLDFAST_API_1}", apis[0])
            .replace("${HOLDFAST_API_2}", apis[1])
            // The third API runs only during an update.
            .replace("${HOLDFAST_API_3}", "127.0.0.1:1")
            .replace("${HOLDFAST_REQUESTS_PER_ADDRESS}", &requests.to_string())
            .replace("${HOLDFAST_REAL_IP}", &real_ip(trusted_proxies))
            .replace("${HOLDFAST_LISTEN}", &format!("127.0.0.1:{port}"));
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file can be written");
        write("holdfast.conf", &filled_in);
        write("nginx.conf", MAIN_CONFIGURATION);
        let prefix = folder.path().display().to_string();
        let command = [&binary(), "-e", "stderr", "-p", &prefix, "-c", "nginx.conf"].map(str::to_owned);
        let log = folder.path().join("nginx.log");
        let server = SupervisedChild::start(&command, "TERM", folder.path(), &log);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let output = fs::read_to_string(&log).unwrap_or_default();
            assert!(!output.contains("[emerg]"), "nginx does not start: {output}");
            pause();
        }
        Self { port, _server: server, _folder: folder }
    }

    /// Returns the URL for clients.
    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// Returns the output of the image's script for the trusted proxies.
fn real_ip(trusted_proxies: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/trusted-proxies.envsh");
    let mut shell = Command::new("sh");
    shell.args(["-ec", ". \"$0\"; printf %s \"$HOLDFAST_REAL_IP\""]).arg(script);
    let output = shell.env("HOLDFAST_TRUSTED_PROXIES", trusted_proxies).output().expect("there is a shell");
    String::from_utf8(output.stdout).expect("the script writes text")
}

/// Returns nginx's path. Debian keeps nginx out of an ordinary user's search path.
fn binary() -> String {
    let debians = "/usr/sbin/nginx";
    if Path::new(debians).is_file() { debians } else { "nginx" }.to_owned()
}
