//! What every list has in common: how much of it is shown, from where on, and what is said under it.

use kagzi::client::Page;
use serde::Serialize;

use crate::output;

#[derive(clap::Args)]
pub struct Paging {
    /// How many to list.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub limit: u16,
    /// Go on where an earlier list ended.
    #[arg(long, value_name = "TOKEN")]
    pub page_token: Option<String>,
    /// Say how many match, counted up to 10,000.
    #[arg(long)]
    pub total: bool,
}

impl Paging {
    pub fn token(&self) -> String {
        self.page_token.clone().unwrap_or_default()
    }
}

/// What stands beside the rows, in JSON and under a table.
#[derive(Debug, Default, Serialize)]
pub struct Foot {
    pub next_page_token: Option<String>,
    pub prev_page_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Total>,
    /// Rows that the server cannot read and left out.
    #[serde(skip_serializing_if = "is_none")]
    pub unreadable: u32,
}

#[derive(Debug, Serialize)]
pub struct Total {
    count: u64,
    /// There are more than were counted.
    capped: bool,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

impl Foot {
    /// The rows of a page, and what is said under them.
    pub fn split<T, V: From<T>>(page: Page<T>, paging: &Paging) -> (Vec<V>, Foot) {
        let total = page.total.filter(|_| paging.total);
        let foot = Foot {
            next_page_token: page.next,
            prev_page_token: page.previous,
            total: total.map(|total| Total { count: total.count, capped: total.capped }),
            unreadable: page.unreadable,
        };
        (page.rows.into_iter().map(V::from).collect(), foot)
    }

    pub fn note(&self) {
        self.sentences().iter().for_each(|sentence| output::note(sentence));
        output::note_pages(self.next_page_token.as_deref(), self.prev_page_token.as_deref());
    }

    fn sentences(&self) -> Vec<String> {
        let total = self.total.as_ref().map(|total| match total.capped {
            true => "more than 10,000 in all".to_owned(),
            false => format!("{} in all", total.count),
        });
        let unreadable = (self.unreadable > 0)
            .then(|| format!("{} cannot be read and are left out; see: kagzi doctor", self.unreadable));
        [total, unreadable].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_and_how_many_there_are_is_said() {
        let foot = Foot { total: Some(Total { count: 7, capped: false }), unreadable: 2, ..Foot::default() };

        assert_eq!(foot.sentences(), ["7 in all", "2 cannot be read and are left out; see: kagzi doctor"]);
        assert_eq!(Foot::default().sentences(), Vec::<String>::new());
    }
}
