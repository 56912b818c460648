use indicatif::{ProgressBar, ProgressStyle};

/// A bar on stderr, which draws nothing unless that is a terminal.
pub fn bar(title: &str, total: u64) -> ProgressBar {
    let template = "{msg:20} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}";
    let style = ProgressStyle::with_template(template).expect("the template is a constant and valid");
    ProgressBar::new(total).with_style(style).with_message(title.to_owned())
}
