//! Sets how the allocator treats freed memory.

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// `mi_option_purge_delay`, for which the bindings have no name.
const PURGE_DELAY: mi_option_t = 15;
/// Freed payloads of a megabyte would otherwise stay with the process for a second, which at a
/// thousand of them a second is most of its memory. Shorter ones were seen to cost throughput.
const MILLIS: std::ffi::c_long = 50;

/// Returns freed memory to the system soon.
#[expect(
    unsafe_code,
    reason = "the allocator takes its options in no other way than by variables of the environment"
)]
pub fn give_back_soon() {
    // SAFETY: the call writes one value of a table inside the allocator, which exists from the start of
    // the process on; the allocator reads it with each purge. It is made before other threads are.
    unsafe { mi_option_set(PURGE_DELAY, MILLIS) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libmimalloc_sys::mi_option_get;

    #[test]
    #[expect(unsafe_code, reason = "reading the option back")]
    fn the_number_names_the_purge_delay() {
        // SAFETY: reads one value of the allocator's table.
        let read = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(read(), 1000, "the allocator's own default, which tells this option from its neighbours");
        give_back_soon();
        assert_eq!(read(), MILLIS);
    }
}
