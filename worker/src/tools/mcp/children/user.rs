//! The user as which stdio servers run, where the worker may choose one.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt, lchown},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use holdfast_shared::config::Error;
use rustix::process::{geteuid, getuid};
use uuid::Uuid;

const SETTING: &str = "HOLDFAST_MCP_USER";

/// User id of the children of a root worker without the setting: the user that owns nothing.
const NOBODY: u32 = 65_534;

/// A user other than the worker's own.
#[derive(Debug)]
pub struct User {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    /// The home in the system's list of users.
    listed_home: Option<PathBuf>,
    /// The folder of the setting, for the homes of users without one.
    homes: PathBuf,
    /// Chosen when the first child needs it.
    home: OnceLock<Home>,
}

#[derive(Debug)]
enum Home {
    Kept(PathBuf),
    /// Removed with this process.
    Temporary(PathBuf),
}

impl User {
    /// Returns the user that the setting names, or by default `nobody` for a root worker; `None` for the worker's own.
    /// Fails if the user is unknown or the worker may not switch to it.
    pub fn of(setting: Option<&str>, homes: &Path) -> Result<Option<Self>, Error> {
        let own = geteuid().as_raw();
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let Some(setting) = setting else { return Ok(by_default(own, &users, homes)) };
        let unknown = || Error::new(SETTING, format!("expected the name or the number of a user, not {setting:?}"));
        let user = find(&users, setting, homes).ok_or_else(unknown)?;
        match (user.uid == own, own) {
            (true, _) => Ok(None),
            (false, 0) => Ok(Some(user)),
            (false, _) => {
                let problem = format!(
                    "names another user, {}, and only a worker that runs as root can start processes of another user",
                    user.name
                );
                Err(Error::new(SETTING, problem))
            }
        }
    }

    /// Returns a folder that the user can write: its own home, or one that is kept between restarts. If neither can be had, an
    /// empty folder until this process ends.
    pub fn home(&self) -> &Path {
        let home = self.home.get_or_init(|| {
            if let Some(home) = self.listed_home.clone().filter(|home| self.owns(fs::metadata(home))) {
                return Home::Kept(home);
            }
            let kept = self.homes.join(&self.name);
            match self.keep(&kept) {
                Ok(()) => Home::Kept(kept),
                Err(error) => {
                    tracing::warn!(folder = %kept.display(), %error, "failed to keep a home folder for MCP servers; it is temporary");
                    Home::Temporary(self.temporary_home())
                }
            }
        });
        let (Home::Kept(path) | Home::Temporary(path)) = home;
        path
    }

    /// Creates a home that stays. Fails if it exists and belongs to another user.
    fn keep(&self, home: &Path) -> io::Result<()> {
        fs::create_dir_all(&self.homes)?;
        match self.create(home) {
            // A link could lead to a folder of somebody else.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !self.owns(fs::symlink_metadata(home)) => {
                Err(io::Error::other("it belongs to another user"))
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn temporary_home(&self) -> PathBuf {
        let home = std::env::temp_dir().join(format!("holdfast-mcp-{}", Uuid::now_v7().simple()));
        if let Err(error) = self.create(&home) {
            tracing::warn!(folder = %home.display(), %error, "failed to create a home folder for MCP servers");
        }
        home
    }

    fn create(&self, home: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(home)?;
        lchown(home, Some(self.uid), Some(self.gid))
    }

    fn owns(&self, folder: io::Result<fs::Metadata>) -> bool {
        folder.is_ok_and(|folder| folder.is_dir() && folder.uid() == self.uid)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if let Some(Home::Temporary(home)) = self.home.get() {
            let _ = fs::remove_dir_all(home);
        }
    }
}

fn by_default(own: u32, users: &str, homes: &Path) -> Option<User> {
    if own != 0 || getuid().as_raw() != 0 {
        return None;
    }
    let user = find(users, "65534", homes).unwrap_or_else(|| User::new("nobody", NOBODY, NOBODY, None, homes));
    let read = |file| fs::read_to_string(format!("/proc/self/{file}")).ok();
    let can_become = may_switch(read("status").as_deref())
        && is_mapped(read("uid_map").as_deref(), user.uid)
        && is_mapped(read("gid_map").as_deref(), user.gid);
    if !can_become {
        tracing::warn!("MCP servers over stdio run as root, because this process may not switch to another user");
    }
    can_become.then_some(user)
}

impl User {
    fn new(name: &str, uid: u32, gid: u32, listed_home: Option<PathBuf>, homes: &Path) -> Self {
        Self { name: name.to_owned(), uid, gid, listed_home, homes: homes.to_owned(), home: OnceLock::new() }
    }
}

/// Finds a user by name or number in the system's list. An unlisted number is its own group.
fn find(users: &str, name_or_id: &str, homes: &Path) -> Option<User> {
    let listed = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, _, home, ..] = fields[..] else { return None };
        let user = || Some(User::new(name, uid.parse().ok()?, gid.parse().ok()?, Some(home.into()), homes));
        (name == name_or_id || uid == name_or_id).then(user)?
    });
    let number = || name_or_id.parse().ok().map(|id| User::new(name_or_id, id, id, None, homes));
    listed.or_else(number)
}

/// Returns whether a process with this `/proc/self/status` may become another user. Without such a file, root may.
fn may_switch(status: Option<&str>) -> bool {
    const SETGID_AND_SETUID: u64 = 0b11 << 6;
    let Some(status) = status else { return true };
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|capabilities| u64::from_str_radix(capabilities.trim(), 16).ok());
    effective.is_some_and(|effective| effective & SETGID_AND_SETUID == SETGID_AND_SETUID)
}

/// Returns whether the namespace with this map of ids has the id. Without namespaces, every id exists.
fn is_mapped(map: Option<&str>, id: u32) -> bool {
    let Some(map) = map else { return true };
    map.lines().any(|line| {
        let mut fields = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), _, Some(Ok(count))) = (fields.next(), fields.next(), fields.next()) else { return false };
        (first..first + count).contains(&u64::from(id))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/bash\ntools:x:1001:1002::/home/tools:/bin/sh\n";

    #[test]
    fn a_user_is_found_by_name_and_by_number() {
        let check = |name_or_id: &str, expected: Option<(&str, u32, u32)>| {
            let found = find(USERS, name_or_id, Path::new("/homes"));
            assert_eq!(found.as_ref().map(|user| (user.name.as_str(), user.uid, user.gid)), expected, "{name_or_id}");
        };
        check("tools", Some(("tools", 1001, 1002)));
        check("1001", Some(("tools", 1001, 1002)));
        check("4711", Some(("4711", 4711, 4711)));
        check("unlisted", None);
        check("-1", None);
    }

    #[test]
    fn root_without_the_capability_or_the_id_switches_to_no_other_user() {
        assert!(may_switch(Some("Name:\tx\nCapEff:\t000001ffffffffff\n")));
        assert!(!may_switch(Some("CapEff:\t0000000000000000\n")));
        assert!(!may_switch(Some("CapEff:\t0000000000000040\n")), "CAP_SETGID alone");
        assert!(is_mapped(Some("         0          0 4294967295\n"), NOBODY));
        assert!(!is_mapped(Some("0 1000 1\n"), NOBODY));
        assert!(is_mapped(Some("0 1000 1\n1 100000 65535\n"), NOBODY));
    }

    #[test]
    fn a_setting_that_names_the_workers_own_user_changes_nothing() {
        let own = geteuid().as_raw().to_string();
        let homes = Path::new("/homes");
        assert!(User::of(Some(&own), homes).unwrap().is_none());
        assert!(User::of(Some("no-such-user"), homes).unwrap_err().to_string().contains("HOLDFAST_MCP_USER"));
    }

    /// Returns a user with the id of this process, because only root can give folders away.
    fn user(listed_home: Option<PathBuf>, homes: &Path) -> User {
        let (uid, gid) = (geteuid().as_raw(), rustix::process::getegid().as_raw());
        User::new("tools", uid, gid, listed_home, homes)
    }

    #[test]
    fn a_user_has_its_own_home_or_one_that_stays_or_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let (own, homes) = (folder.path().join("own"), folder.path().join("homes"));
        fs::create_dir(&own).unwrap();
        assert_eq!(user(Some(own.clone()), &homes).home(), own);
        let missing = Some(folder.path().join("missing"));
        assert_eq!(user(missing.clone(), &homes).home(), homes.join("tools"));
        fs::write(homes.join("tools/cache"), "x").unwrap();
        assert!(user(missing, &homes).home().join("cache").exists(), "the next process has the same one");
        // A link may lead to a folder of somebody else.
        fs::remove_dir_all(homes.join("tools")).unwrap();
        std::os::unix::fs::symlink(&own, homes.join("tools")).unwrap();
        let linked = user(None, &homes);
        let temporary = linked.home().to_owned();
        assert!(temporary.is_dir() && temporary.starts_with(std::env::temp_dir()), "{temporary:?}");
        assert_ne!(temporary.canonicalize().unwrap(), own.canonicalize().unwrap());
        drop(linked);
        assert!(!temporary.exists());
    }
}
