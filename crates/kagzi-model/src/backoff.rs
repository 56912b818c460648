//! Backoff: how long to wait after the n-th failed execution. The formulas and their test vectors are in
//! `docs/retries.md`; every delay is capped at the policy's maximum, after jitter.

pub use kagzi_catalogue::Backoff;

use crate::Millis;

/// Everything that a delay is computed from.
#[derive(Debug, Clone, Copy)]
pub struct Delay<'a> {
    pub backoff: Backoff,
    pub initial_ms: Millis,
    pub coefficient: f64,
    pub maximum_ms: Millis,
    pub jitter: f64,
    pub schedule_ms: &'a [Millis],
    /// Identifies run, step and attempt: the same seed always gives the same jitter.
    pub seed: u64,
}

impl Delay<'_> {
    /// The delay after the `attempt`-th failed execution, counted from 1.
    pub fn after(&self, attempt: u32) -> Millis {
        let n = attempt.max(1);
        let initial = self.initial_ms as f64;
        let exponential = || initial * self.coefficient.powi(i32::try_from(n - 1).unwrap_or(i32::MAX));
        let ms = match self.backoff {
            Backoff::Fixed | Backoff::FromHeader => initial,
            Backoff::Exponential => exponential(),
            Backoff::ExponentialJitter => {
                // Capped before and after: an infinite product has no jitter.
                let base = exponential().min(self.maximum_ms as f64);
                base * (1.0 - self.jitter + self.random(n) * 2.0 * self.jitter)
            }
            Backoff::FullJitter => exponential().min(self.maximum_ms as f64) * self.random(n),
            Backoff::Linear => initial * f64::from(n),
            Backoff::Fibonacci => initial * fibonacci(n),
            Backoff::Custom => {
                let listed = self.schedule_ms.get(n as usize - 1).copied();
                listed.unwrap_or(self.maximum_ms) as f64
            }
        };
        // `as` saturates, so an infinite delay becomes the maximum.
        (ms.round() as Millis).clamp(0, self.maximum_ms)
    }

    /// A number in 0..1 that depends on nothing but the seed and the attempt (splitmix64).
    fn random(&self, attempt: u32) -> f64 {
        let mut z = self.seed.wrapping_add(u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The n-th Fibonacci number as a float; past the 1475th it is infinite, which the cap takes care of.
fn fibonacci(n: u32) -> f64 {
    let (mut a, mut b) = (0.0, 1.0);
    for _ in 0..n.min(1500) {
        (a, b) = (b, a + b);
    }
    a
}

/// Turns text into a seed (FNV-1a: stable across versions and machines).
pub fn seed(parts: &[&[u8]]) -> u64 {
    parts.iter().copied().flatten().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Delay<'_> = Delay {
        backoff: Backoff::Exponential,
        initial_ms: 1_000,
        coefficient: 2.0,
        maximum_ms: 60_000,
        jitter: 0.5,
        schedule_ms: &[],
        seed: 7,
    };

    fn delays(delay: Delay<'_>) -> Vec<Millis> {
        (1..=7).map(|n| delay.after(n)).collect()
    }

    #[test]
    fn the_documented_vectors_hold() {
        let of = |backoff| delays(Delay { backoff, ..BASE });

        assert_eq!(of(Backoff::Fixed), [1_000; 7]);
        assert_eq!(of(Backoff::Exponential), [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]);
        assert_eq!(of(Backoff::Linear), [1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000]);
        assert_eq!(of(Backoff::Fibonacci), [1_000, 1_000, 2_000, 3_000, 5_000, 8_000, 13_000]);
        let schedule_ms = &[10, 20, 500][..];
        let custom = delays(Delay { backoff: Backoff::Custom, schedule_ms, ..BASE });
        assert_eq!(custom, [10, 20, 500, 60_000, 60_000, 60_000, 60_000]);
    }

    #[test]
    fn jitter_stays_in_its_band_and_below_the_cap() {
        for seed in 0..1_000 {
            let jittered = Delay { backoff: Backoff::ExponentialJitter, jitter: 0.3, seed, ..BASE };
            let full = Delay { backoff: Backoff::FullJitter, seed, ..BASE };
            assert!((700..=1_300).contains(&jittered.after(1)));
            assert!((2_800..=5_200).contains(&jittered.after(3)));
            assert!(jittered.after(1_000) <= 60_000);
            assert!((0..=4_000).contains(&full.after(3)));
        }
    }

    #[test]
    fn jitter_is_the_same_every_time_and_differs_between_runs() {
        let of = |seed| Delay { backoff: Backoff::ExponentialJitter, seed, ..BASE }.after(1);

        assert_eq!(of(seed(&[b"run", b"step"])), of(seed(&[b"run", b"step"])));
        let distinct: std::collections::HashSet<_> = (0..100).map(of).collect();
        assert!(distinct.len() > 80);
    }

    #[test]
    fn no_attempt_number_overflows() {
        for backoff in Backoff::ALL {
            assert!((0..=60_000).contains(&Delay { backoff, ..BASE }.after(u32::MAX)), "{backoff:?}");
        }
    }
}
