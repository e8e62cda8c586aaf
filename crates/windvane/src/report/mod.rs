//! What people look at: figures, and one page that needs nothing but itself.

pub mod page;
pub mod qmap;
pub mod views;
