//! The text that Prometheus reads.

use std::fmt::Write;

use kagzi_store::HistogramRead;

use super::catalogue::{Kind, Metric};

#[derive(Default)]
pub struct Page {
    pub text: String,
}

impl Page {
    /// A metric without labels.
    pub fn value(&mut self, metric: &Metric, value: f64) {
        self.head(metric);
        self.line(metric.name, &[], value);
    }

    /// A metric with one line per set of labels, in the order of the metric's labels.
    pub fn values<'v>(&mut self, metric: &Metric, values: impl IntoIterator<Item = (Vec<&'v str>, f64)>) {
        self.head(metric);
        for (labels, value) in values {
            let pairs: Vec<(&str, &str)> = metric.labels.iter().copied().zip(labels).collect();
            self.line(metric.name, &pairs, value);
        }
    }

    /// `unit` is what one of the histogram's numbers is worth: 1e-6 for microseconds as seconds.
    pub fn histogram(&mut self, metric: &Metric, read: &HistogramRead, unit: f64) {
        self.histograms(metric, [(Vec::new(), read.clone())], unit);
    }

    /// The same, one for each set of labels.
    pub fn histograms<'v>(
        &mut self,
        metric: &Metric,
        reads: impl IntoIterator<Item = (Vec<&'v str>, HistogramRead)>,
        unit: f64,
    ) {
        assert_eq!(metric.kind, Kind::Histogram, "{} is a histogram", metric.name);
        self.head(metric);
        let bucket = format!("{}_bucket", metric.name);
        for (labels, read) in reads {
            let pairs: Vec<(&str, &str)> = metric.labels.iter().copied().zip(labels).collect();
            let up_to = |bound: &'static str| [pairs.as_slice(), &[("le", bound)]].concat();
            for (bound, count) in &read.buckets {
                let bound = (*bound as f64 * unit).to_string();
                self.line(&bucket, &[pairs.as_slice(), &[("le", &bound)]].concat(), *count as f64);
            }
            self.line(&bucket, &up_to("+Inf"), read.count as f64);
            self.line(&format!("{}_sum", metric.name), &pairs, read.sum as f64 * unit);
            self.line(&format!("{}_count", metric.name), &pairs, read.count as f64);
        }
    }

    fn head(&mut self, metric: &Metric) {
        let Metric { name, kind, help, .. } = metric;
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name())
            .expect("a String takes all");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let open = if at == 0 { '{' } else { ',' };
            write!(self.text, "{open}{label}=\"{}\"", escaped(text)).expect("a String takes all");
        }
        let close = if labels.is_empty() { "" } else { "}" };
        writeln!(self.text, "{close} {value}").expect("a String takes all");
    }
}

/// Names of queues are the users': they may hold anything.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_histograms_are_cumulative() {
        let mut page = Page::default();
        let metric = Metric { name: "m", kind: Kind::Gauge, labels: &["queue"], help: "h" };
        page.values(&metric, [(vec!["a\"b\\c"], 2.0)]);
        let metric = Metric { name: "h", kind: Kind::Histogram, labels: &[], help: "h" };
        let read = HistogramRead { buckets: vec![(500, 1), (1000, 3)], count: 4, sum: 3_000 };
        page.histogram(&metric, &read, 1e-6);

        assert_eq!(
            page.text,
            "# HELP m h\n# TYPE m gauge\nm{queue=\"a\\\"b\\\\c\"} 2\n\
             # HELP h h\n# TYPE h histogram\nh_bucket{le=\"0.0005\"} 1\nh_bucket{le=\"0.001\"} 3\n\
             h_bucket{le=\"+Inf\"} 4\nh_sum 0.003\nh_count 4\n"
        );
    }
}
