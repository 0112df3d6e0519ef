//! Third-party packages in the versions that a folder of the tests pins. They are installed once below `target`, and again
//! when the pins change.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use crate::packages;

pub struct Installation {
    /// The folder with the pins.
    source: PathBuf,
    /// The folder of the installed packages.
    folder: PathBuf,
}

impl Installation {
    /// Describes the packages that `source`, a folder of the repository, pins, in `folder` below `target`.
    pub fn of(source: &str, folder: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = root.canonicalize().expect("this crate lies in the repository");
        Self { source: root.join(source), folder: root.join("target").join(folder) }
    }

    pub fn source(&self) -> &Path {
        &self.source
    }

    /// Returns the folder of a program with its packages, and the command that runs its scripts. The file `package` of a
    /// program names the folder of a package of this repository that the program uses too.
    pub fn program(&self) -> (PathBuf, PathBuf) {
        let is_python = self.source.join("requirements.txt").exists();
        let folder = if is_python { self.python() } else { self.node() };
        if let Ok(package) = fs::read_to_string(self.source.join("package")) {
            packages::install(package.trim(), &folder);
        }
        let interpreter = if is_python { folder.join("bin/python") } else { PathBuf::from("node") };
        (folder, interpreter)
    }

    /// Returns the folder, with the packages of `package-lock.json` in its `node_modules`.
    pub fn node(&self) -> PathBuf {
        self.installed(&["package.json", "package-lock.json"], |folder| {
            let mut npm = Command::new("npm");
            npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]).arg(folder);
            run(&mut npm);
        })
    }

    /// Returns the folder, which is a virtual environment with the packages of `requirements.txt`.
    pub fn python(&self) -> PathBuf {
        self.installed(&["requirements.txt"], |folder| {
            run(Command::new("python3").args(["-m", "venv"]).arg(folder));
            let mut pip = Command::new(folder.join("bin/pip"));
            pip.args(["install", "--quiet", "--no-deps", "--disable-pip-version-check", "-r"]);
            run(pip.arg(folder.join("requirements.txt")));
        })
    }

    /// Installs the packages unless they are installed. Other test processes wait meanwhile.
    fn installed(&self, files: &[&str], install: impl FnOnce(&Path)) -> PathBuf {
        let folder = &self.folder;
        fs::create_dir_all(folder).expect("a folder can be made in target");
        let lock = File::create(folder.with_added_extension("lock")).expect("a file can be made in target");
        lock.lock().expect("a file can be locked");
        let read = |file: &&str| fs::read_to_string(self.source.join(file)).expect("the folder pins its packages");
        let pinned: String = files.iter().map(read).collect();
        // Order matters: this file is written last, so that an interrupted installation starts again.
        let done = folder.with_added_extension("installed");
        if fs::read_to_string(&done).is_ok_and(|installed| installed == pinned) {
            return folder.clone();
        }
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).expect("a folder can be made in target");
        for file in files {
            fs::copy(self.source.join(file), folder.join(file)).expect("a file can be copied to target");
        }
        install(folder);
        fs::write(&done, pinned).expect("a file can be written in target");
        folder.clone()
    }
}

pub fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; ./check says what is needed"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
