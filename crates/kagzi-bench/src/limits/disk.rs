use crate::percentile::round;
use anyhow::Context;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Appends and syncs 4 KiB again and again, as a log would: growing the file is part of the price.
pub fn fdatasync_per_s(dir: &Path, span: Duration) -> anyhow::Result<f64> {
    let mut file = File::create_new(dir.join("fdatasync")).context("could not create a file to sync")?;
    let block = [0x6b; 4096];
    let began = Instant::now();
    let mut count = 0u32;
    while began.elapsed() < span {
        file.write_all(&block)?;
        file.sync_data()?;
        count += 1;
    }
    Ok(round(f64::from(count) / began.elapsed().as_secs_f64(), 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_means_nothing_was_synced() {
        let dir = tempfile::tempdir().unwrap();

        assert_eq!(fdatasync_per_s(dir.path(), Duration::ZERO).unwrap(), 0.0);
    }
}
