//! Client programs: each folder of `tests/clients` is a program that follows a run with a third-party package. The packages
//! that the folder pins are installed into `target/clients`, and the program runs there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::installation::Installation;

/// Installs the program in `tests/clients/<name>`, and returns its command: `main.mjs` or `main.py`.
pub fn command(name: &str) -> Vec<String> {
    let installation = Installation::of(&format!("tests/clients/{name}"), &format!("clients/{name}"));
    let (folder, interpreter) = installation.program();
    // A module finds its packages in its own folder, and shared modules in the folder above.
    copy_files(&parent(installation.source()), &parent(&folder));
    copy_files(installation.source(), &folder);
    let script = if interpreter.ends_with("python") { "main.py" } else { "main.mjs" };
    vec![interpreter.display().to_string(), folder.join(script).display().to_string()]
}

fn parent(folder: &Path) -> PathBuf {
    folder.parent().expect("no program lies in the root").to_owned()
}

/// Copies files. Each copy appears atomically, because other programs may run there.
pub fn copy_files(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("the folder of the programs can be read") {
        let file = entry.expect("the folder of the programs can be read").path();
        if !file.is_file() {
            continue;
        }
        let name = file.file_name().expect("a file has a name");
        let text = fs::read(&file).expect("a program can be read");
        if fs::read(to.join(name)).is_ok_and(|copy| copy == text) {
            continue;
        }
        let part = tempfile::Builder::new().tempfile_in(to).expect("a file can be made in target");
        fs::write(part.path(), text).expect("a file can be written in target");
        part.persist(to.join(name)).expect("a file in target can be replaced");
    }
}
