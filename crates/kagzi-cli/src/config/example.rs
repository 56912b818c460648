use crate::output;

pub fn perform() -> anyhow::Result<()> {
    output::print(kagzi_server::config::example().trim_end())
}
