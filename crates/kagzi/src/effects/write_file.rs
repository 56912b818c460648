//! A file is there with its whole content, or as it was before.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// What [`write_file`] has done: the result to return from a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WrittenFile {
    /// Where it is.
    pub path: PathBuf,
    /// Of its content, in hexadecimal digits: whoever removes the file later can see that it is still this
    /// one.
    pub sha256: String,
    /// False: the content was there already, as after an attempt whose record was lost.
    pub written: bool,
}

/// Writes a file so that nobody ever sees half of it, and so that it survives a power cut: into a file beside
/// it, to the disk, over the old one by renaming, and the directory to the disk. Where the same content is
/// there already nothing is written, so a step that does this may be tried as often as it takes. Whoever is
/// killed in the middle leaves a file `.NAME.….tmp` beside it and the old content in its place. A symbolic
/// link is replaced by the file.
///
/// ```
/// # use kagzi::{WorkflowContext, effects::{WrittenFile, write_file}};
/// async fn report(ctx: WorkflowContext, text: String) -> anyhow::Result<String> {
///     let written: WrittenFile = ctx
///         .step("write")
///         .run(move |_| {
///             let text = text.clone();
///             async move { Ok(write_file("report.txt", text).await?) }
///         })
///         .await?;
///     Ok(written.sha256)
/// }
/// ```
pub async fn write_file(path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> io::Result<WrittenFile> {
    let (path, content) = (path.into(), content.into());
    let blocking = tokio::task::spawn_blocking(move || write(&path, &content));
    blocking.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn write(path: &Path, content: &[u8]) -> io::Result<WrittenFile> {
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("'{}' names no file", path.display()))
    })?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let sha256 = hex(&Sha256::digest(content));
    let written = |written| WrittenFile { path: path.to_owned(), sha256: sha256.clone(), written };
    if let Some(file) = existing(path, &sha256)? {
        // Perhaps nobody has waited for the disk yet: who renamed it may have been killed right after.
        file.sync_all()?;
        sync_directory(directory)?;
        return Ok(written(false));
    }
    let beside = directory.join(format!(".{}.{}.tmp", name.to_string_lossy(), Uuid::new_v4().simple()));
    let leftover = Leftover(Some(&beside));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    // Before there is anything in it that others must not read.
    if let Ok(old) = fs::metadata(path) {
        fs::set_permissions(&beside, old.permissions())?;
    }
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    leftover.keep();
    sync_directory(directory)?;
    Ok(written(true))
}

/// The file, if it has this content. It is read piece by piece: it may be another, and large.
fn existing(path: &Path, sha256: &str) -> io::Result<Option<File>> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    let mut file = match File::open(path) {
        Ok(file) if !is_link => file,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let (mut hash, mut piece) = (Sha256::new(), [0; 64 * 1024]);
    loop {
        match file.read(&mut piece)? {
            0 => break,
            len => hash.update(&piece[..len]),
        }
    }
    Ok((hex(&hash.finalize()) == sha256).then_some(file))
}

/// A rename is durable when its directory is. Only Unix can be asked for that.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Removes the file beside unless it has become the file.
struct Leftover<'a>(Option<&'a Path>);

impl Leftover<'_> {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Leftover<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        write!(text, "{byte:02x}").expect("text takes text");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn a_file_is_written_once_however_often_it_is_asked_for() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("report.txt");

        let first = write_file(&path, "hello").await.unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let again = write_file(&path, "hello").await.unwrap();

        assert_eq!((first.written, again.written), (true, false));
        assert_eq!(first.sha256, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
        assert!(write_file(&path, "other").await.unwrap().written);
        assert_eq!(fs::read_to_string(&path).unwrap(), "other");
        assert_eq!(names(here.path()), ["report.txt"], "nothing is left beside it");
    }

    #[tokio::test]
    async fn an_error_leaves_the_old_file_and_nothing_beside_it() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("taken");
        fs::create_dir_all(path.join("inside")).unwrap();

        assert!(write_file(&path, "hello").await.is_err(), "a directory is in the way");
        assert_eq!(names(here.path()), ["taken"]);
        assert!(write_file(here.path().join("no/such"), "hello").await.is_err());
        assert!(write_file("..", "hello").await.is_err());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn permissions_stay_and_a_link_is_replaced_and_not_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let here = tempfile::tempdir().unwrap();
        let (path, link) = (here.path().join("secret"), here.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&path, &link).unwrap();

        write_file(&path, "new").await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(write_file(&link, "new").await.unwrap().written, "the link is no file with this content");
        assert!(!fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    /// Readers beside writers see one whole content or the other.
    #[tokio::test]
    async fn nobody_ever_sees_half_a_file() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("big");
        let contents = [vec![b'a'; 300_000], vec![b'b'; 300_000]];
        write_file(&path, contents[0].clone()).await.unwrap();
        let writing = {
            let (path, contents) = (path.clone(), contents.clone());
            tokio::spawn(async move {
                for turn in 0..30 {
                    write_file(&path, contents[turn % 2].clone()).await.unwrap();
                }
            })
        };
        while !writing.is_finished() {
            let seen = fs::read(&path).unwrap();
            assert!(contents.contains(&seen), "{} bytes", seen.len());
            tokio::task::yield_now().await;
        }
        writing.await.unwrap();
    }
}
