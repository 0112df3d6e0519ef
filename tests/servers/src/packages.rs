//! The packages of `clients`: a test packs one as its users get it, and installs that file beside its program.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use crate::installation::run;

/// Files that a build writes beside the sources of a package.
const BUILT: &[&str] = &["node_modules", "dist", "target", "__pycache__", ".mypy_cache"];

/// Packs the package in this folder of the repository, and installs the file among the packages of a program.
pub fn install(package: &str, folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(package);
    let lock = File::create(folder.with_added_extension("lock")).expect("a file can be made in target");
    lock.lock().expect("a file can be locked");
    let mut files = Vec::new();
    collect(&source, &mut files);
    files.sort();
    let text = |file: &PathBuf| fs::read(file).expect("a file of the package can be read");
    let state: Vec<u8> = files.iter().flat_map(text).collect();
    // Order matters: this file is written last. It goes with the folder when other packages of the program change.
    let done = folder.join("packed");
    if fs::read(&done).is_ok_and(|packed| packed == state) {
        return;
    }
    // A build writes beside its sources, and this one leaves no file in the repository.
    let build = tempfile::tempdir().expect("a temporary folder can be made");
    for file in &files {
        let copy = build.path().join(file.strip_prefix(&source).expect("it lies in the package"));
        fs::create_dir_all(copy.parent().expect("a file has a folder")).expect("a folder can be made");
        fs::copy(file, copy).expect("a file can be copied");
    }
    if source.join("pyproject.toml").exists() {
        install_wheel(build.path(), folder);
    } else {
        install_tarball(build.path(), folder);
    }
    fs::write(done, state).expect("a file can be written in target");
}

/// The sources are packed first, and the wheel is made of that file, so a file that it lacks is missed.
fn install_wheel(build: &Path, folder: &Path) {
    let pip = || {
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["--quiet", "--disable-pip-version-check", "install"]);
        pip
    };
    run(pip().arg("build==1.6.1"));
    let packed = build.join("packed");
    run(Command::new(folder.join("bin/python")).args(["-m", "build", "--outdir"]).arg(&packed).arg(build));
    let wheel = files_in(&packed).into_iter().find(|file| file.extension().is_some_and(|ending| ending == "whl"));
    run(pip().args(["--no-deps", "--force-reinstall"]).arg(wheel.expect("the package was packed")));
}

fn install_tarball(build: &Path, folder: &Path) {
    let npm = |arguments: &[&str]| {
        let mut npm = Command::new("npm");
        npm.args(["--silent", "--no-audit", "--no-fund"]).args(arguments);
        npm
    };
    run(npm(&["ci"]).current_dir(build));
    let packed = build.join("packed");
    fs::create_dir(&packed).expect("a folder can be made");
    run(npm(&["pack", "--pack-destination"]).arg(&packed).current_dir(build));
    run(npm(&["install", "--no-save", "--ignore-scripts", "--prefix"]).arg(folder).args(files_in(&packed)));
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder exists");
    entries.map(|entry| entry.expect("the folder can be read").path()).collect()
}

/// Adds the files of a folder, without those that a build writes there.
pub fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder of the package can be read") {
        let path = entry.expect("the folder of the package can be read").path();
        if BUILT.iter().any(|built| path.ends_with(built)) {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
