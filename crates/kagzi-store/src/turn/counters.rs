//! What housekeeping did in a turn, counted once it is committed: a turn that is repeated counts once.

use crate::LaneStats;

#[derive(Debug, Default)]
pub(super) struct TurnCounters {
    pub runs_retired: u64,
    pub events_retired: u64,
    pub schedule_fires: u64,
    pub schedule_overlapped: u64,
    pub schedule_missed: u64,
    pub schedule_buffered: u64,
    /// Of each run that a schedule started because its time had come.
    pub schedule_lateness_us: Vec<u64>,
}

impl TurnCounters {
    pub fn count(self, stats: &LaneStats) {
        LaneStats::add(&stats.runs_retired, self.runs_retired);
        LaneStats::add(&stats.events_retired, self.events_retired);
        LaneStats::add(&stats.retention_batches, u64::from(self.runs_retired + self.events_retired > 0));
        LaneStats::add(&stats.schedule_fires, self.schedule_fires);
        LaneStats::add(&stats.schedule_overlapped, self.schedule_overlapped);
        LaneStats::add(&stats.schedule_missed, self.schedule_missed);
        LaneStats::add(&stats.schedule_buffered, self.schedule_buffered);
        for late_us in self.schedule_lateness_us {
            stats.schedule_lateness.observe(late_us);
        }
    }
}
