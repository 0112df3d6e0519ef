//! The folder of the embedded database. One process at a time uses it, and no other user of the system reads it.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::Error;

const PRIVATE_FOLDER: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;

/// Time in which the lock of a killed process must go. A process that was killed while it started a child leaves the lock to
/// that child, until the child executes its program.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prefix of each file that this program keeps in the folder.
const OURS: &str = "holdfast.";

/// The folder in it that the file store keeps.
const FILES: &str = "files";

/// Returns the folder of the file store, and creates it if it is absent. The file store reports a folder that cannot be created.
pub fn files_in(data_dir: &Path) -> PathBuf {
    let folder = data_dir.join(FILES);
    let _ = fs::DirBuilder::new().mode(PRIVATE_FOLDER).create(&folder);
    folder
}

/// Creates the folder if it is absent, makes it private, and locks it until the result is dropped. It also creates the
/// database file, because SQLite copies that file's permissions to its other files. Fails if another process has the
/// lock.
pub fn take(folder: &Path, database: &Path) -> Result<fs::File, Error> {
    let name = || folder.display().to_string();
    let unusable = |source| Error::Folder { folder: name(), source };
    fs::DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER).create(folder).map_err(unusable)?;
    let mut open = fs::File::options();
    open.create(true).append(true).mode(PRIVATE_FILE);
    let lock = open.open(folder.join("holdfast.lock")).map_err(unusable)?;
    match lock_soon(&lock) {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Err(Error::FolderInUse { folder: name() }),
        Err(fs::TryLockError::Error(source)) => return Err(unusable(source)),
    }
    // SQLite reports a file that cannot be opened.
    let _ = open.open(database);
    if let Err(error) = make_private(folder) {
        tracing::warn!(folder = name(), %error, "failed to keep other users out of the data folder");
    }
    Ok(lock)
}

fn lock_soon(lock: &fs::File) -> Result<(), fs::TryLockError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match lock.try_lock() {
            Err(fs::TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(20)),
            locked => return locked,
        }
    }
}

/// Corrects the permissions of a folder that a user created. A folder with other files, such as a
/// home folder, keeps its permissions; only this program's files change.
fn make_private(folder: &Path) -> io::Result<()> {
    let mut is_ours_alone = true;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if name.to_string_lossy().starts_with(OURS) && kind.is_file() {
            restrict(&entry.path(), PRIVATE_FILE)?
        } else if name == FILES && kind.is_dir() {
            restrict(&entry.path(), PRIVATE_FOLDER)?
        } else {
            is_ours_alone = false
        }
    }
    if is_ours_alone {
        restrict(folder, PRIVATE_FOLDER)
    } else {
        tracing::warn!(folder = %folder.display(), "the data folder also holds other files, so its permissions stay as they are");
        Ok(())
    }
}

/// Removes the permissions that the mode lacks.
fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    let permissions = fs::metadata(path)?.permissions();
    match permissions.mode() & 0o777 & !mode {
        0 => Ok(()),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(permissions.mode() & mode)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_new_folder_and_its_files_are_private() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("a/data");
        let lock = take(&folder, &folder.join("holdfast.db")).unwrap();
        assert_eq!((mode(&folder), mode(&folder.join("holdfast.db"))), (0o700, 0o600));
        assert_eq!(mode(&files_in(&folder)), 0o700);
        assert!(matches!(take(&folder, &folder.join("holdfast.db")), Err(Error::FolderInUse { .. })));
        drop(lock);
    }

    #[test]
    fn a_readable_folder_becomes_private_unless_it_holds_other_files() {
        for (other, expected) in [(None, 0o700), (Some("letter.txt"), 0o755)] {
            let above = tempfile::tempdir().unwrap();
            let folder = above.path().join("data");
            fs::create_dir(&folder).unwrap();
            set(&folder, 0o755);
            let stored = folder.join("files");
            fs::create_dir(&stored).unwrap();
            set(&stored, 0o755);
            let files = ["holdfast.db", "holdfast.db-wal", "holdfast.lock"].map(|name| folder.join(name));
            for file in files.iter().chain(&other.map(|name| folder.join(name))) {
                fs::write(file, "").unwrap();
                set(file, 0o644);
            }
            let _lock = take(&folder, &files[0]).unwrap();
            assert!(files.iter().all(|file| mode(file) == 0o600));
            assert_eq!((mode(&folder), mode(&stored)), (expected, 0o700));
            assert!(other.is_none_or(|name| mode(&folder.join(name)) == 0o644));
        }
    }

    #[test]
    fn the_lock_of_a_process_that_has_just_ended_is_awaited() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("holdfast.db");
        let lock = take(folder.path(), &database).unwrap();
        let holder = thread::spawn(move || {
            thread::sleep(PATIENCE / 10);
            drop(lock);
        });
        assert!(take(folder.path(), &database).is_ok());
        holder.join().unwrap();
    }
}
