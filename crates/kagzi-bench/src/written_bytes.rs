//! What a process had written to disk.

/// Bytes that a process caused to be written to disk since its start: of an SQLite server the log, its
/// checkpoints and nothing else. `None` where there is no /proc, or it may not be read.
pub fn so_far(pid: u32) -> Option<u64> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?)
}

fn parse(io: &str) -> Option<u64> {
    io.lines().find_map(|line| line.strip_prefix("write_bytes:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_read_from_the_io_file() {
        let io = "rchar: 9\nwchar: 77\nread_bytes: 0\nwrite_bytes: 40960\ncancelled_write_bytes: 1\n";

        assert_eq!(parse(io), Some(40_960));
        assert_eq!(parse("rchar: 9\n"), None);
    }
}
