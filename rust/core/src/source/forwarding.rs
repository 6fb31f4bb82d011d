//! Methods that a wrapper of a source passes on: it has the fields `upstream` and `page_sizes`.

/// The methods of `RegionSource` that all wrappers pass on; `pages` is the wrapper itself if its upstream has pages.
macro_rules! forward_region_source {
    () => {
        fn joins_regions(&self) -> bool {
            self.upstream.joins_regions()
        }

        fn starts_at_zero(&self) -> bool {
            self.upstream.starts_at_zero()
        }

        fn discards(&self) -> bool {
            self.upstream.discards()
        }

        fn discard(&mut self, span: $crate::source::Grant) {
            self.upstream.discard(span);
        }

        fn pages(&mut self) -> Option<&mut dyn $crate::source::PageSource> {
            if self.page_sizes.exist { Some(self) } else { None }
        }

        fn guard(&self) -> Option<alloc::sync::Arc<dyn $crate::guard::MemoryGuard>> {
            self.upstream.guard()
        }
    };
}

/// The methods of `PageSource` that return page sizes.
macro_rules! forward_page_sizes {
    () => {
        fn granule(&self) -> u64 {
            self.page_sizes.granule
        }

        fn page_size(&self) -> u64 {
            self.page_sizes.default
        }
    };
}

pub(super) use {forward_page_sizes, forward_region_source};
