//! How far something is, drawn on a terminal and nowhere else.

pub use indicatif::ProgressBar;
use indicatif::{ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A bar on stderr, which draws nothing unless that is a terminal.
pub fn bar(title: &str, total: u64) -> ProgressBar {
    let style = style("{msg:20} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}");
    ProgressBar::new(total).with_style(style).with_message(title.to_owned())
}

/// Something that goes on for an unknown time, on stdout; it draws nothing unless that is a terminal.
pub fn spinner(text: &str) -> ProgressBar {
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
    spinner.set_style(style("{spinner} {msg} {elapsed}"));
    spinner.set_message(text.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is a constant and valid")
}
