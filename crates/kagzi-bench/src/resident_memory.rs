/// The memory a process has resident now, in MB; `None` where there is no /proc.
pub fn megabytes(pid: u32) -> Option<f64> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn parse(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(crate::percentile::round(kilobytes / 1024.0, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_size_is_read_from_the_status_file() {
        let status = "Name:\tkagzi\nVmHWM:\t   99999 kB\nVmRSS:\t   46080 kB\nThreads:\t4\n";

        assert_eq!(parse(status), Some(45.0));
        assert_eq!(parse("Name:\tkagzi\n"), None);
    }
}
