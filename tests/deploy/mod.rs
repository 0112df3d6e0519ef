//! The files of `deploy/` and the stack that Compose makes of them, without a container engine.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

/// A copy of an operator's files, with settings.
struct OperatorFiles(TempDir);

impl OperatorFiles {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        fs::create_dir(files.path("deploy")).unwrap();
        let sources = fs::read_dir(root.join("deploy")).unwrap().map(|file| file.unwrap().path());
        for file in sources.filter(|file| file.extension().is_none_or(|extension| extension != "env")) {
            fs::copy(&file, files.path("deploy").join(file.file_name().unwrap())).unwrap();
        }
        for file in ["docker-compose.yml", ".env.example"] {
            fs::copy(root.join(file), files.path(file)).unwrap();
        }
        files.set_up();
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn set_up(&self) {
        // Not by its own name: a concurrent test that starts a process may still hold the new file open for writing.
        let output = Command::new("bash").arg(self.path("deploy/setup.sh")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// Returns the stack that Compose makes of the files.
    fn stack(&self) -> Value {
        let output = Command::new("docker-compose").arg("config").current_dir(self.0.path()).output();
        let output = output.expect("./check says how to get docker-compose");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_saphyr::from_str(&String::from_utf8(output.stdout).unwrap()).unwrap()
    }
}

/// A stack that runs on the fake `docker` of this folder.
struct Stage {
    files: OperatorFiles,
    folder: TempDir,
}

impl Stage {
    fn running() -> Self {
        let stage = Self { files: OperatorFiles::new(), folder: tempfile::tempdir().unwrap() };
        fs::create_dir(stage.path("containers")).unwrap();
        let services = ["worker", "worker", "api-1", "api-2", "nginx"];
        for (number, service) in services.iter().enumerate() {
            fs::write(stage.path("containers").join(format!("{service}-{}", number + 1)), service).unwrap();
        }
        for file in ["next", "first"] {
            fs::write(stage.path(file), services.len().to_string()).unwrap();
        }
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a service's new containers unhealthy (`sick`), or makes Compose refuse the service (`refused`).
    fn with(self, fault: &str, service: &str) -> Self {
        fs::write(self.path(fault), format!("{service}\n")).unwrap();
        self
    }

    fn update(&self) -> Output {
        let player = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/deploy");
        let path = format!("{}:{}", player.display(), std::env::var("PATH").unwrap());
        let mut update = Command::new("bash");
        update.arg(self.files.path("deploy/update.sh"));
        update.env("PATH", path).env("STAGE", self.folder.path()).env("PATIENCE", "1").output().unwrap()
    }

    fn containers(&self) -> Vec<String> {
        let files = fs::read_dir(self.path("containers")).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Returns the index of the first call with this text.
    fn call_index(&self, text: &str) -> usize {
        let calls = fs::read_to_string(self.path("calls")).unwrap();
        let index = calls.lines().position(|call| call.contains(text));
        index.unwrap_or_else(|| panic!("no call has {text:?}: {calls}"))
    }
}

#[test]
fn an_update_starts_the_new_beside_the_old_and_ends_the_old_last() {
    let stage = Stage::running();
    let output = stage.update();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(stage.containers(), ["api-1-9", "api-2-10", "nginx-5", "worker-6", "worker-7"]);
    let order = [
        "run --rm --no-deps -T worker doctor worker",
        "run --rm --no-deps -T api-3 doctor api",
        "run --rm --no-deps -T migrate",
        "--scale worker=4 worker",
        "inspect --format {{.State.Health.Status}} worker-6 worker-7",
        "stop worker-1 worker-2",
        "--force-recreate api-3",
        "inspect --format {{.State.Health.Status}} api-3-8",
        "--force-recreate api-1",
        "inspect --format {{.State.Health.Status}} api-1-9",
        "--force-recreate api-2",
        "inspect --format {{.State.Health.Status}} api-2-10",
        "rm --stop --force api-3",
    ];
    let indices: Vec<usize> = order.iter().map(|text| stage.call_index(text)).collect();
    assert!(indices.is_sorted(), "{indices:?}");
}

#[test]
fn an_update_with_settings_that_do_not_work_changes_nothing() {
    for refused in ["config", "worker", "api-3", "migrate"] {
        let stage = Stage::running().with("refused", refused);
        let before = stage.containers();
        let output = stage.update();
        assert!(!output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("update: "), "{output:?}");
        assert_eq!(stage.containers(), before, "{refused}");
        let calls = fs::read_to_string(stage.path("calls")).unwrap();
        assert!(!calls.contains("compose up") && !calls.contains("stop "), "{calls}");
    }
}

#[test]
fn new_containers_that_are_not_healthy_are_removed_and_the_old_ones_stay() {
    let stage = Stage::running().with("sick", "worker");
    let before = stage.containers();
    let output = stage.update();
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(stage.containers(), before);
    let stage = Stage::running().with("sick", "api-3");
    let output = stage.update();
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(stage.containers(), ["api-1-3", "api-2-4", "nginx-5", "worker-6", "worker-7"]);
}

#[test]
fn an_api_that_is_not_healthy_leaves_two_others() {
    let stage = Stage::running().with("sick", "api-1");
    let output = stage.update();
    assert!(String::from_utf8_lossy(&output.stderr).contains("api-3 serve"), "{output:?}");
    assert_eq!(stage.containers(), ["api-1-9", "api-2-4", "api-3-8", "nginx-5", "worker-6", "worker-7"]);
}

#[test]
fn only_their_owner_reads_the_settings_and_passwords_stay() {
    let files = OperatorFiles::new();
    let passwords = files.read(".env");
    let values: Vec<&str> = passwords.lines().filter_map(|line| line.split_once("_PASSWORD=")).map(|it| it.1).collect();
    assert_eq!(values.len(), 2);
    assert!(values.iter().all(|value| value.len() == 48) && values[0] != values[1], "{values:?}");
    fs::set_permissions(files.path(".env"), fs::Permissions::from_mode(0o644)).unwrap();
    files.set_up();
    assert_eq!(files.read(".env"), passwords);
    for file in [".env", "deploy/holdfast.env", "deploy/api.env", "deploy/worker.env"] {
        assert_eq!(fs::metadata(files.path(file)).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
    }
}

#[test]
fn each_container_has_no_more_than_it_needs() {
    let files = OperatorFiles::new();
    fs::write(files.path("deploy/api.env"), "HOLDFAST_JWT_KEY=of-the-api\n").unwrap();
    fs::write(files.path("deploy/worker.env"), "ANTHROPIC_API_KEY=of-the-worker\n").unwrap();
    let stack = files.stack();
    for (name, service) in stack["services"].as_object().unwrap() {
        assert_eq!(service["cap_drop"], serde_json::json!(["ALL"]), "{name}");
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["security_opt"], serde_json::json!(["no-new-privileges:true"]), "{name}");
        assert!(service["mem_limit"].is_string(), "{name}");
        assert_eq!(service["logging"]["options"]["max-size"], "20m", "{name}");
        let image = service["image"].as_str().unwrap();
        let tag = image.split_once(':').unwrap().1;
        assert!(tag == "local" || tag.contains('.'), "{image} moves");
        let service_text = service.to_string();
        assert_eq!(service_text.contains("of-the-api"), name.starts_with("api-"), "{name}");
        assert_eq!(service_text.contains("of-the-worker"), name == "worker", "{name}");
        let networks: Vec<&str> = match &service["networks"] {
            Value::Array(names) => names.iter().map(|name| name.as_str().unwrap()).collect(),
            networks => networks.as_object().unwrap().keys().map(String::as_str).collect(),
        };
        assert_eq!(networks.contains(&"stores"), name != "nginx", "{name}");
    }
    assert_eq!(stack["networks"]["stores"]["internal"], true);
    assert_eq!(stack["services"]["nginx"]["stop_signal"], "SIGTERM");
    let volumes = stack["services"]["redis"]["volumes"].to_string();
    assert!(volumes.contains("redis"), "{volumes}");
}

#[test]
fn the_proxies_that_are_trusted_reach_nginx() {
    let files = OperatorFiles::new();
    let settings = files.read(".env") + "HOLDFAST_TRUSTED_PROXIES=10.0.0.7, 10.1.0.0/16\n";
    fs::write(files.path(".env"), settings).unwrap();
    let stack = files.stack();
    let trusted = |service: &str| stack["services"][service]["environment"]["HOLDFAST_TRUSTED_PROXIES"].clone();
    assert_eq!(trusted("nginx"), "10.0.0.7, 10.1.0.0/16");
    assert_eq!(trusted("api-1"), "172.29.83.10");
}

#[test]
fn the_stacks_redis_asks_for_its_password() {
    let stack = OperatorFiles::new().stack();
    let redis = &stack["services"]["redis"];
    let port = test_servers::free_port();
    let script = redis["command"][2].as_str().unwrap().replace("$$", "$");
    let script = script.replace("redis-server -", &format!("redis-server - --bind 127.0.0.1 --port {port}"));
    let mut server = Command::new("sh").args(["-c", &script]).env("REDISCLI_AUTH", "secret").spawn().unwrap();
    let ask = |password: &str| {
        let mut ask = Command::new("redis-cli");
        ask.args(["-e", "-p", &port.to_string(), "ping"]).env("REDISCLI_AUTH", password).output().unwrap().status
    };
    let deadline = std::time::Instant::now() + crate::support::TIMEOUT;
    while !ask("secret").success() {
        assert!(std::time::Instant::now() < deadline, "Redis does not respond");
    }
    assert!(!ask("wrong").success());
    server.kill().unwrap();
    server.wait().unwrap();
}
