//! The suite that every backend passes.

mod loopback {
    use crate::support::{loopback_copy, loopback_store};

    lkr_vectors::vector_store_suite!(loopback_store(), copy: loopback_copy);
}

mod real {
    use crate::support::{real_copy, real_store};

    lkr_vectors::vector_store_suite!(real_store(), copy: real_copy);
}
