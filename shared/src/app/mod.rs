//! Operations and jobs, their shared state, and the code that serves them.

mod operation;
mod serve;
mod state;

pub use operation::{
    Access, COUNTING_TIME_BUDGET, Handler, Job, JobFuture, KeyHandler, Operation, ResponseFuture,
    TIME_BUDGET,
};
pub use serve::{StartError, respond, serve, serve_job, warm_up};
pub use state::{App, CURSOR_KEY_VARIABLE, Clock, Deadline, Ids};
