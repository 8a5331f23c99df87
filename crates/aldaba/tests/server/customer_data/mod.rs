mod commands;
mod erasing;
mod exporting;
