//! Which of many workers has the most room, without looking at all of them for every run.
//!
//! While a turn gives runs out, room only shrinks. So what was once seen is never too little: the roomiest is
//! looked at again when its turn comes, and put back with what it has now.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::Demand;

/// The demands of one key by the room that they had when they were last looked at; of equal ones the first.
#[derive(Default)]
pub(super) struct Roomiest {
    seen: BinaryHeap<(u32, Reverse<u64>)>,
}

impl Roomiest {
    /// Looks at all demands of a key, once a turn.
    pub fn of<'d>(demands: impl Iterator<Item = &'d Demand>, room: impl Fn(&Demand) -> u32) -> Self {
        let seen = demands.map(|demand| (room(demand), Reverse(demand.id))).filter(|(room, _)| *room > 0);
        Roomiest { seen: seen.collect() }
    }

    /// The demand with the most room now, by what `room` says of each that is looked at.
    pub fn pick(&mut self, room: impl Fn(u64) -> u32) -> Option<u64> {
        while let Some((seen, Reverse(id))) = self.seen.pop() {
            let now = room(id);
            if now > 0 {
                self.seen.push((now, Reverse(id)));
            }
            if now == seen {
                return Some(id);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use kagzi_model::WorkerId;
    use tokio::sync::mpsc::unbounded_channel;
    use uuid::Uuid;

    use super::*;

    fn demand(id: u64) -> Demand {
        let worker = WorkerId(Uuid::from_u128(id.into()));
        Demand { id, worker, types: Vec::new(), once: false, lease_ms: 1, deliver: unbounded_channel().0 }
    }

    #[test]
    fn a_run_is_given_by_a_look_at_few_of_a_thousand_workers_and_to_the_one_with_the_most_room() {
        let demands: Vec<Demand> = (0..1_000).map(demand).collect();
        let mut rooms: Vec<u32> = (0..1_000).map(|id| id * 7_919 % 5).collect();
        let looks = Cell::new(0);
        let mut roomiest = Roomiest::of(demands.iter(), |demand| rooms[demand.id as usize]);
        let mut given = 0;

        let picked = |roomiest: &mut Roomiest, rooms: &[u32]| {
            roomiest.pick(|id| {
                looks.set(looks.get() + 1);
                rooms[id as usize]
            })
        };
        while let Some(id) = picked(&mut roomiest, &rooms) {
            let best = (0..1_000).rev().max_by_key(|id| rooms[*id]).expect("there are some");
            assert_eq!((id as usize, rooms[id as usize] > 0), (best, true));
            rooms[id as usize] -= 1;
            given += 1;
        }

        assert_eq!((given, rooms.iter().sum::<u32>()), (2_000, 0));
        assert!(looks.get() <= 3 * given, "{} looks for {given} runs", looks.get());
    }
}
