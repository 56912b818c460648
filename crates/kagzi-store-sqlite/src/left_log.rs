//! The write-ahead log that the last process left behind, counted before SQLite reads it.
//!
//! SQLite takes what is valid up to the first damaged page and forgets the rest without a word. After a loss
//! of power that is right: what was being written then was never acknowledged. After damage it is a loss, and
//! somebody must know.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use kagzi_store::StoreError;

use crate::private;

const HEADER_LEN: usize = 32;
const FRAME_HEADER_LEN: usize = 24;
const MAGIC: u32 = 0x377f_0682;

/// What a log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftLog {
    /// None, or nothing in it: the last stop was clean.
    Empty,
    /// SQLite will forget all of it.
    HeaderDamaged {
        bytes: u64,
    },
    Pages(Pages),
}

/// Pages and commits of the newest generation of a log. Older ones lie behind it and were moved to the
/// database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pages {
    /// SQLite will read these.
    pub valid: u64,
    pub commits: u64,
    /// These come after a damaged page and will be forgotten.
    pub lost: u64,
    pub commits_lost: u64,
}

/// Looks at the log of a database that nobody has open, says what it finds, and keeps a copy of what would be
/// lost. Answers whether the last stop was clean.
pub fn examine(database: &Path) -> Result<bool, StoreError> {
    let path = beside(database, "-wal");
    let cannot =
        |error: io::Error| StoreError::Unavailable(format!("could not read {}: {error}", path.display()));
    match read(&path).map_err(cannot)? {
        LeftLog::Empty => return Ok(true),
        LeftLog::HeaderDamaged { bytes } => {
            let kept = keep(&path);
            tracing::error!(
                log = %path.display(), bytes, kept,
                "the header of the write-ahead log is damaged: everything in it is lost, which is all that \
                 was \
                 acknowledged since it was last moved into the database; consider `kagzi restore`"
            );
        }
        LeftLog::Pages(Pages { valid, commits, lost, commits_lost }) if commits_lost > 1 => {
            let kept = keep(&path);
            tracing::error!(
                log = %path.display(), valid, commits, lost, commits_lost, kept,
                "the write-ahead log is damaged in the middle: the commits behind that are lost, although \
                 they were \
                 acknowledged; consider `kagzi restore`"
            );
        }
        LeftLog::Pages(Pages { valid, commits, lost, commits_lost }) if lost > 0 => {
            let kept = keep(&path);
            tracing::warn!(
                log = %path.display(), valid, commits, lost, commits_lost, kept,
                "the end of the write-ahead log is not whole: after a loss of power that is what was never \
                 acknowledged, else it is damage"
            );
        }
        LeftLog::Pages(Pages { valid, commits, .. }) => {
            tracing::info!(valid, commits, "the last stop was not clean, its write-ahead log is whole");
        }
    }
    Ok(false)
}

/// Counts what is valid by SQLite's own rule: salts and a checksum that runs through all frames.
pub fn read(path: &Path) -> io::Result<LeftLog> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LeftLog::Empty),
        Err(error) => return Err(error),
    };
    let bytes = file.metadata()?.len();
    if bytes <= HEADER_LEN as u64 {
        return Ok(LeftLog::Empty);
    }
    let mut log = BufReader::with_capacity(1 << 20, file);
    let mut header = [0; HEADER_LEN];
    log.read_exact(&mut header)?;
    let Some(generation) = Generation::of(&header) else { return Ok(LeftLog::HeaderDamaged { bytes }) };
    count(&mut log, &generation).map(LeftLog::Pages)
}

struct Generation {
    salts: [u8; 8],
    page_len: usize,
    order: Order,
    checksum: (u32, u32),
}

/// How checksums read the pages: in the order of bytes of the machine that began the log.
#[derive(Clone, Copy)]
enum Order {
    Big,
    Little,
}

impl Generation {
    fn of(header: &[u8; HEADER_LEN]) -> Option<Generation> {
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let order = match word(0) {
            MAGIC => Order::Little,
            magic if magic == MAGIC + 1 => Order::Big,
            _ => return None,
        };
        let page_len = word(8) as usize;
        let checksum = order.sum((0, 0), &header[..24]);
        let sound = page_len.is_power_of_two() && (512..=65536).contains(&page_len);
        let salts = header[16..24].try_into().expect("eight bytes");
        (sound && checksum == (word(24), word(28))).then_some(Generation { salts, page_len, order, checksum })
    }
}

impl Order {
    /// SQLite's checksum, continued.
    fn sum(self, (mut one, mut two): (u32, u32), bytes: &[u8]) -> (u32, u32) {
        let word = |bytes: &[u8]| {
            let bytes = bytes.try_into().expect("four bytes");
            match self {
                Order::Big => u32::from_be_bytes(bytes),
                Order::Little => u32::from_le_bytes(bytes),
            }
        };
        for pair in bytes.chunks_exact(8) {
            one = one.wrapping_add(word(&pair[..4])).wrapping_add(two);
            two = two.wrapping_add(word(&pair[4..])).wrapping_add(one);
        }
        (one, two)
    }
}

fn count(log: &mut impl Read, generation: &Generation) -> io::Result<Pages> {
    let mut pages = Pages::default();
    let mut sum = Some(generation.checksum);
    let mut frame = vec![0; FRAME_HEADER_LEN + generation.page_len];
    loop {
        match log.read_exact(&mut frame) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(pages),
            Err(error) => return Err(error),
        }
        let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes"));
        let (commit, current) = (word(4) != 0, frame[8..16] == generation.salts);
        sum = sum.filter(|_| current && word(0) != 0).and_then(|sum| {
            let sum = generation.order.sum(sum, &frame[..8]);
            let sum = generation.order.sum(sum, &frame[FRAME_HEADER_LEN..]);
            (sum == (word(16), word(20))).then_some(sum)
        });
        if sum.is_some() {
            pages.valid += 1;
            pages.commits += u64::from(commit);
        } else if current {
            pages.lost += 1;
            pages.commits_lost += u64::from(commit);
        }
    }
}

/// A copy of the damaged log, for whoever wants to save something from it; one is kept. Answers where it is,
/// in words.
fn keep(log: &Path) -> String {
    let copy = beside(log, ".damaged");
    if copy.exists() {
        return format!("an older one is in {}", copy.display());
    }
    let copied = private::open(&copy)
        .and_then(|mut to| File::open(log).and_then(|mut from| io::copy(&mut from, &mut to)));
    match copied {
        Ok(_) => copy.display().to_string(),
        Err(error) => format!("no copy could be made: {error}"),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rusqlite::Connection;

    use super::*;

    /// A database whose log has the creation of a table and this many commits, as after a kill.
    fn killed(folder: &Path, commits: usize) -> PathBuf {
        let (live, dead) = (folder.join("live.db"), folder.join("dead.db"));
        let db = Connection::open(&live).unwrap();
        db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (n)")
            .unwrap();
        (0..commits).for_each(|n| {
            db.execute("INSERT INTO t VALUES (?1)", [n as i64]).unwrap();
        });
        fs::copy(&live, &dead).unwrap();
        fs::copy(folder.join("live.db-wal"), folder.join("dead.db-wal")).unwrap();
        dead
    }

    fn rows(database: &Path) -> u64 {
        let db = Connection::open(database).unwrap();
        let rows: u32 = db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        rows.into()
    }

    fn overwrite(log: &Path, at: usize, with: &[u8]) {
        let mut bytes = fs::read(log).unwrap();
        bytes[at..at + with.len()].copy_from_slice(with);
        fs::write(log, bytes).unwrap();
    }

    #[test]
    fn a_whole_log_is_counted_as_sqlite_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let database = killed(folder.path(), 10);

        let found = read(&beside(&database, "-wal")).unwrap();

        let LeftLog::Pages(pages) = found else { panic!("{found:?}") };
        assert_eq!((pages.lost, pages.commits_lost), (0, 0));
        assert_eq!(pages.commits, rows(&database) + 1, "the table is a commit too");
    }

    #[test]
    fn a_damaged_page_in_the_middle_loses_exactly_what_sqlite_forgets() {
        let folder = tempfile::tempdir().unwrap();
        let database = killed(folder.path(), 10);
        let log = beside(&database, "-wal");
        let frame = FRAME_HEADER_LEN + 4096;
        // The creation of the table takes two frames; the sixth is the fourth insert.
        overwrite(&log, HEADER_LEN + 5 * frame + FRAME_HEADER_LEN, &[0; 512]);

        let LeftLog::Pages(pages) = read(&log).unwrap() else { panic!("it has pages") };

        assert_eq!((pages.valid, pages.lost), (5, 7));
        assert_eq!((pages.commits, pages.commits_lost), (4, 7));
        assert_eq!(rows(&database), pages.commits - 1);
    }

    #[test]
    fn a_damaged_header_is_told_and_the_log_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let database = killed(folder.path(), 3);
        let log = beside(&database, "-wal");
        let bytes = fs::metadata(&log).unwrap().len();
        overwrite(&log, 0, &[0xff; 32]);

        assert_eq!(read(&log).unwrap(), LeftLog::HeaderDamaged { bytes });
        assert!(!examine(&database).unwrap(), "the stop was not clean");

        assert_eq!(fs::read(beside(&log, ".damaged")).unwrap(), fs::read(&log).unwrap());
    }

    #[test]
    fn what_an_older_generation_left_behind_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let db = Connection::open(&path).unwrap();
        db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (n)")
            .unwrap();
        (0..10).for_each(|n| {
            db.execute("INSERT INTO t VALUES (?1)", [n]).unwrap();
        });
        // The log begins anew, and the next commit overwrites its first pages only.
        db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        db.execute("INSERT INTO t VALUES (11)", []).unwrap();

        let found = read(&beside(&path, "-wal")).unwrap();

        assert_eq!(found, LeftLog::Pages(Pages { valid: 1, commits: 1, lost: 0, commits_lost: 0 }));
    }

    #[test]
    fn a_clean_stop_leaves_nothing_to_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        Connection::open(&path)
            .unwrap()
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n)")
            .unwrap();

        assert!(examine(&path).unwrap());
    }
}
